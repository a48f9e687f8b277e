"""Values of random ops; ops that use the device's random state are functions of this state, which a plan calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_inference import Shape
from shape_inference.types import PRIMITIVES
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

from ..compiler.lines import Path
from ..kernels.random_bits import philox, three_fry
from ..rules import compute, planned

if TYPE_CHECKING:
    from ..compiler.emit import Emitter
    from ..compiler.requests import Expr
    from ..kernels.random_bits import RandomState


def rng(random_state: RandomState, a: Array, b: Array, *, shape: Shape, distribution: str) -> Array:
    """Random numbers from the device's generator."""
    if distribution == "rng_normal":
        numbers = random_state.generator.standard_normal(shape.dims) * np.float64(b) + np.float64(a)
        return np.asarray(numbers).astype(shape.dtype.dtype)
    if shape.dtype.is_float:
        return _draw_uniform(random_state.generator, a, b, shape)
    return _draw_integers(random_state.generator, int(a), int(b), shape)


def _draw_uniform(generator: np.random.Generator, a: Array, b: Array, shape: Shape) -> Array:
    """Uniform numbers in [a, b), computed in f64; a number that rounds to b is replaced by its neighbour towards a."""
    place = np.asarray(generator.random(shape.dims))
    first, last = np.float64(a), np.float64(b)
    numbers = (first * (1 - place) + last * place).astype(shape.dtype.dtype)
    if first == last:
        return np.full(shape.dims, np.add(a, a.dtype.type(0)), shape.dtype.dtype)
    return np.where(numbers == b, np.nextafter(b, a), numbers)


def _draw_integers(generator: np.random.Generator, a: int, b: int, shape: Shape) -> Array:
    """Uniform integers from a up or down to b, without b, computed modulo 2^64."""
    if a == b:
        return np.full(shape.dims, a, shape.dtype.dtype)
    steps = np.asarray(generator.integers(0, abs(b - a), shape.dims, np.uint64))
    numbers = np.uint64(a % 2**64) + steps if a < b else np.uint64(a % 2**64) - steps
    return numbers.view(np.int64).astype(shape.dtype.dtype)


def rng_get_and_update_state(random_state: RandomState, *, delta: int, shape: Shape) -> Array:
    """The device's state before it is advanced by `delta`."""
    state = random_state.advanced(delta)
    return np.array([state % 2**64, state >> 64], np.uint64)


@compute
def rng_bit_generator(state: Array, *, algorithm: str, shape: Shape) -> tuple[Array, Array]:
    generate = three_fry if algorithm == "rng_three_fry" else philox
    words = tuple(map(int, np.ascontiguousarray(state).view(np.uint64)))
    following, bits = generate(words, shape.dims, 64 if shape.dtype.bits == 64 else 32)
    return np.array(following, np.uint64).view(state.dtype), _low_bits(bits, shape)


def _low_bits(words: Array, shape: Shape) -> Any:
    """The lowest bits of each word, in the unsigned type of the result's width."""
    width = shape.dtype.bits
    return words.astype(np.dtype(f"u{max(width, 8) // 8}")).astype(PRIMITIVES[f"u{width}"].dtype, copy=False)


def _emit_draw(draw: Callable[..., Any]) -> Callable[..., Any]:
    """The plan rule of an op that draws from the device's random state."""

    def emit(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
        from ..compiler.emit import assign_with_scalars, call_text

        call = call_text(emitter, draw, instruction, operands, "device.random_state")
        return assign_with_scalars(emitter, instruction.shape, call, path)

    return emit


planned.enter("rng", _emit_draw(rng))
planned.enter("rng_get_and_update_state", _emit_draw(rng_get_and_update_state))
