"""FLOPs, transcendentals and bytes of cases of every family against XLA's own analysis."""

from __future__ import annotations

import importlib

import pytest

import xbuild as xb
from tests.cases.case import Case

from .xla_analysis import analysed

FAMILIES = (
    "contraction",
    "conversion",
    "elementwise",
    "gather",
    "reduction",
    "scatter",
    "shaping",
    "slicing",
    "windows",
)

OTHERWISE = {"fft", "ragged_dot", "while", "scan"}
"""Ops of which docs/cost.md states another rule than XLA's."""

NOT_EQUAL = {"no-array-can-follow"}
"""A case whose result is empty, which XLA's analysis counts as one negative window."""


def _cases() -> list[tuple[str, xb.Computation]]:
    found: dict[str, tuple[str, xb.Computation]] = {}
    for family in FAMILIES:
        for case in importlib.import_module(f"tests.cases.{family}").CASES:
            if isinstance(case, Case) and case.oracle and case.id not in NOT_EQUAL:
                computation = case.computation()
                used = {each.opcode for part in computation.reachable() for each in part.instructions}
                if not used & OTHERWISE and sum(name == computation.root.opcode for name, _ in found.values()) < 3:
                    found[f"{family} {case.id}"] = (computation.root.opcode, computation)
    return [(name, computation) for name, (_, computation) in found.items()]


def test_xla_counts_the_same() -> None:
    pytest.importorskip("jaxlib")
    cases = _cases()
    expected = analysed([str(xb.Module("m", computation)) for _, computation in cases])
    costs = [xb.cost(computation) for _, computation in cases]
    counted = [(cost.flops, cost.transcendentals, cost.bytes) for cost in costs]
    different = [(name, a, b) for (name, _), a, b in zip(cases, counted, expected, strict=True) if b and a != b]
    assert different == []
    assert sum(each is not None for each in expected) > 150
