"""Faults planted in programs of JAX: `xb.lint` finds each. `python -m tests.linting.campaign` plants many more."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest

import xbuild as xb

from .campaign import modules_in
from .planting import FAULTS, finds, is_plain, plant

PROGRAMS = Path(__file__).parents[1] / "data" / "jax_programs.jsonl.gz"


@lru_cache
def programs() -> list[xb.Module]:
    return [module for _, module in modules_in(PROGRAMS) if is_plain(module)]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    planted = 0
    for seed, module in enumerate(programs()):
        one = plant(module, fault, seed)
        if one is None:
            continue
        assert not xb.check(one.program).refused
        assert finds(xb.lint(one.program), one), (fault, seed)
        planted += 1
        if planted == 3:
            return
    assert planted or fault == "accumulated_collective"
