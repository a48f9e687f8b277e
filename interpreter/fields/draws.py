"""Random inputs of a program over prime fields, and the domains to which arguments are confined.

Sections:

    Random inputs, and their parts for each device
    Domains of arguments: the numbers for which two programs are compared
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import AnyShape, Shape, TokenShape, leaves, refuse
from shape_inference.dims import limits
from shape_inference.trees import map_leaves
from shape_inference.types import primitive_type
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction
from xbuild.files.arrays import leaf_values

from ..kernels.values import read
from .rules import residues
from .rules.complexes import joined
from .rules.evaluation import literal_words
from .rules.places import mixed, upright
from .rules.primes import current

# ----------------------------------------------------------------------------
# Random inputs, and their parts for each device.

_BLOCK = 1 << 20
"""The words that are drawn at once."""
_WIDTHS = np.array([1, 2, 3, 4, 6])


def field_array(shape: Shape, random: np.random.Generator) -> Array:
    """Random elements: any number of the fields for floats, small integers with few negative ones, and truth values."""
    if shape.dtype.kind == "complex":
        return np.asarray(joined(_words(shape, random), _words(shape, random)))
    if shape.dtype.kind == "float":
        return _words(shape, random)
    if shape.dtype.kind == "pred":
        return np.asarray(random.integers(0, 2, shape.dims) == 1)
    sizes = np.minimum(random.choice(_WIDTHS, shape.dims), shape.dtype.bits - 1)
    integers = random.integers(0, 1 << 16, shape.dims) % (1 << sizes)
    is_negative = (shape.dtype.kind == "signed") & (random.integers(0, 8, shape.dims) == 0)
    signed: Array = np.where(is_negative, -integers, integers).astype(shape.dtype.dtype)
    return signed


def _words(shape: Shape, random: np.random.Generator) -> Array:
    seeds = random.integers(0, 2**64, shape.dims, np.uint64)  # as many from the generator whatever the primes are
    flat = seeds.reshape(-1)
    for first in range(0, flat.size, _BLOCK):
        block = flat[first : first + _BLOCK]
        one, other = (mixed(block, prime) % np.uint64(prime) for prime in current().primes)
        flat[first : first + _BLOCK] = residues.packed(one, other)
    found: Array = flat.reshape(shape.dims)
    return found


def float_array(shape: Shape, random: np.random.Generator) -> Array:
    """Random elements as in a run in floating point: normal floats, and otherwise as over the fields."""
    if shape.dtype.kind in ("float", "complex"):
        parts = random.standard_normal(shape.dims)
        numbers = parts + 1j * random.standard_normal(shape.dims) if shape.dtype.kind == "complex" else parts
        return np.asarray(numbers).astype(shape.dtype.dtype)
    return field_array(shape, random)


def flat_arrays(value: Any, shape: AnyShape) -> list[Any]:
    """The arrays of a value, in order; tokens are left out."""
    return [np.asarray(leaf) for leaf, _ in leaf_values(value, shape)]


def shapes_of(instructions: Sequence[Instruction]) -> list[Shape]:
    """The shapes of the arrays of several values, in order."""
    found: list[Shape] = []
    for instruction in instructions:
        if isinstance(instruction.shape, Shape):
            found.append(instruction.shape)
        else:
            found += [leaf for leaf in leaves(instruction.shape) if isinstance(leaf, Shape)]
    return found


def nest_arrays(arrays: Iterator[Any], shape: AnyShape) -> Any:
    """The value of a shape whose arrays are the next ones of an iterator."""
    return map_leaves(lambda leaf: None if isinstance(leaf, TokenShape) else next(arrays), shape)


def argument_arrays(parameters: Sequence[Instruction], given: Mapping[int, Any], *, exact: bool) -> dict[int, Array]:
    """The arrays of arguments, by the numbers of the arrays, as numbers if `exact`, else as words."""
    found: dict[int, Array] = {}
    first = 0
    for place, parameter in enumerate(parameters):
        shapes = shapes_of([parameter])
        if place in given:
            value = read(given[place], parameter.shape, f"argument {place} (%{parameter.name})")
            for at, (leaf, shape) in enumerate(zip(flat_arrays(value, parameter.shape), shapes, strict=True)):
                found[first + at] = leaf if exact else literal_words(leaf, shape)
        first += len(shapes)
    return found


# ----------------------------------------------------------------------------
# Domains of arguments: the numbers for which two programs are compared.

INSIDE = 0.5
"""Replaces 0 if a domain excludes 0."""


@frozen
class Domain:
    """The numbers from `low` to `high`; the ends belong to it, unless they are infinite or `has_zero` is false."""

    name: str
    low: float = -math.inf
    high: float = math.inf
    has_zero: bool = True

    @property
    def is_bounded(self) -> bool:
        """Whether an end other than 0 bounds it."""
        return any(math.isfinite(end) and end != 0 for end in (self.low, self.high))

    @property
    def bits(self) -> float:
        """The logarithm of the number of known numbers that are drawn from a bounded domain."""
        low, high, step = self._steps()
        return math.log2(max((high - low) / step, 2.0))

    def _steps(self) -> tuple[float, float, float]:
        """The ends between which known numbers are drawn, and the distance of two of them."""
        low, high = max(self.low, -64.0), min(self.high, 64.0)
        if low >= high:
            low, high = (self.low, self.low + 64.0) if math.isfinite(self.low) else (self.high - 64.0, self.high)
        return low, high, 2.0**-24 if max(abs(low), abs(high)) < 32 else 2.0**-8

    def numbers(self, array: Array) -> Array:
        """Numbers of the domain for any numbers, in the type of the array; those in the domain are unchanged."""
        wide = array.astype(np.float64)
        found = np.where((wide >= self.low) & (wide <= self.high), wide, self._move_inside(wide))
        if not self.has_zero:
            least = INSIDE if np.asarray(INSIDE).astype(array.dtype) != 0 else 1.0  # integers have no half
            found = np.where(found.astype(array.dtype) == 0, -least if self.high <= 0 else least, found)
        return self._round_into(found, array.dtype)

    def _round_into(self, wide: Array, dtype: np.dtype[Any]) -> Array:
        """Numbers in a type; one that rounding moves beyond an end, or that the type cannot hold, becomes the end."""
        low, high = self.low, self.high
        if dtype.kind in "iu" or "int" in str(dtype):
            least, most = limits(primitive_type(dtype))
            low, high = max(low, least), min(high, most)
        kept: Array = np.clip(wide, low, high).astype(dtype)
        for end, is_beyond in ((low, np.less), (high, np.greater)):
            if np.isfinite(end):
                own = np.asarray(end).astype(dtype)
                kept = np.where(is_beyond(kept.astype(np.float64), own.astype(np.float64)), own, kept)
        return kept

    def _move_inside(self, wide: Array) -> Array:
        if math.isfinite(self.low) and math.isfinite(self.high):
            found: Array = self.low + (self.high - self.low) * (np.abs(wide) % 1.0)
            return found
        return self.low + np.abs(wide) if math.isfinite(self.low) else self.high - np.abs(wide)

    def words(self, words: Any, *, known: bool) -> Any:
        """Words of the domain's sign for any words; if `known`, small numbers between the ends."""
        if known and self.is_bounded:
            return self._known_numbers(words)
        if self.low >= 0:
            return upright(words)
        return residues.negate(upright(words)) if self.high <= 0 else words

    def _known_numbers(self, words: Any) -> Any:
        """Numbers between the ends that have places in the order: multiples of 2^-24, or of 2^-8 for far ends."""
        low, high, step = self._steps()
        first, last = math.ceil(low / step), math.floor(high / step)
        at = (words % np.uint64(max(last - first, 0) + 1)).astype(np.int64)
        scale = residues.inverse(residues.of_integers(np.asarray(round(1 / step))))
        return residues.multiply(residues.of_integers(first + at), scale)


NAMED = {
    each.name: each
    for each in (
        Domain("positive", 0.0, has_zero=False),
        Domain("nonnegative", 0.0),
        Domain("negative", high=0.0, has_zero=False),
        Domain("nonpositive", high=0.0),
        Domain("nonzero", has_zero=False),
        Domain("unit", 0.0, 1.0),
    )
}
"""Domains by name; `unit` is the interval from 0 to 1."""


def domain_of(given: Any, argument: str) -> Domain:
    """The domain of a name or a pair of ends; invalid_attribute for anything else."""
    if isinstance(given, str) and given in NAMED:
        return NAMED[given]
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2:
        try:
            low, high = float(given[0]), float(given[1])
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if low < high:
            return Domain(f"[{low:g}, {high:g}]", low, high)
    return refuse(
        "invalid_attribute",
        f"equivalent: the domain of {argument} is {given!r}; expected one of {', '.join(NAMED)}, or (low, high) "
        "with low < high",
    )


def domains_of(parameters: Sequence[Instruction], given: Mapping[int, Any]) -> dict[int, Domain]:
    """The domains by the numbers of the arrays; those of a tuple apply to each of its arrays of numbers.

    Raises invalid_attribute for a number that no parameter has, and for a parameter without ordered numbers.
    """
    for number in given:
        if number not in range(len(parameters)):
            count = len(parameters)
            refuse(
                "invalid_attribute",
                f"equivalent: a domain is given for argument {number!r}, but the program has only {count}",
            )
    found: dict[int, Domain] = {}
    first = 0
    for place, parameter in enumerate(parameters):
        shapes = shapes_of([parameter])
        if place in given:
            name = f"argument {place} (%{parameter.name})"
            domain = domain_of(given[place], name)
            ordered = [at for at, shape in enumerate(shapes) if _is_ordered(shape)]
            if not ordered:
                refuse(
                    "invalid_attribute",
                    f"equivalent: a domain is given for {name}, but the elements of {parameter.shape} have no order",
                )
            found |= {first + at: domain for at in ordered}
        first += len(shapes)
    return found


def _is_ordered(shape: Shape) -> bool:
    return shape.dtype.kind == "float" or shape.dtype.is_integer
