"""The values of dot: operands are transposed and multiplied by a batched matrix product."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from math import prod
from typing import TypeAlias

import numpy as np

from shape_inference import Dims, PrimitiveType
from xbuild.core.attributes import Array

from .lifting import common
from .products import DType, Settled, finished, is_small, matmul, working_type

Side: TypeAlias = tuple[Dims, DType, Dims, Dims]
"""An operand of a dot: its extents, element type, batch dimensions and contracting dimensions."""


@cache
def dot_knowing(known: Settled) -> Callable[..., Array]:
    """The value rule of dot for operands and a product of which this is known."""

    def dot(
        lhs: Array,
        rhs: Array,
        *,
        lhs_contracting_dims: Dims,
        rhs_contracting_dims: Dims,
        lhs_batch_dims: Dims,
        rhs_batch_dims: Dims,
        operand_precision: tuple[str, ...],
        preferred_element_type: PrimitiveType | None,
    ) -> Array:
        return prepared_dot(
            (lhs.shape, lhs.dtype, lhs_batch_dims, lhs_contracting_dims),
            (rhs.shape, rhs.dtype, rhs_batch_dims, rhs_contracting_dims),
            preferred_element_type, known,
        )(lhs, rhs)  # fmt: skip

    return dot


@lru_cache(maxsize=4096)
def prepared_dot(
    lhs: Side, rhs: Side, preferred: PrimitiveType | None, known: Settled
) -> Callable[[Array, Array], Array]:
    """The product of two arrays of these extents and types, as a function."""
    (lhs_dims, lhs_dtype, lhs_batch, lhs_contracting), (rhs_dims, rhs_dtype, rhs_batch, rhs_contracting) = lhs, rhs
    lhs_free = tuple(dim for dim in range(len(lhs_dims)) if dim not in lhs_batch + lhs_contracting)
    rhs_free = tuple(dim for dim in range(len(rhs_dims)) if dim not in rhs_batch + rhs_contracting)
    result = preferred.dtype if preferred else common(lhs_dtype, rhs_dtype)
    lhs_order = _order(lhs_batch + lhs_free + lhs_contracting)
    rhs_order = _order(rhs_batch + rhs_contracting + rhs_free)
    batch, rows, terms, columns = (
        tuple(dims[dim] for dim in chosen)
        for dims, chosen in (
            (lhs_dims, lhs_batch), (lhs_dims, lhs_free), (lhs_dims, lhs_contracting), (rhs_dims, rhs_free)
        )
    )  # fmt: skip
    product = _product((lhs_dtype, rhs_dtype, result), (prod(rows), prod(terms), prod(columns)), known)
    lhs_matrices, rhs_matrices = (*batch, prod(rows), prod(terms)), (*batch, prod(terms), prod(columns))
    is_matrices = len(rows) == len(columns) == len(terms) == 1

    def multiply(lhs: Array, rhs: Array) -> Array:
        left = lhs if lhs_order is None else lhs.transpose(lhs_order)
        right = rhs if rhs_order is None else rhs.transpose(rhs_order)
        if is_matrices:
            return product(left, right)
        return product(left.reshape(lhs_matrices), right.reshape(rhs_matrices)).reshape(batch + rows + columns)

    return product if is_matrices and lhs_order is None and rhs_order is None else multiply


def _order(dims: Dims) -> Dims | None:
    return None if dims == tuple(range(len(dims))) else dims


def _product(
    types: tuple[DType, DType, DType], sizes: tuple[int, int, int], known: Settled
) -> Callable[[Array, Array], Array]:
    """The product of matrices of these types and sizes: in a wider type with one rounding, where the types differ."""
    lhs, rhs, result = types
    if lhs == rhs == result and lhs in (np.float32, np.float64, np.complex64, np.complex128):
        return np.matmul if is_small(*sizes) else partial(matmul, known=known)
    work = working_type(lhs, rhs, result, sizes[1])

    def widened(lhs: Array, rhs: Array) -> Array:
        return finished(matmul(lhs.astype(work, copy=False), rhs.astype(work, copy=False), known), result)

    return widened
