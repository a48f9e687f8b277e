"""The page of a program that is stuck: where each device stands, who waits for whom, the cause and the fix."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.asking import name, step
from tests.browser.conftest import Open

EDGES = "all => all.map(each => each.getAttribute('stroke'))"
RED, GREY = "var(--wait)", "var(--dim)"


def edges(page: Any) -> list[str]:
    return list(page.eval_on_selector_all(".waits > path", EDGES))


def reason(page: Any, which: str) -> str:
    return str(page.inner_text(f".reasons dt.{which} + dd"))


@pytest.mark.parametrize(
    ("which", "stands", "cycle", "victims", "cause", "repair"),
    [
        ("two", ["send", "send"], 2, 0, "both devices send before they post", "on device 1 move recv before send"),
        ("deadlock", ["send"] * 3, 3, 0, "send before they post", "move recv before send"),
        ("sending_ring", ["send.3"] * 4, 4, 0, "send before they post", "move recv.4 before send.3"),
        ("crossed_pipeline", ["send.5", "recv-done.3"], 2, 0, "conflicting orders", "recv.6 depends on recv-done.3"),
        ("parameter_server", ["recv-done.3", "send.2", "recv-done.3"], 3, 0, "conflicting orders", "remove one of"),
        (
            "starved",
            ["sum", "batch"],
            0,
            1,
            "batch of replica 1 has no more items",
            "feed the number of items that the program reads to replica 1",
        ),
        ("parted", ["gradients", "gradients", "", "gradients"], 0, 3, "replica 2 has finished", "equal on all devices"),
    ],
)
def test_each_deadlock(
    opened: Open, which: str, stands: list[str], cycle: int, victims: int, cause: str, repair: str
) -> None:
    page = opened(which)
    label = "replica" if which in ("sending_ring", "starved", "parted") else "device"
    nodes = [f"{label} {n}\n{f'at {each}' if each else 'has ended'}" for n, each in enumerate(stands)]
    texts = page.eval_on_selector_all(
        ".waits .node", "all => all.map(g => [...g.querySelectorAll('text')].map(t => t.textContent).join('\\n'))"
    )
    assert texts == nodes
    assert (edges(page).count(RED), edges(page).count(GREY)) == (cycle, victims)
    assert cause in reason(page, "cause")
    assert repair in reason(page, "fix")
    assert page.locator("#lanes .blocked").count() == len([each for each in stands if each])
    verdict = page.inner_text("#verdict")
    assert verdict.startswith("stopped: " if which in ("starved", "parted") else "deadlock: ")
    assert "[" not in verdict
    assert page.locator("#verdict .bad").count() == 1


def test_causes_are_red_and_victims_are_grey(opened: Open) -> None:
    page = opened("starved")
    strokes = page.eval_on_selector_all(".waits .node rect", "all => all.map(each => each.getAttribute('stroke'))")
    assert strokes == [GREY, RED]
    assert page.text_content(".waits").count("for an item of its infeed") == 1
    fills = page.eval_on_selector_all("#lanes .blocked rect", "all => all.map(each => each.getAttribute('fill'))")
    assert fills == ["url(#hatch-dim)", "url(#hatch)"]
    assert "waits for an item of its infeed" in page.text_content("#lanes .blocked >> nth=1")


def test_it_opens_where_the_devices_stand(opened: Open) -> None:
    page = opened("crossed_pipeline")
    assert name(page) == "send.5"
    assert "device 0 is here and waits for device 1" in page.inner_text("#side")
    assert page.evaluate("document.querySelector('#graph .now').id") == "d0/first_stage/send.5"
    ids = page.eval_on_selector_all("#graph .shapes.stuck", "all => all.map(each => each.id)")
    assert sorted(ids) == ["d0/first_stage/send.5", "d1/second_stage/recv-done.3"]
    page.click(".waits .node >> nth=1")
    assert (name(page), page.evaluate("state.device")) == ("recv-done.3", 1)


def test_the_way_to_it_is_replayed(opened: Open) -> None:
    """Where it is stuck, the devices come first, then the cause and the fix; before, the instruction."""
    page = opened("crossed_pipeline")
    assert page.inner_text("#side").startswith("WHERE EACH DEVICE IS")
    page.keyboard.press("k")
    assert step(page) == 5
    assert name(page) == "tanh.4"
    assert page.inner_text("#side").startswith("tanh.4")
    side = page.inner_text("#side")
    assert side.index("WHERE EACH DEVICE IS") < side.index("CAUSE") < side.index("FIX") < side.index("WHO WAITS FOR")


def test_the_verdict_in_full(opened: Open) -> None:
    page = opened("sending_ring")
    assert not page.is_visible(".report pre")
    page.click(".report summary")
    assert "the program runs to completion if each channel has a send buffer of 1" in page.inner_text(".report pre")
    page.keyboard.press("k")
    assert page.is_visible(".report pre")


def test_the_edges_say_what_is_wanted(opened: Open) -> None:
    page = opened("crossed_pipeline")
    assert "for recv.6,which comes after recv-done.3" in page.text_content(".waits")


def test_many_devices_in_a_ring(opened: Open) -> None:
    page = opened("ring_of_ten")
    assert page.locator(".waits circle").count() == 10
    assert edges(page) == [RED] * 10
    assert "and 9 more at the same instruction" in page.inner_text(".stands")


def test_a_program_that_is_refused_and_yet_runs(opened: Open) -> None:
    """The reason comes first, with the two sides, at every step."""
    page = opened("unlike")
    for key in ("Home", "End"):
        page.keyboard.press(key)
        assert reason(page, "cause") == "channel 1 is used by all-reduce sum and by send"
        assert page.inner_text("#side").startswith("CAUSE")
        assert "device 0  send   channel 1, f32[8]" in page.inner_text(".report pre")
    assert page.inner_text("#verdict").startswith("error: channel 1")


def test_the_cycle_of_many_devices_closes_through_those_that_are_not_shown(opened: Open) -> None:
    page = opened("ring_of_many")
    texts = page.eval_on_selector_all(".waits .node text", "all => all.map(each => each.textContent)")
    assert texts == [*map(str, range(12)), "+52"]
    assert edges(page) == [RED] * 13
    assert page.get_attribute(".waits .node:last-of-type", "aria-label") == "52 more devices"
    page.locator(".waits .node").last.click()
    assert page.evaluate("state.device") == 12
