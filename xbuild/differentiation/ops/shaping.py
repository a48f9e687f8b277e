"""Cotangents of ops that lay the elements of arrays out anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import ops
from ...core.attributes import PaddingDimension
from ...core.builder import Value
from ..rules import Cotangents, Pullback, no_derivative, vjp, zero_derivative
from ..support import dims_of, sum_over, total

zero_derivative("get_dimension_size")
no_derivative(
    "set_dimension_size", "dynamic_reshape",
    reason="its result has a dimension whose size is known at run time only, and cotangents have static shapes",
)  # fmt: skip


@vjp
def broadcast(back: Pullback, operand: Value, *, sizes: Any, dimensions: Sequence[int]) -> Cotangents:
    """The sum over the dimensions that repeat; unsorted dimensions are put back into the operand's order."""
    summed = sum_over(back.ct, [d for d in range(len(sizes)) if d not in dimensions])
    order = sorted(dimensions)
    return (ops.transpose(summed, permutation=tuple([order.index(d) for d in dimensions])),)


@vjp
def reshape(back: Pullback, operand: Value, *, new_sizes: Any) -> Cotangents:
    return (ops.reshape(back.ct, new_sizes=dims_of(operand)),)


@vjp
def transpose(back: Pullback, operand: Value, *, permutation: Sequence[int]) -> Cotangents:
    inverse = sorted(range(len(permutation)), key=lambda n: permutation[n])
    return (ops.transpose(back.ct, permutation=tuple(inverse)),)


@vjp
def reverse(back: Pullback, operand: Value, *, dimensions: Any) -> Cotangents:
    return (ops.reverse(back.ct, dimensions=dimensions),)


@vjp
def concatenate(back: Pullback, operands: Sequence[Value], *, dimension: int) -> Cotangents:
    found: list[Value | None] = []
    start, extents = 0, dims_of(back.result)
    for n, operand in enumerate(operands):
        size = dims_of(operand)[dimension]
        begin = tuple([start if d == dimension else 0 for d in range(len(extents))])
        end = tuple([start + size if d == dimension else extent for d, extent in enumerate(extents)])
        part = ops.slice(back.ct, start_indices=begin, limit_indices=end, strides=(1,) * len(extents))
        found.append(part if back.wants(n) else None)
        start += size
    return tuple(found)


@vjp
def pad(back: Pullback, operand: Value, padding_value: Value, *, padding: Sequence[PaddingDimension]) -> Cotangents:
    """What the operand's elements became, zeros where they were cropped; the rest is of the padding value."""
    taken = _unpadded(back, dims_of(operand), padding)
    if not back.wants(1):
        return taken, None
    return taken if back.wants(0) else None, total(back.ct) - total(taken)


def _unpadded(back: Pullback, extents: Sequence[int], padding: Sequence[PaddingDimension]) -> Value:
    """The cotangent with the padding cropped, then every element that no interior padding is."""
    cropped = [PaddingDimension(-each.low, -each.high) for each in padding]
    zero = back.zeros(back.ct.shape.dtype[()])
    whole = ops.pad(back.ct, zero, padding=tuple(cropped))
    return ops.slice(
        whole,
        start_indices=(0,) * len(extents),
        limit_indices=dims_of(whole),
        strides=tuple([each.interior + 1 for each in padding]),
    )
