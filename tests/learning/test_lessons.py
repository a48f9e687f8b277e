"""Each lesson: its form, its answers, as a script, and graded."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import resource
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from xbuild.learning import about_xbuild, ask, progress, shelf
from xbuild.learning.answers import answer_text
from xbuild.learning.cells import cells_of, notebook
from xbuild.learning.lesson import Question, question_text
from xbuild.learning.page import inline_html, markdown_html
from xbuild.learning.terminal import teach
from xbuild.stepping.console import TextConsole

ROOT = Path(__file__).parents[2]
LESSONS = shelf.entries("lessons")
NUMBERS = [*LESSONS]
MOST_LINES = 60
MOST_SECONDS = 2.0


@pytest.fixture(scope="session")
def questions() -> Any:
    """The questions of a lesson by its number, collected once."""
    kept: dict[int, list[Question]] = {}
    return lambda number: kept.setdefault(number, shelf.questions_in(LESSONS[number].path))


def code_lines(text: str) -> int:
    return sum(1 for line in text.split("\n") if line.strip() and not line.startswith("#"))


def test_numbers_follow_each_other() -> None:
    assert {*NUMBERS} == {*range(1, 25)}


@pytest.mark.parametrize("number", NUMBERS)
def test_form(number: int, questions: Any) -> None:
    lesson = LESSONS[number]
    text = lesson.path.read_text()
    assert code_lines(text) <= MOST_LINES
    assert lesson.cells[0].text.startswith(f"# {number}. ")
    assert "**Rule.**" in lesson.cells[-1].text
    assert lesson.number_of_questions == len(questions(number)) >= 3
    assert len({each.words for each in questions(number)}) == len(questions(number))
    assert all(each.is_open for each in questions(number))


TEXTS = {
    path.stem: [cell.text for cell in cells_of(path.read_text()) if cell.kind != "code"]
    for folder in ("lessons", "puzzles", "lecture")
    for path in sorted((ROOT / "examples" / folder).glob("*.py"))
}


@pytest.mark.parametrize("name", TEXTS)
def test_no_product_looks_like_emphasis(name: str) -> None:
    """In Markdown, the asterisks of `1*2 + 3*4` print what is between them in italics, in a page and in a terminal."""
    for text in TEXTS[name]:
        assert not re.search(r"[\w)\]]\*[\w(\[]", re.sub(r"`[^`]+`", "", text)), text
        assert emphasized(MarkdownIt().render(text), "em") == emphasized(markdown_html(text), "i")


@pytest.mark.parametrize("number", NUMBERS)
def test_no_product_in_a_question_looks_like_emphasis(number: int, questions: Any) -> None:
    for each in questions(number):
        assert emphasized(inline_html(each.words), "i") == []


def emphasized(html: str, tag: str) -> list[str]:
    """The parts of a page in italics, each a word or two of prose."""
    found = [" ".join(each.split()) for each in re.findall(rf"<{tag}>([^<]*)</{tag}>", html)]
    assert all(re.fullmatch(r"[A-Za-z ]+", each) for each in found), found
    return found


def test_a_question_is_printed_before_its_program_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where computing the answer prints the answer, as an error message does."""

    def refused() -> str:
        print("the message")
        return "no"

    for guess in (..., "no", "yes"):
        ask("Is it accepted?", guess, refused, choices=["yes", "no"], claim=about_xbuild("The message says so"))
        printed = capsys.readouterr().out
        assert printed.startswith("Is it accepted?\n  a) yes\n  b) no\n")
        assert ("the message" in printed) == (guess == "no"), "only a right answer shows what the program prints"


@pytest.mark.parametrize("number", NUMBERS)
def test_no_code_before_a_question_states_its_answer(number: int) -> None:
    """The rule follows the question that it answers."""
    kinds = [(cell.kind, cell.questions) for cell in LESSONS[number].cells]
    first_rule = next(place for place, (kind, _) in enumerate(kinds) if kind == "rule")
    assert any(asked for _, asked in kinds[:first_rule])


@pytest.mark.parametrize("number", NUMBERS)
def test_as_a_script(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(LESSONS[number].path), run_name="__main__")
    assert capsys.readouterr().out.count("not answered yet") == LESSONS[number].number_of_questions


def test_as_a_script_of_its_own() -> None:
    """Importing and all, a lesson takes less than two seconds of processor time."""
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-W", "error", str(LESSONS[12].path)]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert "not answered yet" in done.stdout
    assert ended.ru_utime - begun.ru_utime < MOST_SECONDS


@pytest.mark.parametrize("number", NUMBERS)
def test_right_answers_are_taken_and_wrong_ones_are_not(number: int, questions: Any) -> None:
    begun = time.process_time()
    for each in questions(number):
        right = answer_text(each.truth)
        assert each.accepts(each.truth), each.words
        assert each.accepts(right), each.words
        assert each.accepts(f" {right} "), each.words
        assert not each.accepts(""), each.words
        assert not each.accepts(f"{right} 99"), each.words
        for wrong in wrong_for(each):
            assert not each.accepts(wrong), (each.words, wrong)
    assert time.process_time() - begun < MOST_SECONDS


def wrong_for(question: Question) -> list[str]:
    """Answers of the same form that are wrong."""
    if question.choices:
        return [each for each in question.choices if each != str(question.truth)]
    right = answer_text(question.truth)
    return ["f32[99]" if right[0].isalpha() and right not in ("yes", "no", "nan") else f"{right} 0", "-12345"]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_guess_is_judged_in_print(number: int, questions: Any) -> None:
    for each in questions(number):
        kept, each.guess = each.guess, each.truth
        assert "right" in question_text(each)
        assert str(each.claim) in question_text(each)
        each.guess = "-12345"
        assert "wrong" in question_text(each)
        each.guess = kept


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("in_colour", [False, True])
def test_in_a_terminal(number: int, in_colour: bool, questions: Any, tmp_path: Path) -> None:
    """Answered by the truth at the prompt; in colour the words are the same."""
    out, kept = io.StringIO(), progress.Progress(tmp_path / "progress.json")
    console = Console(file=out, width=200, force_terminal=True) if in_colour else None
    answers = iter([f"{answer_text(each.truth)}\n" for each in questions(number)])
    with contextlib.redirect_stdout(out):
        assert teach(LESSONS[number], TextConsole(out, console), lambda: next(answers), kept)
    text = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
    assert text.count("right: ") == len(questions(number))
    assert ("\x1b[" in out.getvalue()) == in_colour
    asked = [text.index(f"? {each.words[:40]}") for each in questions(number)]
    assert asked == sorted(asked)
    assert kept.answered[LESSONS[number].name] == [each.words for each in questions(number)]


@pytest.mark.parametrize("number", NUMBERS)
def test_as_a_notebook(number: int) -> None:
    """The cells of the notebook are those of the file, rules folded, after the cell that installs xbuild."""
    book = json.loads(notebook(LESSONS[number].cells))
    assert book["nbformat"] == 4
    code = ["".join(each["source"]) for each in book["cells"] if each["cell_type"] == "code"]
    assert [ast.dump(ast.parse(each)) for each in code[1:]] == [
        ast.dump(ast.parse(cell.text)) for cell in LESSONS[number].cells if cell.kind == "code"
    ]
    assert sum("<details>" in "".join(each["source"]) for each in book["cells"]) == sum(
        cell.kind == "rule" for cell in LESSONS[number].cells
    )
