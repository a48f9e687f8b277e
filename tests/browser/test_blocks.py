"""Scopes as blocks on the lanes of a step page, and zooming out to the whole run."""

from __future__ import annotations

from typing import Any

from tests.browser.conftest import Open


def blocks(page: Any) -> list[str]:
    return list(page.eval_on_selector_all("#lanes rect.block title", "all => all.map(each => each.textContent)"))


def test_scopes_are_blocks_with_a_hue_for_each_sort(opened: Open) -> None:
    page = opened("in_scopes")
    page.keyboard.press("0")
    assert blocks(page) == ["F0", "F1", "B0", "B1"] * 2
    fills = page.eval_on_selector_all("#lanes rect.block", "all => all.map(each => each.getAttribute('fill'))")
    assert fills[0] == fills[1] != fills[2] == fills[3]
    names = page.eval_on_selector_all("#lanes text.block", "all => all.map(each => each.textContent)")
    assert names == ["F0", "F1", "B0", "B1"] * 2
    edge = page.evaluate("Lanes.label - 5")
    starts = page.eval_on_selector_all("#lanes rect.block", "all => all.map(each => +each.getAttribute('x'))")
    assert min(starts) >= edge


def test_zooming_out_stops_at_the_whole_run(opened: Open) -> None:
    page = opened("large")
    for _ in range(12):
        page.keyboard.press("-")
    seen = page.evaluate("[Lanes.first, Lanes.shown, D.end]")
    assert seen[0] == 1
    assert seen[2] <= seen[1] <= 1.05 * seen[2] + 4
    scale = page.evaluate("Lanes.px")
    page.keyboard.press("-")
    assert page.evaluate("Lanes.px") == scale
    page.keyboard.press("+")
    page.locator("#all").click()
    assert page.evaluate("Lanes.px") == scale
    assert page.locator("#lanes .ev").count() < 20_000


def test_a_page_without_scopes_has_no_blocks(opened: Open) -> None:
    assert blocks(opened("loop")) == []
