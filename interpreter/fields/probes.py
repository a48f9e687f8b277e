"""Inputs of runs in floating point: ordinary, negative, zero, tied, and at the limits of a type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from attrs import define, frozen

from shape_inference import Shape
from shape_inference.dims import limits
from xbuild.core.attributes import Array

from . import draws

Draw: TypeAlias = Callable[[Shape, np.random.Generator], Any]
Numbers: TypeAlias = Callable[[Shape, np.random.Generator], Array]

FEW = 256
"""Inputs of fewer numbers in total are drawn several times, since each draw shows few cases."""
TIMES = 3
SMALL_LITERAL, MOST_LITERAL = 4.0, 1e6
"""The largest literals around which inputs are ordinary ones, and around which inputs are drawn at all."""


@frozen(eq=False)
class Probe:
    """A kind of inputs: its name, and how an array is drawn.

    `shows_overflow`: whether a NaN or infinity of only one program counts as a difference. `shows_gaps`: whether other
    differences count. Neither does if inputs are so large or tiny that overflow, underflow and cancellation explain
    both. `of_integers`: only results that are integers or truth values are compared. `is_confirmed`: a NaN or infinity
    counts only if f64 has one too that the rounding of literals does not explain, and a gap only if it is not lost
    beside 1.
    """

    name: str
    draw: Draw
    shows_overflow: bool = True
    shows_gaps: bool = True
    of_integers: bool = False
    is_confirmed: bool = False


def _draw(numbers: Numbers, shape: Shape, random: np.random.Generator) -> Any:
    """An array of a type: floats from `numbers`, the nearest integers, or the parts of complex numbers."""
    kind = shape.dtype.kind
    if kind == "pred":
        return draws.field_array(shape, random)
    found = numbers(shape, random)
    if kind == "complex":
        found = found + 1j * numbers(shape, random)
    elif shape.dtype.is_integer:
        low, high = limits(shape.dtype)
        found = np.clip(np.rint(np.clip(found, -_MOST_INTEGER, _MOST_INTEGER)), low, high)
    return np.asarray(found).astype(shape.dtype.dtype)


_MOST_INTEGER = 100
"""Integers may be numbers of trips and indices."""


def _normal(shape: Shape, random: np.random.Generator, scale: float = 1.0) -> Array:
    return np.asarray(random.standard_normal(shape.dims) * scale)


def _signed(shape: Shape, random: np.random.Generator, sign: float) -> Array:
    return sign * (np.abs(_normal(shape, random)) + 1 / 64)


def _zeros(shape: Shape, random: np.random.Generator, share: float) -> Array:
    return np.where(random.random(shape.dims) < share, 0.0, _normal(shape, random))


def _tied(shape: Shape, random: np.random.Generator, values: Sequence[float]) -> Array:
    """Few numbers, whose sums and products no type rounds, so that what is equal is found equal."""
    return np.asarray(random.choice(np.asarray(values), shape.dims))


def _near(shape: Shape, random: np.random.Generator, literals: Array) -> Array:
    """Numbers of the programs, and such as are a little or much larger and smaller."""
    at = random.choice(literals, shape.dims)
    away = random.choice(np.array([0.0, 0.0, 1 / 64, -1 / 64, 1.0, -1.0]), shape.dims)
    return np.asarray(at * random.choice(np.array([1.0, 1.0, 2.0, -1.0]), shape.dims) + away)


def _of_magnitude(shape: Shape, random: np.random.Generator, low: float, high: float) -> Array:
    """Numbers of both signs, with exponents of 10 between these, as far as the type goes."""
    exponents = random.uniform(low, high, shape.dims)
    found = np.clip(10.0**exponents, 0.0, _largest(shape)) * random.choice(np.array([1.0, -1.0]), shape.dims)
    return np.asarray(found)


def _largest(shape: Shape) -> float:
    if shape.dtype.kind not in ("float", "complex"):
        return 1e3
    wide = np.asarray(3.0e38 if shape.dtype.dtype.itemsize >= 4 else 3.0e4)
    for _ in range(12):  # the largest power on the way down that the type holds
        if np.isfinite(wide.astype(shape.dtype.dtype).astype(np.complex128)):
            return float(wide)
        wide = np.sqrt(wide)
    return 1.0


def _definite(shape: Shape, random: np.random.Generator) -> Any:
    """Numbers; square matrices are positive definite."""
    found = _draw(partial(_normal, scale=0.25), shape, random)
    if shape.dtype.kind != "float" or shape.rank < 2 or shape.dims[-1] != shape.dims[-2]:
        return found
    wide = found.astype(np.float64)
    return (wide @ np.swapaxes(wide, -1, -2) + np.eye(shape.dims[-1])).astype(found.dtype)


def _draw_of(numbers: Numbers) -> Draw:
    return partial(_draw, numbers)


ORDINARY = Probe("ordinary", draws.float_array)
LARGER = Probe("larger", _draw_of(partial(_normal, scale=3.0)), shows_overflow=False)
DEFINITE = Probe("positive definite", _definite)
NEAR = (
    Probe("negative", _draw_of(partial(_signed, sign=-1.0))),
    Probe("positive", _draw_of(partial(_signed, sign=1.0))),
    Probe("zero", _draw_of(partial(_zeros, share=0.5))),
    Probe("zero", _draw_of(partial(_zeros, share=1.0))),
    Probe("tied", _draw_of(partial(_tied, values=(1.0, 2.0)))),
    Probe("tied", _draw_of(partial(_tied, values=(-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0)))),
    Probe("tied", _draw_of(partial(_tied, values=(0.5,)))),
)


def _far(name: str, low: float, high: float) -> Probe:
    return Probe(name, _draw_of(partial(_of_magnitude, low=low, high=high)), shows_overflow=False, shows_gaps=False)


FAR = (
    _far("large", 1.0, 3.0), _far("large", 4.0, 12.0), _far("large", 20.0, 37.0),
    _far("tiny", -8.0, -4.0), _far("tiny", -36.0, -20.0),
)  # fmt: skip
ONCE = {NEAR[-1], FAR[1], FAR[3]}
"""Kinds that are skipped for large inputs, since others represent them."""


def is_small(shapes: Sequence[Shape]) -> bool:
    """Whether arrays of these shapes have so few numbers that one draw shows few cases."""
    return sum(shape.size for shape in shapes) < FEW


def probes(shapes: Sequence[Shape], literals: Sequence[float], times: int = TIMES) -> Iterator[Probe]:
    """The kinds of inputs for arrays of these shapes, in programs with these literals; of few numbers some times."""
    small_inputs = is_small(shapes)
    times = times if small_inputs else 1
    rest = [*NEAR, *FAR] if small_inputs else [probe for probe in [*NEAR, *FAR] if probe not in ONCE]
    own = sorted(literal for literal in literals if 0 < abs(literal) <= MOST_LITERAL)
    small = [literal for literal in own if abs(literal) <= SMALL_LITERAL]
    for again in range(times):
        yield from (ORDINARY, LARGER)
        if not again and any(shape.rank > 1 and shape.dims[-1] == shape.dims[-2] for shape in shapes):
            yield DEFINITE
        yield from (probe for probe in rest if probe.shows_gaps)
        for some, shows_overflow in ((small, True), (own, False)):
            if some and (shows_overflow or len(own) > len(small)):
                draw = _draw_of(partial(_near, literals=np.array([*some, 0.0])))
                yield Probe("near literals", draw, shows_overflow)
    yield from (probe for probe in rest if not probe.shows_gaps)


# ----------------------------------------------------------------------------
# Combinations of inputs: where a law holds for some signs and exponents alone, each of them has to meet the others.

SIMPLE = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0)
"""Both signs, zero, even and odd integers, halves and a quarter: bases and exponents for which powers obey other laws.
"""
_SIMPLE_INTEGERS = (-2, -1, 0, 1, 2, 3, 5)
LEAST_ROWS, MOST_ROWS = 256, 4096
"""Of how many rows a table of combinations has to be at least, and may be at most."""
POOLS = ((0.5, 1.0, 1.5, 2.0, 3.0), (-2.0, -1.5, -1.0, -0.5), (2.0, 4.0, -2.0), (0.5, 1.5, -0.5), (0.0, 0.0, 1.0, -1.0))
"""Positive and negative numbers, even ones, halves, and zeros: an array is drawn from one of these.

A NaN of one element spreads over a sum. Where all elements of an array are of one kind, it does not hide the others.
"""
MIXED_DRAWS = 12


@define(eq=False)
class _InOrder:
    """Draws the arrays of a program in the order of its parameters, again and again."""

    makers: Sequence[Draw]
    at: int = 0

    def __call__(self, shape: Shape, random: np.random.Generator) -> Any:
        self.at += 1
        return self.makers[(self.at - 1) % len(self.makers)](shape, random)


def fixed_inputs(name: str, columns: Sequence[Any]) -> Probe:
    """Inputs that are given: for each parameter an array, or one number for all its elements."""

    def maker(column: Any) -> Draw:
        return lambda shape, random: np.broadcast_to(column, shape.dims).astype(shape.dtype.dtype)

    return Probe(name, _InOrder([maker(column) for column in columns]))


def rows_of(shapes: Sequence[Shape]) -> int:
    """How many rows a table of combinations of simple numbers has for these parameters."""
    most = 1
    for shape in shapes:
        most = min(most * max(len(_simple(shape)), 1), MOST_ROWS)
    return max(most, LEAST_ROWS)


def combination_table(shapes: Sequence[Shape], seed: int) -> Probe:
    """Every combination of simple numbers, one in each row, or random combinations if there are too many."""
    random = np.random.default_rng([seed, 11])
    values, rows = [_simple(shape) for shape in shapes], rows_of(shapes)
    counts = [len(value) for value in values]
    if np.prod(counts, dtype=float) <= rows:
        places = list(np.unravel_index(np.arange(rows) % int(np.prod(counts)), counts)) if counts else []
    else:
        places = [random.integers(0, count, rows) for count in counts]
    return fixed_inputs("tied", [of[at] for of, at in zip(values, places, strict=True)])


def _simple(shape: Shape) -> Array:
    kind = shape.dtype.kind
    if kind == "pred":
        return np.array([False, True])
    if kind == "complex":
        return np.array([0, 1, -1, 1j, -1j, 0.5 - 1j])
    if not shape.dtype.is_integer:
        return np.array(SIMPLE)
    low, high = limits(shape.dtype)
    return np.array([integer for integer in _SIMPLE_INTEGERS if low <= integer <= high])


def combinations(shapes: Sequence[Shape]) -> Iterator[Probe]:
    """Few simple numbers, mixed in each array, and such that any two arrays meet with each pair of kinds of numbers."""
    for _ in range(MIXED_DRAWS):
        yield Probe("tied", _draw_of(partial(_tied, values=SIMPLE)))
    pools = [_draw_of(partial(_tied, values=pool)) for pool in POOLS]
    for first in range(len(pools)):
        for step in range(len(pools)):
            yield Probe("tied", _InOrder([pools[(first + step * n) % len(pools)] for n in range(max(len(shapes), 1))]))


def any_integers(shapes: Sequence[Shape], seed: int) -> Probe:
    """Integers of any size: the ends of each type and numbers about powers of two, half of them near in all arrays."""

    def maker(shape: Shape, random: np.random.Generator) -> Any:
        if not shape.dtype.is_integer:
            return draws.float_array(shape, random)
        low, high = limits(shape.dtype)
        powers = [1 << n for n in range(high.bit_length())]
        about = [sign * power + near for power in powers for near in (-1, 0, 1) for sign in (1, -1)]
        wide = np.uint64 if high >= 2**63 else np.int64
        pool = np.array(
            sorted(integer for integer in {low, low + 1, high - 1, high, *about} if low <= integer <= high), wide
        )
        alike = np.random.default_rng([seed, 13])
        at, is_alike = alike.integers(0, len(pool), shape.dims), alike.random(shape.dims) < 0.5
        near = np.clip(at + random.integers(-1, 2, shape.dims), 0, len(pool) - 1)
        other = random.choice([random.choice(pool, shape.dims), random.integers(low, high, shape.dims, wide, True)])
        return np.where(is_alike, pool[near], other).astype(shape.dtype.dtype)

    return Probe("any integers", _InOrder([maker] * max(len(shapes), 1)), shows_overflow=False, of_integers=True)
