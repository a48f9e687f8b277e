"""Ops that draw random numbers: from the device's own generator, or as a pure function of a state."""

from __future__ import annotations

from typing import Literal

from shape_inference import Shape

from ..core.builder import Builder, Value
from ..core.op import op
from ..core.properties import Properties

__all__ = ["rng", "rng_bit_generator", "rng_get_and_update_state"]


@op(Properties("made", depends_on="random_state", states_shape=True, work="rule"))
def rng(a: Value, b: Value, *, shape: Shape, distribution: Literal["rng_uniform", "rng_normal"]) -> Value:
    """Return random numbers: uniform in [a, b), or normal with mean a and standard deviation b.

    Each device has its own generator, seeded by `seed=` of evaluate and execute: runs are repeatable, but their numbers
    differ from XLA's. A uniform distribution returns `a` if a = b, and numbers in (b, a] if a > b.
    Shapes: takes two scalars of the element type of `shape`: pred, integer or float for a uniform distribution, and
    float for a normal one.
    Raises: not_array, non_scalar, element_type_mismatch, element_type_unsupported or overflow.

    >>> import xbuild as xb
    >>> @xb.computation(xb.s32[()], xb.s32[()])
    ... def dice(a, b):
    ...     return xb.ops.rng(a, b, shape=xb.s32[100], distribution="rng_uniform")
    >>> thrown = xb.evaluate(dice, 1, 7, seed=4)
    >>> int(thrown.min()), int(thrown.max())
    (1, 6)
    >>> bool((thrown == xb.evaluate(dice, 1, 7, seed=4)).all())
    True

    Source: Operation Semantics, RngUniform and RngNormal.
    """
    ...


@op(Properties("mixed", depends_on="implementation", states_shape=True))
def rng_bit_generator(
    state: Value, *, algorithm: Literal["rng_default", "rng_three_fry", "rng_philox"], shape: Shape
) -> Value:
    """Return the next state and random bits, as a pure function of the state. The bits are the same as on XLA:CPU.

    ThreeFry is 2x32 with 20 rounds, and Philox, the default, is 4x32 with 10 rounds. A type narrower than 32 bits gets
    the lowest bits of a separate 32-bit word for each element. The bits have the unsigned type that is as wide as the
    type of `shape`, as XLA infers: u32 for f32 and s32. To read them as the type of `shape`, use xb.bitcast_convert.
    Shapes: the state is u64[2] (key and counter); for Philox it may also be u64[3] (key and a counter of 128 bits).
    These states may also be given as 32-bit halves, u32[4] and u32[6]. Returns the tuple of the next state and an array
    of the unsigned type with the extents of `shape`.
    Raises: not_array, element_type_unsupported, rank_mismatch, dimension_mismatch or overflow.

    >>> import xbuild as xb
    >>> @xb.computation(xb.u32[4])
    ... def bits(state):
    ...     return xb.ops.rng_bit_generator(state, algorithm="rng_three_fry", shape=xb.u32[2])
    >>> xb.evaluate(bits, [1, 2, 3, 4])
    (array([1, 2, 4, 4], dtype=uint32), array([1576285164, 2249660814], dtype=uint32))

    Source: xla_builder.h, RngBitGenerator; StableHLO, rng_bit_generator.
    """
    ...


@op(Properties("made", depends_on="random_state", states_shape=True))
def rng_get_and_update_state(builder: Builder, *, delta: int, shape: Shape) -> Value:
    """Return the device's 128-bit random state, low word first, then advance it by `delta`.

    The state starts at the constant that XLA:CPU uses. Its high word contains the run's `seed=` and the number of the
    device.
    Shapes: the result is u64[2].
    Raises: element_type_unsupported or dimension_mismatch.

    >>> import xbuild as xb
    >>> builder = xb.Builder("states")
    >>> first = xb.ops.rng_get_and_update_state(builder, delta=5, shape=xb.u64[2])
    >>> second = xb.ops.rng_get_and_update_state(builder, delta=5, shape=xb.u64[2])
    >>> xb.evaluate(builder.build(second - first))
    array([5, 0], dtype=uint64)

    Source: HloOpcode, rng-get-and-update-state.
    """
    ...
