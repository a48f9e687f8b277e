"""A called computation as value rules see it: a function of scalars, or of whole arrays if it is elementwise."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from attrs import evolve, frozen

from shape_inference import Shape, leaves
from xbuild.core.graph import Computation, Instruction
from xbuild.core.hooks import Hook
from xbuild.core.memos import memo
from xbuild.core.op import opcodes
from xbuild.properties.effects import IDENTITIES, PLAIN_CALLS, STRUCTURE

compiled: Hook[..., Callable[..., Any]] = Hook("compiles a region")
"""The Python function of a computation by the options of its plan; the compiler supplies it."""

_IN_ANY_ORDER = opcodes(lambda op: op.order == "any")
_ELEMENTWISE = STRUCTURE | PLAIN_CALLS | IDENTITIES | opcodes(lambda op: op.elements == "same_place")


@frozen(eq=False, slots=False)
class Region:
    """A computation that an op applies; `sequential` asks for every fold one element after the other.

    `device` runs it, where it asks for a number of the device, or where `strict` asks to check each of its values.
    `flushed`: denormal numbers are flushed by array operations.
    """

    computation: Computation
    sequential: bool = False
    strict: bool = False
    flushed: bool = False
    device: Any = None

    @staticmethod
    def of(computation: Computation, sequential: bool = False, strict: bool = False, flushed: bool = False) -> Region:
        """The region of a computation, made once; one known op is checked where it is folded with, not inside."""
        key = sequential, strict and Region(computation).opcode is None, flushed and has_floats(computation)
        return memo(computation, "regions", key, lambda: Region(computation, *key))

    @cached_property
    def types(self) -> tuple[np.dtype[Any], ...]:
        """The element types of its parameters, as NumPy has them."""
        return tuple(p.shape.dtype.dtype for p in self.computation.parameters if isinstance(p.shape, Shape))

    def on(self, device: Any) -> Region:
        """The same as this device runs it."""
        return evolve(self, device=device)

    @cached_property
    def scalar(self) -> Callable[..., Any]:
        """The computation as it stands, on NumPy scalars."""
        return self._function(lifted=False)

    @cached_property
    def lifted(self) -> Callable[..., Any] | None:
        """The scalar computation applied to whole arrays at once, where each of its ops acts on each element alone."""
        if not is_elementwise(self.computation):
            return None
        return self._function(lifted=True)

    @cached_property
    def opcode(self) -> str | None:
        """The one commutative op that the computation is, such as add; None where it is more, as to flush numbers."""
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
        """The one op that a fold may do in any order that suits; None where each element waits for the one before."""
        return None if self.sequential else self.opcode

    def _function(self, *, lifted: bool) -> Callable[..., Any]:
        function = compiled(
            self.computation, lifted=lifted, sequential=self.sequential, strict=self.strict, flushed=self.flushed
        )
        return lambda *operands: function(self.device, *operands)


def has_floats(computation: Computation) -> bool:
    """Whether a computation has numbers that may be denormal."""
    shapes = (leaf for instruction in computation.instructions for leaf in leaves(instruction.shape))
    return any(isinstance(leaf, Shape) and leaf.dtype.kind in ("float", "complex") for leaf in shapes)


def is_elementwise(computation: Computation) -> bool:
    """Whether a computation of scalars means the same on arrays, element by element."""
    return all(_is_elementwise(i) and all(map(is_elementwise, i.called)) for i in computation.instructions)


def _is_elementwise(instruction: Instruction) -> bool:
    if instruction.opcode == "bitcast_convert":  # which takes numbers apart where the other type is narrower
        return all(isinstance(i.shape, Shape) and not i.shape.dims for i in (instruction, *instruction.operands))
    return instruction.opcode in _ELEMENTWISE
