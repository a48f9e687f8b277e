"""Derivatives of functions of JAX: a selection of the suite here, all of it in `python -m tests.vjp.campaign`."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

from tests.support.measured import is_newer_jaxlib

from .jax_suite.child import verdicts
from .jax_suite.reasons import DIFFERENT, REFUSED, settled
from .jax_suite.rows import ROWS
from .jax_suite.table import ENTRIES, PROGRAMS, RULES

EQUAL_IN_NEWER = {("min to rows outside, clip", "equal"), ("sign of complex", "equal")}
"""Functions whose derivative in JAX after 0.10 is another than in 0.10, and ours."""
EACH = 29  # one entry of so many is judged here
SELECTED = sorted({*list(ENTRIES)[::EACH], *DIFFERENT, *REFUSED, "an LSTM", "a transformer block", "a convnet"})


@pytest.mark.slow
def test_cotangents_are_those_of_jax_or_another_for_a_stated_reason() -> None:
    found = {name: (settled(name, verdict), verdict) for name, verdict, _ in verdicts(SELECTED)}
    assert [*found] == SELECTED
    unexplained = {name: verdict for name, (kind, verdict) in found.items() if kind == "unexplained"}
    newer = EQUAL_IN_NEWER if is_newer_jaxlib() else set()
    assert {name: verdict for name, verdict in unexplained.items() if (name, verdict) not in newer} == {}


def test_the_suite_has_its_functions() -> None:
    assert sum(len(module.FUNCTIONS) for module in RULES) >= 300
    assert sum(len(module.FUNCTIONS) for module in PROGRAMS) >= 60


def test_a_reason_is_one_of_an_entry() -> None:
    assert {*DIFFERENT, *REFUSED} <= {*ENTRIES}


def test_each_row_of_the_reference_has_entries() -> None:
    missing = {row: name for row, names in ROWS.items() for name in names if name not in ENTRIES}
    assert missing == {}
    assert {row.split()[0] for row in ROWS} == {*"012345678"}
