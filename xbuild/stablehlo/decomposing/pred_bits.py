"""Rules of `bitcast_convert` between i1, which counts as one bit in StableHLO, and others; a pred of HLO has eight."""

from __future__ import annotations

from functools import partial

from shape_inference import PRIMITIVES, Shape, pred

from ... import ops
from ...core.builder import Value
from ...derived.elementwise import ne
from ...derived.reduction import reduce
from ..reading.operation import Reading
from ..reading.rules import Results, Rule, around, both
from .composed import composed


@around(*both("bitcast_convert"))
def bitcast_convert(op: Reading, as_in_hlo: Rule) -> Results:
    """Bits are the elements of one more minor dimension, the lowest one first."""
    (operand,) = op.wants(1)
    source, target = operand.shape, op.array_shape
    if not isinstance(source, Shape) or (source.dtype is pred) == (target.dtype is pred):
        return as_in_hlo(op)
    bits, whole = (source, target) if source.dtype is pred else (target, source)
    if bits.dims != (*whole.dims, whole.dtype.bits) or whole.dtype.kind == "complex":
        return as_in_hlo(op)
    moved = partial(_packed if source.dtype is pred else _unpacked, whole=whole)
    return composed(op, "bits", moved, operand, key=whole)


def _places(whole: Shape) -> tuple[Shape, int]:
    """The shape of the bits as unsigned numbers, and the dimension along which they are."""
    unsigned = PRIMITIVES[f"u{whole.dtype.bits}"]
    return Shape(unsigned, (*whole.dims, whole.dtype.bits)), whole.rank


def _packed(bits: Value, whole: Shape) -> Value:
    shape, minor = _places(whole)
    numbers = ops.convert(bits, new_element_type=shape.dtype)
    places = ops.iota(builder=bits.builder, shape=shape, iota_dimension=minor)
    return _as(reduce(ops.shift_left(numbers, places), 0, ops.or_, [minor]), whole)


def _unpacked(value: Value, whole: Shape) -> Value:
    shape, minor = _places(whole)
    spread = ops.broadcast(_as(value, Shape(shape.dtype, whole.dims)), sizes=shape.dims, dimensions=range(minor))
    places = ops.iota(builder=value.builder, shape=shape, iota_dimension=minor)
    return ne(ops.shift_right_logical(spread, places) & 1, 0)


def _as(value: Value, shape: Shape) -> Value:
    if value.shape.dtype is shape.dtype:  # type: ignore[union-attr]
        return value
    return ops.bitcast_convert(value, new_element_type=shape.dtype)
