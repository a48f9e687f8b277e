"""Cotangents of ops that rearrange or repeat elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import ops
from ...core.attributes import PaddingDimension
from ...core.builder import Value
from ..arrays import dims_of, sum_all, sum_over
from ..rules import Cotangents, Pullback, no_derivative, vjp, zero_derivative

zero_derivative("get_dimension_size")
no_derivative(
    "set_dimension_size", "dynamic_reshape",
    reason="its result has a dimension whose size is known only at run time, but cotangents have static shapes",
)  # fmt: skip


@vjp
def broadcast(back: Pullback, operand: Value, *, sizes: Any, dimensions: Sequence[int]) -> Cotangents:
    """The sum over the repeated dimensions, transposed back to the operand's order."""
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
    cotangents: list[Value | None] = []
    start, extents = 0, dims_of(back.result)
    for n, operand in enumerate(operands):
        size = dims_of(operand)[dimension]
        begin = tuple([start if d == dimension else 0 for d in range(len(extents))])
        end = tuple([start + size if d == dimension else extent for d, extent in enumerate(extents)])
        part = ops.slice(back.ct, start_indices=begin, limit_indices=end, strides=(1,) * len(extents))
        cotangents.append(part if back.wants(n) else None)
        start += size
    return tuple(cotangents)


@vjp
def pad(back: Pullback, operand: Value, padding_value: Value, *, padding: Sequence[PaddingDimension]) -> Cotangents:
    """The operand gets the cotangent of its elements, zeros for cropped ones; the padding value gets the rest."""
    taken = _unpad(back, dims_of(operand), padding)
    if not back.wants(1):
        return taken, None
    return taken if back.wants(0) else None, sum_all(back.ct) - sum_all(taken)


def _unpad(back: Pullback, extents: Sequence[int], padding: Sequence[PaddingDimension]) -> Value:
    """The cotangent without the edge padding, then without the interior padding."""
    cropped = [PaddingDimension(-dimension.low, -dimension.high) for dimension in padding]
    zero = back.zeros(back.ct.shape.dtype[()])
    whole = ops.pad(back.ct, zero, padding=tuple(cropped))
    return ops.slice(
        whole,
        start_indices=(0,) * len(extents),
        limit_indices=dims_of(whole),
        strides=tuple([dimension.interior + 1 for dimension in padding]),
    )
