"""Folded boxes in a browser: they unfold and fold again by click, key and address, in pages of large programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import xbuild as xb
from examples.gallery import programs as shown
from tests.browser.asking import until
from tests.browser.test_viewer import drawn
from tests.pictures.test_views import chain, nested


@pytest.fixture(params=["light", "dark"])
def unfolding(browser: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Opens the page of a program of 24 layers, each in a box of its own, with what its address is to say."""
    file = tmp_path / "page.html"
    file.write_text(str(xb.viz(shown.tower(24), "html")), encoding="utf-8")
    context = browser.new_context(viewport={"width": 1200, "height": 800}, color_scheme=request.param)
    asked: list[str] = []
    faults: list[str] = []

    def open_page(at: str = "") -> Any:
        page = context.new_page()
        page.on("pageerror", lambda each: faults.append(str(each)))
        page.on("request", lambda each: asked.append(each.url))
        page.goto(f"{file.as_uri()}{at}")
        page.evaluate("ready")
        return page

    yield open_page
    context.close()
    assert not faults
    assert all(url.startswith(file.as_uri()) for url in asked)


LAYER = "tower/forward/layer2"


def outline(page: Any, selector: str) -> list[float]:
    return list(
        page.locator(selector).evaluate("""e => { const b = e.getBoundingClientRect();
      return [b.left, b.top, b.right, b.bottom]; }""")
    )


def test_a_folded_box_unfolds_and_folds(unfolding: Any) -> None:
    page = unfolding()
    page.evaluate(f"go('{LAYER}')")
    before, seen, whole = drawn(page), outline(page, f'[id="{LAYER}"] > path >> nth=0'), page.evaluate("[...whole]")
    page.locator(f'[id="{LAYER}"] text').first.click()
    frame = page.locator(f'[id="cluster_{LAYER}"]')
    assert frame.is_visible()
    assert page.locator(f'[id="{LAYER}"]').is_hidden()
    assert outline(page, f'[id="cluster_{LAYER}"]')[:2] == pytest.approx(seen[:2], abs=1.5)
    inner = [each for each in drawn(page) if each not in before and "/" in each and not each.startswith("cluster")]
    assert len([each for each in inner if not each.startswith("line")]) == 10
    assert page.evaluate("location.hash") == "#unfold=tower%2Fforward%2Flayer2"
    assert page.evaluate("whole[3]") > whole[3]
    title = page.get_by_role("button", name="forward/layer2", exact=True)
    assert title.get_attribute("aria-expanded") == "true"
    title.click()
    assert drawn(page) == before
    assert page.evaluate("[...whole]") == whole
    assert page.evaluate("location.hash") == ""


def test_nothing_covers_anything_else_when_boxes_unfold(unfolding: Any) -> None:
    page = unfolding()
    page.evaluate("for (const id of [...folds.keys()].filter((_, n) => n % 5 === 0)) unfold(id)")
    page.click("#fit")
    overlapping = page.evaluate("""() => { const found = [];
      for (const sheet of [root, ...openSheets().map(([, sheet]) => sheet)]) {
        const all = [...sheet.now];
        for (const [n, [a, [ax, ay, aw, ah]]] of all.entries()) for (const [b, [bx, by, bw, bh]] of all.slice(n + 1))
          if (ax < bx + bw && bx < ax + aw && ay < by + bh && by < ay + ah) found.push([a, b]);
        for (const [id, [x, y, w, h]] of all) {
          const [left, top, wide, high] = [0, 0, ...sheet.size];
          if (x < left || y < top || x + w > left + wide + .1 || y + h > top + high + .1) found.push([id]);
        }
      }
      return found; }""")
    assert page.evaluate("openSheets().length") == 10
    assert overlapping == []


def test_lines_end_at_the_frame_of_what_has_unfolded(unfolding: Any) -> None:
    page = unfolding()
    ends = """id => root.lines.flatMap((line, n) => {
      const [tail, head] = data.lines[n], p = line.querySelector("path");
      const at = n => { const q = p.getPointAtLength(n); return [q.x, q.y]; };
      return tail === id ? [at(0)] : head === id ? [at(p.getTotalLength())] : []; })"""
    page.evaluate(f"unfold('{LAYER}')")
    x, y, wide, high = page.evaluate(f"root.now.get('{LAYER}')")
    found = page.evaluate(ends, LAYER)
    assert len(found) >= 3
    for left, top in found:
        assert x <= left <= x + wide
        assert min(abs(top - y), abs(top - y - high)) < 0.2


def test_unfolding_by_keys_and_in_the_address(unfolding: Any) -> None:
    page = unfolding()
    page.evaluate(f"go('{LAYER}')")
    sign = page.get_by_role("button", name="unfold forward/layer2", exact=True)
    sign.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "▾ forward/layer2"
    page.keyboard.press("Enter")
    assert page.locator(f'[id="{LAYER}"]').is_visible()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "unfold forward/layer2"
    page.keyboard.press(" ")
    at = page.evaluate("location.hash")
    again = unfolding(at)
    assert again.evaluate("[...root.opened.keys()]") == [LAYER]
    assert again.locator(f'[id="cluster_{LAYER}"]').count() == 1
    again.evaluate("location.hash = '#unfold=tower%2Fforward%2Flayer3'")
    until(again, "root.opened.has('tower/forward/layer3')")
    assert again.evaluate("[...root.opened.keys()]") == ["tower/forward/layer3"]
    unfolding("#unfold=nothing,%E0%A4%A&fold=none")


def test_what_is_found_in_a_folded_box_unfolds_it(unfolding: Any) -> None:
    page = unfolding()
    page.fill("#search", "dot.41")
    lit = page.locator("g.shapes.hit")
    assert lit.evaluate_all("all => all.map(e => e.id)") == [LAYER]
    page.keyboard.press("Enter")
    assert page.locator("g.shapes.chosen").get_attribute("id") == "tower/dot.41"
    assert page.locator('[id="tower/dot.41"]').is_visible()
    assert lit.evaluate_all("all => all.map(e => e.id)") == ["tower/dot.41"]
    assert "0 ← add.40" in page.inner_text("#side pre")
    assert page.locator("#side h2.before").inner_text() == "2 predecessors"
    assert page.locator("g.line.before").count() == 2
    page.locator("#side button", has_text="add.40").click()
    assert page.locator("g.shapes.chosen").get_attribute("id") == "tower/add.40"
    assert page.evaluate("isOpen('tower/forward/layer1')")
    page.evaluate("go('tower/dot.41')")
    page.evaluate(f"shut('{LAYER}')")
    assert page.locator("g.shapes.chosen").get_attribute("id") == LAYER
    page.get_by_role("button", name="▸ unfold").click()
    assert page.evaluate("isOpen('tower/forward/layer2')")


def test_boxes_unfold_in_boxes(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(str(xb.viz(nested(60, per=20), "html")), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    page.evaluate("ready")
    inner = page.evaluate("[...folds.keys()].find(id => around.has(id))")
    page.evaluate("id => { open(id); unfold(id); }", inner)
    assert page.evaluate("id => isOpen(id) && isOpen(around.get(id))", inner)
    hash_ = page.evaluate("location.hash")
    page.goto("about:blank")
    page.goto(f"{file.as_uri()}{hash_}")
    page.evaluate("ready")
    assert page.evaluate("id => isOpen(id)", inner)
    page.evaluate("id => shut(around.get(id))", inner)
    assert page.evaluate("openSheets().length") == 0
    page.close()


@pytest.mark.slow
def test_a_click_answers_in_a_tenth_of_a_second(browser: Any, tmp_path: Path) -> None:
    """In the page of 10,000 instructions, until all is laid out; the least of six: the machine may have other work."""
    file = tmp_path / "page.html"
    file.write_text(str(xb.viz(chain(10_000), "html")), encoding="utf-8")
    assert file.stat().st_size < 3_000_000
    page = browser.new_page()
    page.goto(file.as_uri())
    page.evaluate("ready")
    took = page.evaluate("""() => [...folds.keys()].slice(0, 6).map(id => { const start = performance.now();
      unfold(id); document.body.getBoundingClientRect(); return performance.now() - start; })""")
    page.close()
    assert min(took) < 100


def test_of_a_large_picture_what_is_in_sight_is_drawn(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(str(xb.viz(chain(900), "html", max_nodes=3000)), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    page.evaluate("ready")
    assert page.locator("#stage g.shapes[id]").count() == 901  # it opens fitted
    page.evaluate("go([...boxes.keys()].pop())")
    assert page.locator("g.shapes.chosen").is_visible()
    assert 0 < page.locator("#stage g.shapes[id]").count() < 400
    page.keyboard.press("f")
    page.keyboard.press("1")
    assert 0 < page.locator("#stage g.shapes[id]").count() < 400
    page.locator("#fit").click()
    assert page.locator("#stage g.shapes[id]").count() == 901
    assert page.locator("#stage g.shapes[id] text >> visible=true").count() == 0
    page.close()
