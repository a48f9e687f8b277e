"""Draws of the factorizations, of the solution of triangular systems and of Fourier's transform."""

from __future__ import annotations

import numpy as np

from shape_inference import PrimitiveType
from shape_inference.types import COMPLEX_OF, f8e8m0fnu

from ..chance import Array, Chance
from ..instance import Instance
from .draw import Draw


def cholesky(chance: Chance, dtype: PrimitiveType) -> Instance:
    """Of a positive definite matrix with whole entries, which every type holds; garbage in the half not read."""
    batch, size = chance.dims(rank=chance.between(0, 3), most=3), chance.between(1, largest(dtype, 5))
    half = chance.whole(dtype, (*batch, size, size), 2 if dtype.bits > 8 else 0).astype(np.complex128)
    full = half @ np.conj(np.swapaxes(half, -1, -2)) + (size + 1) * np.eye(size)
    lower = chance.odds(0.5)
    a = np.asarray(full if dtype.kind == "complex" else full.real).astype(dtype.dtype)
    return Instance("cholesky", dtype, (kept(a, lower),), {"lower": lower}, finish=lambda v: triangle(v, lower))


def largest(dtype: PrimitiveType, usual: int) -> int:
    """The largest size of a matrix: 1 where the type has no zero."""
    return 1 if dtype is f8e8m0fnu else usual


def kept(a: Array, lower: bool) -> Array:
    """The matrix with other numbers in the triangle that is not read."""
    mask = np.tri(a.shape[-1], dtype=bool)
    mask = mask if lower else mask.T
    return np.where(mask, a, (a * a.dtype.type(3)).astype(a.dtype))


def triangle(value: object, lower: bool) -> object:
    """The half of the result that is defined, with zeros elsewhere."""
    import xbuild as xb

    dims = value.shape.dims
    mask = np.broadcast_to(np.tri(dims[-1], dtype=bool) if lower else np.tri(dims[-1], dtype=bool).T, dims)
    zeros = xb.ops.broadcast(
        xb.constant(value.builder, literal=np.zeros((), value.shape.dtype.dtype)), sizes=dims, dimensions=()
    )
    return xb.ops.select(xb.constant(value.builder, literal=mask), value, zeros)


def triangular_solve(chance: Chance, dtype: PrimitiveType) -> Instance:
    batch, size, columns = (
        chance.dims(rank=chance.between(0, 3), most=3),
        chance.between(1, largest(dtype, 4)),
        chance.between(0 if chance.odds(0.1) else 1, 4),
    )
    left = chance.odds(0.5)
    a = chance.whole(dtype, (*batch, size, size), 1)
    a = (a + 3 * np.eye(size).astype(dtype.dtype)).astype(dtype.dtype)
    b = chance.whole(dtype, (*batch, size, columns) if left else (*batch, columns, size))
    attributes = {
        "left_side": left,
        "lower": chance.odds(0.5),
        "unit_diagonal": chance.odds(0.3),
        "transpose_a": chance.one(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")),
    }
    return Instance("triangular_solve", dtype, (a, b), attributes)


def fft(chance: Chance, dtype: PrimitiveType) -> Instance:
    lengths = [chance.between(1, 9) for _ in range(chance.between(1, 3))]
    batch = chance.dims(rank=chance.between(0, 2), most=3)
    if dtype in COMPLEX_OF:
        kind, given = "RFFT", lengths
    else:
        kind = chance.one(("FFT", "IFFT", "IRFFT"))
        given = lengths if kind != "IRFFT" else [*lengths[:-1], lengths[-1] // 2 + 1]
    operand = chance.normal(dtype, (*batch, *given))
    return Instance("fft", dtype, (operand,), {"fft_type": kind, "fft_length": tuple(lengths)})


DRAWS: dict[str, Draw] = {"cholesky": cholesky, "fft": fft, "triangular_solve": triangular_solve}
