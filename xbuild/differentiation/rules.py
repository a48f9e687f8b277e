"""The reading that differentiates: for each op the rule from the cotangent of its result to those of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import AnyShape, Shape
from shape_inference.rules import RuleTable, refuse

from .. import ops
from ..core.builder import Builder, Value
from ..core.graph import Instruction
from ..core.hooks import Hook

Cotangents: TypeAlias = Sequence[Any]
"""What a rule gives: a cotangent or None for each operand, of a tuple a tuple of them."""

vjp = RuleTable("vjp")
"""opcode -> rule(back, *operands, **attributes): for each operand, counted through all lists, a cotangent or None."""

activities = RuleTable("activity")
"""opcode -> rule(activity, instruction, *operands): which leaves vary, where not all do that an operand reaches."""

ZERO: set[str] = set()
"""Opcodes whose derivative is zero wherever it exists, or whose result has no cotangent."""

REASONS: dict[str, str] = {}
"""Opcodes without a derivative, each with the reason that a refusal states."""

all_rules: Hook[[], None] = Hook("enters the derivatives of all ops")
"""Enters the rules of the package above into the tables; whoever reads a table calls it before."""

VISITED: dict[str, Callable[[Any, Instruction], bool]] = {}
"""Opcodes whose rule is asked even where no cotangent arrives, each with the question whether that is so here."""

NOTHING_KEPT: dict[Any, Any] = {}


@frozen(eq=False)
class Pullback:
    """What the rule of one instruction is given beside its operands and attributes.

    `ct` is the cotangent of the result; of a tuple a tuple, nested as the result, with None where an element has none.
    `result` is the value of the instruction itself, `varies` tells for each operand which of its leaves vary. Rules of
    ops with regions use `context`, those of transfers `memory`, which all instructions of a computation share.
    """

    ct: Any
    result: Value
    wanted: Sequence[bool]
    instruction: Instruction
    varies: Sequence[Any] = ()
    context: Any = None
    memory: dict[Any, Any] = NOTHING_KEPT

    @property
    def builder(self) -> Builder:
        return self.result.builder

    def wants(self, operand: int) -> bool:
        """Whether a cotangent of this operand is needed; operands are counted through all lists."""
        return self.wanted[operand]

    def full(self, value: Any, like: Value | AnyShape) -> Value:
        """A number in every element of an array of this shape (or the shape of this value)."""
        return full(self.builder, value, like.shape if isinstance(like, Value) else like)

    def zeros(self, like: Value | AnyShape) -> Value:
        """Zeros of this shape; a rule that has nothing but zeros for an operand returns None instead."""
        return self.full(0, like)


def full(builder: Builder, value: Any, shape: AnyShape) -> Value:
    """A number in every element of an array of this shape."""
    assert isinstance(shape, Shape), shape
    scalar = ops.constant(builder, literal=np.asarray(value).astype(shape.dtype.dtype))
    return scalar if shape.rank == 0 else ops.broadcast(scalar, sizes=shape.dims, dimensions=())


def zero_derivative(*opcodes: str) -> None:
    """State that these ops have the derivative zero, so that no cotangent goes through them."""
    ZERO.update(opcodes)


def no_derivative(*opcodes: str, reason: str) -> None:
    """State that these ops have no derivative; where a cotangent arrives at one, the refusal gives the reason."""
    REASONS.update(dict.fromkeys(opcodes, reason))


def refuse_derivative(reason: str, *hints: str) -> NoReturn:
    """Refuse, in a rule, this use of the op; who called adds the op, its operands and the user's line."""
    refuse("not_differentiable", reason, *hints)
