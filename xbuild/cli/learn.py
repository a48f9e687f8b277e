"""`xbuild learn` and `xbuild puzzle`: list, take, grade and copy lessons and puzzles."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import click

from ..learning import progress, shelf
from ..learning.lesson import Question
from ..learning.moving import PICTURES, moving_page
from .group import REFUSED, main, stop
from .outputs import say, say_written, write_atomically

Grade = TypeVar("Grade")

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_NEW = click.Path(path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


class _Seed(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The seed of exercises: letters, digits, dots, hyphens and underscores."""

    name = "seed"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not re.fullmatch(r"[\w.-]{1,60}", value):
            self.fail(
                f"{value!r} is not a seed: use up to 60 letters, digits, dots, hyphens and underscores", param, ctx
            )
        return value


@main.command()
@click.argument("number", type=int, required=False)
@click.option("--check", "attempt", type=_FILE, metavar="FILE", help="Grade the answers in a copy of the lesson.")
@click.option("--notebook", is_flag=True, help="Write the lesson as a notebook.")
@click.option("--page", is_flag=True, help="Write the lesson as one HTML page, with pictures and step-by-step runs.")
@click.option(
    "-o",
    "out",
    type=_NEW,
    metavar="FILE",
    help="Write the page or notebook to this file.  [default: the lesson's name, in the current folder]",
)
@click.option("--copy", "into", type=_FOLDER, metavar="DIR", help="Copy all lessons to a new folder, DIR/lessons.")
@click.option(
    "--exercises",
    "seed",
    type=_Seed(),
    metavar="SEED",
    help="Write exercises drawn from a number or a student's name; with --check, grade them.",
)
@click.option(
    "--picture",
    type=click.Choice(sorted(PICTURES)),
    help="Write a page with a picture that moves: change its settings, and see what follows.",
)
@click.option(
    "--serve", is_flag=True, help="Serve all lessons, puzzles and levels to a browser on this machine, with editors."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="N", help="The port of the server.  [default: 8731, or a free one]"
)
def learn(
    number: int | None,
    attempt: Path | None,
    notebook: bool,
    page: bool,
    out: Path | None,
    into: Path | None,
    seed: str | None,
    picture: str | None,
    serve: bool,
    port: int | None,
) -> None:
    """List the lessons, or take one.

    A lesson asks what a program computes, runs the program, and says why. Type your answer to each question: plain
    numbers, such as 1 2 3, or the letter of a choice. If your answer is wrong, try again, or press Enter for a hint,
    and then for the answer. After a question, `try` and arguments run its program with other numbers. The command saves
    your progress in your data folder.

    \b
    Examples:
      xbuild learn 1
      xbuild learn 1 --page -o first.html
      xbuild learn --copy .
      xbuild learn 1 --check lessons/01_a_graph_is_built.py
    """
    if seed is not None:
        _exercise(seed, attempt, out, [number is not None, notebook, page, into, serve])
        return
    actions = {
        "--check": attempt, "--notebook": notebook, "--page": page, "--copy": into, "--serve": serve,
        "--picture": picture,
    }  # fmt: skip
    _check_options(actions, number, "-o", out)
    if port is not None and not serve:
        raise click.UsageError("--port has no effect without --serve")
    if serve:
        _serve(port)
    elif picture is not None:
        _write_picture(picture, out)
    elif into is not None:
        _copy("lessons", into)
    elif number is None:
        _list_lessons()
    elif attempt is not None:
        _check_lesson(number, attempt)
    elif notebook or page:
        _write("lessons", number, page, out)
    else:
        _teach(number)


def _write_picture(name: str, out: Path | None) -> None:
    path = out or Path(f"{name}.html")
    write_atomically(path, moving_page(name))
    say_written(path, "a picture that moves")


def _check_options(actions: Mapping[str, object], number: int | None, output: str, file: object) -> None:
    """Raise a usage error for options that exclude each other; `output` is the option that names the `file`."""
    options = [option for option, value in actions.items() if value]
    if len(options) > 1:
        raise click.UsageError(f"{options[0]} and {options[1]} cannot be used together: use only one")
    if "--picture" in options and number is not None:
        raise click.UsageError("a picture belongs to no lesson: omit the number")
    for option, verb in (("--copy", "copies"), ("--serve", "serves")):
        if option in options and number is not None:
            raise click.UsageError(f"{option} {verb} all lessons or puzzles: omit the number")
    if number is None and options and not {"--copy", "--serve", "--picture"} & {*options}:
        command = "learn" if "--page" in actions else "puzzle"
        raise click.UsageError(f"{options[0]} needs a number, as in xbuild {command} 7 {options[0]}")
    if file and not {"--notebook", "--page", "--picture"} & {*options}:
        raise click.UsageError(f"{output} has no effect without --notebook{' or --page' * ('--page' in actions)}")


def _entry(kind: str, number: int) -> shelf.ShelfEntry:
    try:
        return shelf.entry(kind, number)
    except shelf.LessonError as error:
        raise click.UsageError(str(error)) from None


def _list_lessons() -> None:
    learner = progress.read_progress()
    for number, lesson in shelf.entries("lessons").items():
        done, total = len(learner.answered.get(lesson.name, ())), lesson.number_of_questions
        mark = "done" if done >= total else f"{done}/{total}" if done else ""
        say(f"{number:>2}  {mark:<4}  {lesson.title}")
    say(
        "\nxbuild learn 1 starts the first lesson; xbuild learn --copy DIR copies the lessons; xbuild puzzle lists "
        "the puzzles"
    )
    _say_trouble(learner)


def _say_trouble(learner: progress.Progress) -> None:
    if learner.trouble:
        say(learner.trouble, err=True)


def _copy(kind: str, into: Path) -> None:
    try:
        files = shelf.copy(kind, into)
    except FileExistsError as error:
        raise click.UsageError(f"{error.filename}: {error.strerror}") from None
    except OSError as error:
        raise click.ClickException(f"cannot write {into}: {error.strerror}") from None
    command = "learn" if kind == "lessons" else "puzzle"
    what = f"{len(files)} {kind}; fill one in, then run xbuild {command} 1 --check {files[0]}"
    say_written(files[0].parent, what)


def _check_lesson(number: int, attempt: Path) -> None:
    from ..learning.submission import grade_lesson

    lesson = _entry("lessons", number)
    questions, learner = _report_lesson_errors(lambda: grade_lesson(number, attempt)), progress.read_progress()
    right = _say_grades(questions)
    if right:
        learner.note(lesson.name, *(question.words for question in right))
    _say_trouble(learner)
    say(f"\n{len(right)} of {len(questions)} right")
    raise SystemExit(0 if len(right) == len(questions) else REFUSED)


def _say_grades(questions: list[Question]) -> list[Question]:
    """Print the grade of each question, with help for wrong guesses; returns the right ones."""
    right = [question for question in questions if not question.is_open and question.accepts(question.guess)]
    for question in questions:
        say(f"{_grade(question, right):<7}  {question.words}")
        if not question.is_open and question not in right:
            for line in filter(None, (question.comment(question.guess), question.feedback.hint)):
                say(f"{'':<7}  {line}")
    return right


def _exercise(seed: str, attempt: Path | None, out: Path | None, others: list[object]) -> None:
    """Write the exercises of a seed, or grade a file with answers to them."""
    from ..learning.exercises import questions_of, sheet_text
    from ..learning.submission import grade_guesses

    if any(others) or (attempt is not None and out is not None):
        raise click.UsageError("--exercises is used alone, with -o, or with --check")
    if attempt is not None:
        missing = f"{attempt} contains no exercise of {seed}: the exercises of each student are different"
        questions = _report_lesson_errors(lambda: grade_guesses(attempt, lambda: questions_of(seed), missing))
        right = _say_grades(questions)
        say(f"\n{len(right)} of {len(questions)} right")
        raise SystemExit(0 if len(right) == len(questions) else REFUSED)
    target = out or Path("exercises.py")
    if target.exists():
        raise click.UsageError(f"{target} already exists and may hold your answers; use -o to write to another file")
    write_atomically(target, sheet_text(seed))
    say_written(target, f"exercises; fill them in, then run xbuild learn --exercises {seed} --check {target}")


def _grade(question: Question, right: list[Question]) -> str:
    return "open" if question.is_open else "right" if question in right else "wrong"


def _report_lesson_errors(grade: Callable[[], Grade]) -> Grade:
    try:
        return grade()
    except shelf.LessonError as error:
        raise click.UsageError(str(error)) from None


def _write(kind: str, number: int, page: bool, out: Path | None) -> None:
    from ..learning.cells import notebook
    from ..learning.page import lesson_page

    lesson = _entry(kind, number)
    target = out or Path(f"{lesson.path.stem}.{'html' if page else 'ipynb'}")
    if not page and target.exists():
        raise click.UsageError(f"{target} already exists and may hold your answers; use -o to write to another file")
    text = lesson_page(lesson) if page else notebook(lesson.cells)
    write_atomically(target, text)
    say_written(target, "a page for any browser" if page else "a notebook")


_MISSING = "--serve needs waitress, which is not installed: pip install 'xbuild-hlo[serve]' [missing_extra]"


def _serve(port: int | None) -> None:
    """Serve until an interrupt, without a time limit."""
    try:
        from ..learning.serving.server import serving
    except ModuleNotFoundError as error:
        if error.name != "waitress":
            raise
        raise stop(_MISSING) from None
    if (limit := click.get_current_context().obj) is not None:
        limit.stop()
    try:
        with serving(port) as (address, serve):
            say(f"serving lessons, puzzles and the game to this machine; stop with Ctrl+C\n{address}")
            serve()
    except OSError as error:
        raise click.ClickException(f"cannot listen on port {port}: {error.strerror}") from None


def _teach(number: int) -> None:
    from ..learning.terminal import teach
    from ..stepping.console import console_of

    if (limit := click.get_current_context().obj) is not None:
        limit.stop()  # a lesson has no time limit: it waits for its learner
    read, learner = io.StringIO() if sys.stdin is None else sys.stdin, progress.read_progress()
    _say_trouble(learner)
    known_trouble = learner.trouble
    all_right = teach(_entry("lessons", number), console_of(sys.stdout), read.readline, learner)
    if learner.trouble != known_trouble:
        _say_trouble(learner)
    if all_right and number + 1 in shelf.entries("lessons"):
        say(f"done; next: xbuild learn {number + 1}, {shelf.entry('lessons', number + 1).title}")
    elif not all_right:
        say(f"to try again: xbuild learn {number}")


@main.command()
@click.argument("number", type=int, required=False)
@click.option("--check", "attempt", type=_FILE, metavar="FILE", help="Grade the function `solution` in this file.")
@click.option("--solution", "reveal", is_flag=True, help="Show a solution with the best known score.")
@click.option("--notebook", is_flag=True, help="Write the puzzle as a notebook.")
@click.option(
    "-o",
    "out",
    type=_NEW,
    metavar="FILE",
    help="Write the notebook to this file.  [default: the puzzle's name, in the current folder]",
)
@click.option("--copy", "into", type=_FOLDER, metavar="DIR", help="Copy all puzzles to a new folder, DIR/puzzles.")
def puzzle(
    number: int | None, attempt: Path | None, reveal: bool, notebook: bool, out: Path | None, into: Path | None
) -> None:
    """List the puzzles, or grade a solution.

    A puzzle gives a function in NumPy, and lists the ops with which you may build it. To get copies of the files
    that you are to complete, use `xbuild puzzle --copy .`. With --check, your code runs in a separate process, with
    limits on time and memory.

    \b
    Examples:
      xbuild puzzle 3
      xbuild puzzle 3 --check puzzles/03_one_hot.py
    """
    actions = {"--check": attempt, "--solution": reveal, "--notebook": notebook, "--copy": into}
    _check_options(actions, number, "-o", out)
    if into is not None:
        _copy("puzzles", into)
    elif number is None:
        _list_puzzles()
    elif attempt is not None:
        _check_puzzle(number, attempt)
    elif notebook:
        _write("puzzles", number, False, out)
    else:
        _show_puzzle(number, reveal)


def _show_puzzle(number: int, reveal: bool) -> None:
    """Print the file of a puzzle and what to do next, or the solution."""
    path = _entry("puzzles", number).path
    if reveal:
        say(shelf.solution_of(number).read_text(encoding="utf-8").rstrip())
        return
    say(path.read_text(encoding="utf-8").rstrip())
    if allowed := shelf.puzzle_of(path).allowed:
        say(f"\nallowed ops: {', '.join(allowed.split())}; parameters, constants and tuples do not count")
    say(
        f"\nto solve the puzzle: create puzzles/{path.name} with `xbuild puzzle --copy .`, fill in the file, then run ",
        nl=False,
    )
    say(f"xbuild puzzle {number} --check puzzles/{path.name}")
    say("xbuild ops lists all ops; xbuild explain NAME explains an op with an example")


def _list_puzzles() -> None:
    from ..learning.puzzle import score_text

    learner = progress.read_progress()
    for number, entry in shelf.entries("puzzles").items():
        best, score = shelf.puzzle_of(entry.path).best, learner.solved.get(entry.name)
        text = score_text({name: score[name] for name in best if name in score}) if score else ""
        mark = f"  [solved{': ' if text else ''}{text}]" if score is not None else ""
        say(f"{number:>2}  {entry.title}{mark}")
    say(
        "\nxbuild puzzle 1 shows the first puzzle; xbuild puzzle --copy DIR copies the puzzles; xbuild puzzle 1 "
        "--check FILE grades your solution"
    )
    _say_trouble(learner)


def _check_puzzle(number: int, attempt: Path) -> None:
    from ..learning.puzzle import judgement_text
    from ..learning.submission import judge_source

    entry = _entry("puzzles", number)
    puzzle = shelf.puzzle_of(entry.path)
    judgement = _report_lesson_errors(lambda: judge_source(puzzle, shelf.source_in(attempt), str(attempt)))
    say(judgement_text(puzzle, judgement), err=not judgement.is_solved)
    if judgement.is_solved:
        learner = progress.read_progress()
        learner.solve(entry.name, dict(judgement.score))
        _say_trouble(learner)
    raise SystemExit(0 if judgement.is_solved else REFUSED)
