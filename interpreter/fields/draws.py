"""Random inputs of a program over prime fields, and their parts for each device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shape_inference import AnyShape, Shape, TokenShape, TupleShape, leaves
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

from ..kernels.values import read
from .rules import residues
from .rules.complexes import joined
from .rules.evaluation import literal_words
from .rules.places import mixed
from .rules.primes import current

_WIDTHS = np.array([1, 2, 3, 4, 6])


def array(shape: Shape, random: np.random.Generator) -> Array:
    """Random elements: any number of the fields for floats, small integers with few negative ones, and truth values."""
    if shape.dtype.kind == "complex":
        return np.asarray(joined(_words(shape, random), _words(shape, random)))
    if shape.dtype.kind == "float":
        return _words(shape, random)
    if shape.dtype.kind == "pred":
        return np.asarray(random.integers(0, 2, shape.dims) == 1)
    sizes = np.minimum(random.choice(_WIDTHS, shape.dims), shape.dtype.bits - 1)
    whole = random.integers(0, 1 << 16, shape.dims) % (1 << sizes)
    is_negative = (shape.dtype.kind == "signed") & (random.integers(0, 8, shape.dims) == 0)
    found: Array = np.where(is_negative, -whole, whole).astype(shape.dtype.dtype)
    return found


def _words(shape: Shape, random: np.random.Generator) -> Array:
    seeds = random.integers(0, 2**64, shape.dims, np.uint64)  # as many from the generator whatever the primes are
    first, second = (mixed(seeds, prime) % np.uint64(prime) for prime in current().primes)
    return np.asarray(residues.packed(first, second))


def number(shape: Shape, random: np.random.Generator) -> Array:
    """Random elements as in a run in floating point: normal floats, and otherwise as over the fields."""
    if shape.dtype.kind in ("float", "complex"):
        parts = random.standard_normal(shape.dims)
        whole = parts + 1j * random.standard_normal(shape.dims) if shape.dtype.kind == "complex" else parts
        return np.asarray(whole).astype(shape.dtype.dtype)
    return array(shape, random)


def flat(value: Any, shape: AnyShape) -> list[Any]:
    """The arrays of a value, in order; tokens are left out."""
    if isinstance(shape, TupleShape):
        return [leaf for each, of in zip(value, shape.elements, strict=True) for leaf in flat(each, of)]
    return [] if isinstance(shape, TokenShape) else [np.asarray(value)]


def shapes_of(instructions: Sequence[Instruction]) -> list[Shape]:
    """The shapes of the arrays of several values, in order."""
    return [leaf for each in instructions for leaf in leaves(each.shape) if isinstance(leaf, Shape)]


def nested(arrays: list[Any], shape: AnyShape) -> Any:
    """The value of a shape whose arrays are the first of a list, which are taken from it."""
    if isinstance(shape, TupleShape):
        return tuple([nested(arrays, each) for each in shape.elements])
    return None if isinstance(shape, TokenShape) else arrays.pop(0)


def given_arrays(parameters: Sequence[Instruction], given: Mapping[int, Any], *, exact: bool) -> dict[int, Array]:
    """The arrays that parameters are to have, by the numbers of the arrays; as numbers, or as words."""
    found: dict[int, Array] = {}
    first = 0
    for place, parameter in enumerate(parameters):
        shapes = shapes_of([parameter])
        if place in given:
            value = read(given[place], parameter.shape, f"argument {place} (%{parameter.name})")
            for at, (leaf, shape) in enumerate(zip(flat(value, parameter.shape), shapes, strict=True)):
                found[first + at] = leaf if exact else literal_words(leaf, shape)
        first += len(shapes)
    return found
