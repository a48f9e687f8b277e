"""Jobs of the process for a learner's code: write a solution down, collect guesses, run cells, judge a text.

Each job takes the data of a request and returns the data of an answer (`JOBS`). Only `judge_solution` runs none of the
learner's code: it judges the text that another process has written.
"""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from shape_inference import XbuildError

from .. import running
from ..checking import check
from ..core.graph import Computation, Module, ModuleGroup
from ..text.reader import parse_hlo
from ..traces import Trace
from .cells import cells_of, play
from .comparison import comparison_html
from .lesson import OPEN, as_html, session
from .puzzle import PuzzleTask, Unsolved, error_text, judgement_text
from .shelf import CollectingSession, LessonError, entry, puzzle_of, solution_of_text

JobData = Mapping[str, Any]
Answer = dict[str, Any]


def prepare() -> None:
    """Import what jobs import on first use, so that a process that waits for a request answers at once."""
    module = parse_hlo("HloModule first ENTRY first { ROOT x = f32[] parameter(0) }")
    _part(module), _part(running.trace(module, [[1.0]])), check(module)


# ----------------------------------------------------------------------------
# A solution of a puzzle, and its grade


def write_solution(request: JobData) -> Answer:
    """The text of a solution: HLO text, or the answers as JSON."""
    solution = solution_of_text(request["source"], request["file"])
    return {"text": PuzzleTask.from_dict(request["task"]).write(solution)}


def judge_solution(request: JobData) -> Answer:
    """The grade of the text of a solution, its picture, and the example on which it differs from the specification."""
    puzzle = puzzle_of(entry("puzzles", request["number"]).path)
    found = puzzle.judge_text(request["text"], running.Limits(seconds=request["seconds"], bytes=request["bytes"]))
    parts = []
    if found.example is not None:
        parts.append({"kind": "picture", "text": comparison_html(found.example)})
    if (drawn := found.verdict or found.program) is not None:
        parts.append(_part(drawn))
    words = judgement_text(puzzle, found)
    return {"words": words, "solved": found.is_solved, "score": dict(found.score), "parts": parts}


# ----------------------------------------------------------------------------
# The guesses of a lesson


def collect_guesses(request: JobData) -> Answer:
    """The questions of a learner's lesson, by their words, and the guesses; a question without a guess is left out."""
    collected = CollectingSession()
    try:
        with session(collected):
            play(Path(request["file"]), cells_of(request["source"]), lambda cell: None)
    except (Exception, SystemExit) as error:
        raise LessonError(error_text(error)) from None
    return {
        "asked": [question.words for question in collected.questions],
        "guesses": {each.words: _plain(each.guess) for each in collected.questions if each.guess is not OPEN},
    }


def _plain(guess: Any) -> Any:
    """A guess as JSON: numbers, texts and lists of them."""
    if guess is None or isinstance(guess, str | bool | int | float):
        return guess
    if isinstance(guess, list | tuple):
        return [_plain(part) for part in guess]
    array = np.asarray(guess)
    return _plain(array.tolist()) if array.dtype.kind in "biuf" else str(guess)


# ----------------------------------------------------------------------------
# Cells

_MOST_PRINTED = 50_000  # characters
_MOST_SHOWN = 20  # pictures
_DRAWN = (Computation, Module, ModuleGroup)


class _Printed(io.StringIO):
    """What a cell prints; raises Unsolved if it is too much."""

    def write(self, text: str) -> int:
        if self.tell() + len(text) > _MOST_PRINTED:
            raise Unsolved(f"the code prints more than {_MOST_PRINTED:,} characters")
        return super().write(text)


@define
class _Shown(CollectingSession):
    """The parts that a cell shows, in their order: what it prints, and pictures."""

    parts: list[dict[str, str]] = field(factory=list)
    printed: _Printed = field(factory=_Printed)

    def show(self, thing: Any) -> None:
        self.flush()
        if len(self.parts) > 2 * _MOST_SHOWN:
            raise Unsolved(f"the code shows more than {_MOST_SHOWN} pictures")
        self.parts.append(_part(thing))

    def flush(self) -> None:
        text = self.printed.getvalue().rstrip()
        self.printed.seek(0)
        self.printed.truncate()
        if text:
            self.parts.append({"kind": "text", "text": text})


def run_cells(request: JobData) -> Answer:
    """Run cells one after another in one namespace; returns the parts that the last one shows, as a notebook does.

    If a cell fails, the parts are those that it showed until then, and its error.
    """
    space: dict[str, Any] = {"__name__": "__main__", "__file__": ""}
    shown = _Shown()
    for name, code in request["cells"]:
        shown = _Shown()
        try:
            with session(shown), contextlib.redirect_stdout(shown.printed), contextlib.redirect_stderr(shown.printed):
                _run_cell(name, code, space, shown)
            shown.flush()
        except (Exception, SystemExit) as error:
            shown.flush()
            shown.parts.append({"kind": "error", "text": _fault_text(error)})
            break
    return {"parts": shown.parts}


def _run_cell(name: str, code: str, space: dict[str, Any], shown: _Shown) -> None:
    """Run a cell; if it ends with an expression, show the value."""
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), space)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), name, "eval"), space)
        if isinstance(value, (*_DRAWN, Trace)):
            shown.show(value)
        elif value is not None:
            shown.printed.write(f"{value}\n")


def _fault_text(error: BaseException) -> str:
    return str(error) if isinstance(error, Unsolved | XbuildError) else error_text(error)


def _part(thing: Any) -> dict[str, str]:
    """A thing as part of an answer: a run as a page with a script, all other things as pictures without one."""
    from ..pages import page_text

    if isinstance(thing, Trace):
        return {"kind": "page", "text": page_text(thing)}
    return {"kind": "picture", "text": as_html(thing)}


JOBS: Mapping[str, Callable[[JobData], Answer]] = {
    job.__name__: job for job in (write_solution, judge_solution, collect_guesses, run_cells)
}
