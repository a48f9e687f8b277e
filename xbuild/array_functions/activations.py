"""Activation functions by the names of jax.nn, each applied to every element."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import le, multiply, select
from ..derived.support.dressing import dressed
from .folding import array_of, converted, floats, full, widened

__all__ = [
    "elu", "gelu", "leaky_relu", "log_sigmoid", "relu", "relu6", "sigmoid", "silu", "softplus", "swish",
]  # fmt: skip


def _rounded_once(formula: Callable[..., Value]) -> Callable[..., Value]:
    """Wrap a formula of f32 and f64 as a function of all floats: narrower ones are computed in f32 and rounded once."""

    @dressed
    @functools.wraps(formula)
    def form(operand: Value, *arguments: Any, name: str | None = None, **keywords: Any) -> Value:
        wide, dtype = widened(operand)
        return converted(formula(wide, *arguments, **keywords), dtype, name)

    named = inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="str | None")
    given = inspect.signature(formula)
    form.__signature__ = given.replace(parameters=[*given.parameters.values(), named])  # type: ignore[attr-defined]
    return form


@dressed
def relu(operand: Value, *, name: str | None = None) -> Value:
    """Each element, or 0 where it is negative; NaN stays. The derivative at 0 is 0.

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
    """Each element, but 0 where it is negative and 6 where it is larger; NaN stays. At 0 and 6 the derivative is 0.

    Raises: as xb.relu.

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
    """Each element, multiplied by `negative_slope` where it is negative.

    Raises: not_array; element_type_unsupported for what is no float.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(lambda x: xb.leaky_relu(x, 0.5))([-1.0, 2.0])
    array([-0.5,  2. ], dtype=float32)

    Source: jax.nn.leaky_relu.
    """
    floats(operand)
    return select(operand >= 0, operand, multiply(operand, negative_slope), name=name)


@_rounded_once
def elu(operand: Value, alpha: float = 1.0) -> Value:
    """Each element, but alpha (exp(x) - 1) where it is negative.

    Raises: not_array; element_type_unsupported for what is no float.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(xb.elu)([-100.0, 2.0])
    array([-1.,  2.], dtype=float32)

    Source: jax.nn.elu.
    """
    below = select(operand > 0, full(operand, 0), operand)
    return select(operand > 0, operand, alpha * ops.exponential_minus_one(below))


@_rounded_once
def gelu(operand: Value, approximate: bool = True) -> Value:
    """x times the normal distribution function of x; by tanh where `approximate`, as jax.nn has it, otherwise by erf.

    Raises: not_array; element_type_unsupported for what is no float.

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
    """1 / (1 + exp(-x)), which HLO calls logistic.

    Raises: as xb.ops.logistic.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(xb.sigmoid)([0.0, 100.0])
    array([0.5, 1. ], dtype=float32)

    Source: jax.nn.sigmoid.
    """
    return ops.logistic(operand, name=name)


@_rounded_once
def silu(operand: Value) -> Value:
    """x times the sigmoid of x; `xb.swish` is another name.

    Raises: not_array; element_type_unsupported for what is no float.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(xb.silu)([0.0, 100.0])
    array([  0., 100.], dtype=float32)

    Source: jax.nn.silu.
    """
    return operand * ops.logistic(operand)


swish = silu


@_rounded_once
def softplus(operand: Value) -> Value:
    """log(1 + exp(x)), without overflow.

    Raises: not_array; element_type_unsupported for what is no float.

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
    """The logarithm of the sigmoid, without underflow.

    Raises: not_array; element_type_unsupported for what is no float.

    >>> import xbuild as xb
    >>> xb.computation(xb.f32[2])(xb.log_sigmoid)([-200.0, 200.0])
    array([-200.,   -0.], dtype=float32)

    Source: jax.nn.log_sigmoid.
    """
    return -_softplus(-operand)
