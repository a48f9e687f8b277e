"""The values of dot: operands are transposed and multiplied by a batched matrix product."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from math import prod

import numpy as np
from attrs import frozen

from shape_inference import Dims, PrimitiveType
from xbuild.core.attributes import Array

from .lifting import common
from .products import DType, Settled, finished, matmul, working_type


@frozen
class _Plan:
    """The plan of a dot: the orders of dimensions (None: unchanged), the numbers of dimensions, the matrix product."""

    lhs_order: Dims | None
    rhs_order: Dims | None
    batch: int
    lhs_free: int
    contracted: int
    is_matrices: bool
    product: Callable[[Array, Array, Settled], Array]


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
        plan = _plan(
            (lhs.ndim, lhs_batch_dims, lhs_contracting_dims), (rhs.ndim, rhs_batch_dims, rhs_contracting_dims),
            lhs.dtype, rhs.dtype, preferred_element_type,
        )  # fmt: skip
        left = lhs if plan.lhs_order is None else lhs.transpose(plan.lhs_order)
        right = rhs if plan.rhs_order is None else rhs.transpose(plan.rhs_order)
        if plan.is_matrices:
            return plan.product(left, right, known)
        middle = plan.batch + plan.lhs_free
        batch, rows, columns = (
            left.shape[: plan.batch],
            left.shape[plan.batch : middle],
            right.shape[plan.batch + plan.contracted :],
        )
        terms = prod(left.shape[middle:])
        matrices = left.reshape(*batch, prod(rows), terms), right.reshape(*batch, terms, prod(columns))
        return plan.product(*matrices, known).reshape(batch + rows + columns)

    return dot


@cache
def _plan(
    lhs: tuple[int, Dims, Dims],
    rhs: tuple[int, Dims, Dims],
    lhs_dtype: DType,
    rhs_dtype: DType,
    preferred: PrimitiveType | None,
) -> _Plan:
    (lhs_rank, lhs_batch, lhs_contracting), (rhs_rank, rhs_batch, rhs_contracting) = lhs, rhs
    lhs_free = tuple(dim for dim in range(lhs_rank) if dim not in lhs_batch + lhs_contracting)
    rhs_free = tuple(dim for dim in range(rhs_rank) if dim not in rhs_batch + rhs_contracting)
    result = preferred.dtype if preferred else common(lhs_dtype, rhs_dtype)
    return _Plan(
        lhs_order=_order(lhs_batch + lhs_free + lhs_contracting),
        rhs_order=_order(rhs_batch + rhs_contracting + rhs_free),
        batch=len(lhs_batch),
        lhs_free=len(lhs_free),
        contracted=len(lhs_contracting),
        is_matrices=len(lhs_free) == len(rhs_free) == len(lhs_contracting) == 1,
        product=_product(lhs_dtype, rhs_dtype, result),
    )


def _order(dims: Dims) -> Dims | None:
    return None if dims == tuple(range(len(dims))) else dims


def _product(lhs: DType, rhs: DType, result: DType) -> Callable[[Array, Array, Settled], Array]:
    """The matrix product for these types: `matmul` itself, or `matmul` in a wider type with one rounding."""
    if lhs == rhs == result and lhs in (np.float32, np.float64, np.complex64, np.complex128):
        return matmul
    return partial(_widened, result=result)


def _widened(lhs: Array, rhs: Array, known: Settled, *, result: DType) -> Array:
    work = working_type(lhs.dtype, rhs.dtype, result, lhs.shape[-1])
    return finished(matmul(lhs.astype(work, copy=False), rhs.astype(work, copy=False), known), result)
