"""A run of a program over prime fields: all devices on the grid of an ordinary run, each walked as words."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from shape_inference import Shape, refuse
from xbuild.checking.model.program import grid_of
from xbuild.checking.model.verdict import Verdict
from xbuild.core.graph import Computation, Module, ModuleGroup
from xbuild.properties.sites import reached

from ..rules.limits import Limits
from ..runtime.driver import drive
from ..runtime.grid import Grid
from ..runtime.replica import Device
from ..runtime.run import checked, modules_of
from .draws import flat, nested, shapes_of
from .rules import conversions as _conversions  # noqa: F401  (importing fills the table)
from .rules import folding as _folding  # noqa: F401
from .rules import functions as _functions  # noqa: F401
from .rules import products as _products  # noqa: F401
from .rules import wholes as _wholes  # noqa: F401
from .walk import FieldPlan, Observe


@frozen(eq=False)
class Subject:
    """A program that is evaluated: the module of each device, and the verdict on it."""

    program: Module | ModuleGroup
    modules: tuple[Module, ...] = field(init=False)
    verdict: Verdict = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "modules", tuple(modules_of(self.program)))
        for module in dict.fromkeys(self.modules):
            for computation in reached(module.entry):
                _refuse_vast(computation)
        object.__setattr__(self, "verdict", checked(self.program, 0))

    @property
    def devices(self) -> int:
        return len(self.modules)

    def inputs(self, device: int) -> list[Shape]:
        """The shapes of the arrays that a device is given."""
        return shapes_of(self.modules[device].entry.parameters)

    def outputs(self, device: int) -> list[Shape]:
        """The shapes of the arrays that a device gives."""
        return shapes_of([self.modules[device].entry.root])

    def literals(self) -> Iterator[Any]:
        """The float literals of small constants, whose numbers have their places in the order."""
        for module in dict.fromkeys(self.modules):
            for computation in reached(module.entry):
                yield from _literals(computation)

    def run(self, arrays: Sequence[Sequence[Any]], observe: Observe | None, limits: Limits) -> list[list[Any]]:
        """The arrays that each device gives, by the arrays that it is given.

        Raises Undecidable at an instruction that is not decided, and Stopped where a run would stop.
        """
        arguments = [tuple(self._arguments(device, list(row))) for device, row in enumerate(arrays)]
        devices = [
            Device(number, module, FieldPlan(module.entry, observe, self.verdict.orders(number)))  # type: ignore[arg-type]
            for number, module in enumerate(self.modules)
        ]
        drive(Grid(devices, {}, None, 0, grid_of(self.program)), arguments, limits, self.verdict, flush=False)
        return [flat(each.result, each.module.entry.root.shape) for each in devices]

    def _arguments(self, device: int, arrays: list[Any]) -> Iterator[Any]:
        for parameter in self.modules[device].entry.parameters:
            yield nested(arrays, parameter.shape)


_MOST_ELEMENTS = sys.maxsize // 16
"""The elements of the largest array of complex residues that NumPy can address."""


def _refuse_vast(computation: Computation) -> None:
    for each in computation.instructions:
        most = max(shapes_of([each]), key=lambda shape: shape.size, default=None)
        if most is not None and most.size > _MOST_ELEMENTS:
            count = f"{most.size:,} elements, and an array has at most {_MOST_ELEMENTS:,}"
            refuse("limit_bytes", f"equivalent: {most} of %{each.name} has {count}", "compare at smaller extents")


_MOST = 64
"""The largest constant whose numbers are registered."""


def _literals(computation: Any) -> Iterator[Any]:
    for instruction in computation.instructions:
        shape = instruction.shape
        if instruction.opcode == "constant" and isinstance(shape, Shape) and shape.dtype.kind == "float":
            literal = instruction.attributes.literal
            if isinstance(literal, np.ndarray | np.generic) and literal.size <= _MOST:
                finite = np.asarray(literal).reshape(-1)
                yield finite[np.isfinite(finite.astype(np.float64))]
