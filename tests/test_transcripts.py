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


def test_the_two_lines_of_the_readme_are_those_that_are_run() -> None:
    head = "## From JAX or TensorFlow to a checked program in two lines\n\n"
    _, _, rest = (transcripts.ROOT / "README.md").read_text().partition(head)
    lines = [line.removeprefix("    ") for line in rest.partition("\n\n")[0].splitlines()]
    page = (transcripts.ROOT / "docs" / "first_steps" / "stablehlo.md").read_text()
    assert "```python\n" + "".join(f"{line}\n" for line in lines) + "```\n" in page
    assert len(lines) == 2
