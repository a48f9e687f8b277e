"""The shipped lessons and puzzles: their files, numbers, titles and questions."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from shape_inference.escaping import Harmless

from ..files.shipped import copy_files, folder
from .cells import Cell, cells_of, play, read_cells_text, title_of
from .lesson import Question, session
from .puzzle import Puzzle, error_text

_NUMBERED = re.compile(r"(\d\d)_(\w+)\.py")


class LessonError(Harmless):
    """Raised if a lesson or puzzle does not exist, or if a learner's file cannot be graded."""


@frozen
class ShelfEntry:
    """A shipped lesson or puzzle: its number, name and file."""

    number: int
    name: str
    path: Path

    @property
    def cells(self) -> list[Cell]:
        return cells_of(self.path.read_text(encoding="utf-8"))

    @property
    def title(self) -> str:
        """The heading without the number."""
        return title_of(self.cells).partition(". ")[2]

    @property
    def number_of_questions(self) -> int:
        """The number of questions in the text of a lesson."""
        return sum(cell.questions for cell in self.cells)


def entries(kind: str) -> dict[int, ShelfEntry]:
    """The lessons or puzzles (`lessons`, `puzzles`) by number."""
    found = ((_NUMBERED.fullmatch(path.name), path) for path in sorted((folder() / kind).glob("*.py")))
    return {int(match[1]): ShelfEntry(int(match[1]), match[2], path) for match, path in found if match}


def entry(kind: str, number: int) -> ShelfEntry:
    """The lesson or puzzle of this number; raises LessonError if it does not exist."""
    known = entries(kind)
    if number not in known:
        raise LessonError(f"{kind.removesuffix('s')} {number} does not exist: choose from {_ranges([*known])}")
    return known[number]


def _ranges(numbers: list[int]) -> str:
    """Ascending numbers as text, such as 1 to 20, 23 to 24."""
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    return ", ".join(f"{a} to {b}" if a < b else str(a) for a, b in zip(starts, ends, strict=True))


def copy(kind: str, into: Path) -> list[Path]:
    """Copy all lessons, or the stubs of all puzzles, to a new folder inside `into`; if one copy fails, none is kept.

    Returns the new files. Raises FileExistsError if the folder exists, OSError if it cannot be written.
    """
    files = {Path(entry.path.name): entry.path for entry in entries(kind).values()}
    copy_files(files, into / kind)
    return [into / kind / name for name in files]


@define
class CollectingSession:
    """Collects the questions of a file and the things that it shows."""

    questions: list[Question] = field(factory=list)
    things: list[Any] = field(factory=list)

    def ask(self, question: Question) -> None:
        self.questions.append(question)

    def show(self, thing: Any) -> None:
        self.things.append(thing)


def questions_in(path: Path) -> list[Question]:
    """The questions of a shipped or copied lesson, with its guesses; its printed output is discarded."""
    collected = CollectingSession()
    with session(collected), contextlib.redirect_stdout(io.StringIO()):
        play(path, cells_of(read_cells_text(path)), lambda cell: None)
    return collected.questions


@cache
def puzzle_of(path: Path) -> Puzzle:
    """The Puzzle that a puzzle's file defines."""
    puzzle = runpy.run_path(str(path))["puzzle"]
    assert isinstance(puzzle, Puzzle)
    return puzzle


def solution_in(path: Path) -> Any:
    """The function `solution` of a learner's file, which runs in this process; raises LessonError if it has none."""
    return solution_of_text(source_in(path), str(path))


def source_in(path: Path) -> str:
    """The code of a learner's file, a script or a notebook; raises LessonError if it cannot be read."""
    try:
        return read_cells_text(path)
    except Exception as error:
        raise LessonError(error_text(error)) from None


class _Nowhere(io.TextIOBase):
    """Discards what is written."""

    def write(self, text: str) -> int:
        return len(text)


def solution_of_text(text: str, file: str) -> Any:
    """Run the code of a learner's file, and return its function `solution`; raises LessonError if it has none."""
    space: dict[str, Any] = {"__name__": "solution", "__file__": file}
    try:
        with contextlib.redirect_stdout(_Nowhere()):
            exec(compile(text, file, "exec"), space)
    except (Exception, SystemExit) as error:
        raise LessonError(error_text(error)) from None
    if not callable(space.get("solution")):
        raise LessonError(f"{file} does not define a function `solution`")
    return space["solution"]


def solution_of(number: int) -> Path:
    """The file of the shipped solution of a puzzle."""
    shipped = entry("puzzles", number)
    return shipped.path.parent / "solutions" / shipped.path.name
