"""The page about TPU scripts: its programs run from the top to the end, and print what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import xbuild as xb

PAGE = Path(__file__).parents[2] / "docs" / "tpu.md"
BLOCK = re.compile(r"^```(python)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(page: str) -> list[tuple[str, str]]:
    """For each block of output what the page says, and what was printed since the one before."""
    space: dict[str, object] = {"__name__": "tpu_page"}
    printed, found = io.StringIO(), []
    xb.tpu.reset_variables()
    for kind, text in BLOCK.findall(page):
        if kind:
            with contextlib.redirect_stdout(printed):
                exec(compile(text, str(PAGE), "exec"), space)
        else:
            found.append((text, printed.getvalue()))
            printed = io.StringIO()
    xb.tpu.reset_variables()
    return found


def test_the_page_prints_what_it_says() -> None:
    found = run(PAGE.read_text())
    assert len(found) >= 6
    for said, printed in found:
        assert printed == said
