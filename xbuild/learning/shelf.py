"""The lessons and puzzles that come with the package: files, numbers, titles, questions."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from shape_inference.escaping import Harmless

from ..files.shipped import folder
from .cells import Cell, cells_of, play, text_of_file, title_of
from .lesson import Question, asked_in
from .puzzle import Puzzle, raised

_NUMBERED = re.compile(r"(\d\d)_(\w+)\.py")


class LessonError(Harmless):
    """A lesson or puzzle that there is not, or a learner's file that cannot be judged."""


@frozen
class Entry:
    """A lesson or puzzle that ships: its number, its name, its file."""

    number: int
    name: str
    path: Path

    @property
    def cells(self) -> list[Cell]:
        return cells_of(self.path.read_text(encoding="utf-8"))

    @property
    def title(self) -> str:
        """The words of its heading, without the number."""
        return title_of(self.cells).partition(". ")[2]

    @property
    def number_of_questions(self) -> int:
        """How often a lesson asks, as its text has it."""
        return sum(cell.questions for cell in self.cells)


def entries(kind: str) -> dict[int, Entry]:
    """The lessons or puzzles (`lessons`, `puzzles`) by number."""
    found = ((_NUMBERED.fullmatch(path.name), path) for path in sorted((folder() / kind).glob("*.py")))
    return {int(match[1]): Entry(int(match[1]), match[2], path) for match, path in found if match}


def entry(kind: str, number: int) -> Entry:
    """The lesson or puzzle of this number; raises where there is none."""
    known = entries(kind)
    if number not in known:
        raise LessonError(f"there is no {kind.removesuffix('s')} {number}: there are {_spans([*known])}")
    return known[number]


def _spans(numbers: list[int]) -> str:
    """Rising numbers in words, as 1 to 20, 23 to 24."""
    starts = [each for each in numbers if each - 1 not in numbers]
    ends = [each for each in numbers if each + 1 not in numbers]
    return ", ".join(f"{a} to {b}" if a < b else str(a) for a, b in zip(starts, ends, strict=True))


def copy(kind: str, into: Path) -> list[Path]:
    """Copy all lessons, or the stubs of all puzzles, to a new folder inside this one; gives the new files.

    Raises FileExistsError where there is such a folder.
    """
    target = into / kind
    if target.exists():
        raise FileExistsError(17, "there is something of this name already", str(target))
    target.mkdir(parents=True)
    return [Path(shutil.copyfile(each.path, target / each.path.name)) for each in entries(kind).values()]


@define
class Collected:
    """The session that keeps the questions of a file, and what it would show."""

    questions: list[Question] = field(factory=list)
    things: list[Any] = field(factory=list)

    def ask(self, question: Question) -> None:
        self.questions.append(question)

    def show(self, thing: Any) -> None:
        self.things.append(thing)


def questions_in(path: Path) -> list[Question]:
    """The questions of a lesson, shipped or a copy, with its guesses; what it prints is dropped."""
    session = Collected()
    with asked_in(session), contextlib.redirect_stdout(io.StringIO()):
        play(path, cells_of(text_of_file(path)), lambda cell: None)
    return session.questions


def graded(number: int, path: Path) -> list[Question]:
    """The questions of the shipped lesson with the guesses of a copy of it; those that the copy lacks are open.

    Raises LessonError where the file cannot be run, or has none of the questions.
    """
    shipped = entry("lessons", number)
    found = {each.words: each.guess for each in _attempted(path)}
    wanted = questions_in(shipped.path)
    if not any(each.words in found for each in wanted):
        raise LessonError(f"{path} has no question of lesson {number}; xbuild learn --copy . gives a file that has")
    for each in wanted:
        each.guess = found.get(each.words, each.guess)
    return wanted


def _attempted(path: Path) -> list[Question]:
    try:
        return questions_in(path)
    except (Exception, SystemExit) as error:
        raise LessonError(raised(error)) from None


@cache
def puzzle_of(path: Path) -> Puzzle:
    """The Puzzle that a file of a puzzle states."""
    found = runpy.run_path(str(path))["puzzle"]
    assert isinstance(found, Puzzle)
    return found


def solution_in(path: Path) -> Any:
    """The function `solution` of a learner's file; raises LessonError where there is none."""
    space: dict[str, Any] = {"__name__": "solution", "__file__": str(path)}
    try:
        text = text_of_file(path)
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, str(path), "exec"), space)
    except (Exception, SystemExit) as error:
        raise LessonError(raised(error)) from None
    if not callable(space.get("solution")):
        raise LessonError(f"{path} has no function `solution`")
    return space["solution"]


def solution_of(number: int) -> Path:
    """The file of the solution that ships."""
    shipped = entry("puzzles", number)
    return shipped.path.parent / "solutions" / shipped.path.name
