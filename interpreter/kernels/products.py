"""Sums of products: the type in which they are computed, the rounding to the result's type, and matrix products."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen
from ml_dtypes import bfloat16

from shape_inference import primitive_type
from xbuild.core.attributes import Array

from ..rules.limits import check_time
from .blas import is_single_threaded
from .lifting import narrowed

DType: TypeAlias = np.dtype[Any]

_EXACT = ((np.dtype(np.float32), 24), (np.dtype(np.float64), 53))
"""The number of bits of the integers that each BLAS type represents exactly."""


@lru_cache(maxsize=1024)
def working_type(lhs: DType, rhs: DType, result: DType, terms: int, *, by_blas: bool = True) -> DType:
    """The type of a sum of products: f32 or wider for floats; for integers, an exact float or a wrapping integer."""
    kinds = {primitive_type(dtype).kind for dtype in (lhs, rhs, result)}
    if kinds & {"float", "complex"}:
        return _wide("complex" in kinds, (lhs, rhs, result))
    bits = primitive_type(lhs).bits + primitive_type(rhs).bits + terms.bit_length()
    if by_blas:
        for dtype, exact in _EXACT:
            if bits <= exact:
                return dtype
    return result if result.kind in "iu" and result.isbuiltin == 1 else np.dtype(np.int64)


def _wide(is_complex: bool, dtypes: tuple[DType, ...]) -> DType:
    """The float or complex type of double precision if one of the types has it, else of single precision."""
    double = any(dtype in (np.float64, np.complex128) for dtype in dtypes)
    if is_complex:
        return np.dtype(np.complex128 if double else np.complex64)
    return np.dtype(np.float64 if double else np.float32)


def finished(sums: Array, result: DType) -> Array:
    """Sums rounded once, or wrapped, to the result's type; for pred, whether the sum is not zero."""
    if result == np.bool_:
        return np.asarray(sums != 0)
    if sums.dtype.kind == "f" and primitive_type(result).is_integer:
        sums = sums.astype(np.int64)
    return narrowed(sums, result)


_GEMV, _GEMM = 2**13, 2**17
"""The numbers of products from which BLAS may use its own threads, for matrix-vector and matrix-matrix products."""


@frozen
class Settled:
    """What a plan knows of a product: operands without denormal numbers, and a product that only arithmetic reads."""

    lhs: bool = False
    rhs: bool = False
    product: bool = False


UNKNOWN, SETTLED_OPERANDS = Settled(), Settled(lhs=True, rhs=True)


def is_small(rows: int, terms: int, columns: int) -> bool:
    """Whether BLAS computes a product of matrices of these sizes in the calling thread."""
    return rows * terms * columns < (_GEMV if min(rows, columns) == 1 else _GEMM)


def matmul(lhs: Array, rhs: Array, known: Settled = UNKNOWN) -> Any:
    """`np.matmul` in this thread's denormal mode, which threads of BLAS do not have.

    Where BLAS may use such threads, the denormal numbers of operands and product are flushed outside BLAS, but for
    operands that are `known` to have none, and for a product whose readers flush it.
    """
    if is_small(lhs.shape[-2], lhs.shape[-1], rhs.shape[-1]) or lhs.dtype.kind not in "fc":
        return np.matmul(lhs, rhs)
    check_time()
    if is_single_threaded():
        return np.matmul(lhs, rhs)
    product = np.matmul(lhs if known.lhs else settled(lhs), rhs if known.rhs else settled(rhs))
    return product if known.product else settle(product)


def settle(array: Array) -> Array:
    """The array itself, in which this thread's mode has replaced denormal numbers by zeros if it flushes them."""
    for part in _parts(array):
        np.multiply(part, 1, out=part)
    return array


def _parts(array: Array) -> tuple[Any, ...]:
    return (array.real, array.imag) if array.dtype.kind == "c" else (array,)


def settled(array: Array) -> Array:
    """The array, with denormal numbers replaced by zeros if this thread's mode flushes them."""
    if array.dtype == bfloat16:
        return settled(array.astype(np.float32)).astype(bfloat16)
    if (
        array.dtype.isbuiltin != 1
        or array.dtype.kind not in "fc"
        or not array.size
        or not any(map(_has_small, _parts(array)))
    ):
        return array
    return settle(array.copy())


def _has_small(part: Array) -> bool:
    """Whether the array may contain a denormal number; the test on bits is also true for zeros."""
    size = part.dtype.itemsize
    least = np.array(np.finfo(part.dtype).tiny, part.dtype).view(f"i{size}")
    lowest = np.minimum.reduce(part.view(f"i{size}"), axis=None)
    return bool(
        lowest < least + np.iinfo(least.dtype).min or np.minimum.reduce(part.view(f"u{size}"), axis=None) < least
    )
