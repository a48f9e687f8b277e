"""Draws of ops that only some element types have: bits, complex numbers, truth values, rounding, matrices."""

from __future__ import annotations

import random

import xbuild as xb

from .drawing import Draw, Values, one, small

SAME_WIDTH = {
    8: (xb.s8, xb.u8, xb.f8e4m3fn), 16: (xb.s16, xb.u16, xb.bf16, xb.f16), 32: (xb.s32, xb.u32, xb.f32),
    64: (xb.s64, xb.u64, xb.f64),
}  # fmt: skip


def as_bits(chance: random.Random, values: Values) -> xb.Value | None:
    """The bits of integers as another type of their width, or of half of it."""
    x = one(chance, values, 0, "signed", "unsigned")
    if x is None or x.shape.dtype.bits not in SAME_WIDTH:
        return None
    half = x.shape.dtype.bits // 2
    if half in SAME_WIDTH and chance.random() < 0.3:
        return small(xb.ops.bitcast_convert(x, new_element_type=SAME_WIDTH[half][1]))
    kinds = [each for each in SAME_WIDTH[x.shape.dtype.bits] if each.is_integer]
    return small(xb.ops.bitcast_convert(x, new_element_type=chance.choice(kinds)))


def logical(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 0, "pred", "signed", "unsigned")
    if x is None:
        return None
    y = chance.choice([each for each in values if each.shape == x.shape])
    ops = xb.ops
    return chance.choice((ops.and_, ops.or_, ops.xor))(x, y if chance.random() < 0.5 else ops.not_(y))


def shifted(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 0, "signed", "unsigned")
    if x is None:
        return None
    y, ops = chance.choice([each for each in values if each.shape == x.shape]), xb.ops
    if chance.random() < 0.3:
        return chance.choice((ops.popcnt, ops.count_leading_zeros))(x)
    return small(chance.choice((ops.shift_left, ops.shift_right_logical, ops.shift_right_arithmetic))(x, y))


def compared(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values)
    y = chance.choice([each for each in values if each.shape == x.shape])
    return xb.ops.compare(
        x, y, direction=chance.choice(("EQ", "NE", "LT", "GE") if x.shape.dtype.kind != "complex" else ("EQ", "NE"))
    )


def paired(chance: random.Random, values: Values) -> xb.Value | None:
    """Complex numbers of two arrays, or one part of complex numbers."""
    x = one(chance, values, 0, "complex", "float")
    if x is None:
        return None
    if x.shape.dtype.kind == "complex":
        return chance.choice((xb.ops.real, xb.ops.imag, xb.ops.negate))(x)
    y = chance.choice([each for each in values if each.shape == x.shape])
    return xb.ops.complex(x, y) if x.shape.dtype in (xb.f32, xb.f64) else None


def rounded(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 0, "float")
    if x is None:
        return None
    ops = xb.ops
    plain = (ops.round_nearest_even, ops.round_nearest_afz, ops.ceil, ops.sign, ops.is_finite)
    if chance.random() < 0.3:
        return ops.reduce_precision(x, exponent_bits=5, mantissa_bits=chance.choice((2, 7)))
    return chance.choice(plain)(x)


def limited(chance: random.Random, values: Values) -> xb.Value | None:
    """Numbers between two others."""
    x = one(chance, values, 0, "signed", "unsigned", "float")
    if x is None:
        return None
    low, high = (chance.choice([each for each in values if each.shape == x.shape]) for _ in range(2))
    return xb.ops.clamp(xb.ops.minimum(low, high), x, xb.ops.maximum(low, high))


def transformed(chance: random.Random, values: Values) -> xb.Value | None:
    """A Fourier transform of the last dimension."""
    x = one(chance, values, 1, "float", "complex")
    if x is None or x.shape.dtype not in (xb.f32, xb.c64) or not x.shape.dims[-1]:
        return None
    kind = chance.choice(("FFT", "IFFT")) if x.shape.dtype is xb.c64 else "RFFT"
    return xb.ops.fft(x, fft_type=kind, fft_length=x.shape.dims[-1:])


def solved(chance: random.Random, values: Values) -> xb.Value | None:
    """A factor of matrices with a great diagonal, or the solution of triangular systems by it."""
    x = one(chance, values, 2, "float")
    if x is None or x.shape.dtype not in (xb.f32, xb.f64) or x.shape.dims[-1] != x.shape.dims[-2]:
        return None
    dims, builder = x.shape.dims, x.builder
    rows, columns = (xb.ops.iota(builder, shape=xb.s32[dims], iota_dimension=len(dims) - n) for n in (1, 2))
    unit = xb.ops.convert(xb.ops.compare(rows, columns, direction="EQ"), new_element_type=x.shape.dtype)
    tall = xb.ops.add(small(x), xb.ops.multiply(unit, xb.ops.broadcast(
        xb.constant(builder, x.shape.dtype.dtype.type(64)), sizes=dims, dimensions=())))  # fmt: skip
    if chance.random() < 0.5:
        return xb.ops.cholesky(tall, lower=chance.random() < 0.5)
    how = {"left_side": chance.random() < 0.5, "lower": chance.random() < 0.5, "unit_diagonal": False}
    return xb.ops.triangular_solve(tall, small(x), transpose_a=chance.choice(("NO_TRANSPOSE", "TRANSPOSE")), **how)


DRAWS: tuple[Draw, ...] = (
    as_bits, logical, logical, shifted, compared, paired, rounded, limited, transformed, solved,
)  # fmt: skip
