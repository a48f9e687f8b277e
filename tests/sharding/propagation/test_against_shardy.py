"""Every value of random programs, and of programs of JAX, beside Shardy's own propagation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import xbuild as xb
from tests.sharding.propagation import random_programs, wider_programs
from tests.sharding.propagation.against_shardy import DIFFERENT, outcomes, programs_of_jax
from tests.sharding.propagation.shardy import prepared
from xbuild.core.graph import Module

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(("program", "least"), [(random_programs.program, 900), (wider_programs.program, 1500)])
def test_random_programs(program: Callable[[int], tuple[Module, xb.Mesh]], least: int) -> None:
    pytest.importorskip("jaxlib")
    programs = [(str(seed), prepared(module), mesh) for seed in range(60) for module, mesh in [program(seed)]]
    found = outcomes(programs)
    assert {name: other for name, (_, other) in found.items() if other} == {}
    assert sum(same for same, _ in found.values()) > least


@pytest.mark.slow
def test_programs_of_jax() -> None:
    pytest.importorskip("jax")
    found = outcomes(programs_of_jax())
    assert {name for name, (_, other) in found.items() if other} == DIFFERENT.keys()
    same, other = sum(each[0] for each in found.values()), sum(len(each[1]) for each in found.values())
    assert same > 5100
    assert same > 0.99 * (same + other)
