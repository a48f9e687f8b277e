"""Convenience forms of cholesky, triangular_solve and fft: by position, with the usual defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from .. import ops
from ..core.builder import Value
from .support import as_values, dressed

__all__ = ["cholesky", "fft", "triangular_solve"]


def cholesky(a: Value, lower: bool = True, *, name: str | None = None) -> Value:
    """Factor symmetric (Hermitian) positive definite matrices: a = L L^H, or U^H U if `lower` is false.

    Raises: the same errors as xb.ops.cholesky.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2, 2])(xb.cholesky), [[4.0, 2.0], [2.0, 5.0]])
    array([[2., 0.],
           [1., 2.]], dtype=float32)

    Source: xla_builder.h, Cholesky.
    """
    return ops.cholesky(a, lower=lower, name=name)


@dressed
def triangular_solve(
    a: Any,
    b: Any,
    left_side: bool = True,
    lower: bool = True,
    unit_diagonal: bool = False,
    transpose_a: Literal["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"] = "NO_TRANSPOSE",
    *,
    name: str | None = None,
) -> Value:
    """Return x such that op(a) x = b, or x op(a) = b if `left_side` is false. One operand may be a NumPy array.

    Raises: the same errors as xb.ops.triangular_solve.

    >>> import xbuild as xb
    >>> solved = xb.computation(xb.f32[2, 2], xb.f32[2, 1])(xb.triangular_solve)
    >>> xb.evaluate(solved, [[2.0, 0.0], [1.0, 4.0]], [[2.0], [9.0]])
    array([[1.],
           [2.]], dtype=float32)

    Source: xla_builder.h, TriangularSolve.
    """
    left, right = as_values((a, b))
    return ops.triangular_solve(
        left,
        right,
        left_side=left_side,
        lower=lower,
        unit_diagonal=unit_diagonal,
        transpose_a=transpose_a,
        name=name,
    )


@dressed
def fft(
    operand: Value,
    fft_type: Literal["FFT", "IFFT", "RFFT", "IRFFT"],
    fft_length: int | Sequence[int],
    *,
    name: str | None = None,
) -> Value:
    """Compute the discrete Fourier transform over the last dimensions, one dimension for each length in `fft_length`.

    Raises: the same errors as xb.ops.fft.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 8])
    >>> xb.fft(x, "RFFT", 8).shape
    c64[2,5]

    Source: xla_builder.h, Fft.
    """
    lengths = (fft_length,) if isinstance(fft_length, int) else fft_length
    return ops.fft(operand, fft_type=fft_type, fft_length=lengths, name=name)
