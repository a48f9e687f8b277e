"""Mean, variance and standard deviation along `axis`."""

from __future__ import annotations

from shape_inference import refuse

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import subtract
from ..derived.support.axes import axes_of
from ..derived.support.dressing import dressed
from ..derived.support.extents import like
from .folding import Axis, array_of, as_float, converted, count_of, folded, wide

__all__ = ["mean", "std", "var"]


@dressed
def mean(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """The mean of the elements along `axis`; of integers and pred as f32, of s64 and u64 as f64.

    Floats narrower than f32 are computed in f32 and rounded once. `axis` and `keepdims` are those of xb.sum. The mean
    of no elements is NaN.
    Raises: as xb.sum.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2, 3])(lambda x: x.mean(axis=-1))([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    array([2., 5.], dtype=float32)

    Source: jax.numpy.mean.
    """
    dtype = as_float(array_of(operand).dtype)
    inner = wide(dtype) if dtype.is_float else dtype
    found = _mean(converted(operand, inner), axis, keepdims, name if inner is dtype else None)
    return found if inner is dtype else converted(found, dtype, name)


def _mean(operand: Value, axis: Axis, keepdims: bool, name: str | None = None, *, ddof: int = 0) -> Value:
    shape = array_of(operand)
    total = folded(operand, 0, ops.add, axis, keepdims)
    count = count_of(operand, axes_of(axis, shape), shape.dtype)
    if ddof:
        count = subtract(count, ddof)
    return ops.divide(total, like(count, total, 0), name=name)


@dressed
def var(operand: Value, axis: Axis = None, *, ddof: int = 0, keepdims: bool = False, name: str | None = None) -> Value:
    """The mean of the squared distances from the mean along `axis`; `x.var()` of a value.

    The sum is divided by the number of elements less `ddof`. Element types, `axis` and `keepdims` are those of xb.mean.
    Raises: element_type_unsupported for complex numbers; as xb.sum.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[4])(xb.var)([1.0, 2.0, 3.0, 4.0])
    np.float32(1.25)

    Source: jax.numpy.var.
    """
    return converted(_variance(operand, axis, ddof, keepdims), as_float(array_of(operand).dtype), name)


@dressed
def std(operand: Value, axis: Axis = None, *, ddof: int = 0, keepdims: bool = False, name: str | None = None) -> Value:
    """The square root of xb.var, with the same arguments; `x.std()` of a value.

    Raises: as xb.var.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2, 2])(lambda x: x.std(axis=0))([[1.0, 2.0], [3.0, 8.0]])
    array([1., 3.], dtype=float32)

    Source: jax.numpy.std.
    """
    return converted(ops.sqrt(_variance(operand, axis, ddof, keepdims)), as_float(array_of(operand).dtype), name)


def _variance(operand: Value, axis: Axis, ddof: int, keepdims: bool) -> Value:
    """The variance in the type in which it is computed."""
    shape = array_of(operand)
    if shape.dtype.kind == "complex":
        refuse(
            "element_type_unsupported",
            f"operand is {shape}: the variance of complex numbers is not defined here",
            "xb.var(xb.real(x)) + xb.var(xb.imag(x)) is that of jax.numpy",
        )
    operand = converted(operand, wide(as_float(shape.dtype)))
    away = subtract(operand, _mean(operand, axis, True))
    return _mean(ops.multiply(away, away), axis, keepdims, ddof=ddof)
