"""What a user waits for in a step page of 10,000 instructions on 8 devices: opening it, and moving between steps.

A step lasts from the input to the next paint, as measured by the browser's Event Timing: in units of 8 ms, from 16.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import evolve

import xbuild as xb
from benchmarks.conftest import Row
from interpreter import trace
from tests.browser.conftest import browser
from xbuild.pages import write_page

__all__ = ["browser"]

STEPS = 300
PAUSE = 80  # ms, so that no step waits for the previous one
REPEAT = 33  # ms between the repeats of a held key
LEAST = 16  # ms; the browser reports no shorter event
WATCH = """() => {
  window.waits = new Map();
  new PerformanceObserver(list => list.getEntries().forEach(each => waits.set(each.startTime, each.duration)))
    .observe({type: "event", durationThreshold: 16});
}"""


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A training step of a transformer, the same on every device."""
    transformer = pytest.importorskip("benchmarks.transformer")
    sizes = transformer.Sizes()
    module = xb.parse_hlo(transformer.lowered(sizes).as_text(dialect="hlo", debug_info=True))
    run = trace(evolve(module, num_replicas=8), [transformer.leaves(sizes)] * 8, origins=True)
    path = write_page(run, tmp_path_factory.mktemp("page") / "large.html")
    opened = browser.new_page(viewport={"width": 1400, "height": 900})
    opened.goto(path.as_uri())
    opened.wait_for_timeout(1000)
    yield opened
    opened.close()


def test_open(page: Any, rows: list[Row]) -> None:
    """Until the first step is drawn: the document is loaded, its script has run, and it has been painted."""
    told = (
        "performance.getEntriesByType('navigation')[0].loadEventEnd",
        "performance.getEntriesByType('paint')[0].startTime",
    )
    rows.append(Row("a page of 10,929 instructions x 8 opens within", max(map(page.evaluate, told)), unit="ms"))


def _presses(page: Any, key: str) -> None:
    for _ in range(STEPS):
        page.keyboard.press(key)
        page.wait_for_timeout(PAUSE)


def _ends(page: Any) -> None:
    """The last step, whose tuple has hundreds of elements, and the first."""
    for number in range(STEPS):
        page.keyboard.press("Home" if number % 2 else "End")
        page.wait_for_timeout(PAUSE)


def _hold_key(page: Any) -> None:
    for _ in range(STEPS):
        page.keyboard.down("j")
        page.wait_for_timeout(REPEAT)
    page.keyboard.up("j")


def _clicks(page: Any, part: str) -> None:
    """Anywhere in a part of the page."""
    box, chance = page.locator(part).bounding_box(), random.Random(0)
    for _ in range(STEPS):
        page.mouse.click(box["x"] + chance.random() * box["width"], box["y"] + chance.random() * box["height"])
        page.wait_for_timeout(PAUSE)


WAYS: dict[str, Callable[[Any], None]] = {
    "a step on": lambda page: _presses(page, "j"),
    "a step back": lambda page: _presses(page, "k"),
    "a held key": _hold_key,
    "to the end and back": _ends,
    "far away, by the strip": lambda page: _clicks(page, "#strip"),
    "far away, by the slider": lambda page: _clicks(page, "#slider"),
    "to another device": lambda page: _clicks(page, "#lanes"),
}


@pytest.mark.parametrize("mode", ["around", "whole"])
@pytest.mark.parametrize("way", WAYS)
def test_step(page: Any, rows: list[Row], mode: str, way: str) -> None:
    """The picture of the surroundings of an instruction, or of the entire program."""
    page.locator(f"#{mode}").click()
    page.evaluate(WATCH)
    WAYS[way](page)
    page.wait_for_timeout(500)
    waits = page.evaluate("[...waits.values()]")
    found = sorted([LEAST] * max(0, STEPS - len(waits)) + waits)
    rows.append(Row(f"{mode}: {way}, median", statistics.median(found), unit="ms"))
    rows.append(Row(f"{mode}: {way}, 99 of 100 within", found[int(0.99 * len(found))], unit="ms"))
