"""Values of dot, ragged-dot and scaled-dot, by way of the matrix product of `kernels.dots`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from shape_inference import Dims, PrimitiveType, primitive_type
from shape_inference.ops.contraction import renumbered
from xbuild.core.attributes import Array

from ..kernels.dots import dot_knowing
from ..kernels.lifting import common, narrowed, widened
from ..kernels.products import UNKNOWN
from ..kernels.ragged import Ragged
from ..rules import compute

dot = dot_knowing(UNKNOWN)
compute.enter("dot", dot)


@compute
def ragged_dot(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    *,
    lhs_batch_dims: Dims,
    lhs_contracting_dims: Dims,
    rhs_batch_dims: Dims,
    rhs_contracting_dims: Dims,
    lhs_ragged_dims: Dims,
    rhs_group_dims: Dims,
    operand_precision: tuple[str, ...],
    preferred_element_type: PrimitiveType | None,
) -> Array:
    paired = dict(zip(lhs_batch_dims + lhs_contracting_dims, rhs_batch_dims + rhs_contracting_dims, strict=True))
    dtype = (preferred_element_type or primitive_type(common(lhs.dtype, rhs.dtype))).dtype
    product = partial(
        dot,
        lhs_contracting_dims=lhs_contracting_dims,
        rhs_contracting_dims=renumbered(rhs_contracting_dims, rhs_group_dims),
        lhs_batch_dims=lhs_batch_dims,
        rhs_batch_dims=renumbered(rhs_batch_dims, rhs_group_dims),
        operand_precision=operand_precision,
        preferred_element_type=preferred_element_type,
    )
    if lhs_ragged_dims[0] in lhs_batch_dims:
        return product(lhs, rhs)
    ragged = Ragged(lhs_ragged_dims[0], lhs_batch_dims, lhs_contracting_dims, paired, rhs_group_dims)
    return ragged.products(lhs, rhs, group_sizes, product, dtype)


@compute
def scaled_dot(
    lhs: Array,
    rhs: Array,
    lhs_scale: Array,
    rhs_scale: Array,
    *,
    lhs_batch_dims: Dims,
    lhs_contracting_dims: Dims,
    rhs_batch_dims: Dims,
    rhs_contracting_dims: Dims,
    operand_precision: tuple[str, ...],
    preferred_element_type: PrimitiveType | None,
) -> Array:
    product = dot(
        _apply_scale(lhs, lhs_scale),
        _apply_scale(rhs, rhs_scale),
        lhs_contracting_dims=lhs_contracting_dims,
        rhs_contracting_dims=rhs_contracting_dims,
        lhs_batch_dims=lhs_batch_dims,
        rhs_batch_dims=rhs_batch_dims,
        operand_precision=(),
        preferred_element_type=None,
    )
    dtype = preferred_element_type.dtype if preferred_element_type else common(lhs.dtype, rhs.dtype)
    return narrowed(product, dtype)


def _apply_scale(operand: Array, scale: Array) -> Any:
    """The operand in f32 or wider, with each block multiplied by its scale."""
    wide = np.result_type(np.float32, widened(operand).dtype, widened(scale).dtype)
    values, factors = operand.astype(wide), scale.astype(wide)
    for axis, (extent, blocks) in enumerate(zip(values.shape, factors.shape, strict=False)):
        if blocks not in (1, extent):
            factors = np.repeat(factors, extent // blocks, axis)
    return values * factors
