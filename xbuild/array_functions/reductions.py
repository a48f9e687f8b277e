"""Reductions along axes by NumPy's names: sum, prod, amax, amin, any, all, argmax, argmin, mean, variance, deviation.

Sections:

    What the functions of this folder share
    Reductions by NumPy's names
    Mean, variance and standard deviation
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import ml_dtypes

from shape_inference import PrimitiveType, Shape, f32, f64, pred, refuse, s32, u32
from shape_inference.dims import array, limits

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import eq, ne, select, subtract
from ..derived.support import as_value, axes_of, axis_of, dressed, into, like, require_value, shape_of

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "mean", "prod", "std", "sum", "var"]


# ----------------------------------------------------------------------------
# What the functions of this folder share
#
# An array folded along `axis`, and narrow types that are computed wider.

Axis: TypeAlias = int | Sequence[int] | None


def array_of(operand: Any) -> Shape:
    """The shape of an operand that is an array value; anything else is refused."""
    return array("operand", shape_of(operand))


def convert_to(operand: Value, dtype: PrimitiveType, name: str | None = None) -> Value:
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
            f"operand is {shape}; expected a float array",
            "convert the operand with x.astype(xb.f32)",
        )
    return shape


def number(model: Value, value: float, dtype: PrimitiveType | None = None) -> Value:
    """A scalar constant in the builder of the model, of its element type or of the given one."""
    return as_value(model.builder, value, dtype or array_of(model).dtype)


def full(model: Value, value: float) -> Value:
    """An array of one number with the extents and the element type of the model."""
    return like(number(model, value), model, value)


def reduce_axes(
    operand: Value, init: Any, to_apply: Callable[..., Value], axis: Axis, keepdims: bool, name: str | None = None
) -> Value:
    """The fold of the operand along `axis`; with `keepdims` the dimensions stay, with extent 1."""
    shape = array_of(operand)
    dims = axes_of(axis, shape)
    start = init if isinstance(init, Value) else number(operand, init)
    found = ops.reduce(
        (require_value(operand),), (start,), to_apply=to_apply, dimensions=dims, name=None if keepdims else name
    )
    return restore_dims(found, shape, dims, name) if keepdims else found


def restore_dims(found: Value, shape: Shape, dims: Sequence[int], name: str | None = None) -> Value:
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
            found = ops.multiply(found, convert_to(ops.get_dimension_size(operand, dimension=dim), dtype))
    return found


def extremum(operand: Value, sign: int, axis: Axis, keepdims: bool, name: str | None = None) -> Value:
    """The largest element along `axis` for a sign of -1, the smallest for 1: that of the infinity which it begins with.

    Raises: non_positive where there is no element; element_type_unsupported for complex numbers.
    """
    shape = array_of(operand)
    if shape.dtype.kind == "complex":
        refuse("element_type_unsupported", f"operand is {shape}: complex numbers have no order")
    dims = axes_of(axis, shape)
    if 0 in (shape.dims[dim] for dim in dims):
        refuse("non_positive", f"operand is {shape}: dimensions {list(dims)} have 0 elements; expected at least 1")
    if shape.dtype is pred:
        return reduce_axes(operand, sign > 0, ops.and_ if sign > 0 else ops.or_, axis, keepdims, name)
    to_apply = ops.minimum if sign > 0 else ops.maximum
    return reduce_axes(operand, _outermost(shape.dtype, sign), to_apply, axis, keepdims, name)


def _outermost(dtype: PrimitiveType, sign: int) -> float:
    """The number of a type that no number is beyond: an infinity where the type has one."""
    if dtype.is_integer:
        return limits(dtype)[sign > 0]
    infinity = float(dtype.dtype.type(sign * math.inf))
    if math.isinf(infinity):
        return infinity
    finite = ml_dtypes.finfo(dtype.dtype)  # type: ignore[no-untyped-call]
    return float(finite.max if sign > 0 else finite.min)


def widen_operand(operand: Value) -> tuple[Value, PrimitiveType]:
    """An operand of floats in f32 or f64, and its own element type."""
    dtype = floats(operand).dtype
    return convert_to(operand, wide(dtype)), dtype


# ----------------------------------------------------------------------------
# Reductions by NumPy's names
#
# sum, prod, amax, amin, any, all, argmax, argmin; they take `axis` and `keepdims`.


@dressed
def sum(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """Return the sum of the elements along `axis`.

    `axis` is an int, several ints, or None for all dimensions; negative ints count from the end.
    Floats narrower than f32 are summed in f32 and rounded once. The sum of pred or of narrower integers is s32 or u32,
    as in jax.numpy. `keepdims` keeps the summed dimensions, with extent 1.
    Raises: not_array, dimension_out_of_range or duplicate_dimension.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2, 3])
    ... def sums(x):
    ...     return x.sum(), xb.sum(x, axis=-1)
    >>> sums([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    (np.float32(21.0), array([ 6., 15.], dtype=float32))

    Source: jax.numpy.sum; Operation Semantics, Reduce.
    """
    return _accumulate(operand, 0, ops.add, axis, keepdims, name)


@dressed
def prod(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """Return the product of the elements along `axis`. Element types, `axis` and `keepdims` are as in xb.sum.

    Raises: the same errors as xb.sum.

    >>> import xbuild as xb
    >>> xb.computation(xb.s32[4])(xb.prod)([1, 2, 3, 4])
    np.int32(24)

    Source: jax.numpy.prod; Operation Semantics, Reduce.
    """
    return _accumulate(operand, 1, ops.multiply, axis, keepdims, name)


def _accumulate(
    operand: Value, init: int, to_apply: Callable[..., Value], axis: Axis, keepdims: bool, name: str | None
) -> Value:
    """A sum or product in the wide type of the operand; of floats it is rounded to the operand's own type."""
    dtype = array_of(operand).dtype
    inner = wide(dtype)
    if not dtype.is_float or inner is dtype:
        return reduce_axes(convert_to(operand, inner), init, to_apply, axis, keepdims, name)
    return convert_to(reduce_axes(convert_to(operand, inner), init, to_apply, axis, keepdims), dtype, name)


@dressed
def amax(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """Return the largest element along `axis`, or NaN if an element is NaN.

    `x.max()` does the same; xb.max compares two operands.
    `axis` and `keepdims` are as in xb.sum.
    Raises: non_positive if there are no elements; element_type_unsupported for complex numbers; also the same errors as
    xb.sum.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2, 2])(lambda x: x.max(axis=0))([[1.0, 5.0], [3.0, 2.0]])
    array([3., 5.], dtype=float32)

    Source: jax.numpy.max; Operation Semantics, Reduce.
    """
    return extremum(operand, -1, axis, keepdims, name)


@dressed
def amin(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """Return the smallest element along `axis`, or NaN if an element is NaN.

    `x.min()` does the same; xb.min compares two operands.
    `axis` and `keepdims` are as in xb.sum.
    Raises: the same errors as xb.amax.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2, 2])(lambda x: x.min(axis=0))([[1.0, 5.0], [3.0, 2.0]])
    array([1., 2.], dtype=float32)

    Source: jax.numpy.min; Operation Semantics, Reduce.
    """
    return extremum(operand, 1, axis, keepdims, name)


@dressed
def any(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """Return whether any element along `axis` is true or nonzero, as pred. `axis` and `keepdims` are as in xb.sum.

    Raises: the same errors as xb.sum.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[3])(lambda x: xb.any(x > 2.0))([1.0, 2.0, 3.0])
    np.True_

    Source: jax.numpy.any; XlaBuilder's math library, Any.
    """
    return reduce_axes(_truths(operand), False, ops.or_, axis, keepdims, name)


@dressed
def all(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """Return whether all elements along `axis` are true or nonzero, as pred. `axis` and `keepdims` are as in xb.sum.

    Raises: the same errors as xb.sum.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[3])(lambda x: (x > 2.0).all())([1.0, 2.0, 3.0])
    np.False_

    Source: jax.numpy.all; Operation Semantics, Reduce.
    """
    return reduce_axes(_truths(operand), True, ops.and_, axis, keepdims, name)


def _truths(operand: Value) -> Value:
    return operand if array_of(operand).dtype is pred else ne(operand, full(operand, 0))


@dressed
def argmax(operand: Value, axis: int | None = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """Return the index of the largest element along `axis` (default: in the flattened operand), as s32.

    If several elements are equal, the result is the index of the first one. If the operand contains a NaN, the result
    is the index of the first NaN.
    Raises: not_array or dimension_out_of_range; non_positive if there are no elements; element_type_unsupported for
    complex numbers.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2, 3])(lambda x: xb.argmax(x, axis=1))([[1.0, 5.0, 2.0], [7.0, 0.0, 7.0]])
    array([1, 0], dtype=int32)

    Source: jax.numpy.argmax; XlaBuilder's math library, ArgMax.
    """
    return _place(operand, -1, axis, keepdims, name)


@dressed
def argmin(operand: Value, axis: int | None = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """Return the index of the smallest element along `axis` (default: in the flattened operand), as s32.

    If several elements are equal, the result is the index of the first one. If the operand contains a NaN, the result
    is the index of the first NaN.
    Raises: the same errors as xb.argmax.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2, 3])(lambda x: xb.argmin(x, axis=1))([[1.0, 5.0, 0.0], [7.0, 0.0, 0.0]])
    array([2, 1], dtype=int32)

    Source: jax.numpy.argmin; XlaBuilder's math library, ArgMin.
    """
    return _place(operand, 1, axis, keepdims, name)


def _place(operand: Value, sign: int, axis: int | None, keepdims: bool, name: str | None) -> Value:
    """The least index at which the extremum stands, or NaN."""
    whole = array_of(operand)
    if axis is None:
        operand = ops.reshape(operand, new_sizes=(whole.size,))
    shape = array_of(operand)
    dim = 0 if axis is None else axis_of(axis, shape)
    best = extremum(operand, sign, dim, False)
    spread = into(best, shape.dims, tuple(n for n in range(shape.rank) if n != dim))
    is_best = eq(operand, spread)
    if shape.dtype.is_float:
        is_best = ops.or_(is_best, ne(operand, operand))
    places = ops.iota(operand.builder, shape=Shape(s32, shape.dims), iota_dimension=dim)
    last = shape.dims[dim] - 1
    found = ops.reduce(
        (select(is_best, places, last),), (number(places, last),), to_apply=ops.minimum, dimensions=(dim,),
        name=None if keepdims else name,
    )  # fmt: skip
    return restore_dims(found, whole, tuple(range(whole.rank)) if axis is None else (dim,), name) if keepdims else found


# ----------------------------------------------------------------------------
# Mean, variance and standard deviation


@dressed
def mean(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """Return the mean of the elements along `axis`, in f32 for pred and integers, but in f64 for s64 and u64.

    Floats narrower than f32 are computed in f32 and rounded once. `axis` and `keepdims` are as in xb.sum. The mean of
    zero elements is NaN.
    Raises: the same errors as xb.sum.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2, 3])(lambda x: x.mean(axis=-1))([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    array([2., 5.], dtype=float32)

    Source: jax.numpy.mean.
    """
    dtype = as_float(array_of(operand).dtype)
    inner = wide(dtype) if dtype.is_float else dtype
    found = _mean(convert_to(operand, inner), axis, keepdims, name if inner is dtype else None)
    return found if inner is dtype else convert_to(found, dtype, name)


def _mean(operand: Value, axis: Axis, keepdims: bool, name: str | None = None, *, ddof: int = 0) -> Value:
    shape = array_of(operand)
    total = reduce_axes(operand, 0, ops.add, axis, keepdims)
    count = count_of(operand, axes_of(axis, shape), shape.dtype)
    if ddof:
        count = subtract(count, ddof)
    return ops.divide(total, like(count, total, 0), name=name)


@dressed
def var(operand: Value, axis: Axis = None, *, ddof: int = 0, keepdims: bool = False, name: str | None = None) -> Value:
    """Return the mean of the squared deviations from the mean along `axis`. `x.var()` does the same.

    The sum is divided by the number of elements minus `ddof`. Element types, `axis` and `keepdims` are as in xb.mean.
    Raises: element_type_unsupported for complex numbers; also the same errors as xb.sum.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[4])(xb.var)([1.0, 2.0, 3.0, 4.0])
    np.float32(1.25)

    Source: jax.numpy.var.
    """
    return convert_to(_variance(operand, axis, ddof, keepdims), as_float(array_of(operand).dtype), name)


@dressed
def std(operand: Value, axis: Axis = None, *, ddof: int = 0, keepdims: bool = False, name: str | None = None) -> Value:
    """Return the square root of xb.var, with the same arguments. `x.std()` does the same.

    Raises: the same errors as xb.var.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2, 2])(lambda x: x.std(axis=0))([[1.0, 2.0], [3.0, 8.0]])
    array([1., 3.], dtype=float32)

    Source: jax.numpy.std.
    """
    return convert_to(ops.sqrt(_variance(operand, axis, ddof, keepdims)), as_float(array_of(operand).dtype), name)


def _variance(operand: Value, axis: Axis, ddof: int, keepdims: bool) -> Value:
    """The variance in the type in which it is computed."""
    shape = array_of(operand)
    if shape.dtype.kind == "complex":
        refuse(
            "element_type_unsupported",
            f"operand is {shape}: xb.var does not support complex numbers",
            "for the variance that jax.numpy computes, use xb.var(xb.real(x)) + xb.var(xb.imag(x))",
        )
    operand = convert_to(operand, wide(as_float(shape.dtype)))
    away = subtract(operand, _mean(operand, axis, True))
    return _mean(ops.multiply(away, away), axis, keepdims, ddof=ddof)
