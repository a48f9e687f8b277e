"""Values of ops that change the element type: convert, bitcast, reduced precision, stochastic conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve

from shape_inference import Dims, Shape
from shape_inference.dims import limits
from shape_inference.types import (
    PrimitiveType,
    bf16,
    f8e4m3b11fnuz,
    f8e4m3fnuz,
    f8e5m2,
    f8e5m2fnuz,
    f8e8m0fnu,
    f16,
    pred,
    primitive_type,
    u8,
)
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

from ..compiler.lines import Path
from ..kernels.lifting import narrowed, quieted, widened
from ..rules import compute, planned

if TYPE_CHECKING:
    from ..compiler.emit import Emitter
    from ..compiler.requests import Expr


@compute
def convert(operand: Array, *, new_element_type: PrimitiveType) -> Any:
    target = new_element_type.dtype
    if operand.dtype == target:
        return operand
    if operand.dtype == bf16.dtype and new_element_type.kind == "pred":
        return operand.view(np.uint16) << 1 != 0  # true for denormal numbers, which convert from f32 flushes
    value = widened(operand)
    if new_element_type.kind == "pred":
        return value != 0
    if value.dtype.kind == "c" and new_element_type.kind != "complex":
        value = value.real
    if value.dtype.kind == "f" and new_element_type.is_integer:
        return _saturate(value, new_element_type)
    if operand.dtype in _ODD_NANS or target in _ODD_NANS:
        return _keep_nans(value, operand.dtype, target)
    return narrowed(value, target)


_UNSIGNED_NAN = frozenset(t.dtype for t in (f8e4m3b11fnuz, f8e4m3fnuz, f8e5m2fnuz))
_ODD_NANS = _UNSIGNED_NAN | {f16.dtype, f8e5m2.dtype}


def _keep_nans(value: Array, source: np.dtype[Any], target: np.dtype[Any]) -> Array:
    """A conversion with the NaN bits of XLA:CPU.

    Conversions from and to f16 make NaNs quiet. The NaN of the fnuz types (the bits of -0) becomes a NaN without sign.
    NaNs in f8e5m2 have the same bits when rounded from f16; rounded from f32 and f64 they keep their sign.
    """
    if value.dtype.kind == "f" and f16.dtype in (source, target):
        value = quieted(value)
    if source in _UNSIGNED_NAN:
        value = np.where(np.isnan(value), value.dtype.type(np.nan), value)
    return value.astype(target) if source.itemsize >= 4 else narrowed(value, target)


def _saturate(value: Array, to: PrimitiveType) -> Any:
    """Floats converted to integers: rounded towards zero and clamped to the range of the type, with NaN as 0."""
    if value.dtype == np.float16:
        value = value.astype(np.float32)
    low, high = limits(to)
    fits = (value > low - 1.0) & (value < high + 1.0)
    if fits.all():
        return value.astype(to.dtype)
    integers = np.where(fits, value, 0).astype(np.uint64 if to.kind == "unsigned" else np.int64)
    integers = np.where(value >= high + 1.0, integers.dtype.type(high), integers)
    return np.where(value <= low - 1.0, integers.dtype.type(low), integers).astype(to.dtype)


@compute
def bitcast_convert(operand: Array, *, new_element_type: PrimitiveType) -> Any:
    source, target = primitive_type(operand.dtype), new_element_type
    if target.kind == "pred" and source is not target:
        return _as_pred(bitcast_convert(operand, new_element_type=u8))
    if source.kind == "pred" and source is not target:
        operand, source = np.asarray(operand).view(np.uint8), u8
    if min(source.bits, target.bits) < 8 and source is not target:
        return _from_bits(_to_bits(np.asarray(operand), source), source.bits, target)
    array = np.ascontiguousarray(operand).reshape(np.shape(operand))
    if source.bits == target.bits:
        return array.view(target.dtype)
    if source.bits > target.bits:
        return array[..., None].view(target.dtype)
    return array.view(target.dtype)[..., 0]


def _as_pred(octets: Array) -> Any:
    """Bytes read as pred: every byte except 0 is true, and true is stored as 1."""
    return octets != 0


def _to_bits(array: Array, of: PrimitiveType) -> Array:
    """The bits of each element, lowest bit first, along a new minor dimension."""
    raw = np.ascontiguousarray(array).reshape((*array.shape, 1)).view(np.uint8)
    bits = np.unpackbits(raw[..., None], axis=-1, bitorder="little")[..., : of.bits]
    return bits.reshape((*array.shape, of.bits))


def _from_bits(bits: Array, width: int, to: PrimitiveType) -> Any:
    """Elements of a type from the bits of elements of another width; the minor dimension is split or merged."""
    if width > to.bits:
        bits = bits.reshape((*bits.shape[:-1], width // to.bits, to.bits))
    elif width < to.bits:
        bits = bits.reshape((*bits.shape[:-2], to.bits))
    packed = np.packbits(bits, axis=-1, bitorder="little")
    if to.is_integer:  # converted by value, since the storage of small signed integers is not specified
        packed = packed.view(f"u{packed.shape[-1]}")
        return (packed.view(to.dtype) if to.is_native else packed.astype(to.dtype))[..., 0]
    return packed.view(to.dtype)[..., 0]


@planned
def bitcast(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    """Emit a bitcast, the only op whose value depends on the layouts of its shapes."""
    shapes = emitter.bind("k", (instruction.operands[0].shape, instruction.shape))
    call = f"{emitter.bind('r', reinterpret_layout)}({operands[0]}, *{shapes})"
    return emitter.assign_result(instruction.shape, call if instruction.shape.dims else f"{call}[()]", path)  # type: ignore[union-attr]


def reinterpret_layout(operand: Array, source: Shape, target: Shape) -> Any:
    """The bytes of an array in the source layout, reinterpreted in the target layout."""
    if target.dtype is pred and source.dtype is not pred:
        return _as_pred(reinterpret_layout(operand, source, evolve(target, dtype=u8)))
    if source.is_dynamic:
        return np.asarray(operand).view(target.dtype.dtype)
    laid = np.ascontiguousarray(np.asarray(operand).transpose(_major_to_minor(source))).reshape(-1)
    order = _major_to_minor(target)
    read = laid.view(target.dtype.dtype).reshape([target.dims[dim] for dim in order])
    return read.transpose(np.argsort(order)) if order else read


def _major_to_minor(shape: Shape) -> Dims:
    minor_to_major = shape.layout.minor_to_major if shape.layout else tuple(reversed(range(shape.rank)))
    return minor_to_major[::-1]


@compute
def reduce_precision(operand: Array, *, exponent_bits: int, mantissa_bits: int) -> Any:
    value = widened(operand)
    if primitive_type(operand.dtype).bits == 8 and operand.dtype != f8e8m0fnu.dtype:
        value = operand.astype(np.float16)  # the native type whose exponent range is closest
    size = value.dtype.itemsize
    exponent, mantissa = {2: (5, 10), 4: (8, 23), 8: (11, 52)}[size]
    bits = value.view(f"u{size}")
    if mantissa_bits < mantissa:
        bits = _round_mantissa(bits, mantissa - mantissa_bits)
    if exponent_bits < exponent:
        bits = _limit_exponent(bits, exponent, mantissa, exponent_bits)
    # A format without a mantissa has no NaN: the specification and XLA's constant folding give infinity, which compiled
    # code of XLA:CPU does not.
    rounded = value if mantissa_bits else np.full_like(value, np.inf)
    return narrowed(np.where(np.isnan(value), rounded, bits.view(value.dtype)), operand.dtype)


def _round_mantissa(bits: Array, dropped: int) -> Any:
    """The mantissa rounded to nearest even without its lowest bits; a carry propagates into the exponent."""
    unit = bits.dtype.type(dropped)
    one = bits.dtype.type(1)
    last = (bits >> unit) & one
    return (bits + ((one << (unit - one)) - one) + last) >> unit << unit


def _limit_exponent(bits: Array, exponent: int, mantissa: int, kept: int) -> Any:
    """Numbers above the range of the smaller format as ±infinity, and those below its least normal number as ±0."""
    number = bits.dtype.type
    bias, span = 2 ** (exponent - 1) - 1, 2 ** (kept - 1) - 1
    sign = bits & number(1 << (exponent + mantissa))
    field = (bits >> number(mantissa)) & number(2**exponent - 1)
    infinity = number((2**exponent - 1) << mantissa)
    bits = np.where(field > bias + span, sign | infinity, bits)
    return np.where(field <= bias - span, sign, bits)


@compute
def stochastic_convert(operand: Array, random: Array, *, new_element_type: PrimitiveType) -> Any:
    """The operand rounded away from zero if `random` is below its position between neighbours, else towards zero."""
    value = widened(operand).astype(np.float64)
    size, draw, bits = np.abs(value), widened(random).astype(np.uint64), primitive_type(random.dtype).bits
    if new_element_type.is_integer:
        inner = np.floor(size)
        outer = inner + 1
    else:
        inner, outer = _neighbours(size, new_element_type.dtype)
    place = np.where(np.isfinite(outer), (size - inner) / (outer - inner), 0)
    chosen = np.copysign(np.where(draw < np.ldexp(place, bits).astype(np.uint64), outer, inner), value)
    if new_element_type.is_integer:
        return _saturate(chosen, new_element_type)
    return narrowed(chosen, new_element_type.dtype)


def _neighbours(size: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The values of a float type around a positive number: the greatest that is not above it, and the next one."""
    nearest = size.astype(dtype)
    bits = nearest.view(f"u{dtype.itemsize}")
    bits = bits - (nearest.astype(np.float64) > size).astype(bits.dtype)
    return bits.view(dtype).astype(np.float64), (bits + bits.dtype.type(1)).view(dtype).astype(np.float64)
