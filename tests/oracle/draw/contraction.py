"""Draws of dot."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import PrimitiveType
from shape_inference.types import f8e8m0fnu

from ..chance import TYPES, Chance
from ..instance import Instance
from .draw import Draw


def dot(chance: Chance, dtype: PrimitiveType) -> Instance:
    extents = [chance.dims(rank=chance.one((0, 0, 1, 1, 2, 3)), most=n) for n in (3, 6, 4, 4)]
    batch, summed, left, right = extents
    lhs, lhs_batch, lhs_summed = arranged(chance, batch, summed, left)
    rhs, rhs_batch, rhs_summed = arranged(chance, batch, summed, right)
    is_whole = chance.odds(0.5)
    a, b = (chance.whole(dtype, d, 2) if is_whole else factors(chance, dtype, d) for d in (lhs, rhs))
    attributes: dict[str, Any] = {
        "lhs_contracting_dims": lhs_summed,
        "rhs_contracting_dims": rhs_summed,
        "lhs_batch_dims": lhs_batch,
        "rhs_batch_dims": rhs_batch,
    }
    if dtype.bits >= 8 and chance.odds(0.3):  # XLA:CPU does not widen what is smaller
        attributes["preferred_element_type"] = preferred(chance, dtype)
    result = attributes.get("preferred_element_type", dtype)
    is_exact = not inexact(dtype) or (is_whole and result.bits > 8)
    return Instance("dot", dtype, (a, b), attributes, is_exact)


def inexact(dtype: PrimitiveType) -> bool:
    return dtype.kind in ("float", "complex")


def factors(chance: Chance, dtype: PrimitiveType, dims: Any) -> Any:
    """Factors whose products are summed: any integers, and floats without cancellation."""
    return chance.positive(dtype, dims) if inexact(dtype) else chance.values(dtype, dims)


def preferred(chance: Chance, dtype: PrimitiveType) -> PrimitiveType:
    """A type of the same kind that is at least as wide."""
    return chance.one([t for t in TYPES if t.kind == dtype.kind and t.bits >= dtype.bits])


def arranged(chance: Chance, *groups: tuple[int, ...]) -> tuple[list[int], tuple[int, ...], tuple[int, ...]]:
    """The extents of three groups of dimensions in some order, and where the first two groups have come to be."""
    extents = [n for group in groups for n in group]
    order = chance.shuffled(range(len(extents)))
    places = [order.index(n) for n in range(len(extents))]
    first, second = len(groups[0]), len(groups[0]) + len(groups[1])
    return [extents[n] for n in order], tuple(places[:first]), tuple(places[first:second])


def ragged_dot(chance: Chance, dtype: PrimitiveType) -> Instance:
    """Rows in groups, each with a matrix of its own."""
    rows, inner, columns, groups = (chance.between(1, 4) for _ in "mkng")
    sizes = chance.rng.multinomial(rows, [1 / groups] * groups).astype(np.int32)
    operands = chance.whole(dtype, (rows, inner), 2), chance.whole(dtype, (groups, inner, columns), 2), sizes
    attributes = {
        "lhs_contracting_dims": (1,),
        "rhs_contracting_dims": (1,),
        "lhs_ragged_dims": (0,),
        "rhs_group_dims": (0,),
    }
    return Instance("ragged_dot", dtype, operands, attributes, is_exact=True)


def scaled_dot(chance: Chance, dtype: PrimitiveType) -> Instance:
    """Each row of both operands with a scale of its own."""
    rows, inner, columns = (chance.between(1, 4) for _ in "mkn")
    factors = chance.whole(dtype, (rows, inner), 2), chance.whole(dtype, (columns, inner), 2)
    scales = tuple(chance.whole(f8e8m0fnu, (n, 1)) for n in (rows, columns))
    attributes = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (1,)}
    return Instance("scaled_dot", dtype, (*factors, *scales), attributes, is_exact=True)


DRAWS: dict[str, Draw] = {"dot": dot, "ragged_dot": ragged_dot, "scaled_dot": scaled_dot}
