"""`xbuild learn` and `xbuild puzzle`: lessons and puzzles, listed, done, judged, copied."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from ..learning import progress, shelf
from ..learning.lesson import Question
from .group import REFUSED, main
from .support.paths import write_whole
from .support.saying import say

Found = TypeVar("Found")

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_NEW = click.Path(path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


@main.command()
@click.argument("number", type=int, required=False)
@click.option("--check", "attempt", type=_FILE, metavar="FILE", help="Judge the guesses in a copy of the lesson.")
@click.option("--notebook", is_flag=True, help="Write the lesson as a notebook.")
@click.option("--page", is_flag=True, help="Write the lesson as one HTML page, with pictures and runs step by step.")
@click.option(
    "-o", "out", type=_NEW, metavar="FILE", help="The file that is written.  [default: the lesson's name, here]"
)
@click.option("--copy", "into", type=_FOLDER, metavar="DIR", help="Copy all lessons to a new folder DIR/lessons.")
def learn(
    number: int | None, attempt: Path | None, notebook: bool, page: bool, out: Path | None, into: Path | None
) -> None:
    """List the lessons, or take one.

    A lesson asks what a program gives, runs it, and says the rule. At a question, type the answer: numbers are enough,
    as in 1 2 3; of choices the letter. A wrong answer may be corrected; Enter alone shows the answer. What you have
    done is kept in your data folder.

    \b
    xbuild learn 1
    xbuild learn 1 --page -o first.html
    xbuild learn --copy .
    xbuild learn 1 --check lessons/01_a_graph_is_built.py
    """
    _one_of({"--check": attempt, "--notebook": notebook, "--page": page, "--copy": into}, number, "-o", out)
    if into is not None:
        _copied("lessons", into)
    elif number is None:
        _list_lessons()
    elif attempt is not None:
        _check_lesson(number, attempt)
    elif notebook or page:
        _write(number, page, out)
    else:
        _teach(number)


def _one_of(asked: dict[str, object], number: int | None, refined: str, value: object) -> None:
    """A usage error where options do not go together."""
    given = [name for name, each in asked.items() if each]
    if len(given) > 1:
        raise click.UsageError(f"{given[0]} and {given[1]} are two different things to do")
    if "--copy" in given and number is not None:
        raise click.UsageError("--copy copies all of them, and takes no number")
    if number is None and given and "--copy" not in given:
        raise click.UsageError(f"{given[0]} wants a number, as in xbuild learn 7 {given[0]}")
    if value and not {"--notebook", "--page"} & {*given}:
        raise click.UsageError(f"{refined} has no effect without --notebook or --page")


def _entry(kind: str, number: int) -> shelf.Entry:
    try:
        return shelf.entry(kind, number)
    except shelf.LessonError as error:
        raise click.UsageError(str(error)) from None


def _list_lessons() -> None:
    kept = progress.progress()
    for number, each in shelf.entries("lessons").items():
        done, wanted = len(kept.answered.get(each.name, ())), each.number_of_questions
        mark = "done" if done >= wanted else f"{done}/{wanted}" if done else ""
        say(f"{number:>2}  {mark:<4}  {each.title}")
    say("\nxbuild learn 1 begins the first; xbuild learn --copy DIR copies them; xbuild puzzle lists the puzzles")
    _trouble(kept)


def _trouble(kept: progress.Progress) -> None:
    if kept.trouble:
        say(kept.trouble, err=True)


def _copied(kind: str, into: Path) -> None:
    try:
        made = shelf.copy(kind, into)
    except FileExistsError as error:
        raise click.UsageError(f"{error.filename}: {error.strerror}") from None
    except OSError as error:
        raise click.ClickException(f"{into} cannot be written: {error.strerror}") from None
    word = "learn" if kind == "lessons" else "puzzle"
    say(f"{made[0].parent}: {len(made)} {kind}; fill one in, then: xbuild {word} 1 --check {made[0]}")


def _check_lesson(number: int, attempt: Path) -> None:
    lesson = _entry("lessons", number)
    questions, kept = _judged(lambda: shelf.graded(number, attempt)), progress.progress()
    right = [each for each in questions if not each.is_open and each.takes(each.guess)]
    for each in questions:
        say(f"{_verdict(each, right):<7}  {each.words}")
        if not each.is_open and each not in right and (why := each.mismatch(each.guess)):
            say(f"{'':<7}  {why}")
    if right:
        kept.note(lesson.name, *(each.words for each in right))
    _trouble(kept)
    say(f"\n{len(right)} of {len(questions)} right")
    raise SystemExit(0 if len(right) == len(questions) else REFUSED)


def _verdict(question: Question, right: list[Question]) -> str:
    return "open" if question.is_open else "right" if question in right else "not so"


def _judged(judge: Callable[[], Found]) -> Found:
    try:
        return judge()
    except shelf.LessonError as error:
        raise click.UsageError(str(error)) from None


def _write(number: int, page: bool, out: Path | None) -> None:
    from ..learning.cells import notebook
    from ..learning.page import lesson_page

    lesson = _entry("lessons", number)
    target = out or Path(f"{lesson.path.stem}.{'html' if page else 'ipynb'}")
    if not page and target.exists():
        raise click.UsageError(f"{target} is there already, perhaps with guesses of yours; -o writes another file")
    text = lesson_page(lesson) if page else notebook(lesson.cells)
    write_whole(target, text)
    say(str(target))


def _teach(number: int) -> None:
    from ..learning.terminal import teach
    from ..stepping.face import face_of

    if (watch := click.get_current_context().obj) is not None:
        watch.stop()  # a lesson has no limit of time: it waits for its learner
    read, kept = io.StringIO() if sys.stdin is None else sys.stdin, progress.progress()
    _trouble(kept)
    known = kept.trouble
    all_right = teach(_entry("lessons", number), face_of(sys.stdout), read.readline, kept)
    if kept.trouble != known:
        _trouble(kept)
    if all_right and number + 1 in shelf.entries("lessons"):
        say(f"done; xbuild learn {number + 1} is next: {shelf.entry('lessons', number + 1).title}")
    elif not all_right:
        say(f"xbuild learn {number} asks again")


@main.command()
@click.argument("number", type=int, required=False)
@click.option("--check", "attempt", type=_FILE, metavar="FILE", help="Judge the function `solution` in a file.")
@click.option("--solution", "reveal", is_flag=True, help="Show a solution with the best score that is known.")
@click.option("--copy", "into", type=_FOLDER, metavar="DIR", help="Copy all puzzles to a new folder DIR/puzzles.")
def puzzle(number: int | None, attempt: Path | None, reveal: bool, into: Path | None) -> None:
    """List the puzzles, or judge a solution.

    A puzzle gives a function in NumPy and the ops to build it of. `xbuild puzzle --copy .` copies the files to fill in.

    \b
    xbuild puzzle 3
    xbuild puzzle 3 --check puzzles/03_one_hot.py
    """
    _one_of({"--check": attempt, "--solution": reveal, "--copy": into}, number, "", None)
    if into is not None:
        _copied("puzzles", into)
    elif number is None:
        _list_puzzles()
    elif attempt is not None:
        _check_puzzle(number, attempt)
    else:
        _show_puzzle(number, reveal)


def _show_puzzle(number: int, reveal: bool) -> None:
    """Print the file of a puzzle and how to go on, or the solution."""
    path = _entry("puzzles", number).path
    if reveal:
        say(shelf.solution_of(number).read_text(encoding="utf-8").rstrip())
        return
    say(path.read_text(encoding="utf-8").rstrip())
    if allowed := shelf.puzzle_of(path).allowed:
        say(f"\nops that may be used: {', '.join(allowed.split())}; parameters, constants and tuples are free")
    say(f"\nxbuild puzzle --copy . gives puzzles/{path.name} to fill in; then: ", nl=False)
    say(f"xbuild puzzle {number} --check puzzles/{path.name}")
    say("xbuild ops lists all ops, xbuild explain NAME tells of one, with an example")


def _list_puzzles() -> None:
    from ..learning.puzzle import said

    kept = progress.progress()
    for number, each in shelf.entries("puzzles").items():
        best, score = shelf.puzzle_of(each.path).best, kept.solved.get(each.name)
        figures = said({name: score[name] for name in best if name in score}) if score else ""
        mine = f"  [solved{': ' if figures else ''}{figures}]" if score is not None else ""
        say(f"{number:>2}  {each.title}{mine}")
    say("\nxbuild puzzle 1 shows the first; xbuild puzzle --copy DIR copies them; xbuild puzzle 1 --check FILE judges")
    _trouble(kept)


def _check_puzzle(number: int, attempt: Path) -> None:
    from ..learning.puzzle import told

    shown = _entry("puzzles", number)
    stated = shelf.puzzle_of(shown.path)
    found = _judged(lambda: stated.judged(shelf.solution_in(attempt)))
    say(told(stated, found), err=not found.is_solved)
    if found.is_solved:
        kept = progress.progress()
        kept.solve(shown.name, dict(found.score))
        _trouble(kept)
    raise SystemExit(0 if found.is_solved else REFUSED)
