"""Draws of gather."""

from __future__ import annotations

from shape_inference import PrimitiveType
from tests.support.random_windows import gather_attributes, placing

from ..chance import Chance
from ..instance import Instance
from .draw import Draw
from .slicing import indices


def gather(chance: Chance, dtype: PrimitiveType) -> Instance:
    places = placing(chance.rng)
    attributes = gather_attributes(chance.rng, places)
    operands = chance.values(dtype, places["extents"]), indices(chance, places["shape"], places["largest"])
    return Instance("gather", dtype, operands, attributes)


DRAWS: dict[str, Draw] = {"gather": gather}
