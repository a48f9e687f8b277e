"""Values of matrix decompositions and solvers, and of Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shape_inference import Dims
from shape_inference.ops.linear_algebra import half
from xbuild.core.attributes import Array

from ..kernels.lifting import narrowed
from ..kernels.products import matmul, settled
from ..rules import compute


@compute
def cholesky(a: Array, *, lower: bool) -> Array:
    matrices = _in_double_precision(a)
    factors = _lower_factors(matrices if lower else _adjoint(matrices))
    return narrowed(factors if lower else _adjoint(factors), a.dtype)


def _in_double_precision(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _adjoint(matrices: Array) -> Array:
    return np.conj(np.swapaxes(matrices, -1, -2))


def _lower_factors(matrices: Array) -> Array:
    """The lower Cholesky factors, all NaN for a matrix that has no factor.

    NumPy only reports that some matrix of a batch has no factor, so the batch is then factored one by one.
    """
    try:
        factors = settled(np.linalg.cholesky(settled(matrices)))
    except np.linalg.LinAlgError:
        if matrices.ndim > 2:
            return np.stack([_lower_factors(matrix) for matrix in matrices])
        return np.full_like(matrices, np.nan)
    lost = np.asarray(np.isnan(np.diagonal(factors, axis1=-2, axis2=-1)).any(-1))
    return np.where(lost[..., None, None], np.nan, factors) if lost.any() else factors


@compute
def triangular_solve(
    a: Array, b: Array, *, left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str
) -> Array:
    """The solution of a triangular system; each form is transposed or reversed to a lower triangle on the left side."""
    matrices, right = _in_double_precision(a), _in_double_precision(b)
    if transpose_a == "ADJOINT":
        matrices = np.conj(matrices)
    if not left_side:
        right = np.swapaxes(right, -1, -2)
    if (transpose_a != "NO_TRANSPOSE") == left_side:
        matrices, lower = np.swapaxes(matrices, -1, -2), not lower
    if not lower:
        matrices, right = matrices[..., ::-1, ::-1], right[..., ::-1, :]
    solution = _substitute_forward(matrices, right, unit_diagonal)
    solution = solution if lower else solution[..., ::-1, :]
    return narrowed(solution if left_side else np.swapaxes(solution, -1, -2), b.dtype)


def _substitute_forward(matrices: Array, right: Array, unit_diagonal: bool) -> Array:
    """Recursive forward substitution: the upper rows are solved, and their terms subtracted from the lower rows."""
    rows = matrices.shape[-1]
    if rows <= 1:
        return right if unit_diagonal or not rows else right / matrices
    middle = rows // 2
    upper = _substitute_forward(matrices[..., :middle, :middle], right[..., :middle, :], unit_diagonal)
    rest = right[..., middle:, :] - matmul(matrices[..., middle:, :middle], upper)
    return np.concatenate([upper, _substitute_forward(matrices[..., middle:, middle:], rest, unit_diagonal)], axis=-2)


_TRANSFORMS: dict[str, Callable[..., Any]] = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "RFFT": np.fft.rfftn,
    "IRFFT": np.fft.irfftn,
}


@compute
def fft(operand: Array, *, fft_type: str, fft_length: Dims) -> Array:
    if 0 in operand.shape or 0 in fft_length:
        return _empty_transform(operand, fft_type, fft_length)
    return _TRANSFORMS[fft_type](operand, fft_length, range(-len(fft_length), 0))  # type: ignore[no-any-return]


def _empty_transform(operand: Array, fft_type: str, fft_length: Dims) -> Array:
    """The result of an empty transform, for which NumPy raises an error."""
    last = half(fft_length[-1]) if fft_type == "RFFT" else fft_length[-1]
    real = {"RFFT": np.result_type(operand, np.complex64), "IRFFT": operand.real.dtype}.get(fft_type, operand.dtype)
    return np.zeros((*operand.shape[: -len(fft_length)], *fft_length[:-1], last), real)
