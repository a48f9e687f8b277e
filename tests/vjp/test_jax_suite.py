"""Derivatives of functions of JAX: a selection of the suite here, all of it in `python -m tests.vjp.campaign`."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

from .jax_suite.child import verdicts
from .jax_suite.reasons import DIFFERENT, REFUSED, settled
from .jax_suite.table import ENTRIES, PROGRAMS, RULES

EACH = 17  # one entry of so many is judged here
SELECTED = sorted({*list(ENTRIES)[::EACH], *DIFFERENT, *REFUSED, "an LSTM", "a transformer's step", "a convnet"})


def test_cotangents_are_those_of_jax_or_another_for_a_stated_reason() -> None:
    found = {name: (settled(name, verdict), verdict) for name, verdict, _ in verdicts(SELECTED)}
    assert [*found] == SELECTED
    assert {name: verdict for name, (kind, verdict) in found.items() if kind == "unexplained"} == {}


def test_the_suite_has_its_functions() -> None:
    assert sum(len(module.FUNCTIONS) for module in RULES) >= 300
    assert sum(len(module.FUNCTIONS) for module in PROGRAMS) >= 60


def test_a_reason_is_one_of_an_entry() -> None:
    assert {*DIFFERENT, *REFUSED} <= {*ENTRIES}
