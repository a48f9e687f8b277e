"""Each page of first steps shows what its programs and commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

import xbuild as xb
from tests import transcripts


@pytest.mark.parametrize("page", transcripts.PAGES, ids=lambda page: page.stem)
def test_page_shows_what_is_printed(page: Path) -> None:
    text = page.read_text()
    if "jax" in text:
        pytest.importorskip("jaxlib")
    assert transcripts.rewritten(page) == text


def test_the_two_lines_of_the_readme_run(capsys: pytest.CaptureFixture[str]) -> None:
    jax = pytest.importorskip("jax")
    head = "## From JAX to a checked program in two lines\n\n"
    _, _, rest = (transcripts.ROOT / "README.md").read_text().partition(head)
    lines = [line.removeprefix("    ") for line in rest.partition("\n\n")[0].splitlines()]
    assert len(lines) == 2
    exec("\n".join(lines), {"xb": xb, "step": jax.numpy.tanh, "arguments": (xb.f32[2, 3],)})
    assert capsys.readouterr().out.startswith("ok: no schedule can deadlock")
