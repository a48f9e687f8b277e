"""Each page of first steps shows what its programs and commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import transcripts


@pytest.mark.parametrize("page", transcripts.PAGES, ids=lambda page: page.stem)
def test_page_shows_what_is_printed(page: Path) -> None:
    text = page.read_text()
    if "jax" in text:
        pytest.importorskip("jaxlib")
    assert transcripts.rewritten(page) == text
