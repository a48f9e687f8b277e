"""Accessibility of pages: every control has a name and is reached by keys, and text has enough contrast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.asking import name, step
from tests.browser.conftest import Open

NAMELESS = """() => [
    ...document.querySelectorAll("button,input,a,summary,[role=button],[role=img],[role=group],[tabindex]")]
  .filter(each => !(each.getAttribute("aria-label") || each.title || each.textContent.trim() || each.labels?.length))
  .map(each => each.outerHTML.slice(0, 120))"""

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "which", ["ring", "digits", "scattered", "starved", "crossed_pipeline", "strict", "many", "uneven"]
)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out(opened: Open, which: str, theme: str) -> None:
    """At least 4.5 to 1 against what is below it, as WCAG 2.1 asks of text."""
    page = opened(which, color_scheme=theme)
    for key in ("n", "End", "v"):
        page.keyboard.press(key)
        told = page.evaluate(CONTRAST)
        assert told["seen"] > 40
        assert told["found"] == []


def test_the_contrast_that_is_computed(opened: Open) -> None:
    """Grey on white, of which the ratio is known, is found."""
    page = opened("ring", color_scheme="light")
    page.evaluate("document.getElementById('side').innerHTML = '<p style=\"color:#888;background:#fff\">grey</p>'")
    assert page.evaluate(CONTRAST)["found"] == ["3.54 P. grey"]


@pytest.mark.parametrize("which", ["ring", "starved", "many", "strict", "uneven"])
def test_every_control_has_a_name(opened: Open, which: str) -> None:
    page = opened(which)
    page.keyboard.press("v")
    assert page.evaluate(NAMELESS) == []
    doubled = page.evaluate(
        "(ids => ids.filter((id, n) => ids.indexOf(id) !== n))([...document.querySelectorAll('[id]')].map(e => e.id))"
    )
    assert doubled == []
    assert page.get_attribute("html", "lang") == "en"


def test_all_controls_are_reached_by_tab(opened: Open) -> None:
    page = opened("starved")
    wanted = page.eval_on_selector_all(
        "button:not([tabindex='-1']),input,summary,[tabindex='0']",
        "all => all.filter(e => e.getClientRects().length).map(e => e.id || e.textContent.trim())",
    )
    reached: list[Any] = []
    for _ in range(len(wanted) + 2):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("(e => e.id || e.textContent.trim())(document.activeElement)"))
    assert set(wanted) <= set(reached)


def test_it_says_where_one_is(opened: Open) -> None:
    page = opened("ring")
    page.keyboard.press("j")
    assert page.text_content("[role=status]") == "step 2, replica 0: replica-id.2"


def test_a_node_of_the_wait_for_graph_by_keys(opened: Open) -> None:
    page = opened("crossed_pipeline")
    page.focus(".waits .node >> nth=1")
    page.keyboard.press("Enter")
    assert name(page) == "recv-done.3"


def test_the_keys_are_told(opened: Open) -> None:
    page = opened("ring")
    page.keyboard.press("?")
    told = page.inner_text("#keys")
    for key in page.evaluate("Object.keys(KEYS)"):
        sign = {"ArrowRight": "→", "ArrowLeft": "←", "ArrowDown": "↓", "ArrowUp": "↑"}.get(key, key)
        assert sign in told or sign == "?", key
    page.keyboard.press("j")
    assert step(page) == 1
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    assert step(page) == 2


def test_a_found_instruction_by_keys(opened: Open) -> None:
    page = opened("ring")
    page.keyboard.press("/")
    page.keyboard.type("recv-done")
    assert page.get_attribute("#search", "aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    second = page.inner_text("#found li >> nth=1").split()[0]
    page.keyboard.press("Enter")
    assert name(page) == second
    assert page.get_attribute("#search", "aria-expanded") == "false"
