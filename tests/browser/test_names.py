"""Pages of programs with hostile names in every place: the names are shown, and nothing of them runs or is fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import xbuild as xb
from tests.commands.test_names import EACH_IN_EACH_PLACE
from tests.fuzzing.names import Browser, Names, Row

from ..fuzzing import names
from ..fuzzing import pages as every


@pytest.fixture
def pages(browser: Any, tmp_path: Path) -> Browser:
    return Browser(browser, tmp_path)


def test_each_name_in_each_place(pages: Browser) -> None:
    assert [*pages.faults(EACH_IN_EACH_PLACE)] == []


def test_names_of_pieces(pages: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "ROWS", 40)
    assert [*pages.faults(Names(1).rows())] == []


def test_what_the_pages_would_not_show_is_seen(pages: Browser) -> None:
    """That the browser would tell: of a page with a name that nothing has escaped."""
    text = pages.usual.viewer.replace("</body>", "<img src=http://example.invalid/><b onclick=x></b></body>")
    told = pages.opened(text)
    assert any("example.invalid" in each for each in told["faults"])
    assert "a handler of a name" in told["faults"]


@pytest.fixture
def visitor(browser: Any, tmp_path: Path) -> Iterator[every.Visitor]:
    """Opens every kind of page."""
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    yield every.Visitor(context.new_page(), tmp_path.resolve())
    context.close()


def test_every_kind_of_page(visitor: every.Visitor) -> None:
    assert [*visitor.faults([every.Program(seed) for seed in range(2 * len(every.KINDS))])] == []


BAD = {
    "<script>window.pwned=1</script>": "a script of a name ran",
    "<img src=http://example.invalid/>": "a link to http://example.invalid/",
    "<p onclick=x>": "a handler of a name",
    "<article>": "elements of names: ['article']",
    "<script>console.log('told')</script>": "told",
}


@pytest.mark.parametrize("bad", BAD)
def test_what_a_name_does_is_seen(bad: str, visitor: every.Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    def text(_: xb.Module, rows: Sequence[Row]) -> str:
        return f"<!doctype html><title>t</title><p>{'a' if rows[0][0] == 'a' else bad}"

    monkeypatch.setattr(every, "KINDS", {"bad": ("html", text)})
    assert any(BAD[bad] in each for each in visitor.faults([every.Program(0)]))


def test_the_policy_stops_what_no_one_has_escaped(visitor: every.Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second wall: a script and a picture in the text of a page do nothing."""
    ends: list[str] = []
    visitor.page.on("requestfailed", lambda request: ends.append(request.failure))
    bad = "<script>window.pwned=1</script><img src=http://example.invalid/ onerror=window.pwned=1>"
    for kind, (ending, made) in every.KINDS.items():
        if ending == "html" and kind not in ("notebook", "frame"):
            text = made(xb.parse_hlo(every.summed([["a"] * 7] * every.ROWS), origins=True), [["a"] * 7] * every.ROWS)
            assert text.count("</html>") >= 1
            monkeypatch.setattr(every, "KINDS", {kind: (ending, made)})
            found, _ = visitor.visited(kind, [text.replace("</html>", f"{bad}</html>")])[0]
            assert "a script of a name ran" not in found, kind
            assert any("Content Security Policy" in each for each in visitor._happened), kind
            assert ends == ["csp"] * sum(each.startswith("a request") for each in visitor._happened), kind
            visitor._happened.clear()
            ends.clear()
