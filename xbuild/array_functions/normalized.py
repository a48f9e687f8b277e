"""Softmax and its like, and one-hot vectors, by the names of jax.nn."""

from __future__ import annotations

from typing import Any

from shape_inference import PrimitiveType, Shape, f32, primitive_type, refuse

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import divide, eq, select, subtract
from ..derived.support.axes import axis_of
from ..derived.support.dressing import dressed
from ..derived.support.extents import into
from .folding import Axis, array_of, converted, extremum, folded, full, widened

__all__ = ["log_softmax", "logsumexp", "one_hot", "softmax"]


@dressed
def softmax(operand: Value, axis: Axis = -1, *, name: str | None = None) -> Value:
    """The exponentials of the elements, divided by their sum along `axis` (the last dimension, where none is named).

    Computed from the differences to the largest element, in f32 where the floats are narrower, and rounded once.
    Raises: element_type_unsupported for what is no float; dimension_out_of_range; non_positive for no elements.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2, 2])(xb.softmax)([[1.0, 1.0], [0.0, 1000.0]])
    array([[0.5, 0.5],
           [0. , 1. ]], dtype=float32)

    Source: jax.nn.softmax.
    """
    wide, dtype = widened(operand)
    powers = ops.exponential(subtract(wide, extremum(wide, -1, axis, True)))
    total = folded(powers, 0, ops.add, axis, True)
    return converted(divide(powers, total), dtype, name)


@dressed
def log_softmax(operand: Value, axis: Axis = -1, *, name: str | None = None) -> Value:
    """The logarithm of xb.softmax, without its underflow: each element less the logsumexp along `axis`.

    Raises: as xb.softmax.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(xb.log_softmax)([0.0, 100.0])
    array([-100.,    0.], dtype=float32)

    Source: jax.nn.log_softmax.
    """
    wide, dtype = widened(operand)
    away = subtract(wide, extremum(wide, -1, axis, True))
    total = folded(ops.exponential(away), 0, ops.add, axis, True)
    return converted(subtract(away, ops.log(total)), dtype, name)


@dressed
def logsumexp(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """The logarithm of the sum of the exponentials along `axis`; `axis` and `keepdims` are those of xb.sum.

    Computed from the differences to the largest element, so that nothing overflows; of elements that are all -inf it
    is -inf. Narrower floats than f32 are computed in f32 and rounded once.
    Raises: as xb.softmax.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(xb.logsumexp)([1000.0, 1000.0])
    np.float32(1000.69...)

    Source: jax.nn.logsumexp.
    """
    wide, dtype = widened(operand)
    largest = extremum(wide, -1, axis, True)
    base = select(ops.is_finite(largest), largest, full(largest, 0))
    total = folded(ops.exponential(subtract(wide, base)), 0, ops.add, axis, keepdims)
    place = base if keepdims else ops.reshape(base, new_sizes=array_of(total).dims)
    return converted(ops.add(ops.log(total), place), dtype, name)


@dressed
def one_hot(
    operand: Value, num_classes: int, *, dtype: PrimitiveType | Any = f32, axis: int = -1, name: str | None = None
) -> Value:
    """For each integer a vector of `num_classes` elements, 1 at its place and 0 elsewhere, along a new dimension.

    `axis` is the place of the new dimension. An integer outside of 0..num_classes-1 gives zeros alone.
    Raises: element_type_unsupported for what is no integer; dimension_out_of_range; negative_size.

    >>> import xbuild as xb
    >>> xb.computation(xb.s32[2])(lambda i: xb.one_hot(i, 3))([2, 0])
    array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)

    Source: jax.nn.one_hot.
    """
    shape = array_of(operand)
    if not shape.dtype.is_integer:
        refuse("element_type_unsupported", f"operand is {shape}: element type {shape.dtype} is not integer")
    rank = shape.rank + 1
    place = axis_of(axis, shape, rank=rank)
    sizes = (*shape.dims[:place], num_classes, *shape.dims[place:])
    spread = into(operand, sizes, tuple(n for n in range(rank) if n != place))
    places = ops.iota(operand.builder, shape=Shape(shape.dtype, sizes), iota_dimension=place)
    return ops.convert(eq(spread, places), new_element_type=primitive_type(dtype), name=name)
