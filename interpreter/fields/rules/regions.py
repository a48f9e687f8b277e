"""Computations that an op applies to each element, as the value rules and kernels take them, over prime fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import Shape
from xbuild.core.graph import Computation, Instruction
from xbuild.core.hooks import Hook
from xbuild.properties.effects import PLAIN_CALLS

from ...rules.limits import check_time
from ...rules.region import AppliedComputation, has_floats, is_elementwise
from .calls import earlier_calls
from .tables import Undecidable

computing: Hook[..., Any] = Hook("computes an instruction over prime fields")
"""The value of an instruction by those of its operands."""


@frozen(eq=False, slots=False)
class FieldRegion(AppliedComputation):
    """A region whose floats are words; none of its folds is that of a known op of NumPy."""

    @cached_property
    def types(self) -> tuple[np.dtype[Any], ...]:
        """The types of the arrays that stand for the parameters."""
        shapes = (p.shape for p in self.computation.parameters)
        return tuple(_carrier(shape) for shape in shapes if isinstance(shape, Shape))

    @cached_property
    def scalar(self) -> Callable[..., Any]:
        return self.lifted

    @cached_property
    def lifted(self) -> Callable[..., Any]:
        """The computation as a function of arrays of one shape."""
        if not is_elementwise(self.computation):
            raise Undecidable("regions with ops that are not elementwise")
        return lambda *operands: applied(self.computation, operands)

    @cached_property
    def opcode(self) -> str | None:
        """The opcode of a computation of integers that is one known op; those of floats have rules of their own."""
        return None if has_floats(self.computation) else AppliedComputation(self.computation).opcode

    @cached_property
    def known(self) -> str | None:
        """The opcode of a computation that is one commutative op, whatever its type."""
        return AppliedComputation(self.computation).opcode


def _carrier(shape: Shape) -> np.dtype[Any]:
    if shape.dtype.kind == "complex":
        return np.dtype(np.complex128)
    return np.dtype(np.uint64) if shape.dtype.kind == "float" else shape.dtype.dtype


def applied(computation: Computation, operands: Sequence[Any]) -> Any:
    """The root of an elementwise computation on arrays of one shape."""
    local: dict[Instruction, Any] = dict(zip(computation.parameters, operands, strict=True))
    earlier = earlier_calls(computation)
    for instruction in computation.instructions:
        check_time()
        if earlier.get(instruction) in local:
            local[instruction] = local[earlier[instruction]]
        elif instruction not in local:
            local[instruction] = _step(instruction, [local[each] for each in instruction.operands])
    return local[computation.root]


def _step(instruction: Instruction, operands: list[Any]) -> Any:
    opcode = instruction.opcode
    if opcode == "tuple":
        return tuple(operands)
    if opcode == "get_tuple_element":
        return operands[0][instruction.attributes.index]
    if opcode in PLAIN_CALLS:
        return applied(instruction.called[0], operands)
    return computing(instruction, operands)
