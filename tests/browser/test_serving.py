"""The pages of `xbuild learn --serve` in a browser: editors, keys, output, drafts, and the tree of a screen reader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from xbuild.learning import shelf

pytest.importorskip("waitress", reason="the server wants waitress")

ROOT = Path(__file__).parents[2]
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = [sys.executable, "-m", "xbuild", "learn", "--serve", "--port", "0"]
    folder = str(tmp_path_factory.mktemp("data"))
    environment = os.environ | {"XDG_DATA_HOME": folder, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    yield process.stdout.readline().strip()
    process.terminate()
    process.communicate()


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens a page of the server; at the end, no request went elsewhere, and nothing to the console."""
    contexts, urls, faults = list[Any](), list[str](), list[str]()

    def open_page(path: str, width: int = 1280, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: urls.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
        page.goto(address + path)
        return page

    open_page.faults = faults  # type: ignore[attr-defined]
    yield open_page
    for context in contexts:
        context.close()
    assert [url for url in urls if not url.startswith((address, "about:"))] == []
    assert faults == []


def run(page: Any, place: int = 0) -> str:
    """Run an editor with its key; returns the status."""
    editor = page.locator(".editor").nth(place)
    editor.locator(".status").evaluate("each => { each.textContent = '' }")
    editor.locator("textarea").press("Control+Enter")
    end = time.monotonic() + 60
    while not (status := editor.locator(".status").inner_text()) or status == "Running":
        assert time.monotonic() < end
        page.wait_for_timeout(20)
    return str(status)


def faint(page: Any) -> list[str]:
    """The texts with too little contrast; the text of an editor is transparent, and its coloured copy is seen."""
    return [text for text in page.evaluate(CONTRAST)["found"] if not text.startswith("1.00 TEXTAREA")]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (420, "dark")])
def test_a_lesson_runs_again_with_other_numbers(opened: Callable[..., Any], width: int, scheme: str) -> None:
    page = opened("lessons/2", width, scheme)
    question = json.loads(page.locator("#data").text_content())[0]
    editor, form = page.locator(".editor").first, page.locator("form").first
    assert "run_program" not in editor.locator("textarea").input_value(), "nothing runs before the answer"
    form.locator("input").fill(question["shown"])
    form.locator("input").press("Enter")
    assert "run_program(as_rows, [1, 2, 3])" in editor.locator("textarea").input_value()
    editor.locator("textarea").fill(
        editor.locator("textarea").input_value().replace("[1, 2, 3]", "[7, 8, 9]") + "\nas_rows"
    )
    assert run(page).startswith("Done after")
    assert "[[7, 8, 9], [7, 8, 9]]" in editor.locator(".out pre").inner_text()
    frame = editor.locator("iframe.picture")
    assert frame.get_attribute("sandbox") == "allow-same-origin"
    assert page.frame_locator("iframe.picture").first.locator("svg").is_visible()
    page.wait_for_timeout(100)
    assert frame.evaluate("f => f.contentDocument.documentElement.scrollHeight <= f.clientHeight + 1")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert faint(page) == []
    page.locator("[data-reset]").first.click()
    assert "[1, 2, 3]" in editor.locator("textarea").input_value()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (420, "light")])
def test_a_puzzle_is_solved_and_kept(opened: Callable[..., Any], width: int, scheme: str) -> None:
    page = opened("puzzles/3", width, scheme)
    assert run(page).startswith("Not solved")
    assert "the solution is not filled in yet" in page.locator(".out").inner_text()
    page.locator("textarea").fill(shelf.solution_of(3).read_text().replace("xb.eq(", "xb.ne("))
    assert run(page).startswith("Not solved")
    table = page.frame_locator("iframe.picture").first
    assert table.locator("td.wrong").count() == 20
    page.locator("textarea").fill(shelf.solution_of(3).read_text())
    assert run(page).startswith("Solved after")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert faint(page) == []
    page.reload()
    assert "xb.eq(" in page.locator("textarea").input_value()
    page.locator("a", has_text="All lessons and puzzles").click()
    assert "solved: 40 FLOPs" in page.inner_text("main")


def test_an_editor_without_a_mouse(opened: Callable[..., Any]) -> None:
    page = opened("puzzles/1")
    area = page.locator("textarea")
    area.fill("")
    area.focus()
    page.keyboard.type("def solution(a, b):\nreturn [\n")
    assert area.input_value() == "def solution(a, b):\n    return [\n    "
    page.keyboard.press("Tab")
    assert area.input_value().endswith("\n        ")
    page.keyboard.press("Shift+Tab")
    assert area.input_value().endswith("\n    ")
    page.keyboard.press("Control+a")
    page.keyboard.press("Tab")
    assert area.input_value().startswith("    def solution(a, b):\n        return [\n")
    page.keyboard.press("Control+z")
    assert area.input_value().startswith("def solution")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Run and grade"
    text = area.input_value()
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.tagName") != "TEXTAREA"
    assert area.input_value() == text, "who passes by changes nothing"


def test_what_a_reader_of_the_screen_hears(opened: Callable[..., Any]) -> None:
    page = opened("puzzles/3")
    page.locator("textarea").fill("x = 1")
    run(page)
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    heard = {(node.get("role", {}).get("value"), node.get("name", {}).get("value")) for node in nodes}
    assert {
        ("textbox", "code of solution"), ("button", "Run and grade: solution"), ("button", "Reset: solution"),
        ("region", "solution"),
        ("region", "output of solution"), ("navigation", "pages"), ("heading", "3. One-hot by iota and compare"),
    } <= heard  # fmt: skip
    assert any(role == "status" for role, _ in heard)
    (described,) = [node for node in nodes if node.get("name", {}).get("value") == "code of solution"]
    assert "Escape and then Tab leaves the editor" in described["description"]["value"]


def test_output_cannot_act_as_the_page(opened: Callable[..., Any]) -> None:
    """A picture of a learner's own has no script, and may load nothing."""
    page = opened("lessons/1")
    evil = "<img src=x onerror=parent.evil=1><script>parent.evil=1</script><meta http-equiv=refresh content='0;url=/'>"
    page.locator("textarea").first.fill(
        "import json, os\n"
        f"parts = [dict(kind=kind, text={evil!r}) for kind in ('picture', 'page', 'text', 'error')]\n"
        "os.write(3, json.dumps(dict(parts=parts)).encode())\nos._exit(0)"
    )
    editor = page.locator(".editor").first
    editor.locator("textarea").press("Control+Enter")
    editor.locator("iframe").nth(1).wait_for()
    page.wait_for_timeout(300)
    assert page.evaluate("window.evil") is None
    assert page.url.endswith("/lessons/1")
    assert editor.locator("pre.text").text_content() == evil
    blocked = opened.faults  # type: ignore[attr-defined]
    assert blocked
    assert all("Content Security Policy" in text or "sandboxed" in text for text in blocked), blocked
    blocked.clear()
