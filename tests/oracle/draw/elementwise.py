"""Draws of the ops that act on each element alone."""

from __future__ import annotations

import numpy as np

from shape_inference import PrimitiveType, pred
from shape_inference.ops.elementwise import BINARY, UNARY

from ..chance import Array, Chance
from ..instance import Instance
from .draw import Draw

SHIFTS = {"shift_left", "shift_right_arithmetic", "shift_right_logical"}


def unary(opcode: str) -> Draw:
    def draw(chance: Chance, dtype: PrimitiveType) -> Instance:
        return Instance(opcode, dtype, (operand(chance, dtype, chance.dims()),))

    return draw


def operand(chance: Chance, dtype: PrimitiveType, dims: tuple[int, ...]) -> Array:
    """Anything; complex numbers often near 1, where functions of them have no excuse."""
    is_near = dtype.kind == "complex" and chance.odds(0.6)
    return chance.normal(dtype, dims) if is_near else chance.values(dtype, dims)


def binary(opcode: str) -> Draw:
    def draw(chance: Chance, dtype: PrimitiveType) -> Instance:
        dims = chance.dims()
        left, right = operand(chance, dtype, dims), operand(chance, dtype, dims)
        if dtype.is_integer and opcode in SHIFTS | {"power"} and chance.odds(0.7):
            right = chance.whole(dtype, dims, min(dtype.bits + 2, 40))
        elif chance.odds(0.1):
            right = left.copy()
        return Instance(opcode, dtype, (left, right))

    return draw


def compare(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims()
    left, right = chance.values(dtype, dims), chance.values(dtype, dims)
    right = np.where(chance.data.random(dims) < 0.2, left, right).astype(dtype.dtype)
    attributes = {"direction": chance.one(("EQ", "NE", "LT", "LE", "GT", "GE"))}
    if dtype.is_float and chance.odds(0.4):
        attributes["type"] = "TOTALORDER"
    if dtype.kind == "complex":
        attributes["direction"] = chance.one(("EQ", "NE"))
    return Instance("compare", dtype, (left, right), attributes)


def clamp(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims()
    low, high = (chance.values(dtype, () if chance.odds(0.5) else dims) for _ in "lh")
    return Instance("clamp", dtype, (low, chance.values(dtype, dims), high))


def select(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims()
    choice = chance.values(pred, () if chance.odds(0.3) else dims)
    return Instance("select", dtype, (choice, chance.values(dtype, dims), chance.values(dtype, dims)))


DRAWS: dict[str, Draw] = {
    **{opcode: unary(opcode) for opcode in UNARY},
    **{opcode: binary(opcode) for opcode in BINARY},
    "clamp": clamp,
    "compare": compare,
    "complex": binary("complex"),
    "copy": unary("copy"),
    "select": select,
}
