"""Rules of ops whose extents are operands: the static op, where the extents follow from constants or from the types."""

from __future__ import annotations

from typing import Any

from shape_inference import AnyShape, PrimitiveType, Shape

from ...core.graph import Instruction
from ...running import Evaluator
from ..op_rules.shaping import bounded_reshape
from ..reading.operation import Reading
from ..reading.rules import Results, Rule, around, both, rule
from ..syntax.attributes import Dense
from ..syntax.types import TensorType
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


def is_open(type_: Any) -> bool:
    """Whether a type is that of a tensor of numbers with extents that are not known."""
    return isinstance(type_, TensorType) and None in type_.dims and isinstance(type_.element, PrimitiveType)


def fits(shape: AnyShape, type_: TensorType) -> bool:
    """Whether an array has the element type and the known extents of a type."""
    return (
        isinstance(shape, Shape)
        and shape.dtype is type_.element
        and len(shape.dims) == len(type_.dims)
        and all(wanted in (None, extent) for extent, wanted in zip(shape.dims, type_.dims, strict=True))
    )


def _stated(op: Reading, dims: tuple[int, ...]) -> tuple[Shape]:
    """The result type with these extents, which must be those that are written."""
    written: Any = op.operation.result_types[0]
    stated = Shape(written.element, dims) if is_open(written) else op.array_shape
    if not fits(stated, written) if is_open(written) else stated.dims != dims:
        op.fail("shape_mismatch", f"the operand says {list(dims)}, and {written} is written")
    return (stated,)


def _sized(op: Reading, number: int) -> tuple[Shape]:
    """The result type by an operand that has the extents; by what is written, where the operand is not known."""
    found = value_of(op.operands[number])
    return (op.array_shape,) if found is None else _stated(op, tuple(found.reshape(-1).tolist()))


@rule(*both("dynamic_reshape"))
def dynamic_reshape(op: Reading) -> Results:
    operand, _ = op.wants(2)
    if not is_open(op.operation.result_types[0]) and op.array_shape.is_dynamic:
        return bounded_reshape(op)
    return delegated(op, "stablehlo.reshape", (operand,), results=_sized(op, 1))


@rule(*both("dynamic_broadcast_in_dim"))
def dynamic_broadcast_in_dim(op: Reading) -> Results:
    operand, _ = op.wants(2)
    op.ignore("known_expanding_dimensions", "known_nonexpanding_dimensions")
    return delegated(op, "stablehlo.broadcast_in_dim", (operand,), results=_sized(op, 1))


@around(*both("set_dimension_size"))
def set_dimension_size(op: Reading, as_in_hlo: Rule) -> Results:
    """Of a size that is the whole extent the operand itself, where the result is written as static."""
    operand, size = op.wants(2)
    shape, written = operand.shape, op.operation.result_types[0]
    known = value_of(size) if shape == written else None
    if known is not None and known == shape.dims[op.integer("dimension")]:  # type: ignore[union-attr]
        return operand
    return as_in_hlo(op)


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
    """A slice where all is known; where the begin is not, a dynamic_slice of the extents that are."""
    operand, begin, *_ = op.wants(4)
    if value_of(begin) is not None:
        names = ("start_indices", "limit_indices", "strides")
        ranges = {name: integers(op, number) for number, name in enumerate(names, 1)}
        return delegated(op, "stablehlo.slice", (operand,), attributes={**op.attributes, **ranges})
    if set(integers(op, 3)) - {1}:
        op.fail("missing_shape", "the strides are not 1, and where the slice begins does not follow from constants")
    sizes = _extents(op)
    starts = [_element(op, begin, number) for number in range(len(sizes))]
    return op.result("dynamic_slice", operand, tuple(starts), dynamic_slice_sizes=sizes)


def _extents(op: Reading) -> tuple[int, ...]:
    """The extents of a slice: those that are written, and the distances of begin and end that are known."""
    written: Any = op.operation.result_types[0]
    begins, ends = (_known_elements(op.operands[number]) for number in (1, 2))
    pairs = zip(begins, ends, strict=True)
    found = [None if begin is None or end is None else end - begin for begin, end in pairs]
    extents = [known if dim is None else dim for dim, known in zip(written.dims, found, strict=False)]
    if len(extents) != len(written.dims) or None in extents:
        op.fail("missing_shape", f"the extents of {written} do not follow from constants")
    return tuple(extents)  # type: ignore[arg-type]


def _known_elements(vector: Instruction) -> list[int | None]:
    """The elements of a vector, each where it is known by itself."""
    if vector.opcode == "concatenate":
        return [element for each in vector.operands for element in _known_elements(each)]
    if vector.opcode == "add" and isinstance(vector.shape, Shape) and vector.shape.rank == 1:
        pairs = zip(*map(_known_elements, vector.operands), strict=True)
        return [None if None in pair else sum(pair) for pair in pairs]
    found = value_of(vector)
    count = vector.shape.dims[0] if isinstance(vector.shape, Shape) and vector.shape.rank else 1
    return [None] * count if found is None else found.reshape(-1).tolist()


def _element(op: Reading, vector: Instruction, number: int) -> Instruction:
    one = op.emit("slice", vector, start_indices=(number,), limit_indices=(number + 1,), strides=(1,))
    return op.emit("reshape", one, new_sizes=())
