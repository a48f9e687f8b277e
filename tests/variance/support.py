"""What tests of types share: a function with parameters of given types, typed, and run on each device's own values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

import xbuild as xb
from interpreter import execute
from shape_inference import AnyShape
from xbuild.properties.variances import Type, Variance
from xbuild.variance.program import module_of, record_region
from xbuild.variance.types import Casts, TypedComputation
from xbuild.variance.writing import Cast, casts_in, remove_casts

INVARYING = Variance()


@frozen
class Made:
    """A typed function: its types, its module with casts, and without."""

    typed: TypedComputation
    module: xb.Module
    mesh: xb.Mesh

    @property
    def type(self) -> Type:
        return self.typed.root

    @property
    def casts(self) -> list[Cast]:
        return casts_in(self.module.entry)

    @property
    def lowered(self) -> xb.Module:
        module = self.module
        return evolve(module, entry=remove_casts(module.entry), computations=())

    def run(self, *columns: Sequence[Any]) -> list[Any]:
        """The result of each device, for the values of each parameter on each device; strictly, and both ways."""
        rows = [list(row) for row in zip(*columns, strict=True)] if columns else [[]] * self.mesh.num_devices
        verdict = xb.check(self.lowered)
        assert verdict.kind == "ok", verdict
        results = execute(self.lowered, rows, strict=True)
        for a, b in zip(results, execute(self.module, rows), strict=True):
            np.testing.assert_equal(a, b)
        return results


def made(
    function: Callable[..., Any],
    mesh: xb.Mesh,
    shapes: Sequence[AnyShape] = (),
    types: Sequence[Type] = (),
    casts: Casts = "all",
    uses_partitions: bool = True,
) -> Made:
    """The function with parameters of these shapes and types on a device."""
    region, computation = record_region(function, mesh, shapes, types, casts, uses_partitions)
    typed = region.walk.computation(computation, list(types))
    return Made(typed, module_of(region, typed), mesh)


def opcodes(module: xb.Module) -> list[str]:
    """The opcodes of a module, those of reducers left out."""
    called = [c for c in module.entry.reachable() if len(c.instructions) > 3 or c is module.entry]
    return [instruction.opcode for computation in called for instruction in computation.instructions]


def collectives(module: xb.Module) -> list[str]:
    """The collectives of a module, by opcode."""
    words = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective")
    return sorted(each for each in opcodes(module) if each.startswith(words))
