"""The step page in a browser: what is clicked, typed and chosen changes what is shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.asking import name, step, until
from tests.browser.conftest import Open


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
    until(page, "location.hash.split('&').includes('device=1')")
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
    until(page, "location.hash.split('&').includes('device=2')")


def test_a_click_on_a_box(opened: Open) -> None:
    page = opened("ring")
    page.evaluate("document.getElementById('ring/recv.5').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert name(page) == "recv.5"
    assert page.evaluate("document.querySelector('#graph .now').id") == "ring/recv.5"


@pytest.mark.parametrize(
    ("at", "words"), [("all-reduce.56", "equal on all devices"), ("parameter.5", "equal on all devices")]
)
def test_what_all_devices_have_alike(opened: Open, at: str, words: str) -> None:
    page = opened("digits", f"at={at}")
    assert name(page) == at
    assert words in page.inner_text("#side .bar")


def test_what_devices_have_apart(opened: Open) -> None:
    page = opened("ring", "at=dynamic-slice.12")
    assert "4 different values" in page.inner_text("#side .bar")
    page.evaluate("go({time: 5})")
    assert "different" not in page.inner_text("#side")


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


def test_loops_tell_the_trip(opened: Open) -> None:
    page = opened("loop", "device=1")
    page.keyboard.press("End")
    page.keyboard.press("p")
    assert re.search(r"in while\.\d+, trip 3 · execution 3 of 3", page.inner_text("#side .path"))


def test_a_nan_is_marked(opened: Open) -> None:
    page = opened("scattered")
    page.click("#marks button >> nth=0")
    assert "infinity is born in log" in page.inner_text("#side")
    assert name(page).startswith("log")
    assert "infinity is born" in page.text_content("#lanes .mark >> nth=0")


def test_findings_of_a_strict_run_are_marked(opened: Open) -> None:
    page = opened("strict")
    page.keyboard.press("m")
    assert name(page) == "logarithm"
    assert "nan_born" in page.inner_text("#side")
    assert page.inner_text(".dev.on .odd") == "NaN"
    page.keyboard.press("m")
    assert name(page) == "taken"
    assert "clamped" in page.inner_text("#side")
    assert page.locator("#lanes .mark").count() == 2
    page.keyboard.press("m")
    assert name(page) == "logarithm"


def test_an_infinity_that_the_program_states_is_no_mark(opened: Open) -> None:
    """A maximum begins at minus infinity."""
    assert opened("digits").locator("#marks button").count() == 0


def test_who_waits_is_hatched(opened: Open) -> None:
    page = opened("pipeline")
    hatched = page.eval_on_selector_all(
        "#lanes rect[fill='url(#hatch)']", "all => all.map(each => each.parentNode.querySelector('title').textContent)"
    )
    assert "waits for send.6 of device 0" in hatched
    assert "waits for send.6 of device 0" in page.inner_text("#lanes")


def test_collectives_are_bars_and_sends_are_arrows(opened: Open) -> None:
    page = opened("digits", "at=all-reduce.55")
    bars = page.locator("#lanes .meeting")
    assert bars.count() == 4
    lanes = [page.locator(f"#lanes text >> text=replica {n}").bounding_box() for n in (0, 1)]
    box = bars.nth(0).bounding_box()
    assert box["y"] < lanes[0]["y"]
    assert box["y"] + box["height"] > lanes[1]["y"] + lanes[1]["height"]
    assert "all-reduce.55" in page.locator("#lanes .name").all_text_contents()
    assert opened("pipeline", "step=8").locator("#lanes .transfer").count() >= 1


def test_the_rule_the_attributes_and_the_source(opened: Open) -> None:
    page = opened("moved", "at=windows")
    text = page.inner_text("#side")
    assert "reduce-window — Reduce with to_apply, starting from init_values, the elements that a sliding window" in text
    assert "shapes takes N arrays with the same extents" in text
    assert "size=2x2" in text
    assert re.search(r"pages\.py:\d+ in program", text)
    assert 'xb.reduce_window(x, 0.0, xb.add, (2, 2), name="windows"),' in text


def test_in_a_frame_of_a_notebook(opened: Open) -> None:
    """Where there is no address to keep the step in, and perhaps no storage."""
    page = opened("frame")
    frame = page.frame_locator("iframe")
    frame.locator("#forward").click()
    assert frame.locator("#clock").inner_text() == "step 2 / 51"
    frame.locator("#lanes .ev >> nth=0").click()
    assert frame.locator("#side h3").inner_text().startswith("parameter.")


def test_a_page_is_small_without_its_data(written: Callable[[str], Path]) -> None:
    text = written("ring").read_text(encoding="utf-8")
    data = re.search(r'<script type="application/json" id="data">.*?</script>', text, re.DOTALL)
    assert data is not None
    assert len(text) - len(data[0]) < 300_000
    for which in ("two", "sending_ring", "crossed_pipeline", "parameter_server", "starved", "parted"):
        assert written(which).stat().st_size < 200_000


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


def test_the_picture_fills_its_room(opened: Open) -> None:
    page = opened("ring", "step=20")
    for width, height in ((1400, 900), (1000, 620), (1800, 1200)):
        page.set_viewport_size({"width": width, "height": height})
        for _ in range(2):
            until(
                page,
                """() => { const [host, svg] = ["#graph", "#graph > svg:not([style*=none])"].map(each =>
                  document.querySelector(each).getBoundingClientRect());
                  return Math.abs(host.width - svg.width) < 1 && Math.abs(host.height - svg.height) < 1; }""",
            )
            page.keyboard.press("v")


def test_a_step_marks_without_changing_the_picture(opened: Open) -> None:
    """Only what is over it changes, as a change in it would lay out all of it again."""
    page = opened("ring", "at=add.26&device=1")
    assert page.locator("#above .now").count() == 1
    assert page.locator("#above .input").count() == 2
    now, over = (page.locator(each).bounding_box() for each in ("#graph .shapes.now > path >> nth=0", "#above .now"))
    for start, extent in (("x", "width"), ("y", "height")):
        assert now[start] + now[extent] / 2 == pytest.approx(over[start] + over[extent] / 2, abs=0.5)


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
