"""Cotangents of static and dynamic slices."""

from __future__ import annotations

from collections.abc import Sequence

from shape_inference import Dims

from ... import ops
from ...core.attributes import PaddingDimension
from ...core.builder import Value
from ..arrays import dims_of
from ..rules import Cotangents, Pullback, vjp


@vjp
def slice(back: Pullback, operand: Value, *, start_indices: Dims, limit_indices: Dims, strides: Dims) -> Cotangents:
    steps = strides or (1,) * len(start_indices)
    rows = zip(dims_of(operand), dims_of(back.ct), start_indices, steps, strict=True)
    zero = back.zeros(back.ct.shape.dtype[()])
    return (ops.pad(back.ct, zero, padding=tuple([_padding_around(*row) for row in rows])),)


def _padding_around(extent: int, size: int, start: int, stride: int) -> PaddingDimension:
    """The padding that puts a slice back in its place."""
    taken = (size - 1) * stride + 1 if size else 0
    return PaddingDimension(start, extent - start - taken, stride - 1)


@vjp
def dynamic_slice(
    back: Pullback, operand: Value, start_indices: Sequence[Value], *, dynamic_slice_sizes: Sequence[int]
) -> Cotangents:
    placed = ops.dynamic_update_slice(back.zeros(operand), back.ct, start_indices)
    return placed, *(None for _ in start_indices)


@vjp
def dynamic_update_slice(back: Pullback, operand: Value, update: Value, start_indices: Sequence[Value]) -> Cotangents:
    outside = ops.dynamic_update_slice(back.ct, back.zeros(update), start_indices) if back.wants(0) else None
    inside = ops.dynamic_slice(back.ct, start_indices, dynamic_slice_sizes=dims_of(update)) if back.wants(1) else None
    return outside, inside, *(None for _ in start_indices)
