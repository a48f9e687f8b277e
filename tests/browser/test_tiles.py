"""The step page of a partitioned program: global arrays in tiles, their devices, padding, causes and reasons."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser import pages
from tests.browser.asking import name
from tests.browser.conftest import Open

HEADS = "all => all.map(each => each.innerText.replace(/\\s+/g, ' '))"


def heads(page: Any) -> list[str]:
    """The devices and the place of each tile that is shown."""
    found = page.eval_on_selector_all(".tile .head", HEADS)
    assert isinstance(found, list)
    return found


def test_an_array_is_shown_in_the_tiles_of_the_devices(opened: Open) -> None:
    page = opened("uneven", "step=1&device=3")
    assert page.inner_text("#facts").startswith("a=2 x b=4 · 8 devices")
    assert heads(page)[2:5] == ["2 [0:3, 8:12]", "3 [0:3, 12:14]", "4 [3:5, 0:4]"]
    assert page.eval_on_selector_all(".tile", "all => all.map(each => each.querySelectorAll('.padding').length)") == [
        0, 0, 0, 6, 4, 4, 4, 8,
    ]  # fmt: skip
    assert page.inner_text(".tile.on .who") == "3"
    assert "the program states its sharding" in page.inner_text("#side")


def test_copies_stand_once_and_causes_lead_to_what_states_them(opened: Open) -> None:
    page = opened("uneven", "at=tanh.4&device=6")
    assert heads(page) == ["0 1 2 3 [0:3, :]", "4 5 6 7 [3:5, :]"]
    assert page.inner_text(".tile.on .who button.on") == "6"
    told = page.inner_text("#side")
    assert "dimension 0 by a, from %dot.3, from %parameter.1, which states it" in told.replace("\n", " ")
    page.click(".tile:not(.on) button >> nth=2")
    assert page.inner_text(".tile.on .who button.on") == "2"
    page.click("#side .switch button >> nth=1")
    assert page.inner_text("#side .dev.on button") == "device 2 (a=0, b=2)"
    assert page.query_selector(".tile") is None


def test_an_element_of_a_tile_is_chosen_on_its_device(opened: Open) -> None:
    page = opened("uneven", "at=tanh.4&device=1")
    page.click(".tile:nth-child(2) .cell >> nth=7")
    assert page.inner_text(".tile.on .who button.on") == "4"
    assert page.inner_text("#side").count("tanh.4[1,1]") >= 1


@pytest.mark.parametrize("at", ["all-reduce.31"])
def test_an_inserted_collective_says_why(opened: Open, at: str) -> None:
    page = opened("uneven", f"at={at}")
    assert name(page) == at
    (inserted,) = pages.uneven().communications
    assert page.inner_text(".inserted").startswith(inserted.reason)
    assert "sent by a device over b" in page.inner_text(".inserted")
    page.keyboard.press("k")
    assert "not joined yet" in page.inner_text(".tile.on")
    assert len(heads(page)) == 8


@pytest.mark.parametrize("wide", [480, 1000])
def test_no_page_is_wider_than_the_screen(opened: Open, wide: int) -> None:
    page = opened("uneven", "step=1")
    page.set_viewport_size({"width": wide, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= wide
