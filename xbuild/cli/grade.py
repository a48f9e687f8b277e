"""`xbuild grade`: the puzzles that the students of a class have solved, as CSV."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from ..learning import shelf
from .group import main
from .outputs import say, say_written, write_atomically

_INSTALL = (
    "install bubblewrap (the command bwrap), run xbuild in a container in which FOLDER is read-only, or pass --trust"
)


@main.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--puzzle",
    "puzzles",
    type=int,
    multiple=True,
    metavar="N",
    help="Grade this puzzle; may be repeated.  [default: every puzzle for which a student has a solution]",
)
@click.option(
    "-o", "out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the CSV to this file."
)
@click.option(
    "--trust", is_flag=True, help="Run the solutions without a sandbox, with your rights: they can read your files."
)
def grade(folder: Path, puzzles: tuple[int, ...], out: Path | None, trust: bool) -> None:
    """Grade a class's solutions of the puzzles, and print a CSV row for each student and puzzle.

    FOLDER has a folder for each student. It holds solutions that are named as `xbuild puzzle --copy` names them, such
    as `03_one_hot.py`, or a folder for each try, in the order of the names. The columns `first` and `later` separate
    the first try from all others.

    Each solution runs in a process of its own, in a sandbox, with limits on time, memory, output, files and processes.
    The process returns only the text of a program, which the command parses and judges.

    \b
    Examples:
      xbuild grade class
      xbuild grade class --puzzle 3 --puzzle 4 -o grades.csv
    """
    from ..learning.grading import grade_folder, grades_csv
    from ..learning.sandbox import TRUSTED, find_sandbox

    for number in puzzles:
        _check_puzzle_exists(number)
    sandbox = TRUSTED if trust else find_sandbox(folder)
    if sandbox is None:
        raise click.UsageError(f"there is no sandbox for the code of students: {_INSTALL}")
    _wait_for_class()
    grades = [*grade_folder(folder, sandbox, puzzles)]
    if not grades:
        raise click.UsageError(
            f"{folder} has no solutions: expected STUDENT/03_one_hot.py, or STUDENT/TRY/03_one_hot.py"
        )
    where = "without a sandbox" if trust else f"in {sandbox.name}" if sandbox.prefix else "in this container"
    students = len({each.student for each in grades})
    summary = f"{len(grades)} grades of {students} student{'s' * (students != 1)}; solutions ran {where}"
    if out is None:
        say(grades_csv(grades), nl=False)
        say(summary, err=True)
    else:
        write_atomically(out, grades_csv(grades))
        say_written(out, summary)


def _check_puzzle_exists(number: int) -> None:
    try:
        shelf.entry("puzzles", number)
    except shelf.LessonError as error:
        raise click.UsageError(str(error)) from None


def _wait_for_class() -> None:
    """Lift the default limit of seconds: each solution has its own."""
    context = click.get_current_context()
    is_default = context.get_parameter_source("max_seconds") in (ParameterSource.DEFAULT, None)
    if context.obj is not None and is_default:
        context.obj.stop()
