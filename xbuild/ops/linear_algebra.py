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
    """Factor symmetric (Hermitian) positive definite matrices: a = L L^H, or U^H U if `lower` is false.

    Only the selected triangle of `a` is read, and the opposite triangle of the result is zero. For a matrix that is not
    positive definite, all elements of the result are NaN. The result is computed in f64 or c128 and rounded once.
    Shapes: takes floats or complex numbers of shape [..., n, n] and returns the same shape.
    Raises: not_array, rank_too_small, dimension_mismatch or element_type_unsupported.

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
    """Return x such that op(a) x = b, or x op(a) = b if `left_side` is false.

    op is the identity, a transpose or an adjoint.
    Only the selected triangle of `a` is read, without its diagonal if `unit_diagonal` is true. A zero on the diagonal
    gives infinities and NaNs. The result is computed in f64 or c128 and rounded once.
    Shapes: takes floats or complex numbers, with shapes `a` [..., n, n] and `b` [..., n, k] (or [..., k, n] if `a` is
    on the right side). The result has the shape of `b`.
    Raises: not_array, rank_too_small, dimension_mismatch, element_type_unsupported, element_type_mismatch or
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
    """Compute the discrete Fourier transform over the last dimensions, one dimension for each entry of `fft_length`.

    Formula: FFT computes y[k] = sum over j of x[j] exp(-2 pi i j k / n); IFFT has the opposite sign and divides by n.
    RFFT takes real rows and returns the first n/2 + 1 numbers of each row; IRFFT is its inverse.
    Shapes: FFT and IFFT take c64 or c128. RFFT takes f32 or f64 and returns c64 or c128; IRFFT takes c64 or c128 and
    returns f32 or f64. The 1 to 3 entries of fft_length are the extents of the transformed dimensions; for RFFT and
    IRFFT, the extents in the real array.
    Raises: not_array, invalid_attribute, negative_size, rank_too_small, element_type_unsupported or dimension_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[4])
    ... def spectrum(x):
    ...     return xb.ops.fft(x, fft_type="RFFT", fft_length=(4,))
    >>> xb.evaluate(spectrum, [1.0, 0.0, -1.0, 0.0])
    array([0.+0.j, 2.+0.j, 0.+0.j], dtype=complex64)

    Source: xla_builder.h, Fft; StableHLO, fft.
    """
    ...
