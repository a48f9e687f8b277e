"""Layout by graphviz in a child process, which can be stopped: the `dot` on PATH, or the one inside pygraphviz."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import time
from pathlib import Path

SECONDS = 10.0


class DrawingError(RuntimeError):
    """No picture: there is no layout engine, it took too long, or it failed."""


def render(dot: str, form: str, seconds: float = SECONDS, over: str = "") -> bytes:
    """The drawing of graphviz text as svg, png or pdf, with the lines of `over` drawn on top of it.

    Raises DrawingError, which says what can be done, where there is no engine, it fails or it takes too long.
    """
    end = time.monotonic() + seconds
    if not over:
        return _run("dot", dot, form, end, seconds)
    placed = _run("dot", dot, "dot", end, seconds).decode()
    return _run("nop2", f"{placed.rstrip().removesuffix('}')}{over}}}\n", form, end, seconds)


def _run(engine: str, dot: str, form: str, end: float, seconds: float) -> bytes:
    command = _command(engine, form)
    left = max(end - time.monotonic(), 0.01)
    try:
        done = subprocess.run(command, input=dot.encode(), capture_output=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        raise DrawingError(
            f"the layout took more than {seconds:g} seconds and was stopped; the forms txt and dot need none, "
            "and a longer time can be given (seconds=, --seconds)"
        ) from None
    if done.returncode or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        raise DrawingError(f"graphviz gave no {form} (exit code {done.returncode}): {said[-1]}")
    return done.stdout


def _command(engine: str, form: str) -> list[str]:
    if program := shutil.which("dot"):
        return [program, f"-K{engine}", f"-T{form}"]
    if importlib.util.find_spec("pygraphviz") is not None:
        return [sys.executable, "-P", str(Path(__file__).with_name("child.py")), engine, form]
    raise DrawingError(
        f"no layout engine is here for {form}: install graphviz (its `dot` on PATH), or `pip install pygraphviz`, "
        "whose wheels bring one; the forms txt and dot need none"
    )
