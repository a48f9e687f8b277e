"""Pictures as pages in a browser: search, follow lines, move about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import xbuild as xb

from ..golden import programs


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
    assert page.locator("#side h2.before").inner_text() == "2 predecessors"
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


@pytest.fixture
def folding(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens the page of a loop and a conditional, with what its address is to say."""
    file = tmp_path / "page.html"
    file.write_text(str(xb.viz(programs.loop(), "html")), encoding="utf-8")
    context = browser.new_context(viewport={"width": 1000, "height": 900})
    faults: list[str] = []

    def open_page(at: str = "") -> Any:
        page = context.new_page()
        page.on("pageerror", lambda each: faults.append(str(each)))
        page.goto(f"{file.as_uri()}{at}")
        return page

    yield open_page
    context.close()
    assert not faults


def drawn(page: Any) -> dict[str, Any]:
    """What is to be seen, and where."""
    return dict(
        page.evaluate("""() => Object.fromEntries([...document.querySelectorAll(
      "#stage g.shapes[id],#stage path.frame,#stage g.line path")].filter(e => e.getClientRects().length)
      .map((e, n) => [e.id || `line ${n} ${e.getAttribute("d")}`, Object.values(e.getBBox()).concat(
        e.getAttribute("transform"))]))""")
    )


BODY = ["next/parameter.7", "next/all-reduce.13", "next/add.18", "next/multiply.16", "next/tuple.19"]


def test_a_frame_folds_and_unfolds(folding: Any) -> None:
    page = folding()
    page.click("#fit")
    before, seen = drawn(page), looked_at(page)
    assert set(BODY) < set(before)
    title = page.get_by_role("button", name="body of while.20: next")
    assert title.get_attribute("aria-expanded") == "true"
    title.click()
    folded = drawn(page)
    assert set(before) - set(folded) >= {*BODY}
    assert {name for name in before if "/" in name} - {*BODY} == {name for name in folded if "/" in name}
    assert title.get_attribute("aria-expanded") == "false"
    assert page.text_content("#stage text.dim:not([display]) >> text=folded") == "5 boxes folded"
    assert page.locator("#cluster_next").bounding_box()["height"] < 60
    page.click("#fit")
    assert looked_at(page)[3] < seen[3]
    title.click()
    page.click("#fit")
    assert drawn(page) == before
    assert looked_at(page) == seen


def test_lines_of_a_folded_frame_go_to_its_box(folding: Any) -> None:
    page = folding()
    calls = page.locator("g.line.call:not([display]) path")
    assert calls.count() == 4 + 1  # that of the legend
    page.get_by_role("button", name="body of while.20: next").click()
    assert calls.count() == 4 + 1  # that of the legend
    box = page.locator("#cluster_next").evaluate(
        "e => { const b = e.getBBox(); return [b.x + b.width / 2, b.y + b.height]; }"
    )
    starts = calls.evaluate_all("all => all.map(e => { const p = e.getPointAtLength(0); return [p.x, p.y]; })")
    assert [start for start in starts if start == pytest.approx(box, abs=0.2)]
    for at in page.locator("g.shapes[id]:not([display])").evaluate_all(
        "all => all.map(e => { const b = e.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; })"
    ):
        frame = page.locator("#cluster_next").bounding_box()
        assert (
            at[2] <= frame["x"]
            or at[0] >= frame["x"] + frame["width"]
            or at[3] <= frame["y"]
            or at[1] >= frame["y"] + frame["height"]
        )


def test_folding_by_keys_and_in_the_address(folding: Any) -> None:
    page = folding()
    page.focus("text.fold >> nth=1")
    page.keyboard.press("Enter")
    page.focus("text.fold >> nth=2")
    page.keyboard.press(" ")
    assert page.evaluate("location.hash") == "#fold=next,lambda"
    again = folding(page.evaluate("location.hash"))
    assert again.locator("text.fold[aria-expanded=false]").all_text_contents() == [
        "▸ body of while.20: next", "▸ branch 0 of conditional.30: lambda"
    ]  # fmt: skip
    assert not {*BODY} & set(drawn(again))
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#fold=next"


def test_what_is_found_unfolds(folding: Any) -> None:
    page = folding("#fold=next")
    page.fill("#search", "all-reduce")
    page.keyboard.press("Enter")
    assert page.locator("g.shapes.chosen").get_attribute("id") == "next/all-reduce.13"
    assert page.locator("g.shapes.chosen").is_visible()
    assert page.evaluate("location.hash") == ""


def test_a_thousand_boxes_fold_at_once(browser: Any, tmp_path: Path) -> None:
    """Less than 100 ms until all is laid out, the least of ten: the machine may have other work."""

    @xb.computation(xb.f32[4])
    def program(x: xb.Value) -> xb.Value:
        for _ in range(16):
            x = xb.while_(x, condition=_small, body=_long)
        return x

    file = tmp_path / "page.html"
    file.write_text(str(xb.viz(program, "html", max_nodes=3000)), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    assert page.evaluate("boxes.size") >= 1000
    took = page.evaluate("""() => [...Array(10).keys()].map(n => { const start = performance.now();
      fold(root, 1 + n); document.body.getBoundingClientRect(); return performance.now() - start; })""")
    page.close()
    assert min(took) < 100


def _small(state: xb.Value) -> xb.Value:
    return xb.lt(xb.reduce(state, 0.0, xb.add, (0,)), 3.0)


def _long(state: xb.Value) -> xb.Value:
    value = state
    for _ in range(30):
        value = xb.tanh(value + state)
    return value
