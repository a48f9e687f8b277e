"""A learner's code: it runs in a process that returns data, which this process checks.

Sections:

    What code is run for: a puzzle's grade, the guesses of a lesson, the output of cells
    The processes
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from attrs import frozen

from shape_inference import XbuildError

from .. import running
from ..process.child import Ended, Process, TooMuchOutputError, finish_bounded
from ..process.limits import DeadlineError, within
from . import shelf
from .lesson import OPEN, Question
from .puzzle import Puzzle, PuzzleJudgement, Unsolved, error_text
from .sandbox import TRUSTED, Sandbox

# ----------------------------------------------------------------------------
# What code is run for: a puzzle's grade, the guesses of a lesson, the output of cells

SECONDS = 20.0
"""The seconds that a solution may take by the clock."""

PROCESSOR_SECONDS = 10
"""The seconds that a solution may take on the processor."""

MEMORY = 2 << 30
"""The bytes of address space of the process of a solution."""

MOST_OUTPUT = 1 << 20
"""The bytes of the text that a solution may return."""

MOST_SOURCE = 1 << 20
"""The bytes of the code of a solution."""

JUDGING_SECONDS = 30.0
"""The seconds that judging the text of a solution may take."""


@frozen
class Bounds:
    """What one request may take: seconds by the clock and on the processor, and bytes of its answer."""

    seconds: float
    processor_seconds: int
    output: int


def judge_source(puzzle: Puzzle, source: str, file: str, sandbox: Sandbox = TRUSTED) -> PuzzleJudgement:
    """Grade the code of a solution; the code runs in a process of its own, within limits, and only returns a text."""
    try:
        text = write_solution(puzzle, source, file, sandbox)
        with within(JUDGING_SECONDS):
            return puzzle.judge_text(text, running.Limits(seconds=JUDGING_SECONDS, bytes=MEMORY // 8))
    except (Unsolved, XbuildError) as fault:
        return PuzzleJudgement(str(fault))
    except Exception as error:  # the other solutions of a class are still graded
        return PuzzleJudgement(f"the program of the solution cannot be judged: {error_text(error)}")
    except DeadlineError:
        return PuzzleJudgement(f"judging the program of the solution takes more than {JUDGING_SECONDS:.0f} s")


def write_solution(puzzle: Puzzle, source: str, file: str, starter: Starter = TRUSTED) -> str:
    """The text of a solution, written by its process; raises Unsolved with the reason if it returns no text."""
    _check_length(source)
    request = {"job": "write_solution", "source": source, "file": file, "task": puzzle.task.to_dict()}
    return _text_in(_ask(starter, request), "text")


def grade_lesson(number: int, path: Path) -> list[Question]:
    """The questions of the shipped lesson with the guesses of a copy; see `grade_guesses`."""
    shipped = shelf.entry("lessons", number)
    return grade_guesses(
        path, lambda: shelf.questions_in(shipped.path),
        f"{path} contains no question from lesson {number}; to get files to fill in, run xbuild learn --copy .",
    )  # fmt: skip


def grade_guesses(path: Path, ask: Callable[[], list[Question]], missing: str) -> list[Question]:
    """Questions with the guesses of a learner's file, which runs in a process of its own.

    Questions that the file lacks stay open. Raises LessonError if the file cannot run, or, with the words `missing`, if
    it has none of the questions.
    """
    source = shelf.source_in(path)
    try:
        _check_length(source)
        answer = _ask(TRUSTED, {"job": "collect_guesses", "source": source, "file": str(path)})
    except Unsolved as fault:
        raise shelf.LessonError(str(fault)) from None
    asked, guesses = answer.get("asked"), answer.get("guesses")
    questions = ask()
    if (
        not isinstance(asked, list)
        or not isinstance(guesses, dict)
        or not {each.words for each in questions} & {*asked}
    ):
        raise shelf.LessonError(missing)
    for question in questions:
        question.guess = guesses.get(question.words, OPEN)
    return questions


def run_cells(cells: Sequence[tuple[str, str]], starter: Starter, bounds: Bounds) -> list[dict[str, str]]:
    """Run named cells in a process of their own; returns the parts that the last one shows.

    Each part has a `kind`, which is text, error, picture (HTML without a script) or page (a step page), and a `text`.
    Raises Unsolved with the reason if the process returns nothing.
    """
    _check_length("".join(code for _, code in cells))
    return _parts_in(_ask(starter, {"job": "run_cells", "cells": cells}, bounds))


def judge_and_draw(
    number: int, source: str, file: str, starter: Starter, judges: Starter, bounds: Bounds
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Grade the code of a solution in two processes, and draw its program and an example.

    The first process runs the code, and the second judges the text. Returns `words`, `solved` and `score`, and the
    parts. Raises Unsolved with the fault if there is no text to judge.
    """
    puzzle = shelf.puzzle_of(shelf.entry("puzzles", number).path)
    text = write_solution(puzzle, source, file, starter)
    request = {"job": "judge_solution", "number": number, "text": text, "seconds": bounds.seconds, "bytes": MEMORY // 8}
    answer = _ask(judges, request, bounds)
    grade = {"words": _text_in(answer, "words"), "solved": answer["solved"] is True, "score": dict(answer["score"])}
    return grade, _parts_in(answer)


def _check_length(source: str) -> None:
    if len(source) > MOST_SOURCE:
        raise Unsolved(f"the code of the solution has {len(source):,} characters; at most {MOST_SOURCE:,} are allowed")


def _text_in(answer: Mapping[str, Any], name: str) -> str:
    text = answer.get(name)
    if not isinstance(text, str):
        raise Unsolved("the process of the code ended without a result")
    return text


_KINDS = frozenset({"text", "error", "picture", "page"})


def _parts_in(answer: Mapping[str, Any]) -> list[dict[str, str]]:
    """The parts of an answer, which may come from the learner's code: only their known keys, as texts."""
    parts = answer.get("parts")
    found = [each for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []
    return [{"kind": each["kind"], "text": _text_in(each, "text")} for each in found if each.get("kind") in _KINDS]


# ----------------------------------------------------------------------------
# The processes


class Starter(Protocol):
    """A way to get a process that waits for a request: a sandbox starts one, and a forking process forks."""

    def process(self) -> Process:
        """A process of `child.main`."""


def _ask(starter: Starter, request: Mapping[str, Any], bounds: Bounds | None = None) -> dict[str, Any]:
    """The answer of a process to a request; raises Unsolved with its fault, or with the reason for its end."""
    bounds = bounds or Bounds(SECONDS, PROCESSOR_SECONDS, MOST_OUTPUT)
    limits = {"seconds": bounds.processor_seconds, "memory": MEMORY}
    given = json.dumps({**request, "limits": limits}).encode()
    try:
        ended = finish_bounded(starter.process(), given, seconds=bounds.seconds, most=bounds.output)
    except subprocess.TimeoutExpired:
        raise Unsolved(f"the code did not finish within {bounds.seconds:.0f} s") from None
    except TooMuchOutputError:
        raise Unsolved(f"the code returned more than {bounds.output:,} bytes") from None
    return _answer_of(ended, bounds)


def _answer_of(ended: Ended, bounds: Bounds) -> dict[str, Any]:
    try:
        answer: Any = json.loads(ended.output)
    except (ValueError, RecursionError):
        raise Unsolved(_reason_of_end(ended.status, bounds)) from None
    if not isinstance(answer, dict):
        raise Unsolved(_reason_of_end(ended.status, bounds))
    if isinstance(fault := answer.get("fault"), str) and fault:
        raise Unsolved(fault)
    return answer


def _reason_of_end(status: int, bounds: Bounds) -> str:
    """Why a process returned nothing; bubblewrap adds the number of a signal to 128."""
    number = -status if status < 0 else status - 128
    if number == getattr(signal, "SIGXCPU", 0):
        return f"the code took more than {bounds.processor_seconds} s on the processor"
    if number == getattr(signal, "SIGKILL", 0):
        return "the process of the code was killed"
    return f"the process of the code ended without a result (exit status {status})"
