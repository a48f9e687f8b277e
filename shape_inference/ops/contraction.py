"""Shapes of the op that sums products over pairs of dimensions."""

from __future__ import annotations

import math

from .. import dims
from ..dims import MAX_ELEMENTS, array, same_type
from ..rules import infer, refuse
from ..types import AnyShape, Dims, PrimitiveType, Shape, array_shape

_RICHNESS = {"pred": 0, "unsigned": 1, "signed": 1, "float": 2, "complex": 3}
_PRECISIONS = ("default", "high", "highest", "packed_nibble")


@infer
def dot(
    lhs: AnyShape,
    rhs: AnyShape,
    *,
    lhs_contracting_dims: Dims,
    rhs_contracting_dims: Dims,
    lhs_batch_dims: Dims,
    rhs_batch_dims: Dims,
    operand_precision: tuple[str, ...],
    preferred_element_type: PrimitiveType | None,
) -> Shape:
    left, right = array("lhs", lhs), array("rhs", rhs)
    dtype = _result_type(left, right, preferred_element_type)
    lhs_paired = _numbers("lhs", left, lhs_contracting_dims, lhs_batch_dims)
    rhs_paired = _numbers("rhs", right, rhs_contracting_dims, rhs_batch_dims)
    _pairs("contracting", left, lhs_contracting_dims, right, rhs_contracting_dims)
    if lhs_batch_dims or rhs_batch_dims:
        _pairs("batch", left, lhs_batch_dims, right, rhs_batch_dims)
    if operand_precision:
        _precision(operand_precision)
    order = [*lhs_batch_dims, *[dim for dim in range(left.rank) if dim not in lhs_paired]]
    rhs_free = [dim for dim in range(right.rank) if dim not in rhs_paired]
    sizes = tuple([left.dims[dim] for dim in order] + [right.dims[dim] for dim in rhs_free])
    if math.prod(sizes) > MAX_ELEMENTS:
        dims.sizes("the result", sizes)
    if not left.dynamic and not right.dynamic:
        return array_shape(dtype, sizes)
    return Shape(dtype, sizes, (*_flags(left, order), *_flags(right, rhs_free)))


def _flags(shape: Shape, order: list[int]) -> list[bool]:
    return [bool(shape.dynamic) and shape.dynamic[dim] for dim in order]


def _result_type(lhs: Shape, rhs: Shape, preferred: PrimitiveType | None) -> PrimitiveType:
    """The common element type, or the preferred one, which may be any that is no poorer in kind."""
    if preferred is None:
        return lhs.dtype if lhs.dtype is rhs.dtype else same_type("lhs", lhs, "rhs", rhs, mixed_floats=True)
    if not (lhs.dtype.is_integer and rhs.dtype.is_integer):
        same_type("lhs", lhs, "rhs", rhs, mixed_floats=True)
    if _RICHNESS[preferred.kind] < _RICHNESS[lhs.dtype.kind]:
        refuse(
            "element_type_mismatch",
            f"preferred_element_type={preferred} for lhs {lhs} and rhs {rhs}; {preferred} cannot hold products of {lhs.dtype}",
        )
    return preferred


def _numbers(name: str, shape: Shape, contracting: Dims, batch: Dims) -> Dims:
    """The paired dimensions of one operand: in range, each once."""
    paired = contracting + batch
    for dim in paired:
        if not 0 <= dim < shape.rank:
            dims.dimensions(f"{name}_contracting_dims", contracting, name, shape)
            dims.dimensions(f"{name}_batch_dims", batch, name, shape)
    if len(paired) > 1 and len(set(paired)) != len(paired):
        dims.distinct(f"{name}_contracting_dims", contracting)
        dims.distinct(f"{name}_batch_dims", batch)
        dims.distinct(f"{name}_contracting_dims and {name}_batch_dims", paired)
    return paired


def _pairs(role: str, lhs: Shape, lhs_dims: Dims, rhs: Shape, rhs_dims: Dims) -> None:
    """As many dimensions on both sides, each pair of one extent."""
    if len(lhs_dims) != len(rhs_dims):
        refuse(
            "attribute_length_mismatch",
            f"lhs_{role}_dims {list(lhs_dims)} has {len(lhs_dims)} entries, rhs_{role}_dims {list(rhs_dims)} has "
            f"{len(rhs_dims)}; they are paired",
        )
    for left, right in zip(lhs_dims, rhs_dims, strict=True):
        if lhs.dims[left] != rhs.dims[right]:
            verb = "contracted" if role == "contracting" else "batch dimensions of each other"
            refuse(
                "dimension_mismatch",
                f"lhs dimension {left} ({lhs.dims[left]}) and rhs dimension {right} ({rhs.dims[right]}) are {verb}; "
                f"lhs is {lhs}, rhs is {rhs}, lhs_{role}_dims {list(lhs_dims)}, rhs_{role}_dims {list(rhs_dims)}",
            )


def _precision(words: tuple[str, ...]) -> None:
    if len(words) != 2 or any(word not in _PRECISIONS for word in words):
        refuse("invalid_attribute", f"operand_precision {list(words)}; none, or two of {', '.join(_PRECISIONS)} are wanted")


def check_dot_ranks(lhs: AnyShape, rhs: AnyShape) -> tuple[Shape, Shape]:
    """What XlaBuilder's Dot demands beyond `dot`: operands of rank 1 and more."""
    shapes = array("lhs", lhs), array("rhs", rhs)
    for name, shape in zip(("lhs", "rhs"), shapes, strict=True):
        if not shape.dims:
            refuse("rank_too_small", f"{name} is {shape} of rank 0; vectors and matrices, of rank 1 and more, are contracted", "xb.multiply scales")
    return shapes
