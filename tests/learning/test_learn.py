"""`xbuild learn` and `xbuild puzzle` on the command line: listed, done, judged, copied; progress in the data folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands.command_line import usage, xbuild
from xbuild.learning import progress, shelf

ROOT = Path(__file__).parents[2]
PAD = shelf.entry("lessons", 8)
RIGHT = ["[0, 1, 2, 3, 0, 0]", "1 0 2 0 3", "0,2,0,3,0,0", "2"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and a data folder of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def kept(folder: Path) -> Any:
    return json.loads((folder / "data" / "xbuild" / "progress.json").read_text())


def lines(*answers: str) -> str:
    return "".join(f"{answer}\n" for answer in answers)


def test_a_lesson_that_is_answered_rightly_is_done(folder: Path) -> None:
    found = xbuild("learn", 8, input=lines("0 0 1 2 9 0", "1 2", "pad", *RIGHT))
    assert found.exit_code == 0
    assert "Not quite. Try again, or press Enter for a hint." in found.stdout
    assert "  Expected 6 numbers, got 2. Try again, " in found.stdout
    assert "  Expected numbers, got a word. Try again, " in found.stdout
    assert found.stdout.count("Not quite") == 1
    assert "4 of 4 right\ndone; next: xbuild learn 9," in found.stdout
    assert found.stdout.count("XLA:CPU agrees.") == 4
    assert len(kept(folder)["lessons"]["pad"]) == 4
    assert re.search(r"^ 8  done  Pad: low, high and interior$", xbuild("learn").stdout, re.MULTILINE)
    assert [*Path.cwd().iterdir()] == [], "nothing is written where one works"


def test_the_question_comes_before_its_answer() -> None:
    found = xbuild("learn", 8, input="")
    assert "? [1, 2, 3] is padded" in found.stdout
    assert "0, 1, 2, 3, 0, 0" not in found.stdout
    assert "lesson ended; there are no answers to save" in found.stdout
    assert "lesson ended; 1 right answer saved" in xbuild("learn", 8, input=lines(RIGHT[0])).stdout
    assert "lesson ended; 2 right answers saved" in xbuild("learn", 8, input=lines(*RIGHT[:2])).stdout


def test_what_is_shown_does_not_count(folder: Path) -> None:
    found = xbuild("learn", 8, input=lines("", "", *RIGHT[1:], "", ""))
    assert "  Hint: `low` counts the zeros at the front" in found.stdout
    assert "the answer: [0, 1, 2, 3, 0, 0]" in found.stdout
    assert "3 of 4 right\nto try again: xbuild learn 8" in found.stdout
    assert re.search(r"^ 8  3/4 ", xbuild("learn").stdout, re.MULTILINE)
    assert "4 of 4" in xbuild("learn", 8, input=lines(*RIGHT)).stdout
    assert len(kept(folder)["lessons"]["pad"]) == 4


def test_a_copy_is_graded(folder: Path) -> None:
    made = xbuild("learn", "--copy", ".")
    copies = sorted(Path("lessons").iterdir())
    assert len(copies) == len(shelf.entries("lessons"))
    assert made.stdout.startswith(f"wrote lessons: {len(copies)} lessons; ")
    copy = Path("lessons") / PAD.path.name
    open_ones = xbuild("learn", 8, "--check", copy)
    assert (open_ones.exit_code, open_ones.stdout.count("open   ")) == (1, 4)
    guesses = iter(["[0, 1, 2, 3, 0, 0]", "[1, 0, 2, 0, 3]", "[9]", "'2'"])
    copy.write_text(re.sub(r"\.\.\.(?=, padded)", lambda _: next(guesses), copy.read_text()))
    judge = xbuild("learn", 8, "--check", copy)
    assert judge.exit_code == 1
    assert "wrong    The padding is low -1, high 2, interior 1." in judge.stdout
    assert "\n         Expected 6 numbers, got 1.\n         Apply the interior padding first" in judge.stdout
    assert "3 of 4 right" in judge.stdout
    copy.write_text(copy.read_text().replace("[9]", '"0 2 0 3 0 0"'))
    assert xbuild("learn", 8, "--check", copy).exit_code == 0
    assert len(kept(folder)["lessons"]["pad"]) == 4
    assert "a file or folder with this name already exists" in usage(xbuild("learn", "--copy", "."))


def test_the_answers_of_the_shipped_lesson_decide() -> None:
    """A copy whose program was changed is not right by that."""
    xbuild("learn", "--copy", ".")
    copy = Path("lessons") / PAD.path.name
    text = (
        copy.read_text()
        .replace("interior)])", "interior)]) * 0")
        .replace("..., padded(0, 0, 1)", "[0] * 5, padded(0, 0, 1)")
    )
    copy.write_text(text)
    assert "wrong    The padding is low 0, high 0, interior 1." in xbuild("learn", 8, "--check", copy).stdout


def test_a_notebook_is_written_and_graded() -> None:
    assert xbuild("learn", 8, "--notebook").stdout == "wrote 08_pad.ipynb: a notebook\n"
    written = Path("08_pad.ipynb")
    assert "already exists" in usage(xbuild("learn", 8, "--notebook"))
    written.write_text(written.read_text().replace("..., padded(0, 0, 1)", "[1, 0, 2, 0, 3], padded(0, 0, 1)"))
    assert "right    The padding is low 0, high 0, interior 1." in xbuild("learn", 8, "--check", written).stdout


@pytest.mark.parametrize("number", [8, 12])
def test_a_page_is_one_file_that_needs_no_network(number: int) -> None:
    assert xbuild("learn", number, "--page", "-o", "page.html").stdout == "wrote page.html: a page for any browser\n"
    text = Path("page.html").read_text()
    assert text.startswith("<!doctype html>")
    assert not re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", text)
    assert "default-src 'none'" in text
    assert text.count("<form>") == shelf.entry("lessons", number).number_of_questions
    assert ("<iframe" in text) == (number == 12)
    assert ("<svg" in text) == (number == 8)


FAULTS = [
    ("x = 1/0\n", "attempt.py:1: ZeroDivisionError: division by zero"),
    ("x = (\n", "attempt.py:1: SyntaxError"),
    ("x = 1\n", "contains no question from lesson 8"),
    ("raise SystemExit(0)\n", "attempt.py:1: SystemExit"),
]


@pytest.mark.parametrize(("text", "words"), FAULTS)
def test_a_file_that_cannot_be_judged_is_told(text: str, words: str) -> None:
    Path("attempt.py").write_text(text)
    assert words in usage(xbuild("learn", 8, "--check", "attempt.py"))


USES = [
    (["learn", "99"], "lesson 99 does not exist: choose from 1 to 24"),
    (["learn", "--page"], "--page needs a number"),
    (["learn", "8", "--page", "--notebook"], "cannot be used together"),
    (["learn", "8", "--copy", "."], "omit the number"),
    (["learn", "8", "-o", "x"], "no effect without --notebook or --page"),
    (["puzzle", "99"], "puzzle 99 does not exist: choose from 1 to 20"),
    (["puzzle", "--solution"], "--solution needs a number"),
]


@pytest.mark.parametrize(("arguments", "words"), USES)
def test_wrong_use_is_told(arguments: list[str], words: str) -> None:
    assert words in usage(xbuild(*arguments))


def test_progress_that_cannot_be_read_or_kept_is_told(folder: Path) -> None:
    data = folder / "data" / "xbuild"
    data.mkdir(parents=True)
    data.rmdir()
    data.write_text("a file where a folder is wanted")
    found = xbuild("learn", 8, input=lines(*RIGHT))
    assert "4 of 4 right" in found.stdout
    assert "Not a directory" in found.stderr
    assert "your progress was not saved" in found.stderr
    assert "set aside" not in found.stderr


def _text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content)


def _score(figure: str) -> Callable[[Path], object]:
    return _text(f'{{"lessons":{{}},"puzzles":{{"one_hot":{{"steps":{figure}}}}}}}')


_NO_SCORE = "'one_hot' in 'puzzles' is not a score of integers"
TAMPERED: dict[str, tuple[Callable[[Path], object], str]] = {
    "infinity": (_score("1e999"), _NO_SCORE),
    "below zero": (_score("-1"), _NO_SCORE),
    "huge": (_score(f"1{'0' * 4000}"), _NO_SCORE),
    "too many digits": (_score(f"1{'0' * 9000}"), "the file is not JSON"),
    "flag": (_score("true"), _NO_SCORE),
    "no list": (_text('{"lessons":{"pad":"abc"},"puzzles":{}}'), "'pad' in 'lessons' is not a list of questions"),
    "a list": (_text("[1]"), "the file has no object named 'lessons'"),
    "cut": (_text("[1"), "the file is not JSON"),
    "deep": (_text("[" * 200_000), "the file is not JSON"),
    "half a pair": (_text('{"lessons":{"pad":["\\ud800"]},"puzzles":{}}'), "some of its text is not Unicode"),
    "large": (_text(" " * (progress.MOST_BYTES + 1)), "the file has more than 1,048,576 bytes"),
    "a pipe": (os.mkfifo, "expected a regular file, got a pipe"),
    "a folder": (Path.mkdir, "expected a regular file, got a folder"),
    "a link": (lambda path: path.symlink_to("/etc/hostname"), "expected a regular file, got a link"),
    "a link to nothing": (lambda path: path.symlink_to("/tmp/no/such"), "expected a regular file, got a link"),
}  # fmt: skip


@pytest.mark.parametrize("how", TAMPERED)
def test_what_is_no_progress_is_told_and_set_aside(how: str, folder: Path) -> None:
    tamper, words = TAMPERED[how]
    file = folder / "data" / "xbuild" / "progress.json"
    file.parent.mkdir(parents=True)
    tamper(file)
    found = xbuild("puzzle")
    assert found.exit_code == 0
    assert words in found.stderr
    assert found.stderr.endswith("xbuild renamed the file to progress.json.1\n")
    assert "set aside" not in xbuild("puzzle").stderr
    progress.read_progress().solve("outer_sum", {"flops": 3})
    assert kept(folder)["puzzles"] == {"outer_sum": {"flops": 3}}
    assert os.path.lexists(file.with_name("progress.json.1"))


def test_progress_that_is_tampered_with_meanwhile_is_set_aside(folder: Path) -> None:
    found = progress.read_progress()
    found.solve("outer_sum", {"flops": 3})
    found.file.write_text('{"lessons":{}}')
    found.solve("one_hot", {"flops": 1})
    assert "the file has no object named 'puzzles'; xbuild renamed the file to progress.json.1" in found.trouble
    assert kept(folder)["puzzles"] == {"outer_sum": {"flops": 3}, "one_hot": {"flops": 1}}


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("victim"), Path.mkdir])
def test_a_lock_that_is_no_file_is_told(make: Callable[[Path], object], folder: Path) -> None:
    found = progress.read_progress()
    found.file.parent.mkdir(parents=True)
    make(found.file.with_suffix(".lock"))
    found.solve("outer_sum", {"flops": 3})
    assert "your progress was not saved" in found.trouble
    assert not (found.file.parent / "victim").exists()


def test_a_learners_file_that_is_a_pipe_is_told() -> None:
    os.mkfifo("attempt.py")
    assert "a pipe; expected a file" in usage(xbuild("learn", 1, "--check", "attempt.py"))
    assert "a pipe; expected a file" in usage(xbuild("puzzle", 1, "--check", "attempt.py"))


@pytest.mark.parametrize(
    "arguments", [["learn", 8, "--page", "-o"], ["learn", 8, "--notebook", "-o"], ["play", 1, "-o"]]
)
def test_a_file_that_cannot_be_written_is_named(arguments: list[object], folder: Path) -> None:
    target = folder / "nowhere" / "out"
    found = xbuild(*arguments, target)
    assert (found.exit_code, found.stderr) == (1, f"Error: cannot write {target}: No such file or directory\n")


def test_the_data_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/her")
    assert str(progress.data_folder()) == "/home/her/.local/share/xbuild"
    monkeypatch.setattr("sys.platform", "darwin")
    assert str(progress.data_folder()) == "/home/her/Library/Application Support/xbuild"


def test_puzzles_are_listed_shown_and_judged(folder: Path) -> None:
    assert " 1  Outer sum\n" in xbuild("puzzle").stdout
    assert "def spec(x, y):" in xbuild("puzzle", 1).stdout
    assert "broadcast_in_dim" not in xbuild("puzzle", 1).stdout
    assert "allowed ops: broadcast, add; " in xbuild("puzzle", 1).stdout
    assert "broadcast_in_dim" in xbuild("puzzle", 1, "--solution").stdout
    xbuild("puzzle", "--copy", ".")
    assert len([*Path("puzzles").iterdir()]) == 20
    stub = Path("puzzles") / "01_outer_sum.py"
    failed = xbuild("puzzle", 1, "--check", stub)
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr.startswith("not solved yet: ")
    stub.write_text(shelf.solution_of(1).read_text())
    solved = xbuild("puzzle", 1, "--check", stub)
    assert (solved.exit_code, solved.stdout) == (0, "solved: 12 FLOPs (the best known)\n")
    assert kept(folder)["puzzles"]["outer_sum"]["flops"] == 12
    assert " 1  Outer sum  [solved: 12 FLOPs]\n" in xbuild("puzzle").stdout


def test_a_file_without_a_solution_is_told() -> None:
    Path("attempt.py").write_text("x = 1\n")
    found = xbuild("puzzle", 1, "--check", "attempt.py")
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr == "not solved yet: attempt.py does not define a function `solution`\n"


def test_a_solved_puzzle_without_figures_is_listed() -> None:
    progress.read_progress().solve("greatest_common_divisor", {"flops": 3})
    assert "11  The greatest common divisor  [solved]\n" in xbuild("puzzle").stdout


def test_processes_at_once_keep_all_answers(folder: Path) -> None:
    """Each of four processes reads the progress before any writes, and each keeps 25 answers and a puzzle."""
    text = (
        "import sys; from xbuild.learning.progress import read_progress; kept = read_progress()\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for n in range(25): kept.note('pad' if n % 2 else sys.argv[1], f'{sys.argv[1]} {n}')\n"
        "kept.solve(sys.argv[1], {'flops': 1})\n"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", text, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
        )
        for n in range(4)
    ]
    assert [run.stdout.readline() for run in runs if run.stdout is not None] == ["ready\n"] * 4
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("go\n")
        run.stdin.close()
    assert [run.wait(60) for run in runs] == [0, 0, 0, 0]
    for run in runs:
        assert run.stdout is not None
        run.stdout.close()
    found = kept(folder)
    assert len(found["lessons"]["pad"]) == 4 * 12
    assert [len(found["lessons"][str(n)]) for n in range(4)] == [13] * 4
    assert set(found["puzzles"]) == {"0", "1", "2", "3"}
