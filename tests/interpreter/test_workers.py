"""Threads of user functions that have not returned: ended in the user's own file, left alone in a library."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interpreter.runtime.host import Worker, file_of

SPINNING = """
def spin(go_on, standing):
    standing.set()
    while go_on():
        pass
"""


def library(text: str) -> Any:
    space: dict[str, Any] = {}
    exec(compile(text, "/lib/library.py", "exec"), space)
    return space["spin"]


def started(function: Callable[[], Any]) -> Worker:
    worker = Worker(threading.Event(), file_of(function))
    worker.start(function)
    return worker


def test_a_loop_of_the_user_is_ended() -> None:
    standing, undone = threading.Event(), threading.Event()

    def forever() -> None:
        try:
            standing.set()
            while True:
                pass
        finally:
            undone.set()

    worker = started(forever)
    assert standing.wait(5)
    while not worker.outcome:  # it may stand in `set` of threading at first
        worker.leave()
        time.sleep(0.001)
    assert undone.is_set()
    assert isinstance(worker.outcome[1], SystemExit)
    worker.thread.join(5)
    assert not worker.thread.is_alive()


def test_code_of_a_library_is_left_alone() -> None:
    """It may be about to take a lock that nobody would release."""
    spin, standing, running = library(SPINNING), threading.Event(), [True]
    worker = started(lambda: spin(running.__len__, standing))
    assert standing.wait(5)
    for _ in range(50):
        worker.leave()
        time.sleep(0.001)
    assert worker.thread.is_alive()
    assert worker.outcome is None
    running.clear()
    worker.thread.join(5)
    assert worker.outcome == (None, None)


def test_a_function_that_returns_while_it_is_left_disturbs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    faults: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", faults.append)
    before = threading.active_count()
    for turn in range(300):
        rounds = np.random.default_rng(turn).integers(2000)

        def short(rounds: int = int(rounds)) -> int:
            return sum(1 for _ in range(rounds))

        worker = started(short)
        worker.leave()
        worker.thread.join(5)
        assert worker.outcome is not None
        assert worker.outcome == (rounds, None) or isinstance(worker.outcome[1], SystemExit)
        assert worker.bell.is_set()
    assert faults == []
    assert threading.active_count() == before


def test_functions_of_c_have_no_file() -> None:
    assert file_of(np.sin) is None
    assert file_of(test_functions_of_c_have_no_file) == __file__


BESIDE = """
import sys, threading, time
from interpreter.runtime.host import Worker

def quick():
    return 1

def endless():
    while True:
        time.sleep(0.001)

for function in (quick, endless):
    bell = threading.Event()
    worker = Worker(bell, __file__)
    worker.start(function)
    if function is endless:
        time.sleep(0.05)
        worker.leave()
    assert bell.wait(10)
    sys.settrace(lambda *_: None)
    for _ in range(1000):
        quick()
    sys.settrace(None)
print("traced")
"""


def test_code_that_is_traced_goes_on_after_a_worker(tmp_path: Path) -> None:
    """An exception that is cancelled in a thread keeps CPython 3.11 in a loop where code is traced."""
    (tmp_path / "beside.py").write_text(BESIDE)
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, "beside.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "traced\n", done.stderr
