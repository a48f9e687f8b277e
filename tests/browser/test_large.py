"""Step pages of long runs and of many devices: what is in view is drawn, and a step is quick."""

from __future__ import annotations

from tests.browser.asking import until
from tests.browser.conftest import Open

STEPS = """() => {
  const start = performance.now();
  for (let n = 0; n < 40; n++) { go({time: 100 + 40 * n}); document.body.offsetHeight; }
  return (performance.now() - start) / 40;
}"""
"""How many milliseconds a step takes."""


def test_a_held_key_draws_once_a_frame(opened: Open) -> None:
    page = opened("large")
    page.evaluate("""() => {
      const each = draw;
      window.drawn = 0;
      draw = (...given) => { drawn++; each(...given); };
      const press = n => new KeyboardEvent("keydown", {key: "j", repeat: n > 0, bubbles: true});
      for (let n = 0; n < 20; n++) document.body.dispatchEvent(press(n));
    }""")
    until(page, "state.time === 21 && document.getElementById('clock').innerText.startsWith('step 21 ')")
    assert page.evaluate("drawn") == 2


def test_of_a_large_picture_only_what_is_in_view_is_there(opened: Open) -> None:
    """And nothing that is in view is missing: wherever one goes, the boxes there are those of the whole picture."""
    page = opened("ring", "step=20")
    every = page.evaluate("Graph.culled.boxes.size")
    for time in (1, 60, 150, 30):
        page.evaluate(f"go({{time: {time}}})")
        there = page.evaluate("[...Graph.whole.querySelectorAll('.shapes[id]')].map(each => each.id)")
        wanted = page.evaluate("""() => {
          const [x, y, w, h] = Graph.whole.getAttribute("viewBox").split(" ").map(Number);
          return [...Graph.culled.boxes].filter(([, box]) => { const [a, b, c, d] = Graph.culled.extent(box);
            return a < x + w && a + c > x && b < y + h && b + d > y; }).map(each => each[0]); }""")
        assert wanted
        assert set(wanted) <= set(there)
        assert len(there) < every
        assert page.locator("#above .now").count() == 1
    page.click("#fit")
    assert page.locator("#graph > svg:first-child .shapes[id]").count() == every


def test_a_large_run_is_quick(opened: Open) -> None:
    """The page is there within 3 s, a step takes less than 100 ms (ten thousand instructions: benchmarks)."""
    page = opened("large")
    assert page.get_attribute("#around", "aria-pressed") == "true"
    ready = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    each = page.evaluate(STEPS)
    assert ready < 3000
    assert each < 100


def test_many_devices(opened: Open) -> None:
    page = opened("many", "step=5&device=100")
    assert page.is_visible("text=replica 100 >> nth=0")
    page.fill("#side input[type=number]", "200")
    page.keyboard.press("Enter")
    until(page, "location.hash.split('&').includes('device=200')")
    assert page.inner_text(".dev.on button") == "replica 200"
    assert page.locator("#lanes .ev").count() < 256 * 5
    page.keyboard.press("ArrowDown")
    assert page.is_visible("text=replica 201 >> nth=0")


def test_of_a_long_tuple_some_elements_are_shown_at_a_time(opened: Open) -> None:
    page = opened("numerous", "at=all")
    assert page.locator("#side .devices >> nth=0 >> .grid").count() == 6
    assert "element 2: f32[3]" in page.inner_text("#side")
    assert "37 more operands" in page.inner_text("#side")
    assert "equal on all devices" in page.inner_text("#side .bar")
    page.fill("#side input[aria-label='first element shown'] >> nth=0", "37")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=element 39: f32[3] >> nth=0")
    assert "39" in page.locator("#side .cell").all_inner_texts()
    page.evaluate("go({part: 20, index: 1})")
    assert "element 20: f32[3]" in page.inner_text("#side")
    assert page.locator("#side .chosen").count() == 1
    page.keyboard.press("k")
    page.keyboard.press("j")
    assert "element 0: f32[3]" in page.inner_text("#side")
