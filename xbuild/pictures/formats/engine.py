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
"""The longest time limit, in seconds: operating systems refuse a timeout that overflows their counters."""


class DrawingError(Harmless, RuntimeError):
    """Raised where graphviz is missing, takes too long or fails, so that there is no picture."""


def render(dot: str, form: str, seconds: float = SECONDS, engine: str = "nop2") -> bytes:
    """The png, pdf or svg that graphviz draws from dot text; the engine nop2 takes every position from the text.

    Raises DrawingError, whose message states a way out, where graphviz is missing, fails or takes too long.
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
