"""Programs of JAX partitioned here and by XLA: equal results, no more bytes, and a document that says so."""

from __future__ import annotations

import pytest

from .against_xla.__main__ import DOCUMENT, MARK
from .against_xla.causes import CAUSES, SLIGHT
from .against_xla.rows import rows

NAMES = (
    "mlp gradient, data and model", "attention, data and heads", "low rank gradient", "embedding, vocabulary",
    "pipeline", "convnet, space", "k-means", "fft", "cross entropy of labels", "mlp gradient in bf16",
    "cholesky of batches",
)  # fmt: skip


@pytest.mark.slow
def test_results_are_equal_and_no_more_is_sent() -> None:
    """The custom call among them keeps the layout of its results."""
    pytest.importorskip("jax")
    found = rows(*NAMES, exact=True, has_gspmd=False)
    assert {row.name for row in found} == set(NAMES)
    assert {row.name: row.fault for row in found if row.fault} == {}
    assert {row.name: row.ratio for row in found if row.ratio > 1} == {}


def _cells(name: str) -> list[list[str]]:
    """The lines of a table of the document, without its title."""
    _, _, rest = DOCUMENT.read_text().partition(MARK.format(name))
    lines = rest.lstrip().partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_document_counts_what_its_table_has_and_knows_why() -> None:
    programs = _cells("programs")
    assert len(programs) >= 100
    pairs = [(float(here), float(shardy)) for _, _, here, shardy, *_ in programs]
    never, little = (sum(here <= most * shardy for here, shardy in pairs) for most in (1, SLIGHT))
    below = sum(here < shardy for here, shardy in pairs)
    assert _cells("counts")[0] == ["Shardy", *map(str, (len(pairs), never, little, below))]
    above = {row[0] for row, (here, shardy) in zip(programs, pairs, strict=True) if here > shardy}
    assert {name: why for name, _, why in _cells("above")} == {name: CAUSES[name] for name in above}
