"""Draws of batch normalization."""

from __future__ import annotations

from typing import Any

from shape_inference import PrimitiveType

from ..chance import Chance
from ..instance import Instance
from .draw import Draw


def normalized(opcode: str, vectors: str) -> Draw:
    """The operands after the first: p for positive ones by feature, n for any by feature, x for one like the first."""

    def draw(chance: Chance, dtype: PrimitiveType) -> Instance:
        dims = list(chance.dims(rank=chance.between(1, 5), least=1, most=4))
        feature = chance.between(0, len(dims) - 1)
        shapes = {"n": dims[feature : feature + 1], "p": dims[feature : feature + 1], "x": dims}
        drawn: list[Any] = [chance.normal(dtype, dims)]
        drawn += [(chance.positive if v == "p" else chance.normal)(dtype, shapes[v]) for v in vectors]
        attributes = {"epsilon": chance.one((0.001, 0.5, 1.0)), "feature_index": feature}
        return Instance(opcode, dtype, tuple(drawn), attributes)

    return draw


DRAWS: dict[str, Draw] = {
    "batch_norm_grad": normalized("batch_norm_grad", "nnpx"),
    "batch_norm_inference": normalized("batch_norm_inference", "nnnp"),
    "batch_norm_training": normalized("batch_norm_training", "nn"),
}
