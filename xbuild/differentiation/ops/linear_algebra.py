"""Cotangents of matrix decompositions, solvers and Fourier transforms; matrices stand in the last two dimensions."""

from __future__ import annotations

from math import prod

from shape_inference import Dims, Shape

from ... import ops
from ...core.attributes import PaddingDimension
from ...core.builder import Value
from ..forms.arrays import (
    array_of,
    as_complex,
    compared,
    conjugate,
    counting,
)
from ..forms.matrices import cholesky_cotangent, solver_cotangents
from ..rules import Cotangents, Pullback, full, vjp


@vjp
def cholesky(back: Pullback, a: Value, *, lower: bool) -> Cotangents:
    if not array_of(a).size:
        return (None,)
    return (cholesky_cotangent(back.result, back.ct, lower),)


@vjp
def triangular_solve(
    back: Pullback, a: Value, b: Value, *, left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str
) -> Cotangents:
    if not array_of(b).size:
        return None, None
    return solver_cotangents(
        a, back.result, back.ct, left_side, lower, unit_diagonal, transpose_a, (back.wants(0), back.wants(1))
    )


@vjp
def fft(back: Pullback, operand: Value, *, fft_type: str, fft_length: Dims) -> Cotangents:
    """The transform is a symmetric matrix; of its halved forms the other half is zeros, or counts twice."""
    if not array_of(back.ct).size or not array_of(operand).size:
        return (None,)
    if fft_type == "RFFT":
        return (_from_half(back.ct, array_of(operand), fft_length),)
    if fft_type == "IRFFT":
        return (_to_half(back.ct, fft_length),)
    return (ops.fft(back.ct, fft_type=fft_type, fft_length=fft_length),)  # type: ignore[arg-type]


def _from_half(ct: Value, shape: Shape, lengths: Dims) -> Value:
    """The transform of the half that there is, zeros after it; what is real is the sum of real parts."""
    missing = lengths[-1] - array_of(ct).dims[-1]
    zero = full(ct.builder, 0, array_of(ct).dtype[()])
    padding = (*((PaddingDimension(0, 0),) * (shape.rank - 1)), PaddingDimension(0, missing))
    whole = ops.pad(ct, zero, padding=padding) if missing else ct
    return ops.real(ops.fft(whole, fft_type="FFT", fft_length=lengths))


def _to_half(ct: Value, lengths: Dims) -> Value:
    """The conjugate transform of the half that is read, of which all but the ends stand for two."""
    found = conjugate(ops.fft(ct, fft_type="RFFT", fft_length=lengths))
    sizes, part = array_of(found).dims, array_of(ct).dtype
    place = counting(ct.builder, sizes, len(sizes) - 1)
    is_end = compared(place, full(ct.builder, 0, array_of(place)), "EQ")
    if lengths[-1] % 2 == 0:
        last = full(ct.builder, lengths[-1] // 2, array_of(place))
        is_end = ops.or_(is_end, compared(place, last, "EQ"))
    once, twice = (full(ct.builder, times / prod(lengths), part[sizes]) for times in (1, 2))
    return ops.multiply(found, as_complex(ops.select(is_end, once, twice)))
