"""Shapes of ops that change the element type."""

from __future__ import annotations

from ..dims import array, element_type
from ..rules import infer, refuse
from ..types import AnyShape, PrimitiveType, Shape
from .elementwise import FLOAT, UNSIGNED, same_dims


@infer
def convert(operand: AnyShape, *, new_element_type: PrimitiveType) -> Shape:
    return array("operand", operand).with_dtype(new_element_type)


@infer
def bitcast_convert(operand: AnyShape, *, new_element_type: PrimitiveType) -> Shape:
    shape = array("operand", operand)
    old, new = shape.dtype, new_element_type
    if (old.kind == "complex") != (new.kind == "complex"):
        refuse(
            "element_type_unsupported",
            f"cannot reinterpret the bits of {old} as {new}: operand is {shape} and new_element_type is {new}",
        )
    widths = sorted((old.bit_width, new.bit_width))
    if widths[1] % widths[0]:
        refuse(
            "element_type_mismatch",
            f"cannot reinterpret operand {shape} as {new}: their widths are {old.bit_width} and {new.bit_width} bits, "
            "and neither is a multiple of the other",
        )
    if old.bit_width == new.bit_width:
        return shape.with_dtype(new)
    if old.bit_width > new.bit_width:
        return Shape(new, (*shape.dims, old.bit_width // new.bit_width), shape.dynamic and (*shape.dynamic, False))
    return _joined(shape, new)


def _joined(shape: Shape, new: PrimitiveType) -> Shape:
    """The shape of a bitcast to a wider type: the minor dimension must hold the elements of one wider element."""
    ratio = new.bit_width // shape.dtype.bit_width
    if not shape.dims:
        refuse(
            "rank_too_small",
            f"operand is {shape}, but it needs a minor dimension of extent {ratio}: {ratio} {shape.dtype} elements "
            f"form one {new}",
        )
    if shape.dims[-1] != ratio or (shape.dynamic and shape.dynamic[-1]):
        refuse(
            "dimension_mismatch",
            f"expected a minor dimension of extent {ratio} in operand {shape}, got {shape.bound(shape.rank - 1)}: "
            f"{ratio} {shape.dtype} elements of {shape.dtype.bit_width} bits form one {new} of {new.bit_width} bits",
        )
    kept = shape.dynamic[:-1]
    return Shape(new, shape.dims[:-1], kept if any(kept) else ())


@infer
def bitcast(operand: AnyShape, *, shape: Shape) -> Shape:
    source = array("operand", operand)
    if source.bytes != shape.bytes:
        refuse(
            "element_count_mismatch",
            f"a bitcast must keep the number of bytes: operand {source} has {source.bytes}, but shape {shape} has "
            f"{shape.bytes}",
        )
    if (source.dynamic or shape.dynamic) and (source.dims, source.dynamic) != (shape.dims, shape.dynamic):
        refuse(
            "dimension_mismatch",
            f"operand is {source} and shape is {shape}: a bitcast cannot change the dimensions of an array with a "
            "dynamic dimension",
        )
    return shape


@infer
def reduce_precision(operand: AnyShape, *, exponent_bits: int, mantissa_bits: int) -> Shape:
    shape = array("operand", operand)
    element_type("operand", shape, *FLOAT)
    if exponent_bits < 1:
        refuse(
            "invalid_attribute",
            f"exponent_bits must be at least 1 to distinguish zero from infinity, got {exponent_bits}",
        )
    if mantissa_bits < 0:
        refuse("invalid_attribute", f"mantissa_bits must be at least 0, got {mantissa_bits}")
    return shape


@infer
def stochastic_convert(operand: AnyShape, random: AnyShape, *, new_element_type: PrimitiveType) -> Shape:
    shape, chance = array("operand", operand), array("random", random)
    element_type("operand", shape, *FLOAT)
    element_type("random", chance, *UNSIGNED)
    if shape.dtype.bits != chance.dtype.bits:
        refuse(
            "element_type_mismatch",
            f"operand is {shape} and random is {chance}: rounding a number of type {shape.dtype} takes "
            f"{shape.dtype.bits} random bits, but an element of random has {chance.dtype.bits}",
        )
    if new_element_type.kind in ("pred", "complex"):
        refuse(
            "element_type_unsupported",
            f"expected an integer or floating-point new_element_type, got {new_element_type}",
        )
    return same_dims("operand", shape, "random", chance).with_dtype(new_element_type)
