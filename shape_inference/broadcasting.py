"""Implicit broadcasting of two operands: the extents and the dimensions of the result."""

from __future__ import annotations

from itertools import combinations, islice

from . import dims
from .rules import refuse
from .types import Dims, Shape

ATTRIBUTE = "broadcast_dimensions"


def broadcasting(lhs: Shape, rhs: Shape, broadcast_dimensions: Dims | None = None) -> tuple[Dims, Dims, Dims]:
    """The extents of the result and, for lhs and for rhs, the result dimension that each operand dimension becomes.

    A scalar is broadcast to any shape. Where the ranks are equal, an extent of 1 is broadcast to the extent of the
    other operand. Where they differ, broadcast_dimensions (strictly ascending) map the dimensions of the operand of
    lower rank to dimensions of the other operand, and then extents of 1 are broadcast in the same way.
    Raises ShapeError: rank_mismatch (its hints are the broadcast_dimensions that fit); dimension_mismatch;
    dimension_out_of_range; bad_order; duplicate_dimension; attribute_length_mismatch; invalid_attribute.

    >>> from shape_inference import f32
    >>> broadcasting(f32[2, 3, 4], f32[2, 1], (0, 2))
    ((2, 3, 4), (0, 1, 2), (0, 2))

    Source: Operation Semantics, Element-wise binary arithmetic operations; Broadcasting semantics.
    """
    if lhs.rank >= rhs.rank:
        placed = _placed("rhs", rhs, "lhs", lhs, broadcast_dimensions)
        return _stretched("rhs", rhs, placed, "lhs", lhs), tuple(range(lhs.rank)), placed
    placed = _placed("lhs", lhs, "rhs", rhs, broadcast_dimensions)
    return _stretched("lhs", lhs, placed, "rhs", rhs), placed, tuple(range(rhs.rank))


def _placed(low: str, small: Shape, high: str, large: Shape, given: Dims | None) -> Dims:
    """The dimensions of `large` to which those of `small`, the operand of lower rank, are mapped."""
    identity = tuple(range(small.rank))
    if small.rank == large.rank:
        if given and given != identity:
            refuse(
                "invalid_attribute",
                f"{ATTRIBUTE} must be {list(identity)} because both operands have rank {small.rank}, got {list(given)}",
            )
        return identity
    if not given:
        if small.rank:
            _unmapped(low, small, high, large)
        return ()
    dims.length(ATTRIBUTE, given, small.rank, f"dimension of {low} {small}")
    return dims.dimensions(ATTRIBUTE, given, high, large, ascending=True)


def _unmapped(low: str, small: Shape, high: str, large: Shape) -> None:
    fitting = (
        list(places)
        for places in combinations(range(large.rank), small.rank)
        if all(_fit(size, large.dims[dim]) for size, dim in zip(small.dims, places, strict=True))
    )
    hints = [f"{ATTRIBUTE}={places} fits" for places in islice(fitting, 6)]
    refuse(
        "rank_mismatch",
        f"{high} is {large} and {low} is {small}: ranks {large.rank} and {small.rank} differ, and {ATTRIBUTE} is "
        "missing",
        *(hints or [f"no {ATTRIBUTE} fits these shapes"]),
    )


def _stretched(low: str, small: Shape, placed: Dims, high: str, large: Shape) -> Dims:
    extents = list(large.dims)
    for source, (dim, size) in enumerate(zip(placed, small.dims, strict=True)):
        if not _fit(size, extents[dim]):
            refuse(
                "dimension_mismatch",
                f"{high} is {large} and {low} is {small}: dimension {source} of {low} has extent {size} and maps to "
                f"dimension {dim} of {high}, which has extent {extents[dim]}; the extents must be "
                "equal, or one of them must be 1",
            )
        extents[dim] = size if extents[dim] == 1 else extents[dim]
    return tuple(extents)


def _fit(a: int, b: int) -> bool:
    return a == b or a == 1 or b == 1
