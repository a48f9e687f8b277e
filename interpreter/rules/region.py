"""Regions: called computations as value rules use them, as functions of scalars or, if elementwise, of arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from shape_inference import Shape, leaves
from xbuild.core.graph import Computation, Instruction
from xbuild.core.hooks import Hook
from xbuild.core.memos import memo, remembered
from xbuild.core.op import opcodes
from xbuild.properties.effects import IDENTITIES, PLAIN_CALLS, STRUCTURE
from xbuild.properties.placement import is_same
from xbuild.properties.rewriting import Rewriter

compiled: Hook[..., Callable[..., Any]] = Hook("compiles a region")
"""The hook that compiles a computation to a Python function with the options of a plan; supplied by the compiler."""

_IN_ANY_ORDER = opcodes(lambda op: op.order == "any")
_ELEMENTWISE = STRUCTURE | PLAIN_CALLS | IDENTITIES | opcodes(lambda op: op.elements == "same_place")


class _Unplaced(Rewriter):
    """The pass that removes custom calls that state the placement of a value, such as its sharding."""

    def instruction(self, instruction: Instruction) -> Instruction:
        if instruction.opcode == "custom_call" and is_same(instruction):
            return self.now[instruction.operands[0]]
        return super().instruction(instruction)


def _unplaced(computation: Computation) -> Computation:
    def rewritten() -> Computation:
        has_some = any(i.opcode == "custom_call" for each in computation.reachable() for i in each.instructions)
        return _Unplaced().program(computation) if has_some else computation

    return memo(computation, "unplaced", (), rewritten)


@frozen(eq=False, slots=False)
class AppliedComputation:
    """A computation that an op applies, without calls that state the placement of values.

    `sequential` makes every fold combine one element after the other, from the left.

    `device` is the device that runs the region, needed if the region reads the device's ids or `strict` checks values.
    `flushed` flushes denormal numbers by array operations.
    """

    computation: Computation = field(converter=_unplaced)
    sequential: bool = False
    strict: bool = False
    flushed: bool = False
    device: Any = None

    @staticmethod
    def of(
        computation: Computation, sequential: bool = False, strict: bool = False, flushed: bool = False
    ) -> AppliedComputation:
        """The memoized region of a computation; the rule of the applying op checks a region that is one known op."""
        key = sequential, strict and AppliedComputation(computation).opcode is None, flushed and has_floats(computation)
        return memo(computation, "regions", key, lambda: AppliedComputation(computation, *key))

    @cached_property
    def types(self) -> tuple[np.dtype[Any], ...]:
        """The NumPy dtypes of the computation's parameters."""
        return tuple(p.shape.dtype.dtype for p in self.computation.parameters if isinstance(p.shape, Shape))

    def on(self, device: Any) -> AppliedComputation:
        """The region bound to a device."""
        return evolve(self, device=device)

    @cached_property
    def scalar(self) -> Callable[..., Any]:
        """The computation as a function of NumPy scalars."""
        return self._function(lifted=False)

    @cached_property
    def lifted(self) -> Callable[..., Any] | None:
        """The computation as a function of arrays; None if one of its ops is not elementwise."""
        if not is_elementwise(self.computation):
            return None
        return self._function(lifted=True)

    @cached_property
    def opcode(self) -> str | None:
        """The opcode if the computation is one commutative op, such as add; None otherwise or if it flushes."""
        if self.flushed:
            return None
        root, parameters = self.computation.root, self.computation.parameters
        if root.opcode == "tuple" and len(root.operands) == 1:
            root = root.operands[0]
        if root.opcode in _IN_ANY_ORDER and root.operands in (parameters, parameters[::-1]) and len(parameters) == 2:
            return root.opcode
        return None

    @property
    def reordering(self) -> str | None:
        """The opcode of the region if a fold may combine elements in any order; None if the order is fixed."""
        return None if self.sequential else self.opcode

    def _function(self, *, lifted: bool) -> Callable[..., Any]:
        function = compiled(
            self.computation, lifted=lifted, sequential=self.sequential, strict=self.strict, flushed=self.flushed
        )
        return lambda *operands: function(self.device, *operands)


def has_floats(computation: Computation) -> bool:
    """Whether a computation has values of float or complex type, which may be denormal."""
    shapes = (leaf for instruction in computation.instructions for leaf in leaves(instruction.shape))
    return any(isinstance(leaf, Shape) and leaf.dtype.kind in ("float", "complex") for leaf in shapes)


@remembered
def is_elementwise(computation: Computation) -> bool:
    """Whether a computation of scalars can be applied to arrays elementwise."""
    return all(_is_elementwise(i) and all(map(is_elementwise, i.called)) for i in computation.instructions)


def _is_elementwise(instruction: Instruction) -> bool:
    if instruction.opcode == "bitcast_convert":  # a bitcast to a narrower type adds a dimension
        return all(isinstance(i.shape, Shape) and not i.shape.dims for i in (instruction, *instruction.operands))
    return instruction.opcode in _ELEMENTWISE
