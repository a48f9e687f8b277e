"""Activation functions, softmax and one-hot vectors by the names of jax.nn."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from shape_inference import PrimitiveType, Shape, f32, primitive_type, refuse

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import divide, eq, le, multiply, select, subtract
from ..derived.support import axis_of, dressed, into
from .reductions import Axis, array_of, convert_to, extremum, floats, full, reduce_axes, widen_operand

__all__ = [
    "elu",
    "gelu",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "one_hot",
    "relu",
    "relu6",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "swish",
]


# ----------------------------------------------------------------------------
# Activation functions by the names of jax.nn, each applied to every element.


def _rounded_once(formula: Callable[..., Value]) -> Callable[..., Value]:
    """Wrap a formula of f32 and f64 as a function of all floats: narrower ones are computed in f32 and rounded once."""

    @dressed
    @functools.wraps(formula)
    def form(operand: Value, *arguments: Any, name: str | None = None, **keywords: Any) -> Value:
        wide, dtype = widen_operand(operand)
        return convert_to(formula(wide, *arguments, **keywords), dtype, name)

    named = inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="str | None")
    given = inspect.signature(formula)
    form.__signature__ = given.replace(parameters=[*given.parameters.values(), named])  # type: ignore[attr-defined]
    return form


@dressed
def relu(operand: Value, *, name: str | None = None) -> Value:
    """Return each element, or 0 if it is negative. NaN stays NaN. The derivative at 0 is 0.

    Raises: not_array; element_type_unsupported for complex numbers.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[3])(xb.relu)([-1.0, 0.0, 2.0])
    array([0., 0., 2.], dtype=float32)

    Source: jax.nn.relu.
    """
    array_of(operand)
    return select(le(operand, full(operand, 0)), full(operand, 0), operand, name=name)


@dressed
def relu6(operand: Value, *, name: str | None = None) -> Value:
    """Clamp each element to 0..6. NaN stays NaN. The derivative at 0 and at 6 is 0.

    Raises: the same errors as xb.relu.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[3])(xb.relu6)([-1.0, 2.0, 7.0])
    array([0., 2., 6.], dtype=float32)

    Source: jax.nn.relu6.
    """
    floats(operand)
    below_six = select(operand >= 6, full(operand, 6), operand)
    return select(operand <= 0, full(operand, 0), below_six, name=name)


@dressed
def leaky_relu(operand: Value, negative_slope: float = 0.01, *, name: str | None = None) -> Value:
    """Multiply each negative element by `negative_slope`, and return all other elements unchanged.

    Raises: not_array; element_type_unsupported if the element type is not a float.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(lambda x: xb.leaky_relu(x, 0.5))([-1.0, 2.0])
    array([-0.5,  2. ], dtype=float32)

    Source: jax.nn.leaky_relu.
    """
    floats(operand)
    return select(operand >= 0, operand, multiply(operand, negative_slope), name=name)


@_rounded_once
def elu(operand: Value, alpha: float = 1.0) -> Value:
    """Return each element x, or alpha (exp(x) - 1) if x is negative.

    Raises: not_array; element_type_unsupported if the element type is not a float.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(xb.elu)([-100.0, 2.0])
    array([-1.,  2.], dtype=float32)

    Source: jax.nn.elu.
    """
    below = select(operand > 0, full(operand, 0), operand)
    return select(operand > 0, operand, alpha * ops.exponential_minus_one(below))


@_rounded_once
def gelu(operand: Value, approximate: bool = True) -> Value:
    """Return x times the cumulative distribution function of the standard normal distribution at x.

    It is computed with tanh if `approximate` is true, as in jax.nn, and with erf otherwise.
    Raises: not_array; element_type_unsupported if the element type is not a float.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[3])(xb.gelu)([-10.0, 0.0, 10.0])
    array([-0.,  0., 10.], dtype=float32)

    Source: jax.nn.gelu.
    """
    if approximate:
        inner = math.sqrt(2 / math.pi) * (operand + 0.044715 * (operand * operand * operand))
        return operand * (0.5 * (1.0 + ops.tanh(inner)))
    return 0.5 * operand * (1.0 + ops.erf(operand / math.sqrt(2)))


@dressed
def sigmoid(operand: Value, *, name: str | None = None) -> Value:
    """Return 1 / (1 + exp(-x)), which HLO calls logistic.

    Raises: the same errors as xb.ops.logistic.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(xb.sigmoid)([0.0, 100.0])
    array([0.5, 1. ], dtype=float32)

    Source: jax.nn.sigmoid.
    """
    return ops.logistic(operand, name=name)


@_rounded_once
def silu(operand: Value) -> Value:
    """Return x times the sigmoid of x. `xb.swish` is another name.

    Raises: not_array; element_type_unsupported if the element type is not a float.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(xb.silu)([0.0, 100.0])
    array([  0., 100.], dtype=float32)

    Source: jax.nn.silu.
    """
    return operand * ops.logistic(operand)


swish = silu


@_rounded_once
def softplus(operand: Value) -> Value:
    """Return log(1 + exp(x)), without overflow.

    Raises: not_array; element_type_unsupported if the element type is not a float.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(xb.softplus)([-200.0, 200.0])
    array([  0., 200.], dtype=float32)

    Source: jax.nn.softplus.
    """
    return _softplus(operand)


def _softplus(operand: Value) -> Value:
    """The logarithm of 1 + exp(x), as x + log(1 + exp(-x)) where x is positive, so that no exponent is."""
    zero, is_positive = full(operand, 0), operand > 0
    above, below = select(is_positive, operand, zero), select(is_positive, zero, operand)
    return above + ops.log_plus_one(ops.exponential(select(is_positive, -above, below)))


@_rounded_once
def log_sigmoid(operand: Value) -> Value:
    """Return the logarithm of the sigmoid, without underflow.

    Raises: not_array; element_type_unsupported if the element type is not a float.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(xb.log_sigmoid)([-200.0, 200.0])
    array([-200.,   -0.], dtype=float32)

    Source: jax.nn.log_sigmoid.
    """
    return -_softplus(-operand)


# ----------------------------------------------------------------------------
# Softmax and its like, and one-hot vectors, by the names of jax.nn.


@dressed
def softmax(operand: Value, axis: Axis = -1, *, name: str | None = None) -> Value:
    """Return the exponentials of the elements, divided by their sum along `axis` (default: the last dimension).

    The largest element is subtracted before the exponentials. Floats narrower than f32 are computed in f32 and rounded
    once.
    Raises: dimension_out_of_range; element_type_unsupported if the element type is not a float; non_positive if there
    are no elements.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2, 2])(xb.softmax)([[1.0, 1.0], [0.0, 1000.0]])
    array([[0.5, 0.5],
           [0. , 1. ]], dtype=float32)

    Source: jax.nn.softmax.
    """
    wide, dtype = widen_operand(operand)
    powers = ops.exponential(subtract(wide, extremum(wide, -1, axis, True)))
    total = reduce_axes(powers, 0, ops.add, axis, True)
    return convert_to(divide(powers, total), dtype, name)


@dressed
def log_softmax(operand: Value, axis: Axis = -1, *, name: str | None = None) -> Value:
    """Return the logarithm of xb.softmax, but without underflow: each element minus the logsumexp along `axis`.

    Raises: the same errors as xb.softmax.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(xb.log_softmax)([0.0, 100.0])
    array([-100.,    0.], dtype=float32)

    Source: jax.nn.log_softmax.
    """
    wide, dtype = widen_operand(operand)
    away = subtract(wide, extremum(wide, -1, axis, True))
    total = reduce_axes(ops.exponential(away), 0, ops.add, axis, True)
    return convert_to(subtract(away, ops.log(total)), dtype, name)


@dressed
def logsumexp(operand: Value, axis: Axis = None, *, keepdims: bool = False, name: str | None = None) -> Value:
    """Return the logarithm of the sum of the exponentials along `axis`. `axis` and `keepdims` are as in xb.sum.

    The largest element is subtracted before the exponentials, so that nothing overflows. The result is -inf if all
    elements are -inf. Floats narrower than f32 are computed in f32 and rounded once.
    Raises: the same errors as xb.softmax.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(xb.logsumexp)([1000.0, 1000.0])
    np.float32(1000.69...)

    Source: jax.nn.logsumexp.
    """
    wide, dtype = widen_operand(operand)
    largest = extremum(wide, -1, axis, True)
    base = select(ops.is_finite(largest), largest, full(largest, 0))
    total = reduce_axes(ops.exponential(subtract(wide, base)), 0, ops.add, axis, keepdims)
    place = base if keepdims else ops.reshape(base, new_sizes=array_of(total).dims)
    return convert_to(ops.add(ops.log(total), place), dtype, name)


@dressed
def one_hot(
    operand: Value, num_classes: int, *, dtype: PrimitiveType | Any = f32, axis: int = -1, name: str | None = None
) -> Value:
    """For each integer, return a vector of `num_classes` elements with 1 at that index and 0 elsewhere.

    The vectors lie along a new dimension at position `axis`. An integer outside 0..num_classes-1 gives a vector of
    zeros.
    Raises: dimension_out_of_range or negative_size; element_type_unsupported if the element type is not an integer.

    >>> import xbuild as xb
    >>> xb.computation(xb.s32[2])(lambda i: xb.one_hot(i, 3))([2, 0])
    array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)

    Source: jax.nn.one_hot.
    """
    shape = array_of(operand)
    if not shape.dtype.is_integer:
        refuse("element_type_unsupported", f"operand is {shape}; expected an integer element type")
    rank = shape.rank + 1
    place = axis_of(axis, shape, rank=rank)
    sizes = (*shape.dims[:place], num_classes, *shape.dims[place:])
    spread = into(operand, sizes, tuple(n for n in range(rank) if n != place))
    places = ops.iota(operand.builder, shape=Shape(shape.dtype, sizes), iota_dimension=place)
    return ops.convert(eq(spread, places), new_element_type=primitive_type(dtype), name=name)
