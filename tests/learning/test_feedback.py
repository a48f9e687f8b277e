"""Hints and sentences about typical wrong answers: of every question, in each way of taking a lesson."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from xbuild.learning import ask, progress, shelf
from xbuild.learning.answers import answer_text, is_same_answer
from xbuild.learning.changing import Changeable, UnusableNumbers
from xbuild.learning.lesson import Question, _feedback, feedback_on
from xbuild.learning.page import lesson_page
from xbuild.learning.terminal import teach
from xbuild.stepping.console import TextConsole

LESSONS = shelf.entries("lessons")


def questions(number: int) -> list[Question]:
    return shelf.questions_in(LESSONS[number].path)


@pytest.mark.parametrize("number", LESSONS)
def test_every_question_has_a_hint_and_typical_wrong_answers(number: int) -> None:
    for each in questions(number):
        feedback = each.feedback
        assert feedback.hint.endswith((".", "?")), each.words
        is_binary = len(each.choices) == 2 or each.words.endswith("(yes or no)")
        assert len(feedback.wrong) >= (1 if is_binary else 2), each.words
        for guess, why in feedback.wrong.items():
            assert not each.accepts(guess), (each.words, guess)
            assert each.comment(guess) == why, (each.words, guess)
            assert re.match(r"[A-Z`\d-]", why), why
            assert why.endswith("."), why
            if each.choices:
                assert guess in each.choices
        assert answer_text(each.truth) not in feedback.hint, each.words
        assert not any(is_same_answer(each.truth, other, each.choices) for other in feedback.wrong)


def test_no_feedback_is_left_over() -> None:
    words = {each.words for number in LESSONS for each in questions(number)}
    assert {*_feedback()} == words
    assert feedback_on("no question").hint == ""


SAME = [
    ("1, 2", "1 2", True), ([[1], [2]], "1 2", True), (np.float32([1, 2]), "1 2", True), ("2 1", "1 2", False),
    ("(5, 5)", "f32[5,5]", True), ("yes", "no", False), ("nan 1", "nan 1", True), ("", "1", False), ("0", "no", True),
    (None, "1", False), (None, "nan", False),
]  # fmt: skip


@pytest.mark.parametrize(("guess", "other", "is_same"), SAME)
def test_answers_that_mean_the_same(guess: Any, other: str, is_same: bool) -> None:
    assert is_same_answer(guess, other) == is_same


def taught(number: int, *lines: str) -> tuple[bool, str, progress.Progress]:
    out, given = io.StringIO(), iter([f"{line}\n" for line in lines])
    kept = progress.Progress(Path(os.environ["XDG_DATA_HOME"]) / "progress.json")
    is_right = teach(LESSONS[number], TextConsole(out), lambda: next(given, ""), kept)
    return is_right, out.getvalue(), kept


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


RIGHT = ["0", "11 24 39", "f32[2,7]", "a"]


def test_a_typical_wrong_answer_is_explained_and_a_hint_comes_before_the_answer() -> None:
    is_right, out, kept = taught(1, "0", "10 20 30", "", "", *RIGHT[2:], "11 24 39")
    assert is_right
    why = "  That is a * b: the add was skipped. Try again, or press Enter for a hint."
    hint = "  Hint: The program is (a + b) * a: it adds first, then multiplies by a. Try again, or press Enter to see"
    assert out.index(why) < out.index(hint) < out.index("  the answer: [11, 24, 39]")
    assert out.count("? The program runs with a = [1, 2, 3]") == 2
    assert "Once more, the questions whose answers you have seen" in out
    assert "4 of 4 right" in out
    assert [*map(len, kept.answered.values())] == [4]


def test_a_missed_question_is_asked_once_more_and_then_left() -> None:
    is_right, out, kept = taught(1, "0", "", "", *RIGHT[2:], "", "")
    assert not is_right
    assert out.count("  the answer: [11, 24, 39]") == 2
    assert "3 of 4 right" in out
    assert [*map(len, kept.answered.values())] == [3]


def test_a_wrong_answer_does_not_print_what_its_program_prints() -> None:
    """The message of lesson 1 states the answer to its last question."""
    _, out, _ = taught(1, *RIGHT[:3], "b")
    assert "dimension_mismatch" not in out
    assert "dimension_mismatch" in taught(1, *RIGHT)[1]


def test_numbers_are_changed_at_the_prompt() -> None:
    _, out, _ = taught(
        1, "0", "11 24 39", "try [2, 2, 2] [1, 2, 3]", "try 1", "try [1,2] [1,2,3]", "try x y", *RIGHT[2:]
    )
    assert "type try f32[3] f32[3] with numbers" in out
    values = ["parameter.1  [2, 2, 2]", "parameter.2  [1, 2, 3]", "add.3        [3, 4, 5]", "multiply.4   [6, 8, 10]"]
    assert "\n".join(f"    {line}" for line in values) in out
    assert "expected 2 arguments, got 1: try f32[3] f32[3]" in out
    assert "[1,2] has the extents [2]; expected [3] for f32[3]" in out
    assert "x is not a number or a list of numbers" in out


def test_numbers_before_any_program_are_refused() -> None:
    assert "The question before this one has no program that takes numbers." in taught(1, "try 1")[1]


def changeable(shape: Any, function: Any, *rows: Any, count: int = 1) -> Changeable:
    return Changeable(xb.Module("m", xb.computation(shape)(function), num_replicas=count), tuple(rows))


def test_numbers_of_several_devices() -> None:
    summed = changeable(xb.s32[()], xb.cross_replica_sum, (1,), (2,), count=2)
    assert summed.run_line("3 4")[-1].split() == ["all-reduce.5", "0:", "7", "1:", "7"]
    assert [text.splitlines()[-1].split()[2] for text in summed.variants()] == ["3", "5", "7", "9"]


@pytest.mark.parametrize("line", ["3000000000", "1.5", "nan", "[1]", "'a'", "1 2", "", "[" * 9999, "__import__('os')"])
def test_numbers_that_do_not_fit_are_refused(line: str) -> None:
    with pytest.raises(UnusableNumbers):
        changeable(xb.s32[()], lambda x: x + 1, (1,)).run_line(line)


def test_special_numbers_are_read() -> None:
    lines = changeable(xb.f32[3], lambda x: -x, ([0, 0, 0],)).run_line("[nan, -inf, 1e3]")
    assert lines[-1].split(maxsplit=1)[1] == "[nan, inf, -1000]"


def test_a_loop_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xbuild.learning.changing._MOST_SECONDS", 0.2)
    endless = changeable(xb.s32[()], lambda x: xb.while_(x, lambda s: s > 0, lambda s: s + 0), (0,))
    with pytest.raises(UnusableNumbers, match="does not end"):
        endless.run_line("1")


@pytest.mark.parametrize("number", LESSONS)
def test_the_first_variant_has_the_numbers_of_the_question(number: int) -> None:
    for each in questions(number):
        if each.changeable is not None:
            first, *others = each.changeable.variants()
            assert len(others) == 3
            assert first == "\n".join(each.changeable.run(each.changeable.rows))


def test_a_script_gives_the_hint_and_shows_the_answer_for_none(capsys: pytest.CaptureFixture[str]) -> None:
    words = questions(1)[1].words
    program = xb.computation(xb.f32[3], xb.f32[3])(lambda a, b: (a + b) * a)
    for guess, expected in (
        ([10, 20, 30], ["wrong", "the add was skipped", "Hint: ", "replace your guess with None"]),
        (None, ["the answer  [11, 24, 39]", "XLA:CPU agrees"]),
    ):
        ask(words, guess, program, [1, 2, 3], [10, 10, 10])
        out = capsys.readouterr().out
        assert all(each in out for each in expected), out
        assert ("[11, 24, 39]" in out) == (guess is None)


def test_a_page_explains_hints_asks_again_and_changes_numbers(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "lesson.html"
    file.write_text(lesson_page(LESSONS[1]))
    tab = browser.new_context(viewport={"width": 420, "height": 800}).new_page()
    tab.goto(file.as_uri())

    def answer(place: int, text: str) -> None:
        form = tab.locator("form").nth(place)
        form.locator("input").fill(text)
        form.locator("input").press("Enter")

    def output(place: int) -> str:
        return str(tab.locator("form").nth(place).locator("output").inner_text())

    answer(0, "0")
    answer(1, "10, 20, 30")
    assert output(1) == "That is a * b: the add was skipped. Try again, or ask for a hint."
    helper = tab.locator("form").nth(1).locator("[data-show]")
    assert helper.inner_text() == "Hint"
    helper.click()
    assert output(1) == "Hint: The program is (a + b) * a: it adds first, then multiplies by a."
    answer(1, "1 2 3")
    assert output(1) == "Not quite. Try again, or show the answer."
    helper.click()
    assert output(1).startswith("The answer: [11, 24, 39]")
    other = tab.locator("form").nth(1).locator("[data-other]")
    other.click()
    values = tab.locator("form").nth(1).locator("pre:visible")
    assert values.inner_text().splitlines()[0] == "parameter.1  [3, 1, 2]"
    assert values.inner_text().splitlines()[-1] == "multiply.4   [39, 11, 24]"
    answer(2, "f32[2,7]")
    tab.locator("form").nth(3).locator("[data-choice]").nth(1).click()
    assert output(3).startswith("In NumPy, the error appears when the line computes.")
    assert "dimension_mismatch" not in output(3)
    tab.locator("form").nth(3).locator("[data-choice]").nth(0).click()
    assert tab.inner_text("#score") == "3 of 4 right"
    assert tab.inner_text("#again h2") == "Once more, the questions whose answers you have seen"
    assert tab.locator("form").count() == 5
    answer(4, "11 24 39")
    assert tab.inner_text("#score") == "4 of 4 right"
    assert tab.evaluate("document.documentElement.scrollWidth") <= 420
    tab.context.close()
