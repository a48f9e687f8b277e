"""Programs of JAX partitioned here and by XLA have equal results, on XLA and in the interpreter."""

from __future__ import annotations

import pytest

from .against_xla import rows

NAMES = ("mlp gradient", "attention, heads", "embedding, vocabulary", "k-means", "layer norm", "fft", "outer product")


def test_results_are_equal_and_no_more_is_sent() -> None:
    pytest.importorskip("jax")
    found = rows(*NAMES)
    assert len(found) == 20
    assert {row.name: row.fault for row in found if row.fault} == {}
    assert {row.name: row.ratio for row in found if row.ratio > 1} == {}


def test_a_custom_call_keeps_the_layout_of_its_results() -> None:
    pytest.importorskip("jax")
    (row,) = rows("cholesky of batches")
    assert row.fault is None
