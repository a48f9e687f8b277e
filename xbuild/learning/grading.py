"""A class's solutions of puzzles in a folder: who solved which puzzle, at the first try or later, and how well.

A folder holds a folder for each student. A student's folder holds solutions named as the puzzles' files, such as
`03_one_hot.py`, or folders with such files, one for each try, in the order of their names.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from shape_inference.escaping import printable

from . import shelf
from .puzzle import FIGURES, PuzzleJudgement
from .sandbox import Sandbox
from .submission import judge_source

_SOLUTION = re.compile(r"(\d\d)_\w+\.(?:py|ipynb)")
_MOST_ENTRIES = 100_000
"""The most entries of a folder that are read."""


@frozen
class Try:
    """A student's solution of a puzzle: its file and its grade."""

    file: Path
    judgement: PuzzleJudgement


@frozen
class PuzzleGrade:
    """The grade of a student for a puzzle: all tries, in order."""

    student: str
    puzzle: int
    tries: Sequence[Try]

    @property
    def solved_at(self) -> int:
        """The number of the first try that solves the puzzle, counted from 1; 0 if none does."""
        return next((n for n, each in enumerate(self.tries, 1) if each.judgement.is_solved), 0)

    @property
    def first(self) -> str:
        """The result of the first try: solved, wrong, or missing without any."""
        return "missing" if not self.tries else "solved" if self.solved_at == 1 else "wrong"

    @property
    def later(self) -> str:
        """The result of the tries after the first: solved, wrong, or nothing without such tries."""
        return (
            "" if len(self.tries) < 2 else "solved" if any(t.judgement.is_solved for t in self.tries[1:]) else "wrong"
        )

    @property
    def score(self) -> Mapping[str, int]:
        """The score of the first try that solves the puzzle."""
        return self.tries[self.solved_at - 1].judgement.score if self.solved_at else {}

    @property
    def fault(self) -> str:
        """The fault of the last try, in one line, if no try solves the puzzle."""
        return "" if self.solved_at or not self.tries else " ".join(self.tries[-1].judgement.fault.split())

    def to_dict(self) -> dict[str, Any]:
        """The row of the CSV file and of the JSON document."""
        facts = {"student": self.student, "puzzle": self.puzzle, "first": self.first, "later": self.later}
        facts |= {"tries": len(self.tries), "solved_at": self.solved_at or None}
        return facts | {name: self.score.get(name) for name in FIGURES} | {"fault": self.fault}


COLUMNS = ("student", "puzzle", "first", "later", "tries", "solved_at", *FIGURES, "fault")


def find_solutions(classroom: Path) -> dict[str, dict[int, list[Path]]]:
    """The files of all tries, by student and puzzle. Links are not followed."""
    return {
        entry.name: _tries_in(Path(entry.path)) for entry in _entries(classroom) if entry.is_dir(follow_symlinks=False)
    }


def _tries_in(student: Path) -> dict[int, list[Path]]:
    """The files of a student by puzzle: those of the folders of tries, then those beside these folders."""
    found: dict[int, list[Path]] = {}
    entries = _entries(student)
    folders = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    for file in [*(file for folder in folders for file in _files_in(folder)), *_files_in(student)]:
        found.setdefault(int(file.name[:2]), []).append(file)
    return found


def _files_in(folder: Path) -> Iterator[Path]:
    for entry in _entries(folder):
        if _SOLUTION.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            yield Path(entry.path)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """The entries of a folder, numbers in names in their order: try2 comes before try10."""
    with os.scandir(folder) as found:
        entries = [entry for _, entry in zip(range(_MOST_ENTRIES), found, strict=False)]
    return sorted(
        entries, key=lambda entry: [(int(part), "") if part.isdecimal() else (-1, part) for part in _parts(entry.name)]
    )


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"(\d{1,18})", name) if part]


def grade_folder(classroom: Path, sandbox: Sandbox, puzzles: Collection[int] | None = None) -> Iterator[PuzzleGrade]:
    """Yield the grade of each student for each puzzle; `puzzles` are those that are graded.

    The default is every puzzle for which any student has a solution.
    """
    solutions = find_solutions(classroom)
    known = {*shelf.entries("puzzles")}
    graded = {*puzzles} if puzzles else {number for files in solutions.values() for number in files} & known
    for student, files in solutions.items():
        for number in sorted(graded):
            yield PuzzleGrade(student, number, [_try(number, file, sandbox) for file in files.get(number, [])])


def _try(number: int, file: Path, sandbox: Sandbox) -> Try:
    puzzle = shelf.puzzle_of(shelf.entry("puzzles", number).path)
    try:
        source = shelf.source_in(file)
    except shelf.LessonError as fault:
        return Try(file, PuzzleJudgement(str(fault)))
    return Try(file, judge_source(puzzle, source, file.name, sandbox))


def grades_csv(grades: Sequence[PuzzleGrade]) -> str:
    """The grades as CSV with a head; a text that a spreadsheet would take for a formula begins with an apostrophe."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for grade in grades:
        writer.writerow({name: _cell(value) for name, value in grade.to_dict().items()})
    return out.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
