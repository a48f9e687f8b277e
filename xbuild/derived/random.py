"""Convenience forms of random ops: XlaBuilder's RngUniform, RngNormal and RngBitGenerator."""

from __future__ import annotations

from typing import Any, Literal

from shape_inference import Shape, refuse

from .. import ops
from ..core.builder import Builder, Value
from .support import as_values, dressed

__all__ = ["rng_bit_generator", "rng_normal", "rng_uniform"]


@dressed
def rng_uniform(a: Any, b: Any, shape: Shape, *, builder: Builder | None = None, name: str | None = None) -> Value:
    """Return an array of random numbers that are uniformly distributed in [a, b). The bounds may be numbers; if both
    are numbers, pass `builder`.

    Raises: the same errors as xb.ops.rng.

    >>> import xbuild as xb
    >>> builder = xb.Builder("noise")
    >>> noise = xb.evaluate(builder.build(xb.rng_uniform(0.0, 1.0, xb.f32[1000], builder=builder)), seed=7)
    >>> bool(0.0 <= noise.min() < 0.01 < 0.99 < noise.max() < 1.0)
    True

    Source: Operation Semantics, RngUniform.
    """
    first, last = as_values((a, b), (_array(shape).dtype,) * 2, builder)
    return ops.rng(first, last, shape=shape, distribution="rng_uniform", name=name)


@dressed
def rng_normal(mu: Any, sigma: Any, shape: Shape, *, builder: Builder | None = None, name: str | None = None) -> Value:
    """Return an array of normally distributed random numbers. The mean mu and the standard deviation sigma may be
    numbers.

    Raises: the same errors as xb.ops.rng.

    >>> import xbuild as xb
    >>> builder = xb.Builder("noise")
    >>> noise = xb.evaluate(builder.build(xb.rng_normal(5.0, 2.0, xb.f32[1000], builder=builder)), seed=7)
    >>> bool(4.8 < noise.mean() < 5.2 and 1.9 < noise.std() < 2.1)
    True

    Source: Operation Semantics, RngNormal.
    """
    mean, deviation = as_values((mu, sigma), (_array(shape).dtype,) * 2, builder)
    return ops.rng(mean, deviation, shape=shape, distribution="rng_normal", name=name)


def _array(shape: Any) -> Shape:
    if not isinstance(shape, Shape):
        refuse("invalid_attribute", f"shape={shape!r}: expected the shape of an array, such as xb.f32[2, 3]")
    return shape


def rng_bit_generator(
    state: Value,
    shape: Shape,
    algorithm: Literal["rng_default", "rng_three_fry", "rng_philox"] = "rng_default",
    *,
    name: str | None = None,
) -> Value:
    """Return the next state and random bits for the given shape, as a pure function of the state.

    For f32 and s32, the bits are u32.
    Raises: the same errors as xb.ops.rng_bit_generator.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.u64[2])(lambda state: xb.rng_bit_generator(state, xb.u32[2])), [1, 2])
    (array([1, 3], dtype=uint64), array([2100602697, 2847456232], dtype=uint32))

    Source: xla_builder.h, RngBitGenerator.
    """
    return ops.rng_bit_generator(state, algorithm=algorithm, shape=shape, name=name)
