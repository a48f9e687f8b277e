"""Conversions over prime fields: between floats none, from integers exact, to integers by the place in the order."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve

from shape_inference import PrimitiveType, Shape
from shape_inference.dims import limits
from shape_inference.types import primitive_type, u64
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

from ...ops.conversion import bitcast_convert as exact_bitcast
from ...ops.conversion import reinterpret_layout
from ...ops.leaves import iota as counted
from ...rules import compute
from . import residues
from .complexes import joined, parts
from .evaluation import by_type
from .functions import bits_of, random_words
from .laws import by_signs, chosen
from .places import own_places, places
from .residues import Word
from .tables import Undecidable


def _types(instruction: Instruction) -> tuple[PrimitiveType, PrimitiveType]:
    (source, target) = (instruction.operands[0].shape, instruction.shape)
    assert isinstance(source, Shape)
    assert isinstance(target, Shape)
    return source.dtype, target.dtype


def converted(operand: Any, source: PrimitiveType, target: PrimitiveType) -> Any:
    """The value in another type: the same number, and of a float that becomes an integer its place without fraction."""
    if source.is_integer or source.kind == "pred":
        if target.is_integer or target.kind == "pred":
            return compute["convert"](operand, new_element_type=target)
        operand = residues.of_integers(operand)
    elif source.kind == "complex":
        if target.kind in ("complex", "pred"):
            if target.kind == "complex":
                return operand
            return chosen(operand.shape, lambda: np.bitwise_or(*parts(operand)) != 0)
        operand = parts(operand)[0]
    if target.kind == "complex":
        return joined(operand, np.zeros_like(operand))
    if target.kind == "pred":
        return chosen(operand.shape, lambda: operand != 0)
    return operand if target.kind == "float" else _integers(operand, target)


def _integers(words: Word, target: PrimitiveType) -> Array:
    wide = target.bits >= 32 and not by_signs()
    reals = chosen(words.shape, lambda: _places_of_integers(words)) if wide else places(words)
    return _bounded(np.trunc(reals), target)


def _places_of_integers(words: Word) -> Array:
    """The places of words, with integers of 32 bits at their own."""
    found, whole = own_places(words), residues.as_integers(words)
    return np.where((np.abs(whole) <= _MOST_WHOLE) & ~residues.is_special(words), whole, found)


_MOST_WHOLE = 1 << 32
"""Integers up to it are known: both fields together have 2^62 numbers."""


def _bounded(reals: Array, target: PrimitiveType) -> Array:
    low, high = limits(target)
    place = np.nan_to_num(reals, nan=0.0, posinf=2.0**64, neginf=-(2.0**64))
    below, above = place <= low, place >= high
    wide = np.uint64 if target.kind == "unsigned" else np.int64
    whole = np.where(below | above, 0, place).astype(wide).astype(target.dtype)
    return np.where(above, target.dtype.type(high), np.where(below, target.dtype.type(low), whole))


@by_type
def convert(instruction: Instruction, operand: Any) -> Any:
    return converted(operand, *_types(instruction))


@by_type
def stochastic_convert(instruction: Instruction, operand: Any, random: Any) -> Any:
    """Floats as they are; integers rounded down from the place and a random part."""
    source, target = _types(instruction)
    if target.kind == "float" or source.kind != "float":
        return converted(operand, source, target)
    drawn = chosen(operand.shape, lambda: bits_of(random_words("random", random), 12))
    part = (drawn >> np.uint64(11)).astype(np.float64) / 2.0**53
    return _bounded(np.floor(places(operand) + part), target)


@by_type
def iota(instruction: Instruction) -> Word:
    shape = instruction.shape
    assert isinstance(shape, Shape)
    numbers = counted(shape=evolve(shape, dtype=u64), iota_dimension=instruction.attributes.iota_dimension)
    words = residues.of_integers(numbers)
    return joined(words, np.zeros_like(words)) if shape.dtype.kind == "complex" else words


@by_type
def bitcast_convert(instruction: Instruction, operand: Any) -> Any:
    """Bits of floats are random integers, and floats of bits random numbers; alike where the bits are."""
    source, target = _types(instruction)
    return _recast(operand, source, target)


def _recast(operand: Any, source: PrimitiveType, target: PrimitiveType) -> Any:
    if source is target:
        return operand
    if "complex" in (source.kind, target.kind) or any(
        each.kind == "float" and each.bits < 8 for each in (source, target)
    ):
        raise Undecidable("bits of complex numbers, or of floats below a byte")
    if source.bits != target.bits:
        middle = [_bits_type(each) if each.kind == "float" else each for each in (source, target)]
        found = exact_bitcast(_recast(operand, source, middle[0]), new_element_type=middle[1])
        return _recast(found, middle[1], target)
    if source.kind != "float":
        return random_words(f"bits {target}", operand)
    if target.kind == "float":
        return random_words(f"bits {source} {target}", operand)
    bits = chosen(operand.shape, lambda: bits_of(operand, 11))
    return bits.astype(f"u{target.bits // 8}").view(target.dtype)


def _bits_type(of: PrimitiveType) -> PrimitiveType:
    """The unsigned integers with as many bits as a float."""
    return primitive_type(np.dtype(f"u{of.bits // 8}"))


@by_type
def bitcast(instruction: Instruction, operand: Any) -> Any:
    source, target = instruction.operands[0].shape, instruction.shape
    assert isinstance(source, Shape)
    assert isinstance(target, Shape)
    if source.dtype is not target.dtype:
        if source.dtype.bits != target.dtype.bits:
            raise Undecidable("bits of floats that are read as a type of a different width")
        moved = reinterpret_layout(operand, *_carried(operand, source, target))
        return _recast(moved, source.dtype, target.dtype)
    return reinterpret_layout(operand, *_carried(operand, source, target))


def _carried(operand: Array, source: Shape, target: Shape) -> tuple[Shape, Shape]:
    """Both shapes in the type of the array that carries the elements."""
    carrier = primitive_type(operand.dtype)
    return evolve(source, dtype=carrier), evolve(target, dtype=carrier)
