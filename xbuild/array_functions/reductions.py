"""Reductions by NumPy's names: sum, prod, amax, amin, any, all, argmax, argmin; they take `axis` and `keepdims`."""

from __future__ import annotations

from collections.abc import Callable

from shape_inference import Shape, pred, s32

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import eq, ne, select
from ..derived.support.axes import axis_of
from ..derived.support.dressing import dressed
from ..derived.support.extents import into
from .folding import Axis, array_of, converted, extremum, folded, full, kept, number, wide

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "prod", "sum"]


@dressed
def sum(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """The sum of the elements along `axis` (an int, several, or None for all; negative ones count from the last).

    Of floats narrower than f32 the sum is computed in f32 and rounded once; the sum of narrower integers and of pred
    is s32 or u32, as in jax.numpy. `keepdims` leaves the folded dimensions, with extent 1.
    Raises: not_array; dimension_out_of_range; duplicate_dimension.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2, 3])
    ... def sums(x):
    ...     return x.sum(), xb.sum(x, axis=-1)
    >>> sums([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    (np.float32(21.0), array([ 6., 15.], dtype=float32))

    Source: jax.numpy.sum; Operation Semantics, Reduce.
    """
    return _accumulated(operand, 0, ops.add, axis, keepdims, name)


@dressed
def prod(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """The product of the elements along `axis`; element types, `axis` and `keepdims` are those of xb.sum.

    Raises: as xb.sum.

    >>> import xbuild as xb
    >>> xb.computation(xb.s32[4])(xb.prod)([1, 2, 3, 4])
    np.int32(24)

    Source: jax.numpy.prod; Operation Semantics, Reduce.
    """
    return _accumulated(operand, 1, ops.multiply, axis, keepdims, name)


def _accumulated(
    operand: Value, init: int, to_apply: Callable[..., Value], axis: Axis, keepdims: bool, name: str | None
) -> Value:
    """A sum or product in the wide type of the operand; of floats it is rounded to the operand's own type."""
    dtype = array_of(operand).dtype
    inner = wide(dtype)
    if not dtype.is_float or inner is dtype:
        return folded(converted(operand, inner), init, to_apply, axis, keepdims, name)
    return converted(folded(converted(operand, inner), init, to_apply, axis, keepdims), dtype, name)


@dressed
def amax(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """The largest element along `axis`, NaN where one is NaN; `x.max()` of a value. xb.max compares two operands.

    `axis` and `keepdims` are those of xb.sum.
    Raises: non_positive where there is no element; element_type_unsupported for complex numbers; as xb.sum.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2, 2])(lambda x: x.max(axis=0))([[1.0, 5.0], [3.0, 2.0]])
    array([3., 5.], dtype=float32)

    Source: jax.numpy.max; Operation Semantics, Reduce.
    """
    return extremum(operand, -1, axis, keepdims, name)


@dressed
def amin(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """The smallest element along `axis`, NaN where one is NaN; `x.min()` of a value. xb.min compares two operands.

    `axis` and `keepdims` are those of xb.sum.
    Raises: as xb.amax.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2, 2])(lambda x: x.min(axis=0))([[1.0, 5.0], [3.0, 2.0]])
    array([1., 2.], dtype=float32)

    Source: jax.numpy.min; Operation Semantics, Reduce.
    """
    return extremum(operand, 1, axis, keepdims, name)


@dressed
def any(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """Whether an element along `axis` is true, or not zero, as pred; `axis` and `keepdims` are those of xb.sum.

    Raises: as xb.sum.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[3])(lambda x: xb.any(x > 2.0))([1.0, 2.0, 3.0])
    np.True_

    Source: jax.numpy.any; XlaBuilder's math library, Any.
    """
    return folded(_truths(operand), False, ops.or_, axis, keepdims, name)


@dressed
def all(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """Whether all elements along `axis` are true, or not zero, as pred; `axis` and `keepdims` are those of xb.sum.

    Raises: as xb.sum.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[3])(lambda x: (x > 2.0).all())([1.0, 2.0, 3.0])
    np.False_

    Source: jax.numpy.all; Operation Semantics, Reduce.
    """
    return folded(_truths(operand), True, ops.and_, axis, keepdims, name)


def _truths(operand: Value) -> Value:
    return operand if array_of(operand).dtype is pred else ne(operand, full(operand, 0))


@dressed
def argmax(operand: Value, axis: int | None = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """The place of the largest element along `axis` (of all elements in order, without one), as s32.

    The first of several equal ones; the first NaN where there is one.
    Raises: non_positive where there is no element; element_type_unsupported for complex numbers; not_array;
    dimension_out_of_range.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2, 3])(lambda x: xb.argmax(x, axis=1))([[1.0, 5.0, 2.0], [7.0, 0.0, 7.0]])
    array([1, 0], dtype=int32)

    Source: jax.numpy.argmax; XlaBuilder's math library, ArgMax.
    """
    return _place(operand, -1, axis, keepdims, name)


@dressed
def argmin(operand: Value, axis: int | None = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """The place of the smallest element along `axis` (of all elements in order, without one), as s32.

    The first of several equal ones; the first NaN where there is one.
    Raises: as xb.argmax.

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
    return kept(found, whole, tuple(range(whole.rank)) if axis is None else (dim,), name) if keepdims else found
