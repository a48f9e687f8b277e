"""Propagation beside Shardy's: as a module it counts the equal values of the programs of JAX, and prints the others."""

from __future__ import annotations

import sys
from typing import Any

import xbuild as xb
from xbuild.core.graph import Module
from xbuild.sharding.propagation import propagate
from xbuild.sharding.stated_shardings import mesh_of_shardings, on_one_mesh

from .jax_texts import texts
from .shardy import ask, compared, job_of, prepared

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


def programs_of_jax(*, is_open: bool = False) -> list[tuple[str, Module, xb.Mesh]]:
    """The programs of JAX as Shardy is given them, with their meshes."""
    found = []
    for name, text in texts(is_open=is_open):
        module = on_one_mesh(xb.parse_stablehlo(text))
        mesh = mesh_of_shardings(module)
        assert mesh is not None, name
        found.append((name, prepared(module), mesh))
    return found


def main() -> int:
    """Print the counts, and the values that differ in programs for which no reason is known."""
    unknown = 0
    for is_open, what in ((False, "as stated"), (True, "with whole arguments and results left open")):
        found = outcomes(programs_of_jax(is_open=is_open))
        same, other = (
            sum(each[0] for each in found.values()),
            {name: each[1] for name, each in found.items() if each[1]},
        )
        count = sum(map(len, other.values()))
        print(f"{len(found)} programs {what}: {same} of {same + count} values are equal; different in {len(other)}")
        for name, values in other.items():
            print(f"  {name}, {len(values)} values: {DIFFERENT.get(name, values[:3])}")
            unknown += name not in DIFFERENT
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
