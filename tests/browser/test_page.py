"""The step page in a browser: what is clicked, typed and chosen changes what is shown."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.conftest import Open

STEPS = """() => {
  const start = performance.now();
  for (let n = 0; n < 40; n++) { go({time: 100 + 40 * n}); document.body.offsetHeight; }
  return (performance.now() - start) / 40;
}"""
"""How many milliseconds a step takes."""


def step(page: Any) -> int:
    return int(re.findall(r"\d+", page.inner_text("#clock"))[0])


def name(page: Any) -> str:
    return str(page.inner_text("#side h3")).split()[0]


def test_it_opens_at_the_first_step(opened: Open) -> None:
    page = opened("ring")
    assert step(page) == 1
    assert name(page) == "parameter.1"
    assert page.title() == "ring_all_reduce"
    assert page.inner_text("#verdict").startswith("ok")


def test_keys(opened: Open) -> None:
    page = opened("ring")
    for key, wanted in (("j", 2), ("ArrowRight", 3), ("k", 2), ("ArrowLeft", 1), ("End", 154), ("Home", 1)):
        page.keyboard.press(key)
        assert step(page) == wanted, key
    page.keyboard.press("ArrowDown")
    assert "device=1" in page.evaluate("location.hash")
    page.keyboard.press("n")
    assert name(page).startswith("recv")
    page.keyboard.press("n")
    page.keyboard.press("p")
    assert name(page) == "recv.5"
    page.keyboard.press("/")
    page.keyboard.type("jjj")
    assert name(page) == "recv.5"


def test_slider_and_buttons(opened: Open) -> None:
    page = opened("ring")
    page.fill("#slider", "40")
    assert step(page) == 40
    page.click("#forward")
    assert step(page) == 41
    page.click("#back")
    assert step(page) == 40
    assert page.get_attribute("#slider", "aria-valuetext").startswith("step 40, replica 0: ")


def test_a_click_on_a_lane(opened: Open) -> None:
    page = opened("ring", "step=10")
    boxes = page.locator("#lanes .ev")
    sends = [number for number, text in enumerate(boxes.all_text_contents()) if "send.13" in text]
    boxes.nth(sends[2]).click()
    assert name(page) == "send.13"
    assert "device=2" in page.evaluate("location.hash")


def test_a_click_on_a_box(opened: Open) -> None:
    page = opened("ring")
    page.evaluate("document.getElementById('ring/recv.5').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert name(page) == "recv.5"
    assert page.evaluate("document.querySelector('#graph .now').id") == "ring/recv.5"


def test_search(opened: Open) -> None:
    page = opened("ring")
    page.keyboard.press("/")
    page.keyboard.type("recv-done.14")
    assert page.inner_text("#found li >> nth=0").startswith("recv-done.14")
    page.keyboard.press("Enter")
    assert name(page) == "recv-done.14"
    assert not page.is_visible("#found")


def test_hover_says_more(opened: Open) -> None:
    page = opened("ring")
    page.hover("#lanes .ev >> nth=1")
    assert "replica-id.2" in page.text_content("#lanes .ev >> nth=1")


def test_a_deep_link(opened: Open) -> None:
    page = opened("ring", "step=26&device=2&index=3")
    assert (step(page), name(page)) == (26, "add.26")
    assert page.inner_text(".dev.on .chosen")
    page = opened("ring", "at=recv-done.14&device=3")
    assert name(page) == "recv-done.14"
    page = opened("ring", "step=nonsense&device=99")
    assert step(page) == 1


def lit(page: Any) -> list[str]:
    """The elements that light up, with the heads of what they are in."""
    script = "all => all.map(c => `${c.closest('.dev').querySelector('button').innerText} ${c.title}`)"
    return list(page.eval_on_selector_all("#side .lit", script))


def test_an_element_lights_up_what_it_came_from(opened: Open) -> None:
    page = opened("scattered", "at=transpose.3&device=1")
    page.click(".dev.on .cell >> nth=1")
    assert lit(page) == ["reshape.2 [1,0] = 6"]
    page.keyboard.press("ArrowRight")
    assert lit(page) == ["reshape.2 [0,1] = 5"]


@pytest.mark.parametrize(
    ("at", "wanted"),
    [
        ("at=all-gather.4&device=1&index=5", ["replica 3 transpose.3 [0,1] = 14"]),
        ("at=all-to-all.5&device=0&index=2", ["replica 2 transpose.3 [0,0] = 8"]),
    ],
)
def test_an_element_from_another_device(opened: Open, at: str, wanted: list[str]) -> None:
    assert lit(opened("scattered", at)) == wanted


def test_an_element_of_a_sum_is_of_all_devices(opened: Open) -> None:
    found = lit(opened("scattered", "step=8&device=2&index=1"))
    assert [each.split()[1] for each in found] == ["0", "1", "2", "3"]


def test_a_value_that_was_sent(opened: Open) -> None:
    page = opened("ring", "at=recv-done.14&device=2")
    page.click(".dev.on .cell >> nth=2")
    (found,) = lit(page)
    assert found.startswith("replica 1 dynamic-slice.12 [2]")


def test_loops_tell_the_trip(opened: Open) -> None:
    page = opened("loop", "device=1")
    page.keyboard.press("End")
    page.keyboard.press("p")
    assert re.search(r"in while\.\d+, trip 3 · turn 3 of 3", page.inner_text("#side .path"))


def test_a_nan_is_marked(opened: Open) -> None:
    page = opened("scattered")
    page.click("#marks button >> nth=0")
    assert "infinity is born in log" in page.inner_text("#side")
    assert name(page).startswith("log")


def test_light_and_dark(opened: Open) -> None:
    page = opened("ring", color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.keyboard.press("t")
    assert page.evaluate(ground) != dark
    assert opened("ring", color_scheme="light").evaluate(ground) != dark


@pytest.mark.parametrize("which", ["ring", "deadlock"])
def test_narrow_and_wide(opened: Open, which: str) -> None:
    page = opened(which)
    for width in (360, 700, 1400, 2400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("j")
        assert page.locator("#lanes svg").bounding_box()["width"] > width / 3


def test_a_deadlock_says_who_waits_for_whom(opened: Open) -> None:
    page = opened("deadlock")
    text = page.inner_text("#side")
    assert "WHERE IT IS STUCK" in text
    assert "stands at send" in text
    assert page.locator("#side svg circle").count() == 3
    assert page.inner_text("#verdict").startswith("deadlock")


def test_around(opened: Open) -> None:
    page = opened("ring", "at=add.26&device=0")
    page.click("#around")
    assert {"add.26", "dynamic-slice.25"} < set(
        page.eval_on_selector_all(".around .shapes", "all => all.map(b => b.ariaLabel)")
    )
    page.focus(".around .shapes[aria-label='dynamic-slice.25']")
    page.keyboard.press("Enter")
    assert name(page) == "dynamic-slice.25"
    page.keyboard.press("v")
    assert page.is_visible("#graph > svg >> nth=0")


def test_a_large_run_is_quick(opened: Open) -> None:
    """The page is there within 3 s, a step takes less than 100 ms (ten thousand instructions: benchmarks)."""
    page = opened("large")
    assert page.get_attribute("#around", "aria-pressed") == "true"
    ready = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    each = page.evaluate(STEPS)
    assert ready < 3000
    assert each < 100


def test_many_devices(opened: Open) -> None:
    page = opened("many", "step=5")
    page.fill("#side input[type=number]", "200")
    page.keyboard.press("Enter")
    assert "device=200" in page.evaluate("location.hash")
    assert page.inner_text(".dev.on button") == "replica 200"
    assert page.locator("#lanes .ev").count() < 256 * 5
    page.keyboard.press("ArrowDown")
    assert page.is_visible("text=replica 201 >> nth=0")
