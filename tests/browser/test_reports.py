"""Reports in a notebook: their columns stay columns on a narrow page, which is not wider than the window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pages.test_notebook_reports import RESULTS

LINE = 18  # pixels of a line, 12 px high with a line height of 1.5
TABLES = ("cost", "timeline", "replication")


@pytest.fixture(params=["light", "dark"])
def page(browser: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    file = tmp_path / "notebook.html"
    shown = "".join(f'<section id="{name}">{RESULTS[name]()._repr_html_()}</section>' for name in RESULTS)
    file.write_text(f'<!doctype html><meta charset="utf-8"><style>body{{margin:8px}}</style>{shown}')
    context = browser.new_context(viewport={"width": 420, "height": 900}, color_scheme=request.param)
    page = context.new_page()
    page.goto(file.as_uri())
    yield page
    context.close()


def test_tables_keep_their_lines_and_the_page_its_width(page: Any) -> None:
    for width in (420, 1250):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for name in TABLES:
            lines = page.locator(f"#{name} pre").evaluate("e => e.textContent.split('\\n').length")
            height = page.locator(f"#{name} pre").evaluate("e => e.scrollHeight")
            assert abs(height - 24 - LINE * lines) <= LINE, name  # 24 pixels of padding


def test_the_timeline_is_above_its_tables_with_a_gap(page: Any) -> None:
    picture, tables = page.locator("#timeline .xb-picture").bounding_box(), page.locator("#timeline pre").bounding_box()
    assert tables["y"] - picture["y"] - picture["height"] == pytest.approx(12, abs=1)
    assert tables["width"] == pytest.approx(picture["width"], abs=1)
