"""What the functions of this folder share: an array folded along `axis`, and narrow types that are computed wider."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import ml_dtypes

from shape_inference import PrimitiveType, Shape, f32, f64, pred, refuse, s32, u32
from shape_inference.dims import array, limits

from .. import ops
from ..core.builder import Value
from ..derived.support.arguments import known, shape_of
from ..derived.support.axes import axes_of
from ..derived.support.extents import like
from ..derived.support.operands import as_value

Axis: TypeAlias = int | Sequence[int] | None


def array_of(operand: Any) -> Shape:
    """The shape of an operand that is an array value; anything else is refused."""
    return array("operand", shape_of(operand))


def converted(operand: Value, dtype: PrimitiveType, name: str | None = None) -> Value:
    """The operand in an element type; the operand itself where it has the type and no name is asked for."""
    if array_of(operand).dtype is dtype and name is None:
        return operand
    return ops.convert(operand, new_element_type=dtype, name=name)


def wide(dtype: PrimitiveType) -> PrimitiveType:
    """The type in which sums of a type are computed: f32 of narrower floats, 32 bits of narrower integers and pred."""
    if dtype.kind == "float":
        return f32 if dtype.bits < 32 else dtype
    if dtype.bits >= 32:
        return dtype
    return u32 if dtype.kind == "unsigned" else s32


def as_float(dtype: PrimitiveType) -> PrimitiveType:
    """The type of a mean: a float or complex type itself, f64 of integers of 64 bits, f32 of all others."""
    if dtype.kind in ("float", "complex"):
        return dtype
    return f64 if dtype.bits == 64 else f32


def floats(operand: Value) -> Shape:
    """The shape of an operand of floats; integers are refused, since a function of jax.nn would make them floats."""
    shape = array_of(operand)
    if not shape.dtype.is_float:
        refuse(
            "element_type_unsupported",
            f"operand is {shape}: element type {shape.dtype} is not a float",
            "x.astype(xb.f32) makes floats of the elements",
        )
    return shape


def number(model: Value, value: float, dtype: PrimitiveType | None = None) -> Value:
    """A scalar constant in the builder of the model, of its element type or of the given one."""
    return as_value(model.builder, value, dtype or array_of(model).dtype)


def full(model: Value, value: float) -> Value:
    """An array of one number with the extents and the element type of the model."""
    return like(number(model, value), model, value)


def folded(
    operand: Value, init: Any, to_apply: Callable[..., Value], axis: Axis, keepdims: bool, name: str | None = None
) -> Value:
    """The fold of the operand along `axis`; with `keepdims` the dimensions stay, with extent 1."""
    shape = array_of(operand)
    dims = axes_of(axis, shape)
    start = init if isinstance(init, Value) else number(operand, init)
    found = ops.reduce((known(operand),), (start,), to_apply=to_apply, dimensions=dims, name=None if keepdims else name)
    return kept(found, shape, dims, name) if keepdims else found


def kept(found: Value, shape: Shape, dims: Sequence[int], name: str | None = None) -> Value:
    """A result with the folded dimensions of its operand put back, with extent 1."""
    sizes = [1 if dim in dims else size for dim, size in enumerate(shape.dims)]
    return ops.reshape(found, new_sizes=tuple(sizes), name=name)


def count_of(operand: Value, dims: Sequence[int], dtype: PrimitiveType) -> Any:
    """How many elements are folded to one, in an element type: a number, or a value where a dimension is dynamic."""
    shape = array_of(operand)
    is_dynamic = [bool(shape.dynamic) and shape.dynamic[dim] for dim in dims]
    static = math.prod(shape.dims[dim] for dim, free in zip(dims, is_dynamic, strict=True) if not free)
    found = number(operand, static, dtype)
    for dim, free in zip(dims, is_dynamic, strict=True):
        if free:
            found = ops.multiply(found, converted(ops.get_dimension_size(operand, dimension=dim), dtype))
    return found


def extremum(operand: Value, sign: int, axis: Axis, keepdims: bool, name: str | None = None) -> Value:
    """The largest element along `axis` for a sign of -1, the smallest for 1: that of the infinity which it begins with.

    Raises: non_positive where there is no element; element_type_unsupported for complex numbers.
    """
    shape = array_of(operand)
    if shape.dtype.kind == "complex":
        refuse("element_type_unsupported", f"operand is {shape}: complex numbers have no order")
    dims = axes_of(axis, shape)
    if any(shape.dims[dim] == 0 for dim in dims):
        refuse("non_positive", f"operand is {shape}: there are 0 elements along {list(dims)}, and at least 1 is wanted")
    if shape.dtype is pred:
        return folded(operand, sign > 0, ops.and_ if sign > 0 else ops.or_, axis, keepdims, name)
    to_apply = ops.minimum if sign > 0 else ops.maximum
    return folded(operand, _outermost(shape.dtype, sign), to_apply, axis, keepdims, name)


def _outermost(dtype: PrimitiveType, sign: int) -> float:
    """The number of a type that no number is beyond: an infinity where the type has one."""
    if dtype.is_integer:
        return limits(dtype)[sign > 0]
    infinity = float(dtype.dtype.type(sign * math.inf))
    if math.isinf(infinity):
        return infinity
    finite = ml_dtypes.finfo(dtype.dtype)  # type: ignore[no-untyped-call]
    return float(finite.max if sign > 0 else finite.min)


def widened(operand: Value) -> tuple[Value, PrimitiveType]:
    """An operand of floats in f32 or f64, and its own element type."""
    dtype = floats(operand).dtype
    return converted(operand, wide(dtype)), dtype
