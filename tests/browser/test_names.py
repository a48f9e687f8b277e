"""Pages of programs with hostile names in every place: the names are shown, and nothing of them runs or is fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_names import EACH_IN_EACH_PLACE
from tests.fuzzing.names import Browser, Names

from ..fuzzing import names


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
