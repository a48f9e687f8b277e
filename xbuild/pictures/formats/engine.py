"""Drawing by graphviz in a child process under a time limit: the program `dot` on PATH, or that inside pygraphviz."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from shape_inference.escaping import Harmless

SECONDS = 5.0
_LONGEST = 86_400.0
"""The operating system waits no longer than it can count."""


class DrawingError(Harmless, RuntimeError):
    """No picture: there is no engine, it took too long, or it failed."""


def render(dot: str, form: str, seconds: float = SECONDS, engine: str = "nop2") -> bytes:
    """What graphviz makes of its text: a png, pdf or svg; the engine nop2 takes every place as the text has it.

    Raises DrawingError, which says what can be done, where there is no engine, it fails or it takes too long.
    """
    command = _command(engine, form)
    try:
        done = subprocess.run(
            command, input=dot.encode(), capture_output=True, timeout=min(seconds, _LONGEST), check=False
        )
    except subprocess.TimeoutExpired:
        raise DrawingError(
            f"graphviz took more than {seconds:g} seconds and was stopped; the formats svg, html, mermaid, txt and "
            "dot do without it, and a longer time can be given (seconds=, --seconds)"
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
        f"a {form} is painted by graphviz, which is not installed: `pip install 'xbuild-hlo[viz]'` brings it, or put "
        "its program `dot` on PATH; the formats svg, html, mermaid, txt and dot need neither"
    )
