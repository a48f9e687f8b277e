"""The page of a difference: partners and operands are marked, equal instructions fold, keys reach everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import xbuild as xb
from tests.browser.test_access import CONTRAST, NAMELESS
from tests.editing.test_difference_page import STEP
from tests.editing.test_matching import FUSED, PLAIN
from tests.fuzzing.names import HOSTILE, PLACES, text_of
from xbuild.editing.difference_page import KINDS

CHANGED = FUSED.replace("multiply(t, q)", "multiply(t, p)")


def chain(changed: int | None = None, length: int = 200) -> str:
    lines = (f"  t.{n} = f32[4] {'subtract' if n == changed else 'add'}(t.{n - 1}, x)\n" for n in range(1, length))
    head = "ENTRY main {\n  x = f32[4] parameter(0)\n  t.0 = f32[4] tanh(x)\n"
    return f"{head}{''.join(lines)}  ROOT r = f32[4] negate(t.{length - 1})\n}}"


Opened = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Opened]:
    """Opens the page of two texts; at the end nothing may have been requested or reported."""
    contexts: list[Any] = []
    requests: list[str] = []
    faults: list[str] = []

    def open_page(before: str, after: str, width: int = 1280, **options: Any) -> Any:
        file = tmp_path / f"{len(contexts)}.html"
        programs = (xb.parse_hlo(text, text_name, origins=True) for text, text_name in ((before, "a"), (after, "b")))
        file.write_text(xb.diff(*programs).page("a.hlo", "b.hlo"), encoding="utf-8")
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text))
        page.goto(file.as_uri())
        page.set_default_timeout(3000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert all(url.startswith(tmp_path.as_uri()) for url in requests)
    assert not faults


def marked(page: Any, name: str) -> list[str]:
    """The instructions with a mark, in the order of the page."""
    return [text.split(" = ")[0] for text in page.locator(f".cell.{name} code").all_inner_texts()]


def test_a_click_marks_the_partner_and_the_operands_of_both(opened: Opened) -> None:
    page = opened(PLAIN, CHANGED)
    page.click("[data-row='0:4'] [data-one^='1:']")  # m in the fusion
    assert (marked(page, "selected"), marked(page, "partner")) == (["m"], ["m", "m"])  # where it is, and where it was
    assert marked(page, "operand") == ["p", "t", "t", "y", "t"]
    assert page.text_content("[role=status]").startswith(
        "m: fused, computation main to fused, operand rhs y to p; partner m"
    )
    assert page.locator("[data-row='0:4'] mark").all_inner_texts() == ["y", "p"]
    page.keyboard.press("Escape")
    assert not page.locator(".selected,.partner,.operand").count()
    assert page.is_hidden("#details")


def test_equal_instructions_are_folded_and_unfold(opened: Opened) -> None:
    page = opened(chain(), chain(100))
    folds = page.locator(".fold button")
    assert folds.all_inner_texts() == ["show 99 equal instructions", "show 98 equal instructions"]
    assert page.locator(".row:not(.fold)").count() == 5
    folds.nth(1).click()
    assert page.locator(".row:not(.fold)").count() == 103
    assert page.evaluate("document.activeElement.dataset.one") == "0:104"
    page.click("#only")
    assert page.locator(".row:not(.fold)").count() == 202
    assert page.get_attribute("#only", "aria-pressed") == "false"


def test_an_operand_in_a_fold_is_shown_when_it_is_chosen(opened: Opened) -> None:
    page = opened(chain(), chain(100))
    page.keyboard.press("n")
    assert marked(page, "selected") == ["t.100"]
    page.click("#details dd button >> text='x'")
    assert marked(page, "selected") == ["x"]
    assert page.locator(".row:not(.fold)").count() == 8


def test_a_kind_is_left_out(opened: Opened) -> None:
    page = opened(PLAIN, CHANGED)
    page.keyboard.press("d")
    assert page.locator(".section").count() == 2
    for kind in ("added", "fused"):
        page.click(f"#kinds .{kind}")
    assert page.locator(".section").count() == 0
    page.click("summary")
    page.locator(".section").nth(1).wait_for()  # browsers toggle in a task of its own
    assert page.locator(".section").count() == 2


def test_keys(opened: Opened) -> None:
    """From difference to difference, from cell to cell and to the other side."""
    page = opened(PLAIN, CHANGED)
    found = []
    for key in ("n", "n", "n", "p", "ArrowDown", "ArrowLeft", "ArrowDown"):
        page.keyboard.press(key)
        found.append(page.evaluate("document.activeElement.dataset.one"))
    assert found == ["1:0", "1:1", "1:2", "1:1", "1:2", "0:2", "0:3"]
    assert marked(page, "selected") == ["q"]
    page.keyboard.press("Enter")
    assert marked(page, "selected") == ["t", "t"]
    page.keyboard.press("p")
    page.keyboard.press("n")
    assert page.locator("[role=grid] [tabindex='0']").count() == 2
    reached = set()
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert {"only", "next", "previous", "s0", "s1", "close"} <= reached


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
def test_the_page_is_readable(opened: Opened, theme: str, width: int) -> None:
    """Rows of all kinds, with a selection."""
    removed = STEP.replace("  y =", "  v = f32[2,2] abs(w)\n  y =")
    edited = (
        STEP.replace("{1,0}", "{0,1}")
        .replace("ROOT z", "ROOT zz")
        .replace("rhs_contracting_dims={0}", "rhs_contracting_dims={1}")
    )
    seen = set()
    for pair in ((PLAIN, CHANGED), (removed, edited), (chain(), chain(50))):
        page = opened(*pair, width=width, color_scheme=theme)
        page.keyboard.press("n")
        told = page.evaluate(CONTRAST)
        assert told["seen"] > 20
        assert told["found"] == []
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        cells = page.locator(".row:is(.changed, .fused)").first.locator(".cell")
        assert len({*cells.evaluate_all("all => all.map(each => each.getBoundingClientRect().x)")}) == (
            2 if width > 420 else 1
        )
        seen |= {*page.locator("#kinds button").evaluate_all("all => all.map(each => each.className)")}
    assert seen == {*KINDS} - {"same", "moved"}


def test_hostile_names_are_text_when_they_are_selected(opened: Opened) -> None:
    rows = [[name] * len(PLACES) for name in HOSTILE[::3]]
    page = opened(text_of(rows, True), text_of([[f"{each}2" for each in row] for row in rows], True))
    for _ in range(len(rows)):
        page.evaluate("step(1)")
        assert page.text_content("#details h3 small") == "changed"
    assert page.evaluate("window.pwned") is None
    tags = page.evaluate("[...new Set([...document.querySelectorAll('main *,#details *')].map(each => each.tagName))]")
    assert not {*tags} & {"SCRIPT", "IMG", "IFRAME", "STYLE", "LINK", "BASE", "SVG", "svg"}


@pytest.mark.slow
def test_ten_thousand_instructions_open_at_once(opened: Opened) -> None:
    """The differences, then all rows, then the next difference, take less than two seconds of the processor."""
    page = opened(chain(length=10_000), chain(5_000, length=10_000))
    page.set_default_timeout(60_000)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.reload()
    assert page.locator(".row:not(.fold)").count() == 5
    page.evaluate("toggle()")
    assert page.locator(".row:not(.fold)").count() == 10_002
    page.evaluate("step(1)")
    assert marked(page, "selected") == ["t.5000"]
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    assert 0.05 < metrics["TaskDuration"] < 2
