"""Floats that are made of the bits of others: refused where a derivative is lost, and let through where it is zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate

DTYPES = {xb.f64: (xb.s64, 52), xb.f32: (xb.s32, 23), xb.f16: (xb.s16, 10), xb.bf16: (xb.s16, 7)}


def bits(x: xb.Value) -> xb.Value:
    return xb.bitcast_convert(x, DTYPES[x.shape.dtype][0])


def through_bits(x: xb.Value) -> xb.Value:
    return xb.bitcast_convert(bits(x), x.shape.dtype)


def doubled(x: xb.Value) -> xb.Value:
    """2 x, by one more in the exponent."""
    return xb.bitcast_convert(bits(x) + (1 << DTYPES[x.shape.dtype][1]), x.shape.dtype)


def truncated(x: xb.Value) -> xb.Value:
    """Some of the mantissa is left."""
    kept = xb.ops.and_(bits(x), xb.constant(x.builder, -4, DTYPES[x.shape.dtype][0]))
    return xb.bitcast_convert(kept, x.shape.dtype)


def in_a_loop(x: xb.Value) -> xb.Value:
    def body(state: xb.Value) -> Any:
        i, n, held = state
        return i + 1, held, n

    zero = xb.constant(x.builder, 0, DTYPES[x.shape.dtype][0])
    found = xb.while_((xb.constant(x.builder, 0), zero, bits(x)), lambda state: xb.lt(state[0], 3), body)
    return xb.bitcast_convert(found[1], x.shape.dtype)


def in_a_branch(x: xb.Value) -> xb.Value:
    return xb.bitcast_convert(xb.select(xb.gt(x, 0.0), bits(x), 0), x.shape.dtype)


def as_halves(x: xb.Value) -> xb.Value:
    dtype = x.shape.dtype
    half = {64: xb.f32, 32: xb.bf16, 16: xb.f8e5m2}[dtype.bits]
    return xb.convert(xb.reduce(xb.bitcast_convert(x, half), 0.0, xb.add), new_element_type=dtype)


def exponent(x: xb.Value) -> xb.Value:
    """2 ** floor(log2(abs(x))), by a mask."""
    dtype, (integer, mantissa) = x.shape.dtype, DTYPES[x.shape.dtype]
    mask = (1 << (integer.bits - 1)) - (1 << mantissa)
    return xb.bitcast_convert(xb.ops.and_(bits(x), xb.constant(x.builder, mask, integer)), dtype)


def shifted(x: xb.Value) -> xb.Value:
    """The same, by shifts."""
    integer, mantissa = DTYPES[x.shape.dtype]
    count = xb.constant(x.builder, mantissa, integer)
    found = xb.ops.shift_left(xb.ops.shift_right_logical(bits(x), count), count)
    return xb.bitcast_convert(found, x.shape.dtype)


def by_sign(x: xb.Value) -> xb.Value:
    return xb.select(xb.lt(bits(x), 0), x * -3.0, x)


def as_number(x: xb.Value) -> xb.Value:
    return xb.convert(bits(x), new_element_type=x.shape.dtype)


def same_type(x: xb.Value) -> xb.Value:
    return xb.bitcast_convert(x * x, x.shape.dtype)


REFUSED = [through_bits, doubled, truncated, in_a_loop, in_a_branch, as_halves]
SLOPES: dict[Any, float] = {exponent: 0, shifted: 0, by_sign: 1, as_number: 0, same_type: 3}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", REFUSED)
def test_bits_that_hold_a_derivative_are_refused(function: Any, dtype: Any) -> None:
    program = xb.computation(dtype[()])(function)
    for derivative in (xb.grad, xb.vjp, xb.jvp):
        with pytest.raises(xb.ShapeError, match="bits of a float that depends on the inputs") as caught:
            derivative(program)
        assert caught.value.kind == "not_differentiable"
        for part in (
            "bitcast-convert %bitcast-convert",
            "test_bits.py:",
            "new_element_type",
            "hint: use arithmetic instead",
            "argnums",
        ):
            assert part in str(caught.value)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", SLOPES)
def test_bits_without_a_derivative_add_nothing(function: Any, dtype: Any) -> None:
    program = xb.computation(dtype[()])(function)
    one = np.ones((), dtype.dtype)
    x = np.asarray(1.5, dtype.dtype)
    assert float(evaluate(xb.grad(program), x)) == SLOPES[function]
    assert float(evaluate(xb.jvp(program), x, one)[0]) == SLOPES[function]


def test_bits_of_other_parameters_are_let_through() -> None:
    program = xb.computation(xb.f32[()], xb.f32[()])(lambda x, y: x * through_bits(y))
    assert evaluate(xb.grad(program), 2.0, 3.0) == 3
    with pytest.raises(xb.ShapeError, match="bits of a float that depends on the inputs"):
        xb.grad(program, argnums=1)


def test_functions_of_jax() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    x = np.float32(1.5)
    for function in (lambda v: jnp.ldexp(v, 2), lambda v: jnp.frexp(v)[0]):
        module = xb.from_jax(function, x)
        for derivative in (xb.vjp, xb.jvp):
            with pytest.raises(xb.ShapeError, match="bits of a float that depends on the inputs"):
                derivative(module)
    for function in (
        lambda v: jnp.where(jnp.isnan(v) | jnp.signbit(v), 0.0, v * v),
        lambda v: v * jax.random.normal(jax.random.key(0), ()),
        lambda v: v * jnp.frexp(v)[1].astype(jnp.float32),
        lambda v: v * jax.random.uniform(jax.random.key(1), (), minval=v, maxval=4.0),
        lambda v: jnp.copysign(v, -2.0),
    ):
        expected = jax.grad(function)(x)
        np.testing.assert_allclose(evaluate(xb.grad(xb.from_jax(function, x)).entry, x), expected, rtol=1e-6)
