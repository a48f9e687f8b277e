"""Comfortable forms of dot: XlaBuilder's Dot by ranks, and DotGeneral."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from shape_inference import PrimitiveType, refuse
from shape_inference.ops.contraction import check_dot_ranks

from .. import ops
from ..builder import Value
from .arguments import as_values, operand_precisions, shape_of
from .dressing import dressed

__all__ = ["dot", "dot_general"]

Pair: TypeAlias = tuple[Sequence[int], Sequence[int]]


@dressed
def dot(
    lhs: Any,
    rhs: Any,
    precision: str | Sequence[str] | None = None,
    preferred_element_type: PrimitiveType | None = None,
    *,
    name: str | None = None,
) -> Value:
    """Vector and matrix products: dimension 1 of lhs (0 of a vector) with dimension 0 of rhs.

    One operand may be a NumPy array. `precision`: "default", "high" or "highest", one or one for each operand.
    Raises: rank_too_small for a scalar; else as xb.ops.dot.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> evaluate(xb.computation(xb.f32[2, 2], xb.f32[2])(xb.dot), [[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0])
    array([21., 43.], dtype=float32)

    Source: Operation Semantics, Dot.
    """
    left, right = as_values((lhs, rhs))
    shape, _ = check_dot_ranks(shape_of(left), shape_of(right))
    return ops.dot(
        left,
        right,
        lhs_contracting_dims=(min(shape.rank - 1, 1),),
        rhs_contracting_dims=(0,),
        operand_precision=operand_precisions(precision),
        preferred_element_type=preferred_element_type,
        name=name,
    )


@dressed
def dot_general(
    lhs: Any,
    rhs: Any,
    lhs_contracting_dims: Sequence[int] = (),
    rhs_contracting_dims: Sequence[int] = (),
    lhs_batch_dims: Sequence[int] = (),
    rhs_batch_dims: Sequence[int] = (),
    *,
    dimension_numbers: tuple[Pair, Pair] | None = None,
    precision: str | Sequence[str] | None = None,
    preferred_element_type: PrimitiveType | None = None,
    name: str | None = None,
) -> Value:
    """HLO's dot, its dimensions by position, or as dimension_numbers=((lhs, rhs contracting), (lhs, rhs batch)).

    One operand may be a NumPy array. `precision` as for `dot`.
    Raises: invalid_attribute where dimensions are given in both forms; else as xb.ops.dot.

    >>> import xbuild as xb
    >>> x = xb.parameter(builder := xb.Builder("b"), number=0, shape=xb.f32[5, 2, 3])
    >>> y = xb.parameter(builder, number=1, shape=xb.f32[5, 3, 4])
    >>> xb.dot_general(x, y, [2], [1], [0], [0]).shape
    f32[5,2,4]
    >>> xb.dot_general(x, y, dimension_numbers=(((2,), (1,)), ((0,), (0,)))).shape
    f32[5,2,4]

    Source: Operation Semantics, DotGeneral.
    """
    left, right = as_values((lhs, rhs))
    given: tuple[Pair, Pair] = (lhs_contracting_dims, rhs_contracting_dims), (lhs_batch_dims, rhs_batch_dims)
    if dimension_numbers is not None:
        given = _numbers(dimension_numbers, given)
    contracting, batch = given
    return ops.dot(
        left,
        right,
        lhs_contracting_dims=contracting[0],
        rhs_contracting_dims=contracting[1],
        lhs_batch_dims=batch[0],
        rhs_batch_dims=batch[1],
        operand_precision=operand_precisions(precision),
        preferred_element_type=preferred_element_type,
        name=name,
    )


def _numbers(dimension_numbers: Any, given: tuple[Pair, Pair]) -> tuple[Pair, Pair]:
    """The pairs of pairs, which stand alone."""
    if any(len(dims) for pair in given for dims in pair):
        refuse(
            "invalid_attribute",
            f"dimension_numbers={dimension_numbers} beside dimensions by position; one of them is enough",
        )
    try:
        (lhs, rhs), (lhs_batch, rhs_batch) = dimension_numbers
    except (TypeError, ValueError):
        refuse(
            "invalid_attribute",
            f"dimension_numbers={dimension_numbers!r}; ((lhs, rhs contracting), (lhs, rhs batch)) is wanted",
        )
    return (lhs, rhs), (lhs_batch, rhs_batch)
