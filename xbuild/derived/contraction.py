"""Convenience forms of dot: XlaBuilder's Dot by ranks, DotGeneral, and the products by groups and by scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from shape_inference import PrimitiveType, refuse
from shape_inference.ops.contraction import check_dot_ranks

from .. import ops
from ..core.builder import Value
from .support import as_values, counted_all, dressed, operand_precisions, rank_of, shape_of

__all__ = ["dot", "dot_general", "ragged_dot", "scaled_dot"]

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
    """Multiply vectors and matrices: contract dimension 1 of lhs (dimension 0 of a vector) with dimension 0 of rhs.

    One operand may be a NumPy array. `precision` is "default", "high" or "highest": one value for both operands, or
    a pair with one value for each.
    Raises: rank_too_small for a scalar; otherwise the same errors as xb.ops.dot.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2, 2], xb.f32[2])(xb.dot), [[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0])
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
    """Record HLO's dot, with dimensions as separate arguments or as `dimension_numbers`.

    `dimension_numbers` has the form ((lhs, rhs contracting), (lhs, rhs batch)). One operand may be a NumPy array.
    `precision` is as in `dot`.
    Raises: invalid_attribute if dimensions are given in both forms; otherwise the same errors as xb.ops.dot.

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
        given = _read_dimension_numbers(dimension_numbers, given)
    contracting, batch = (_normalize_pair(pair, left, right) for pair in given)
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


@dressed
def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    dimension_numbers: tuple[Pair, Pair] = (((1,), (1,)), ((), ())),
    lhs_ragged_dims: Sequence[int] = (0,),
    rhs_group_dims: Sequence[int] | None = None,
    *,
    precision: str | Sequence[str] | None = None,
    preferred_element_type: PrimitiveType | None = None,
    name: str | None = None,
) -> Value:
    """Multiply group by group; by default, multiply rows of lhs [m, k], in groups of `group_sizes`, by rhs [groups, k,
    n].

    `dimension_numbers` has the form ((lhs, rhs contracting), (lhs, rhs batch)). `rhs_group_dims` defaults to (0,) if
    the ragged dimension is neither contracting nor batch. `precision` is as in `dot`.
    Raises: the same errors as xb.ops.ragged_dot.

    >>> import xbuild as xb
    >>> x = xb.parameter(builder := xb.Builder("b"), number=0, shape=xb.f32[5, 2])
    >>> y = xb.parameter(builder, number=1, shape=xb.f32[3, 2, 4])
    >>> import numpy as np
    >>> xb.ragged_dot(x, y, np.array([2, 0, 3], np.int32)).shape
    f32[5,4]

    Source: xla_builder.h, RaggedDot.
    """
    left, right = as_values((lhs, rhs))
    (groups,) = as_values((group_sizes,), builder=left.builder)
    contracting, batch = (
        _normalize_pair(p, left, right) for p in _read_dimension_numbers(dimension_numbers, (((), ()), ((), ())))
    )
    lhs_ragged_dims = counted_all(lhs_ragged_dims, rank_of(left))
    paired = {*contracting[0], *batch[0]}
    if rhs_group_dims is None:
        rhs_group_dims = () if paired & {*lhs_ragged_dims} else (0,)
    return ops.ragged_dot(
        left,
        right,
        groups,
        lhs_contracting_dims=contracting[0],
        rhs_contracting_dims=contracting[1],
        lhs_batch_dims=batch[0],
        rhs_batch_dims=batch[1],
        lhs_ragged_dims=lhs_ragged_dims,
        rhs_group_dims=counted_all(rhs_group_dims, rank_of(right)),
        operand_precision=operand_precisions(precision),
        preferred_element_type=preferred_element_type,
        name=name,
    )


@dressed
def scaled_dot(
    lhs: Any,
    rhs: Any,
    lhs_scale: Any,
    rhs_scale: Any,
    contracting_dims: Pair,
    batch_dims: Pair = ((), ()),
    *,
    precision: str | Sequence[str] | None = None,
    preferred_element_type: PrimitiveType | None = None,
    name: str | None = None,
) -> Value:
    """Multiply scaled operands; each block of elements has its own scale. Pairs are in the order (lhs, rhs).

    Operands and scales may be numbers or NumPy arrays if at least one of them is a value. `precision` is as in `dot`.
    Raises: the same errors as xb.ops.scaled_dot.

    >>> import xbuild as xb
    >>> x = xb.parameter(builder := xb.Builder("b"), number=0, shape=xb.f8e4m3fn[2, 64])
    >>> s = xb.parameter(builder, number=1, shape=xb.f8e8m0fnu[2, 2])
    >>> xb.scaled_dot(x, x, s, s, ((1,), (1,)), preferred_element_type=xb.bf16).shape
    bf16[2,2]

    Source: HloOpcode, scaled-dot.
    """
    left, right, left_scale, right_scale = as_values((lhs, rhs, lhs_scale, rhs_scale))
    contracting_dims, batch_dims = (
        _normalize_pair(contracting_dims, left, right),
        _normalize_pair(batch_dims, left, right),
    )
    return ops.scaled_dot(
        left,
        right,
        left_scale,
        right_scale,
        lhs_contracting_dims=contracting_dims[0],
        rhs_contracting_dims=contracting_dims[1],
        lhs_batch_dims=batch_dims[0],
        rhs_batch_dims=batch_dims[1],
        operand_precision=operand_precisions(precision),
        preferred_element_type=preferred_element_type,
        name=name,
    )


def _normalize_pair(pair: Pair, lhs: Value, rhs: Value) -> Pair:
    """Dimension numbers of lhs and of rhs, each counted from 0."""
    return counted_all(pair[0], rank_of(lhs)), counted_all(pair[1], rank_of(rhs))


def _read_dimension_numbers(dimension_numbers: Any, given: tuple[Pair, Pair]) -> tuple[Pair, Pair]:
    """The contracting and batch dimensions of a dot as pairs; giving them by position as well is refused."""
    if any(len(dims) for pair in given for dims in pair):
        refuse(
            "invalid_attribute",
            f"dimension_numbers={dimension_numbers} cannot be combined with dimensions passed by position; pass only "
            "one of them",
        )
    try:
        (lhs, rhs), (lhs_batch, rhs_batch) = dimension_numbers
    except (TypeError, ValueError):
        refuse(
            "invalid_attribute",
            f"dimension_numbers={dimension_numbers!r}: expected ((lhs contracting, rhs contracting), "
            "(lhs batch, rhs batch))",
        )
    return (lhs, rhs), (lhs_batch, rhs_batch)
