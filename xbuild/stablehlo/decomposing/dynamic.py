"""Rules of ops whose extents are operands: the static op, where the extents follow from constants or from the types."""

from __future__ import annotations

from typing import Any

from shape_inference import Shape

from ...core.graph import Instruction
from ...running import Evaluator
from ..op_rules.shaping import bounded_reshape
from ..reading.operation import Reading
from ..reading.rules import Results, both, rule
from ..syntax.attributes import Dense
from .delegation import delegated

MOST = 4096
"""The limit of instructions that are evaluated for one extent."""


def value_of(instruction: Instruction) -> Any:
    """The value of an instruction that is computed from constants and extents alone; None of any other."""
    evaluator, known = Evaluator(), dict[Instruction, Any]()
    stack = [instruction]
    while stack and len(known) < MOST:
        each = stack[-1]
        if each.opcode == "get_dimension_size" and not each.operands[0].shape.is_dynamic:  # type: ignore[union-attr]
            extents = each.operands[0].shape.dims  # type: ignore[union-attr]
            known[each] = each.shape.dtype.dtype.type(extents[each.attributes.dimension])  # type: ignore[union-attr]
        missing = [] if each in known else [operand for operand in each.operands if operand not in known]
        if missing:
            stack += missing
            continue
        stack.pop()
        if each not in known:
            given = [known[operand] for operand in each.operands]
            pure = each.opcode != "parameter" and not any(value is None for value in given)
            known[each] = evaluator.value(each, given, (0, 0)) if pure else None
    return known.get(instruction)


def integers(op: Reading, number: int) -> tuple[int, ...]:
    """An operand as integers. Raises Fault where it does not follow from constants."""
    found = value_of(op.operands[number])
    if found is None:
        hint = "xb.parse_stablehlo(..., shapes=...) states the sizes of dimensions that are left open"
        op.fail("missing_shape", f"operand {number}, %{op.operands[number].name}, does not follow from constants", hint)
    return tuple(found.reshape(-1).tolist())


def _stated(op: Reading, dims: tuple[int, ...]) -> tuple[Shape]:
    """The result type with these extents, which must be those that are written."""
    written = op.array_shape
    if written.dims != dims:
        op.fail("shape_mismatch", f"the operand says {list(dims)}, and {written} is written")
    return (written,)


def _sized(op: Reading, number: int) -> tuple[Shape]:
    """The result type by an operand that has the extents; by what is written, where the operand is not known."""
    found = value_of(op.operands[number])
    return (op.array_shape,) if found is None else _stated(op, tuple(found.reshape(-1).tolist()))


@rule(*both("dynamic_reshape"))
def dynamic_reshape(op: Reading) -> Results:
    operand, _ = op.wants(2)
    if op.array_shape.is_dynamic:
        return bounded_reshape(op)
    return delegated(op, "stablehlo.reshape", (operand,), results=_sized(op, 1))


@rule(*both("dynamic_broadcast_in_dim"))
def dynamic_broadcast_in_dim(op: Reading) -> Results:
    operand, _ = op.wants(2)
    op.ignore("known_expanding_dimensions", "known_nonexpanding_dimensions")
    return delegated(op, "stablehlo.broadcast_in_dim", (operand,), results=_sized(op, 1))


@rule(*both("dynamic_iota"))
def dynamic_iota(op: Reading) -> Results:
    op.wants(1)
    return delegated(op, "stablehlo.iota", (), results=_sized(op, 0))


@rule(*both("dynamic_pad"))
def dynamic_pad(op: Reading) -> Results:
    operand, filling, *_ = op.wants(5)
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    edges = {name: integers(op, number) for number, name in enumerate(names, 2)}
    return delegated(op, "stablehlo.pad", (operand, filling), attributes={**op.attributes, **edges})


@rule(*both("dynamic_gather"))
def dynamic_gather(op: Reading) -> Results:
    operand, indices, _ = op.wants(3)
    sizes = {"slice_sizes": integers(op, 2)}
    return delegated(op, "stablehlo.gather", (operand, indices), attributes={**op.attributes, **sizes})


@rule(*both("dynamic_conv"))
def dynamic_conv(op: Reading) -> Results:
    lhs, rhs, padding = op.wants(3)
    integers(op, 2)
    edges = {"padding": Dense(padding.shape, value_of(padding))}
    return delegated(op, "stablehlo.convolution", (lhs, rhs), attributes={**op.attributes, **edges})


@rule(*both("real_dynamic_slice"))
def real_dynamic_slice(op: Reading) -> Results:
    operand, *_ = op.wants(4)
    names = ("start_indices", "limit_indices", "strides")
    ranges = {name: integers(op, number) for number, name in enumerate(names, 1)}
    return delegated(op, "stablehlo.slice", (operand,), attributes={**op.attributes, **ranges})
