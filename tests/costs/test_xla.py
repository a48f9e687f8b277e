"""FLOPs, transcendentals and bytes of cases of every family against XLA's own analysis."""

from __future__ import annotations

import importlib
from pathlib import Path

import xbuild as xb
from tests.cases.case import Case
from tests.support.measured import require_measured_jaxlib

from .xla_analysis import analysed
from .xla_table import compared, share

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
    require_measured_jaxlib()
    cases = _cases()
    expected = analysed([str(xb.Module("m", computation)) for _, computation in cases])
    costs = [xb.cost(computation) for _, computation in cases]
    counted = [(cost.flops, cost.transcendentals, cost.bytes) for cost in costs]
    different = [(name, a, b) for (name, _), a, b in zip(cases, counted, expected, strict=True) if b and a != b]
    assert different == []
    assert sum(each is not None for each in expected) > 150


def test_instructions_of_programs_cost_as_much_in_xla() -> None:
    """Where they do not, the instruction is a custom call or runs one, or docs/cost.md has another rule."""
    require_measured_jaxlib()
    rows = compared(map(str, sorted((Path(__file__).parents[1] / "data" / "hlo").glob("*.hlo"))))
    assert share(rows, "flops") > 0.995
    assert share(rows, "bytes") > 0.995
    apart = [row for row in rows if not all(row.is_same(figure) for figure in ("flops", "bytes"))]
    assert [str(row.module) for row in apart if not _explained(row.module)] == []


def _explained(module: xb.Module) -> bool:
    used = {each.opcode for computation in module.entry.reachable() for each in computation.instructions}
    return bool(used & (OTHERWISE | {"custom_call"}))
