"""Single ops at full size against hand-written NumPy, with their geometric mean at the end."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks.conftest import Row, SideBySide
from benchmarks.workloads import WORKLOADS, Workload, leaves
from interpreter import evaluate


@pytest.fixture(scope="module")
def ratios(rows: list[Row]) -> Iterator[list[float]]:
    found: list[float] = []
    yield found
    if found:
        rows.append(Row("geometric mean of these, times NumPy", statistics.geometric_mean(found), unit="x"))


@pytest.mark.parametrize("make", WORKLOADS, ids=lambda make: make.__name__)
def test_op(make: Any, side_by_side: SideBySide, rows: list[Row], ratios: list[float]) -> None:
    work: Workload = make()
    ours, reference = evaluate(work.computation, *work.arguments), work.by_hand(*work.arguments)
    for got, wanted in zip(leaves(ours), leaves(reference), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=work.tolerance, atol=work.tolerance)
    side_by_side(
        work.name,
        lambda: evaluate(work.computation, *work.arguments),
        lambda: work.by_hand(*work.arguments),
        rounds=9,
    )
    assert rows[-1].reference is not None
    ratios.append(rows[-1].ours / rows[-1].reference)
