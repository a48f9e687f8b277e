"""Shapes of the op that sums products over pairs of dimensions."""

from __future__ import annotations

from functools import lru_cache

from .. import dims
from ..dims import array, same_type
from ..rules import infer, refuse
from ..types import AnyShape, Dims, PrimitiveType, Shape, array_shape

_RICHNESS = {"pred": 0, "unsigned": 1, "signed": 1, "float": 2, "complex": 3}
_VERBS = {"contracting": "are contracted", "batch": "are a batch pair"}
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
    if operand_precision:
        check_precision(operand_precision)
    left, right = array("lhs", lhs), array("rhs", rhs)
    batch, contracting = (lhs_batch_dims, rhs_batch_dims), (lhs_contracting_dims, rhs_contracting_dims)
    return _product(left, right, batch, contracting, preferred_element_type)


@lru_cache(maxsize=4096)
def _product(
    lhs: Shape, rhs: Shape, batch: tuple[Dims, Dims], contracting: tuple[Dims, Dims], preferred: PrimitiveType | None
) -> Shape:
    """The shape of the result; a program repeats few products often, so each is checked once."""
    dtype = product_type(lhs, rhs, preferred)
    lhs_paired = _numbers("lhs", lhs, contracting[0], batch[0])
    rhs_paired = _numbers("rhs", rhs, contracting[1], batch[1])
    _pairs("contracting", lhs, rhs, contracting)
    _pairs("batch", lhs, rhs, batch)
    lhs_kept = [*batch[0], *(dim for dim in range(lhs.rank) if dim not in lhs_paired)]
    rhs_free = [dim for dim in range(rhs.rank) if dim not in rhs_paired]
    sizes = (*(lhs.dims[dim] for dim in lhs_kept), *(rhs.dims[dim] for dim in rhs_free))
    dims.sizes("the result", sizes)
    flags = (*_flags(lhs, lhs_kept), *_flags(rhs, rhs_free))
    return Shape(dtype, sizes, flags) if any(flags) else array_shape(dtype, sizes)


def _flags(shape: Shape, order: list[int]) -> list[bool]:
    return [bool(shape.dynamic) and shape.dynamic[dim] for dim in order]


def product_type(lhs: Shape, rhs: Shape, preferred: PrimitiveType | None) -> PrimitiveType:
    """The common element type, or the preferred one, which may be any that is no poorer in kind."""
    if preferred is None:
        return lhs.dtype if lhs.dtype is rhs.dtype else same_type("lhs", lhs, "rhs", rhs, mixed_floats=True)
    if not (lhs.dtype.is_integer and rhs.dtype.is_integer):
        same_type("lhs", lhs, "rhs", rhs, mixed_floats=True)
    if _RICHNESS[preferred.kind] < _RICHNESS[lhs.dtype.kind]:
        refuse(
            "element_type_mismatch",
            f"preferred_element_type={preferred} for lhs {lhs} and rhs {rhs}; it holds no products of {lhs.dtype}",
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


def _pairs(role: str, lhs: Shape, rhs: Shape, pairs: tuple[Dims, Dims]) -> None:
    """As many dimensions on both sides, each pair of one extent."""
    lhs_dims, rhs_dims = pairs
    if len(lhs_dims) != len(rhs_dims):
        refuse(
            "attribute_length_mismatch",
            f"lhs_{role}_dims {list(lhs_dims)} has {len(lhs_dims)} entries, rhs_{role}_dims {list(rhs_dims)} has "
            f"{len(rhs_dims)}; they pair one by one",
        )
    for left, right in zip(lhs_dims, rhs_dims, strict=True):
        if lhs.dims[left] != rhs.dims[right]:
            refuse(
                "dimension_mismatch",
                f"lhs dimension {left} ({lhs.dims[left]}) and rhs dimension {right} ({rhs.dims[right]}) "
                f"{_VERBS[role]}, and differ: lhs is {lhs}, rhs is {rhs}",
            )


def check_precision(words: tuple[str, ...]) -> None:
    if len(words) != 2 or any(word not in _PRECISIONS for word in words):
        refuse(
            "invalid_attribute", f"operand_precision {list(words)}; none, or two of {', '.join(_PRECISIONS)} are wanted"
        )


def check_dot_ranks(lhs: AnyShape, rhs: AnyShape) -> tuple[Shape, Shape]:
    """What XlaBuilder's Dot demands beyond `dot`: operands of rank 1 and more."""
    shapes = array("lhs", lhs), array("rhs", rhs)
    for name, shape in zip(("lhs", "rhs"), shapes, strict=True):
        if not shape.dims:
            refuse(
                "rank_too_small",
                f"{name} is {shape} of rank 0; vectors and matrices, of rank 1 and more, are contracted",
                "xb.multiply scales",
            )
    return shapes
