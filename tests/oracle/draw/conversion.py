"""Draws of the ops that change the element type."""

from __future__ import annotations

from shape_inference import PRIMITIVES, PrimitiveType

from ..chance import TYPES, Chance
from ..instance import Instance
from .draw import Draw


def convert(chance: Chance, dtype: PrimitiveType) -> Instance:
    return Instance(
        "convert", dtype, (chance.values(dtype, chance.dims()),), {"new_element_type": chance.one(targets(dtype))}
    )


def targets(dtype: PrimitiveType) -> list[PrimitiveType]:
    """The types that XLA:CPU converts to; of a complex number to pred it dies."""
    return [t for t in TYPES if not (dtype.kind == "complex" and t.kind == "pred")]


def bitcast_convert(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims()
    ratios = (1, 2, 4, 8)
    fits = [t for t in TYPES if {t.kind, dtype.kind} & {"pred", "complex"} == set()]
    fits = [t for t in fits if any(t.bits == n * dtype.bits or n * t.bits == dtype.bits for n in ratios)] or [dtype]
    to = chance.one(fits)
    if to.bits > dtype.bits:
        dims = (*dims, to.bits // dtype.bits)
    return Instance("bitcast_convert", dtype, (chance.values(dtype, dims),), {"new_element_type": to})


def bitcast(chance: Chance, dtype: PrimitiveType) -> Instance:
    """To the same shape: XLA:CPU takes no other outside of its own passes."""
    dims = chance.dims()
    return Instance("bitcast", dtype, (chance.values(dtype, dims),), {"shape": dtype[dims]})


def reduce_precision(chance: Chance, dtype: PrimitiveType) -> Instance:
    formats = {"exponent_bits": chance.between(1, 11), "mantissa_bits": chance.between(0, 52)}
    if chance.odds(0.5):
        formats = {"exponent_bits": chance.between(2, 8), "mantissa_bits": chance.between(0, 10)}
    return Instance("reduce_precision", dtype, (chance.values(dtype, chance.dims()),), formats)


def stochastic_convert(chance: Chance, dtype: PrimitiveType) -> Instance:
    random = PRIMITIVES[f"u{min(dtype.bits, 64)}"]
    dims = chance.dims()
    to = chance.one([t for t in TYPES if t.kind == "signed"])  # XLA:CPU takes no floats
    operands = chance.values(dtype, dims), chance.values(random, dims)
    return Instance("stochastic_convert", dtype, operands, {"new_element_type": to})


DRAWS: dict[str, Draw] = {
    "bitcast": bitcast,
    "bitcast_convert": bitcast_convert,
    "convert": convert,
    "reduce_precision": reduce_precision,
    "stochastic_convert": stochastic_convert,
}
