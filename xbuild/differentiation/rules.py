"""The table of derivative rules: each takes the cotangent of a result to the cotangents of the operands.

Sections:

    The tables, and what a rule receives
    Refusals
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

import numpy as np
from attrs import frozen

from shape_inference import AnyShape, Shape
from shape_inference.rules import RuleTable, ShapeError, XbuildError, refuse

from .. import ops
from ..core.builder import Builder, Value
from ..core.diagnostics import describe, operand_labels
from ..core.graph import Instruction
from ..core.hooks import Hook
from ..core.op import OPS

if TYPE_CHECKING:
    from .recorder import DerivativeRecorder

# ----------------------------------------------------------------------------
# The tables, and what a rule receives


Cotangents: TypeAlias = Sequence[Any]
"""What a rule returns: a cotangent or None for each operand; for a tuple, a tuple of them."""

vjp = RuleTable("vjp")
"""opcode -> rule(back, *operands, **attributes): a cotangent or None for each operand, counted through all lists."""

activities = RuleTable("activity")
"""opcode -> rule(activity, instruction, *operands): which leaves vary, if not all that an operand reaches do."""

ZERO: set[str] = set()
"""Opcodes whose derivative is zero wherever it exists, or whose result has no cotangent."""

REASONS: dict[str, str] = {}
"""Opcodes without a derivative, with the reason that the refusal gives."""

all_rules: Hook[[], None] = Hook("enters the derivatives of all ops")
"""Enters the rules of `ops` into the tables; call it before you read a table."""

VISITED: dict[str, Callable[[Any, Instruction], bool]] = {}
"""Opcodes whose rule may run although no cotangent arrives, with the predicate that decides it for an instruction."""

NO_MEMORY: dict[Any, Any] = {}
SIDES = "sides"
"""Key in a memory: the values that take the slope of one side at 0, each with that side (`branches.SidesOfZero`)."""

FACTORS = "factors"
"""Key in a memory: values that replace operands in a rule, the signs in odd products (`branches.SidesOfZero`)."""


@frozen(eq=False)
class Pullback:
    """What the rule of an instruction receives besides the operands and attributes.

    `ct` is the cotangent of the result; for a tuple, a tuple nested like the result, with None for elements without
    one. `result` is the value of the instruction, `varies` has the varying leaves of each operand. Rules of ops with
    regions use `context`; rules of transfers use `memory`, which all instructions of a computation share.
    """

    ct: Any
    result: Value
    wanted: Sequence[bool]
    instruction: Instruction
    varies: Sequence[Any] = ()
    context: Any = None
    memory: dict[Any, Any] = NO_MEMORY

    @property
    def builder(self) -> Builder:
        return self.result.builder

    @property
    def recorder(self) -> DerivativeRecorder:
        """The builder, which simplifies what is recorded."""
        return cast("DerivativeRecorder", self.result.builder)

    def wants(self, operand: int) -> bool:
        """Whether this operand needs a cotangent; operands are counted through all lists."""
        return self.wanted[operand]

    def full(self, value: Any, like: Value | AnyShape) -> Value:
        """An array of this shape (or of the shape of this value) filled with a number."""
        return full(self.builder, value, like.shape if isinstance(like, Value) else like)

    def zeros(self, like: Value | AnyShape) -> Value:
        """Zeros of this shape; a rule whose cotangent is zero everywhere returns None instead."""
        return self.full(0, like)


def full(builder: Builder, value: Any, shape: AnyShape) -> Value:
    """An array of this shape filled with a number."""
    assert isinstance(shape, Shape), shape
    scalar = ops.constant(builder, literal=np.asarray(value).astype(shape.dtype.dtype))
    return scalar if shape.rank == 0 else ops.broadcast(scalar, sizes=shape.dims, dimensions=())


def zero_derivative(*opcodes: str) -> None:
    """Declare that these ops have derivative zero, so that no cotangent passes through them."""
    ZERO.update(opcodes)


def no_derivative(*opcodes: str, reason: str) -> None:
    """Declare that these ops have no derivative; a cotangent that reaches one is refused with the reason."""
    REASONS.update(dict.fromkeys(opcodes, reason))


def refuse_derivative(reason: str, *hints: str) -> NoReturn:
    """Refuse this use of an op inside its rule; the caller adds the op, its operands and the user's line."""
    refuse("not_differentiable", reason, *hints)


# ----------------------------------------------------------------------------
# Refusals
#
# They name the op, its operands, its line in the program and a way out.


LEAVE_OUT_OF_ARGNUMS = "if you do not need this derivative, omit from argnums the parameters on which the op depends"
BITS_HAVE_NO_DERIVATIVE = (
    "it makes a float from the bits of a float that depends on the inputs, and operations on bits have no derivative",
    "use arithmetic instead: x * 2.0**n for jnp.ldexp(x, n), or x / 2.0**exponent for the mantissa of jnp.frexp(x)",
    LEAVE_OUT_OF_ARGNUMS,
)


def explain_error(error: XbuildError, instruction: Instruction) -> XbuildError:
    """The error with the instruction in its first line, and its operands, attributes and source line below."""
    if error.explained:
        return error
    schema = OPS[instruction.opcode]
    labels = operand_labels(schema, len(instruction.operands), instruction.segments)
    rows = [(label, f"{o.shape}  %{o.name}") for label, o in zip(labels, instruction.operands, strict=True)]
    rows += [(key, describe(value)) for key, value in _non_default_attributes(instruction)]
    width = max((len(label) for label, _ in rows), default=0)
    head = f"derivative of {schema.spelling} %{instruction.name}: {error.message} [{error.kind}]"
    lines = [head, *(f"  {label:<{width}}  {text}" for label, text in rows)]
    if instruction.source is not None:
        lines.append(f"  at {instruction.source}")
    lines += [f"  hint: {hint}" for hint in error.hints]
    explained = ShapeError(error.kind, "\n".join(lines), error.hints)
    explained.message, explained.explained = error.message, True
    return explained


def _non_default_attributes(instruction: Instruction) -> Iterator[tuple[str, Any]]:
    """The attributes that differ from their defaults."""
    defaults = OPS[instruction.opcode].defaults
    for key, value in instruction.attribute_values().items():
        if isinstance(value, np.ndarray) or value != defaults.get(key):
            yield key, value


def refuse_missing_rule(instruction: Instruction) -> NoReturn:
    """Refuse an op without a derivative, with the reason."""
    spelling = OPS[instruction.opcode].spelling
    reason = REASONS.get(instruction.opcode, f"{spelling} has no derivative rule")
    raise explain_error(ShapeError("not_differentiable", reason, [LEAVE_OUT_OF_ARGNUMS]), instruction) from None


def refuse_bits(instruction: Instruction) -> NoReturn:
    """Refuse a float made from the bits of a float that varies."""
    reason, *hints = BITS_HAVE_NO_DERIVATIVE
    raise explain_error(ShapeError("not_differentiable", reason, hints), instruction) from None
