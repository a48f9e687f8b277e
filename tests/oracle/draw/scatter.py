"""Draws of scatter."""

from __future__ import annotations

from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import PrimitiveType
from tests.support.random_windows import placing, scatter_attributes

from ..chance import Chance
from ..instance import Instance
from .draw import Draw
from .reduction import COMBINERS, combiner, summands
from .slicing import indices


def scatter(chance: Chance, dtype: PrimitiveType) -> Instance:
    """Combined, or written over; what is combined is drawn so that the order of the updates tells little.

    Into a scalar, which takes index vectors of no entries, XLA:CPU does not compile it.
    """
    places = placing(chance.rng, least=1)
    attributes, extents = scatter_attributes(chance.rng, places)
    found = indices(chance, places["shape"], places["largest"])
    if chance.odds(0.3):
        operand, update, region, is_exact = *_values(chance, dtype, places["extents"], extents), _later, True
    else:
        word = combiner(chance, dtype)
        both, is_exact = summands(chance, word, dtype, (2 * max(_size(places["extents"]), _size(extents)),))
        operand = both[: _size(places["extents"])].reshape(places["extents"])
        update = both[len(both) - _size(extents) :].reshape(extents)
        region = COMBINERS[word]
    given = (operand,), found, (update,)
    return Instance("scatter", dtype, given, {**attributes, "to_apply": region}, is_exact)


def _values(chance: Chance, dtype: PrimitiveType, *extents: list[int]) -> Any:
    return (chance.values(dtype, each) for each in extents)


def _size(extents: list[int]) -> int:
    return int(np.prod(extents, dtype=int))


def _later(a: xb.Value, b: xb.Value) -> xb.Value:
    return b


DRAWS: dict[str, Draw] = {"scatter": scatter}
