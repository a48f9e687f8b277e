"""Every value of random programs, and of programs of JAX, beside Shardy's own propagation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import xbuild as xb
from tests.sharding.propagation import jax_programs, random_programs, wider_programs
from tests.sharding.propagation.shardy import ask, compared, job_of, prepared
from xbuild.core.graph import Module
from xbuild.sharding.axis import whole
from xbuild.sharding.propagation import propagate
from xbuild.sharding.sharding import DimSharding, Sharding

pytestmark = pytest.mark.oracle

DIFFERENT = {
    "cholesky of batches": "JAX's custom call of LAPACK has batch dimensions here, and no rule in Shardy",
}
"""Programs in which values differ, and why."""


def outcomes(programs: list[tuple[str, Module, xb.Mesh]]) -> dict[str, tuple[int, list[Any]]]:
    """For each program how many values are the same in both, and those that are not."""
    answers = ask([job_of(module, mesh) for _, module, mesh in programs])
    found = {}
    for (name, module, mesh), answer in zip(programs, answers, strict=True):
        assert "error" not in answer, (name, answer)
        found[name] = compared(propagate(module, mesh=mesh), answer)
    return found


@pytest.mark.parametrize(("program", "least"), [(random_programs.program, 900), (wider_programs.program, 1500)])
def test_random_programs(program: Callable[[int], tuple[Module, xb.Mesh]], least: int) -> None:
    pytest.importorskip("jaxlib")
    programs = [(str(seed), prepared(module), mesh) for seed in range(60) for module, mesh in [program(seed)]]
    found = outcomes(programs)
    assert {name: other for name, (_, other) in found.items() if other} == {}
    assert sum(same for same, _ in found.values()) > least


def test_programs_of_jax() -> None:
    pytest.importorskip("jax")
    programs = []
    for name, text, axes, specs in jax_programs.rows():
        mesh = xb.Mesh(axes)
        module = prepared(xb.parse_stablehlo(text))
        given = zip(module.entry.parameters, specs, strict=True)
        stated = {parameter.name: _sharding(mesh, spec) for parameter, spec in given if spec is not None}
        programs.append((name, xb.shard.annotated(module, stated), mesh))
    found = outcomes(programs)
    assert {name for name, (_, other) in found.items() if other} == DIFFERENT.keys()
    same, other = sum(each[0] for each in found.values()), sum(len(each[1]) for each in found.values())
    assert same > 1100
    assert same > 0.99 * (same + other)


def _sharding(mesh: xb.Mesh, spec: list[str | None]) -> Sharding:
    return Sharding(mesh, tuple(DimSharding((whole(mesh, axis),) if axis else ()) for axis in spec))
