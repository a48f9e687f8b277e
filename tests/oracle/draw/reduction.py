"""Draws of reduce, and the combiners that other draws share with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import PrimitiveType
from shape_inference.dims import limits
from shape_inference.types import f8e8m0fnu

from ..chance import Array, Chance
from ..instance import Instance
from .draw import Draw

Combiner = Callable[..., Any]
COMBINERS: dict[str, Combiner] = {
    "add": xb.ops.add, "multiply": xb.ops.multiply, "maximum": xb.ops.maximum, "minimum": xb.ops.minimum,
    "and": xb.ops.and_, "or": xb.ops.or_, "xor": xb.ops.xor,
}  # fmt: skip


def combiner(chance: Chance, dtype: PrimitiveType) -> str:
    """One that has an order of operands to spare."""
    bits = ["and", "or", "xor"] if dtype.kind == "pred" or dtype.is_integer else []
    ordered = [] if dtype.kind == "complex" else ["maximum", "minimum"]
    return chance.one(["add", "add", "multiply", *ordered, *bits])


def neutral(word: str, dtype: PrimitiveType) -> Array:
    """What the combiner leaves as it is."""
    if dtype.kind == "pred":
        return np.array(word in ("and", "multiply", "minimum"))
    if word in ("maximum", "minimum"):
        low, high = limits(dtype) if dtype.is_integer else ends(dtype)
        return np.array(low if word == "maximum" else high).astype(dtype.dtype)
    if word == "and":
        return np.array(limits(dtype)[1] if dtype.kind == "unsigned" else -1).astype(dtype.dtype)
    if word == "add" and dtype is f8e8m0fnu:  # which has no zero
        return np.array(2.0**-127).astype(dtype.dtype)
    return np.array(1 if word == "multiply" else 0).astype(dtype.dtype)


def ends(dtype: PrimitiveType) -> tuple[float, float]:
    """The least and the greatest float: infinite, unless the type has none."""
    import ml_dtypes

    with np.errstate(all="ignore"):
        has_infinity = np.isinf(np.array(np.inf).astype(dtype.dtype).astype(np.float64))
    about = ml_dtypes.finfo(dtype.dtype)
    return (-np.inf, np.inf) if has_infinity else (float(about.min), float(about.max))


def summands(chance: Chance, word: str, dtype: PrimitiveType, dims: Any) -> tuple[Array, bool]:
    """Values to combine, and whether every order of combining them gives the same."""
    if word not in ("add", "multiply") or dtype.kind in ("pred", "signed", "unsigned"):
        return chance.values(dtype, dims), True
    if dtype.is_float and dtype.bits <= 16:
        return sparse(chance, word, dtype, dims), True
    if chance.odds(0.5):
        return chance.whole(dtype, dims, 2), word == "add"
    return chance.positive(dtype, dims), False


def sparse(chance: Chance, word: str, dtype: PrimitiveType, dims: Any) -> Array:
    """All neutral but for three elements, so that rounding after each step, as XLA has it, loses nothing."""
    drawn = np.full(dims, neutral(word, dtype))
    places = chance.some(range(drawn.size), min(3, drawn.size))
    drawn.reshape(-1)[places] = np.array(
        [chance.any((1, 1, -1, 0) if word == "add" else (2, 0.5, -1, 1)) for _ in places]
    )
    return drawn


def reduce(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims()
    if chance.odds(0.2):
        dims = (chance.between(10, 200),)
    word = combiner(chance, dtype)
    operand, is_exact = summands(chance, word, dtype, dims)
    dimensions = chance.some(range(len(dims)))
    if len(dimensions) > 1 and chance.odds(0.3):
        dimensions = chance.shuffled(dimensions)
    if chance.odds(0.2):
        dimensions = list(range(len(dims))) if chance.odds(0.6) else []
    attributes = {"to_apply": COMBINERS[word], "dimensions": tuple(dimensions)}
    if chance.odds(0.15) and dtype.kind != "complex":
        return greatest_with_index(chance, dtype, dims, tuple(dimensions))
    if chance.odds(0.15):
        return side_by_side(chance, dtype, dims, tuple(dimensions))
    return Instance("reduce", dtype, ((operand,), (neutral(word, dtype),)), attributes, is_exact)


def greatest_with_index(
    chance: Chance, dtype: PrimitiveType, dims: tuple[int, ...], dimensions: tuple[int, ...]
) -> Instance:
    """The variadic form: the greatest element and the first of its indices."""
    operand = chance.whole(dtype, dims)
    index = np.arange(operand.size, dtype=np.int32).reshape(dims)
    init = neutral("maximum", dtype), np.asarray(np.iinfo(np.int32).max, np.int32)
    attributes = {"to_apply": _greater, "dimensions": dimensions}
    return Instance("reduce", dtype, ((operand, index), init), attributes, is_exact=True)


def side_by_side(chance: Chance, dtype: PrimitiveType, dims: tuple[int, ...], dimensions: tuple[int, ...]) -> Instance:
    """Two or three arrays, each combined in a way of its own."""
    types = [dtype, *(chance.type("signed", "unsigned", "pred") for _ in range(chance.between(1, 2)))]
    words = [combiner(chance, each) for each in types]
    drawn = [summands(chance, word, each, dims) for word, each in zip(words, types, strict=True)]
    init = tuple(neutral(word, each) for word, each in zip(words, types, strict=True))

    def each_with_its_own(*given: xb.Value) -> Any:
        pairs = zip(words, given, given[len(words) :], strict=False)
        return xb.tuple_([COMBINERS[word](a, b) for word, a, b in pairs])

    operands = tuple(operand for operand, _ in drawn), init
    attributes = {"to_apply": each_with_its_own, "dimensions": dimensions}
    return Instance("reduce", dtype, operands, attributes, is_exact=all(exact for _, exact in drawn))


def _greater(a: xb.Value, i: xb.Value, b: xb.Value, j: xb.Value) -> Any:
    first = xb.ops.compare(i, j, direction="LT")
    same = xb.ops.compare(a, b, direction="EQ")
    keep = xb.ops.or_(xb.ops.compare(a, b, direction="GT"), xb.ops.and_(same, first))
    return xb.ops.select(keep, a, b), xb.ops.select(keep, i, j)


DRAWS: dict[str, Draw] = {"reduce": reduce}
