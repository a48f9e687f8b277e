"""Pages of lessons in a browser: asked before it is shown, judged, readable on a narrow screen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from xbuild.learning import shelf
from xbuild.learning.page import lesson_page


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens the page of a lesson; at the end nothing may have gone over the network, or to the console."""
    contexts, asked, faults = list[Any](), list[str](), list[str]()

    def open_page(number: int, width: int = 1000, scheme: str = "light") -> Any:
        file = tmp_path / f"{number}.html"
        file.write_text(lesson_page(shelf.entry("lessons", number)), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        contexts.append(context)
        found = context.new_page()
        found.on("request", lambda each: asked.append(each.url))
        found.on("pageerror", lambda each: faults.append(str(each)))
        found.on("console", lambda each: faults.append(each.text) if each.type == "error" else None)
        found.goto(file.as_uri())
        return found

    yield open_page
    assert [url for url in asked if not url.startswith(("file:", "about:"))] == []
    assert faults == []
    for context in contexts:
        context.close()


@pytest.mark.parametrize("number", [1, 10, 12, 17, 19])
def test_a_lesson_is_done_question_by_question(page: Callable[..., Any], number: int) -> None:
    found = page(number)
    questions = json.loads(found.locator("#data").text_content())
    forms = found.locator("form")
    for place, question in enumerate(questions):
        form = forms.nth(place)
        assert form.is_visible()
        assert place + 1 == len(questions) or not forms.nth(place + 1).is_visible()
        if form.locator("[data-choice]").count():
            form.locator(f'[data-choice="{question["text"]}"]').click()
        else:
            form.locator("input").fill("-12345 99")
            form.locator("input").press("Enter")
            assert "Not quite." in form.locator("output").text_content()
            form.locator("input").fill(question["shown"])
            form.locator("button").first.click()
        assert form.get_attribute("class") == "right"
        assert question["claim"] in form.locator("output").text_content()
    assert found.locator("#score").text_content() == f"{len(questions)} of {len(questions)} right"
    assert found.locator("details").last.evaluate("each => each.open")


def test_what_is_shown_is_not_right(page: Callable[..., Any]) -> None:
    found = page(8)
    found.locator("[data-show]").first.click()
    assert "Hint: " in found.locator("output").first.text_content()
    found.locator("[data-show]").first.click()
    assert "The answer: [0, 1, 2, 3, 0, 0]" in found.locator("output").first.text_content()
    assert found.locator("#score").text_content() == "0 of 4 right; 3 to go"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_page_is_no_wider_than_the_screen(page: Callable[..., Any], scheme: str) -> None:
    found = page(13, 420, scheme)
    for place in range(found.locator("form").count()):
        found.locator("[data-show]").nth(place).click()
        found.locator("[data-show]").nth(place).click()
    assert found.evaluate("document.documentElement.scrollWidth") <= 420


def test_without_javascript_the_lesson_can_be_read(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "lesson.html"
    file.write_text(lesson_page(shelf.entry("lessons", 1)), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    found = context.new_page()
    found.goto(file.as_uri())
    assert found.locator("noscript p").first.is_visible()
    assert "JavaScript is off, so" in found.locator("noscript p").first.inner_text()
    assert all(each.is_visible() for each in found.locator("form p").all())
    assert not any(each.is_visible() for each in found.locator("button, input").all())
    found.locator("details:not(.setup)").first.locator("summary").click()
    assert found.locator("details:not(.setup)").first.locator("p").first.is_visible()
    context.close()


def test_nothing_is_zero_and_extents_are_a_shape(page: Callable[..., Any]) -> None:
    found = page(1)
    for place, guess in enumerate(["none", "11 24 39", "[2, 7]"]):
        form = found.locator("form").nth(place)
        form.locator("input").fill(guess)
        form.locator("input").press("Enter")
        assert form.get_attribute("class") == "right"


CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(page: Callable[..., Any], scheme: str) -> None:
    """Also in coloured code: at least 4.5 to 1 against what is below it, as WCAG 2.1 asks of text."""
    found = page(16, 1000, scheme)
    found.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    told = found.evaluate(CONTRAST)
    assert told["seen"] > 30
    assert told["found"] == []


@pytest.mark.parametrize("number", [1, 16])
def test_code_is_coloured_and_its_text_is_unchanged(page: Callable[..., Any], number: int) -> None:
    found = page(number)
    setup = found.locator("details.setup pre")
    assert "import xbuild as xb" in setup.first.text_content()
    assert not setup.first.is_visible()
    assert found.locator("pre i.keyword").count() > 3
    shown = " ".join(found.locator("main").text_content().split())
    for cell in shelf.entry("lessons", number).cells:
        if cell.kind == "code" and cell.code_to_read:
            for line in cell.code_to_read.splitlines():
                assert " ".join(line.split()) in shown
