"""The path of lessons and puzzles without what Pyodide lacks: threads, processes, signals, sockets and jaxlib."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WITHOUT = r"""
import sys
MISSING = ("multiprocessing", "socketserver", "fcntl", "resource", "jax", "jaxlib", "rich", "IPython", "waitress")
for name in MISSING:
    sys.modules[name] = None
import os, signal, subprocess, threading, _thread

def refuse(what):
    def fail(*arguments, **options):
        raise RuntimeError(f"Pyodide lacks {what}")
    return fail

threading.Thread.start = _thread.start_new_thread = refuse("threads")
subprocess.Popen.__init__ = os.fork = os.posix_spawn = refuse("processes")
signal.signal = signal.setitimer = signal.alarm = refuse("signals")

import xbuild.learning.page as page
from xbuild.learning import shelf
"""

PATH = r"""
for number, entry in shelf.entries("lessons").items():
    page.lesson_page(entry)
for number, entry in shelf.entries("puzzles").items():
    puzzle = shelf.puzzle_of(entry.path)
    found = puzzle.judge(shelf.solution_in(shelf.solution_of(number)))
    assert found.is_solved, (number, found)
print("all")
"""


def test_all_lessons_and_puzzles_without_threads_processes_and_signals() -> None:
    command, root = [sys.executable, "-c", WITHOUT + PATH], Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "all\n", done.stderr[-3000:]
