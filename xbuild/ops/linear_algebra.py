"""Matrix decompositions and solvers, and Fourier transforms."""

from __future__ import annotations

from typing import Literal

from shape_inference import Dims

from ..core.builder import Value
from ..core.op import op
from ..core.properties import Properties

__all__ = ["cholesky", "fft", "triangular_solve"]


@op(Properties("mixed", denormals="flushed"))
def cholesky(a: Value, *, lower: bool = True) -> Value:
    """The triangular factor of symmetric (Hermitian) positive definite matrices: a = L L^H, or U^H U for an upper one.

    Only the selected triangle of `a` is read; the other one of the result is zero. A matrix that is not positive
    definite gives NaN everywhere. Computed in f64 or c128 and rounded once.
    Shapes: floats or complex [..., n, n]; the same.
    Raises: not_array; rank_too_small; dimension_mismatch; element_type_unsupported.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2, 2])(xb.ops.cholesky), [[4.0, 0.0], [2.0, 5.0]])
    array([[2., 0.],
           [1., 2.]], dtype=float32)

    Source: xla_builder.h, Cholesky; StableHLO, cholesky.
    """
    ...


@op(Properties("mixed", denormals="flushed"))
def triangular_solve(
    a: Value,
    b: Value,
    *,
    left_side: bool,
    lower: bool,
    unit_diagonal: bool,
    transpose_a: Literal["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"],
) -> Value:
    """The x with op(a) x = b, or x op(a) = b if `left_side` is false; op is the identity, a transpose or an adjoint.

    Only the selected triangle of `a` is read, without the diagonal if a unit diagonal is declared. A zero on the
    diagonal gives infinities and NaN. Computed in f64 or c128 and rounded once.
    Shapes: floats or complex, a [..., n, n] and b [..., n, k] (or [..., k, n] on the right side); as b.
    Raises: not_array; rank_too_small; dimension_mismatch; element_type_unsupported; element_type_mismatch;
    rank_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2, 2], xb.f32[2, 1])
    ... def solved(a, b):
    ...     kind = {"lower": True, "unit_diagonal": False, "transpose_a": "NO_TRANSPOSE"}
    ...     return xb.ops.triangular_solve(a, b, left_side=True, **kind)
    >>> xb.evaluate(solved, [[2.0, 0.0], [1.0, 4.0]], [[2.0], [9.0]])
    array([[1.],
           [2.]], dtype=float32)

    Source: xla_builder.h, TriangularSolve; StableHLO, triangular_solve.
    """
    ...


@op(Properties("mixed", denormals="flushed"))
def fft(operand: Value, *, fft_type: Literal["FFT", "IFFT", "RFFT", "IRFFT"], fft_length: Dims) -> Value:
    """The discrete Fourier transform over the last dimensions, as many as `fft_length` has entries.

    Formula: FFT: y[k] = sum over j of x[j] exp(-2 pi i j k / n); IFFT: with +, and divided by n. RFFT takes real
    rows and returns the first n/2 + 1 numbers of each; IRFFT is its inverse.
    Shapes: c64 or c128 (RFFT: f32 or f64, and c64 or c128 out; IRFFT the other way round); 1 to 3 lengths, which are
    the extents on the full side.
    Raises: not_array; invalid_attribute; negative_size; rank_too_small; element_type_unsupported; dimension_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[4])
    ... def spectrum(x):
    ...     return xb.ops.fft(x, fft_type="RFFT", fft_length=(4,))
    >>> xb.evaluate(spectrum, [1.0, 0.0, -1.0, 0.0])
    array([0.+0.j, 2.+0.j, 0.+0.j], dtype=complex64)

    Source: xla_builder.h, Fft; StableHLO, fft.
    """
    ...
