"""Draws of the ops that slide a window."""

from __future__ import annotations

from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import PrimitiveType
from shape_inference.windows import WindowDimension
from tests.support.random_windows import convolution_attributes, window_of

from ..chance import Chance
from ..instance import Instance
from .contraction import factors, inexact
from .draw import Draw
from .reduction import COMBINERS, combiner, neutral, summands


def reduce_window(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims(rank=chance.between(0, 4), most=7)
    window = window_of(chance.rng, len(dims))
    if chance.odds(0.1):
        dims, window = (chance.between(20, 60),), (WindowDimension(chance.between(16, 40), padding_low=9),)
    word = combiner(chance, dtype)
    operand, is_exact = summands(chance, word, dtype, dims)
    attributes = {"to_apply": COMBINERS[word], "window": window}
    return Instance("reduce_window", dtype, ((operand,), (neutral(word, dtype),)), attributes, is_exact)


def select_and_scatter(chance: Chance, dtype: PrimitiveType) -> Instance:
    """Of an operand without ties where its type has as many values: which of equal ones is chosen is XLA's own.

    In a window of one dimension it is the first or the last, as the document has it; types of few values have no more.
    """
    dims = chance.dims(rank=1 if dtype.bits <= 8 else chance.between(1, 4), least=1, most=5)
    window = window_of(chance.rng, len(dims), is_dilated=False)
    if all(each.size == 1 for each in window) or not all(map(_has_places, window, dims)):  # which kills XLA:CPU
        window = tuple(WindowDimension(2, padding_high=1) for _ in dims)
    count = int(np.prod(dims))
    operand = chance.data.permutation(count).reshape(dims).astype(dtype.dtype)
    places = [each.places(extent) for each, extent in zip(window, dims, strict=True)]
    source, is_exact = summands(chance, "add", dtype, places)
    attributes: dict[str, Any] = {"select": _compare(chance.one(("GE", "GT", "LE"))), "scatter": xb.ops.add}
    given = operand, source, neutral("add", dtype)
    return Instance("select_and_scatter", dtype, given, {**attributes, "window": window}, is_exact)


def _has_places(window: WindowDimension, extent: int) -> bool:
    return window.places(extent) > 0


def _compare(direction: str) -> Any:
    def select(a: xb.Value, b: xb.Value) -> xb.Value:
        return xb.ops.compare(a, b, direction=direction)

    return select


def convolution(chance: Chance, dtype: PrimitiveType) -> Instance:
    lhs, rhs, attributes = convolution_attributes(chance.rng)
    is_whole = chance.odds(0.5)
    given = tuple(chance.whole(dtype, d, 2) if is_whole else factors(chance, dtype, d) for d in (lhs, rhs))
    return Instance("convolution", dtype, given, attributes, not inexact(dtype) or (is_whole and dtype.bits > 8))


DRAWS: dict[str, Draw] = {
    "convolution": convolution,
    "reduce_window": reduce_window,
    "select_and_scatter": select_and_scatter,
}
