"""Pictures as pages in a browser: search, follow lines, move about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import xbuild as xb
from tests.golden import programs


@pytest.fixture(params=["light", "dark"])
def page(browser: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The page of a training step; at the end nothing may have gone over the network, or to the console."""
    file = tmp_path / "page.html"
    file.write_text(str(xb.viz(programs.training_step(), "html")), encoding="utf-8")
    context = browser.new_context(viewport={"width": 1000, "height": 700}, color_scheme=request.param)
    found = context.new_page()
    asked: list[str] = []
    faults: list[str] = []
    found.on("request", lambda each: asked.append(each.url))
    found.on("pageerror", lambda each: faults.append(str(each)))
    found.goto(file.as_uri())
    yield found
    assert asked == [file.as_uri()]
    assert not faults
    context.close()


def looked_at(page: Any) -> list[float]:
    return [float(each) for each in page.get_attribute("#stage svg", "viewBox").split()]


def test_search_goes_from_one_to_the_next(page: Any) -> None:
    page.keyboard.press("/")
    page.keyboard.type("dot")
    hits = page.locator("g.shapes.hit").count()
    assert hits == int(page.inner_text("#count").split()[0]) > 1
    page.keyboard.press("Enter")
    assert page.inner_text("#count") == f"1 of {hits}"
    first = page.locator("g.shapes.chosen").get_attribute("id")
    page.keyboard.press("Enter")
    second = page.locator("g.shapes.chosen").get_attribute("id")
    assert first != second
    middle = page.locator("g.shapes.chosen").bounding_box()
    stage = page.locator("#stage").bounding_box()
    assert abs(middle["x"] + middle["width"] / 2 - stage["x"] - stage["width"] / 2) < 200
    assert stage["y"] <= middle["y"] <= stage["y"] + stage["height"]
    page.keyboard.press("Escape")
    assert page.locator("g.shapes.hit, g.shapes.chosen").count() == 0
    assert page.locator("#side").is_hidden()


def test_a_click_shows_what_comes_before_and_after(page: Any) -> None:
    page.click("#fit")
    page.locator('[id="training_step/dot.3"] text').first.click()
    assert "dot.3 = " in page.inner_text("#side pre")
    assert page.locator("g.line.before").count() == 2
    assert page.locator("#side h2.before").inner_text() == "2 before it"
    page.locator("#side h2.after ~ button").first.click()
    assert "dot.3" not in page.locator("g.shapes.chosen").get_attribute("id")
    page.locator("#side button", has_text="dot.3").first.click()
    assert page.locator("g.shapes.chosen").get_attribute("id") == "training_step/dot.3"


def test_moving_about(page: Any) -> None:
    page.click("#fit")
    x, y, wide, high = looked_at(page)
    page.keyboard.press("+")
    assert looked_at(page)[2] == pytest.approx(wide * 0.8)
    stage = page.locator("#stage").bounding_box()
    page.mouse.move(stage["x"] + 5, stage["y"] + 5)
    page.mouse.down()
    page.mouse.move(stage["x"] + 65, stage["y"] + 45)
    page.mouse.up()
    moved = looked_at(page)
    assert moved[0] < x + wide * 0.1
    assert moved[1] < y + high * 0.1
    page.keyboard.press("f")
    assert looked_at(page) == [x, y, wide, high]
