"""Checks that shape rules share: lists of dimension numbers, element types, scalars and signatures."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest

import ml_dtypes

from .bounds import MAX_ELEMENTS
from .rules import refuse
from .types import AnyShape, Dims, PrimitiveType, ProgramShape, Shape, TokenShape, compatible


def array(name: str, shape: AnyShape) -> Shape:
    """The shape of an operand without its layout; an operand that is not an array is refused."""
    if type(shape) is not Shape:
        refuse("not_array", f"expected an array for {name}, got {shape}")
    return shape if shape.layout is None else shape.plain()


def alike(operands: Sequence[AnyShape]) -> list[Shape]:
    """The shapes of a list of operands, which must be one or more arrays of the same extents."""
    if not operands:
        refuse("arity_mismatch", "expected at least 1 operand, got 0")
    arrays = [array(operand_name(number, operands), operand) for number, operand in enumerate(operands)]
    for number, shape in enumerate(arrays):
        if shape.dims != arrays[0].dims:
            kind = "dimension_mismatch" if shape.rank == arrays[0].rank else "rank_mismatch"
            refuse(kind, f"operands[0] is {arrays[0]} and operands[{number}] is {shape}; their extents must be equal")
    return arrays


def operand_name(number: int, operands: Sequence[AnyShape]) -> str:
    """The name of an operand in messages: `operand` if the op has only one, else `operands[number]`."""
    return "operand" if len(operands) == 1 else f"operands[{number}]"


def scalar(name: str, shape: AnyShape) -> Shape:
    scalar_shape = array(name, shape)
    if scalar_shape.dims:
        refuse("non_scalar", f"expected a scalar for {name}, got {scalar_shape}")
    return scalar_shape


def token(name: str, shape: AnyShape) -> TokenShape:
    if not isinstance(shape, TokenShape):
        refuse("token_expected", f"expected a token for {name}, got {shape}", "xb.after_all(builder=b) creates a token")
    return shape


def element_type(name: str, shape: Shape, allowed: Collection[PrimitiveType], description: str) -> None:
    if shape.dtype not in allowed:
        refuse("element_type_unsupported", f"{name} is {shape}, but its element type must be {description}")


def integer(name: str, shape: Shape) -> None:
    if not shape.dtype.is_integer:
        refuse("element_type_unsupported", f"{name} is {shape}, but its element type must be an integer type")


def same_type(first: str, a: Shape, second: str, b: Shape, *, mixed_floats: bool = False) -> PrimitiveType:
    """The common element type; with `mixed_floats`, the wider of two float types."""
    if a.dtype is b.dtype:
        return a.dtype
    if not (mixed_floats and a.dtype.is_float and b.dtype.is_float):
        refuse(
            "element_type_mismatch",
            f"{first} is {a} and {second} is {b}: element types {a.dtype} and {b.dtype} differ",
            f"xb.convert({second}, xb.{a.dtype}) makes the element types equal",
        )
    return wider(a.dtype, b.dtype)


def wider(a: PrimitiveType, b: PrimitiveType) -> PrimitiveType:
    """The float type of greater range, or of greater precision if the ranges are equal; `a` if both are equal."""
    return b if _range_and_precision(b) > _range_and_precision(a) else a


@functools.cache
def _range_and_precision(of: PrimitiveType) -> tuple[int, int]:
    finest = ml_dtypes.finfo(of.dtype)  # type: ignore[no-untyped-call]
    return math.frexp(float(finest.max))[1], int(finest.nmant)


def limits(of: PrimitiveType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type."""
    if of.kind == "unsigned":
        return 0, 2**of.bits - 1
    return -(2 ** (of.bits - 1)), 2 ** (of.bits - 1) - 1


def legal_dimensions(rank: int) -> str:
    return f"expected 0..{rank - 1} for rank {rank}" if rank else "an array of rank 0 has no dimensions"


def dimension(attribute: str, dim: int, name: str, shape: Shape) -> int:
    if not 0 <= dim < shape.rank:
        refuse(
            "dimension_out_of_range",
            f"{attribute}={dim} is out of range for {name} {shape}; {legal_dimensions(shape.rank)}",
        )
    return dim


def dimensions(attribute: str, dims: Dims, name: str, shape: Shape, *, ascending: bool = False) -> Dims:
    """Refuse dimension numbers that are out of range or repeated or, with `ascending`, not in ascending order."""
    for dim in dims:
        if not 0 <= dim < shape.rank:
            refuse(
                "dimension_out_of_range",
                f"dimension {dim} in {attribute} {list(dims)} is out of range for {name} {shape}; "
                f"{legal_dimensions(shape.rank)}",
            )
    distinct(attribute, dims)
    if ascending and list(dims) != sorted(dims):
        refuse(
            "bad_order",
            f"{attribute} must be in ascending order, got {list(dims)}",
            f"the ascending order is {sorted(dims)}",
        )
    return dims


def distinct(attribute: str, dims: Sequence[int]) -> None:
    if len(set(dims)) != len(dims):
        twice = next(dim for dim in dims if dims.count(dim) > 1)
        refuse("duplicate_dimension", f"dimension {twice} appears twice in {attribute} {list(dims)}")


def permutation(attribute: str, dims: Dims, name: str, shape: Shape) -> None:
    if sorted(dims) != list(range(shape.rank)):
        refuse(
            "not_permutation",
            f"{attribute} must be a permutation of the dimensions {list(range(shape.rank))} of {name} {shape}, "
            f"got {list(dims)}",
        )


def length(attribute: str, values: Sequence[object], expected: int, what: str) -> None:
    if len(values) != expected:
        entries = "entry" if expected == 1 else "entries"
        refuse(
            "attribute_length_mismatch",
            f"{attribute} must have {expected} {entries}, one for each {what}, got {len(values)}",
        )


def sizes(attribute: str, values: Dims, dtype: PrimitiveType | None = None) -> None:
    """Refuse extents that are negative, or whose element count exceeds 2^63-1."""
    for dim, size in enumerate(values):
        if size < 0:
            refuse("negative_size", f"{attribute} {list(values)} has the negative size {size} in dimension {dim}")
    if math.prod(values) > MAX_ELEMENTS:
        refuse(
            "overflow", f"{attribute} {list(values)} has {math.prod(values)} elements, more than the limit of 2^63-1"
        )


def dynamic_of(dims: int, flags: Iterable[bool]) -> tuple[bool, ...]:
    """The flags of dynamic dimensions as a tuple; () if no dimension is dynamic."""
    dynamic = tuple(flags)
    return dynamic if any(dynamic) else ()


def check_call(role: str, region: ProgramShape, operands: Sequence[AnyShape], what: str = "operand {}") -> None:
    """Refuse a called computation whose parameter shapes differ from the shapes of the operands."""
    check_arity(role, region, len(operands), f"({', '.join(map(repr, operands))})")
    for number, (parameter, operand) in enumerate(zip(region.parameters, operands, strict=True)):
        if not compatible(parameter, operand):
            refuse(
                "signature_mismatch",
                f"parameter {number} of {role} is {parameter}, but {what.format(number)} is {operand}"
                f"{first_difference(parameter, operand)}",
            )


def check_arity(role: str, region: ProgramShape, expected: int, arguments: str) -> None:
    if len(region.parameters) != expected:
        refuse(
            "arity_mismatch",
            f"expected {expected} parameter{'s' * (expected != 1)} for {role}, got {len(region.parameters)}: {role} is "
            f"{region} and is called with {arguments}",
        )


def check_result(role: str, region: ProgramShape, expected: AnyShape, why: str) -> None:
    """Refuse a called computation whose result shape differs from the expected shape."""
    if not compatible(region.result, expected):
        refuse(
            "signature_mismatch",
            f"{role} returns {region.result}, but {why} {expected}{first_difference(region.result, expected)}",
        )


def first_difference(a: AnyShape, b: AnyShape) -> str:
    """The first difference of two tuple shapes as text; empty if one of the shapes is not a tuple."""
    if isinstance(a, Shape | TokenShape) or isinstance(b, Shape | TokenShape):
        return ""
    for index, (left, right) in enumerate(zip_longest(a.elements, b.elements)):
        if left is None or right is None or not compatible(left, right):
            return f" (the first difference is at tuple index {index}: {left} and {right})"
    return ""
