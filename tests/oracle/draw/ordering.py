"""Draws of sort and topk."""

from __future__ import annotations

from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import PrimitiveType

from ..chance import TYPES, Chance
from ..instance import Instance
from .draw import Draw

WHOLE_BYTES = [t for t in TYPES if t.bits >= 8]
"""XLA:CPU refuses to sort an array of smaller elements beside one of larger ones."""


def sort(chance: Chance, dtype: PrimitiveType) -> Instance:
    """By one key in a total order, stable, with up to three arrays that go along."""
    dims = chance.dims(rank=chance.between(1, 5), most=7)
    if chance.odds(0.2):
        dims = (chance.between(10, 200),)
    more = chance.between(0, 3)
    key = chance.values(dtype, dims) if dtype.is_float else chance.whole(dtype, dims, 6)
    others = [chance.values(chance.one(WHOLE_BYTES), dims) for _ in range(more)]
    attributes = {
        "to_apply": comparator(chance.one(("LT", "GT", "LE", "GE") if more == 0 else ("LT", "GT")), dtype, more),
        "dimension": chance.between(0, len(dims) - 1),
        "is_stable": True,
    }
    return Instance("sort", dtype, ((key, *others),), attributes)


def comparator(direction: str, dtype: PrimitiveType, more: int) -> Any:
    kind = {"type": "TOTALORDER"} if dtype.is_float else {}

    def region(a: xb.Value, b: xb.Value, *_: xb.Value) -> xb.Value:
        return xb.ops.compare(a, b, direction=direction, **kind)

    return region


def topk(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = (*chance.dims(rank=chance.between(0, 4), least=1), chance.between(1, 12))
    operand = chance.values(dtype, dims)
    if chance.odds(0.5):
        operand = chance.whole(dtype, dims)
    return Instance("topk", dtype, (np.asarray(operand),), {"k": chance.between(0, dims[-1]), "largest": True})


DRAWS: dict[str, Draw] = {"sort": sort, "topk": topk}
