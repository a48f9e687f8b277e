"""Shapes of ops that rearrange the elements of arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Protocol

from .. import dims
from ..bounds import MAX_ELEMENTS
from ..dims import array, dynamic_of, same_type, scalar
from ..rules import infer, refuse
from ..types import AnyShape, Dims, PrimitiveType, Shape, array_shape, s32


class PaddingOf(Protocol):
    """The padding of one dimension."""

    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...
    @property
    def interior(self) -> int: ...


@infer
def broadcast(operand: AnyShape, *, sizes: Dims, dimensions: Dims) -> Shape:
    shape = array("operand", operand)
    if sizes and (min(sizes) < 0 or math.prod(sizes) > MAX_ELEMENTS):
        dims.sizes("sizes", sizes)
    if len(dimensions) != len(shape.dims):
        dims.length("dimensions", dimensions, shape.rank, f"dimension of operand {shape}")
    _injective("dimensions", dimensions, "sizes", sizes)
    for dim, size in zip(dimensions, shape.dims, strict=True):
        if sizes[dim] != size:
            _no_fit("dimensions", dimensions, dim, sizes, shape)
    if not shape.dynamic:
        return array_shape(shape.dtype, sizes)
    moved = dict(zip(dimensions, shape.dynamic, strict=True))
    return Shape(shape.dtype, sizes, dynamic_of(len(sizes), (moved.get(dim, False) for dim in range(len(sizes)))))


def _injective(attribute: str, dimensions: Dims, target: str, sizes: Dims) -> None:
    """Refuse dimension numbers of the result that are out of range or repeated."""
    for dim in dimensions:
        if not 0 <= dim < len(sizes):
            legal = dims.legal_dimensions(len(sizes))
            refuse(
                "dimension_out_of_range",
                f"dimension {dim} in {attribute} {list(dimensions)} is out of range for {target} {list(sizes)}; "
                f"{legal}",
            )
    if len(dimensions) > 1:
        dims.distinct(attribute, dimensions)


def _no_fit(attribute: str, dimensions: Dims, dim: int, sizes: Dims, shape: Shape) -> None:
    source = dimensions.index(dim)
    fitting = [d for d, size in enumerate(sizes) if size == shape.dims[source]]
    refuse(
        "dimension_mismatch",
        f"{attribute} {list(dimensions)} maps dimension {source} of operand {shape} to dimension {dim} of "
        f"{list(sizes)}, but their extents {shape.dims[source]} and {sizes[dim]} differ",
        *([f"dimension {source} fits dimension {' or '.join(map(str, fitting))} of the result"] if fitting else []),
    )


def check_broadcast_in_dim(operand: AnyShape, sizes: Dims, broadcast_dimensions: Dims) -> Shape:
    """The checks of XlaBuilder's BroadcastInDim: those of `broadcast`, except that extents of 1 are broadcast."""
    shape = array("operand", operand)
    dims.sizes("shape", sizes)
    dims.length("broadcast_dimensions", broadcast_dimensions, shape.rank, f"dimension of operand {shape}")
    if shape.rank > len(sizes):
        refuse(
            "rank_mismatch",
            f"operand {shape} has rank {shape.rank}, which exceeds the rank {len(sizes)} of shape {list(sizes)}",
        )
    _injective("broadcast_dimensions", broadcast_dimensions, "shape", sizes)
    for dim, size in zip(broadcast_dimensions, shape.dims, strict=True):
        if size not in (1, sizes[dim]):
            _no_fit("broadcast_dimensions", broadcast_dimensions, dim, sizes, shape)
    return shape


@infer
def reshape(operand: AnyShape, *, new_sizes: Dims) -> Shape:
    shape = array("operand", operand)
    if new_sizes and min(new_sizes) < 0:
        dims.sizes("new_sizes", new_sizes)
    if math.prod(new_sizes) != math.prod(shape.dims):
        refuse(
            "element_count_mismatch",
            f"operand {shape} and new_sizes {list(new_sizes)} must have the same number of elements, got {shape.size} "
            f"and {math.prod(new_sizes)}",
        )
    if not shape.dynamic:
        return array_shape(shape.dtype, new_sizes)
    return Shape(shape.dtype, new_sizes, _reshaped_flags(shape, new_sizes))


def _reshaped_flags(shape: Shape, new_sizes: Dims) -> tuple[bool, ...]:
    """The dynamic flags after a reshape: where a dynamic dimension is split, its first part of extent other than 1."""
    found = [False] * len(new_sizes)
    for before, after in _factors(shape.dims, new_sizes):
        if not any(shape.dynamic[dim] for dim in before):
            continue
        if not after or (len(before) > 1 and len(after) > 1):
            refuse(
                "dimension_mismatch",
                f"new_sizes {list(new_sizes)} turns dynamic dimensions {list(before)} of operand {shape} into "
                f"dimensions {list(after)}; a reshape can merge dynamic dimensions or split one, but it cannot do "
                "both, and it cannot remove a dynamic dimension",
            )
        found[next((dim for dim in after if new_sizes[dim] != 1), after[0])] = True
    return tuple(found)


def _factors(old: Dims, new: Dims) -> Iterator[tuple[range, range]]:
    """The smallest runs of old and new dimensions whose extents have equal products, in order, as pairs."""
    a = b = 0
    while a < len(old) or b < len(new):
        start_a, start_b = a, b
        left, right = old[a] if a < len(old) else 1, new[b] if b < len(new) else 1
        a, b = min(a + 1, len(old)), min(b + 1, len(new))
        while left != right and (a < len(old) or b < len(new)):
            if b == len(new) or (a < len(old) and left < right):
                left, a = left * old[a], a + 1
            else:
                right, b = right * new[b], b + 1
        yield range(start_a, a), range(start_b, b)


def check_collapse(operand: AnyShape, dimensions: Dims) -> Dims:
    """The sizes after XlaBuilder's Collapse of these dimensions, which must be consecutive."""
    shape = array("operand", operand)
    for dim in dimensions:
        if not 0 <= dim < shape.rank:
            refuse(
                "dimension_out_of_range",
                f"dimension {dim} in dimensions {list(dimensions)} is out of range for operand {shape}; "
                f"{dims.legal_dimensions(shape.rank)}",
            )
    if not dimensions:
        return shape.dims
    first, count = dimensions[0], len(dimensions)
    if dimensions != tuple(range(first, first + count)):
        refuse(
            "bad_order",
            f"dimensions must be consecutive and in ascending order, got {list(dimensions)}",
            "xb.transpose changes the order of the dimensions",
        )
    return (*shape.dims[:first], math.prod(shape.dims[first : first + count]), *shape.dims[first + count :])


@infer
def transpose(operand: AnyShape, *, permutation: Dims) -> Shape:
    shape = array("operand", operand)
    dims.permutation("permutation", permutation, "operand", shape)
    sizes = tuple([shape.dims[dim] for dim in permutation])
    if not shape.dynamic:
        return array_shape(shape.dtype, sizes)
    return Shape(shape.dtype, sizes, tuple(shape.dynamic[dim] for dim in permutation))


@infer
def reverse(operand: AnyShape, *, dimensions: Dims) -> Shape:
    shape = array("operand", operand)
    dims.dimensions("dimensions", dimensions, "operand", shape)
    return shape


@infer
def concatenate(operands: Sequence[AnyShape], *, dimension: int) -> Shape:
    if not operands:
        refuse("arity_mismatch", "expected at least 1 operand, got 0")
    shapes = [array(f"operands[{number}]", each) for number, each in enumerate(operands)]
    first = shapes[0]
    dims.dimension("dimension", dimension, "operands[0]", first)
    for number, shape in enumerate(shapes):
        _joins(first, number, shape, dimension)
    sizes = (*first.dims[:dimension], sum(shape.dims[dimension] for shape in shapes), *first.dims[dimension + 1 :])
    dims.sizes("the result", sizes)
    dtype = _common_type(shapes)
    if not any(shape.dynamic for shape in shapes):
        return array_shape(dtype, sizes)
    return Shape(dtype, sizes, tuple(map(any, zip(*(shape.dynamic for shape in shapes if shape.dynamic), strict=True))))


def _joins(first: Shape, number: int, shape: Shape, dimension: int) -> None:
    if shape.rank != first.rank:
        refuse(
            "rank_mismatch",
            f"operands[0] is {first} and operands[{number}] is {shape}: ranks {first.rank} and {shape.rank} differ",
        )
    for dim, (left, right) in enumerate(zip(first.dims, shape.dims, strict=True)):
        if left != right and dim != dimension:
            refuse(
                "dimension_mismatch",
                f"operands[0] is {first} and operands[{number}] is {shape}: extents {left} and {right} of dimension "
                f"{dim} differ; only the extents of dimension {dimension} may differ",
            )


def _common_type(shapes: Sequence[Shape]) -> PrimitiveType:
    """The common element type of the operands; of several float types the widest."""

    def join(first: tuple[int, Shape], second: tuple[int, Shape]) -> tuple[int, Shape]:
        names = f"operands[{first[0]}]", f"operands[{second[0]}]"
        dtype = same_type(names[0], first[1], names[1], second[1], mixed_floats=True)
        return first if dtype is first[1].dtype else second

    return reduce(join, enumerate(shapes))[1].dtype


@infer
def pad(operand: AnyShape, padding_value: AnyShape, *, padding: Sequence[PaddingOf]) -> Shape:
    shape, value = array("operand", operand), scalar("padding_value", padding_value)
    dtype = same_type("operand", shape, "padding_value", value, mixed_floats=True)
    dims.length("padding", padding, shape.rank, f"dimension of operand {shape}")
    sizes = tuple([_padded(shape, dim, each) for dim, each in enumerate(padding)])
    dims.sizes("the result", sizes)
    return Shape(dtype, sizes, shape.dynamic) if shape.dynamic else array_shape(dtype, sizes)


def _padded(shape: Shape, dim: int, padding: PaddingOf) -> int:
    low, high, interior, size = padding.low, padding.high, padding.interior, shape.dims[dim]
    if interior < 0:
        refuse("negative_size", f"dimension {dim} has padding interior={interior}; only low and high may be negative")
    padded = size + low + high + max(size - 1, 0) * interior
    if padded < 0:
        refuse(
            "negative_size",
            f"padding low={low}, high={high}, interior={interior} would change the extent of dimension {dim} of the "
            f"operand from {size} to {padded}; expected 0 or more",
        )
    return padded


@infer
def get_dimension_size(operand: AnyShape, *, dimension: int) -> Shape:
    _counted("operand", operand, dimension)
    return s32[()]


@infer
def set_dimension_size(operand: AnyShape, size: AnyShape, *, dimension: int) -> Shape:
    shape = _counted("operand", operand, dimension)
    _is_size("size", size)
    flags = shape.dynamic or (False,) * shape.rank
    return Shape(shape.dtype, shape.dims, (*flags[:dimension], True, *flags[dimension + 1 :]))


@infer
def dynamic_reshape(
    operand: AnyShape, dim_sizes: Sequence[AnyShape], *, new_size_bounds: Dims, dims_are_dynamic: tuple[bool, ...]
) -> Shape:
    shape, rank = array("operand", operand), len(new_size_bounds)
    what = f"entry of new_size_bounds {list(new_size_bounds)}"
    dims.length("dims_are_dynamic", dims_are_dynamic, rank, what)
    if len(dim_sizes) != rank:
        refuse(
            "arity_mismatch", f"dim_sizes must have one operand for each {what}: expected {rank}, got {len(dim_sizes)}"
        )
    for number, size in enumerate(dim_sizes):
        _is_size(f"dim_sizes[{number}]", size)
    dims.sizes("new_size_bounds", new_size_bounds)
    if math.prod(new_size_bounds) != shape.size:
        refuse(
            "element_count_mismatch",
            f"operand {shape} and new_size_bounds {list(new_size_bounds)} must have the same number of elements, got "
            f"{shape.size} and {math.prod(new_size_bounds)}",
        )
    return Shape(shape.dtype, new_size_bounds, dynamic_of(rank, dims_are_dynamic))


def _counted(name: str, operand: AnyShape, dim: int) -> Shape:
    """The shape of an array that must have the dimension `dim`, of an extent that an s32 can represent."""
    shape = array(name, operand)
    dims.dimension("dimension", dim, name, shape)
    if shape.dims[dim] > (most := dims.limits(s32)[1]):
        refuse(
            "overflow",
            f"the extent {shape.dims[dim]} of dimension {dim} of {name} {shape} exceeds {most}, the largest s32",
        )
    return shape


def _is_size(name: str, size: AnyShape) -> None:
    if (found := scalar(name, size)).dtype is not s32:
        refuse(
            "element_type_mismatch",
            f"{name} is {found}, but the element type of a size must be s32",
            f"xb.convert({name}, xb.s32) converts it",
        )
