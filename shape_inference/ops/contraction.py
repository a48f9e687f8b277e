"""Shapes of dot, ragged-dot and scaled-dot, which sum products over pairs of contracting dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from .. import dims
from ..dims import array, same_type
from ..rules import infer, refuse
from ..types import AnyShape, Dims, PrimitiveType, Shape, array_shape

_RICHNESS = {"pred": 0, "unsigned": 1, "signed": 1, "float": 2, "complex": 3}
_VERBS = {"contracting": "are contracted", "batch": "form a batch pair"}
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
    """The shape of a dot product; it is cached, since a program repeats few distinct products often."""
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
    """The common element type, or the preferred one, whose kind must represent the products."""
    if preferred is None:
        return lhs.dtype if lhs.dtype is rhs.dtype else same_type("lhs", lhs, "rhs", rhs, mixed_floats=True)
    if not (lhs.dtype.is_integer and rhs.dtype.is_integer):
        same_type("lhs", lhs, "rhs", rhs, mixed_floats=True)
    if _RICHNESS[preferred.kind] < _RICHNESS[lhs.dtype.kind]:
        refuse(
            "element_type_mismatch",
            f"preferred_element_type={preferred} cannot hold products of {lhs.dtype}: lhs is {lhs} and rhs is {rhs}",
        )
    return preferred


def _numbers(name: str, shape: Shape, contracting: Dims, batch: Dims) -> Dims:
    """The contracting and batch dimensions of one operand, which must be in range and distinct."""
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
    """Refuse lists of paired dimensions of different lengths, and pairs of different extents."""
    lhs_dims, rhs_dims = pairs
    if len(lhs_dims) != len(rhs_dims):
        refuse(
            "attribute_length_mismatch",
            f"lhs_{role}_dims {list(lhs_dims)} and rhs_{role}_dims {list(rhs_dims)} must have the same length, "
            f"got {len(lhs_dims)} and {len(rhs_dims)}",
        )
    for left, right in zip(lhs_dims, rhs_dims, strict=True):
        if lhs.dims[left] != rhs.dims[right]:
            refuse(
                "dimension_mismatch",
                f"lhs dimension {left} ({lhs.dims[left]}) and rhs dimension {right} ({rhs.dims[right]}) "
                f"{_VERBS[role]} but differ in extent: lhs is {lhs} and rhs is {rhs}",
                *_transposed(lhs, rhs, left, right),
            )


def _transposed(lhs: Shape, rhs: Shape, left: int, right: int) -> Iterator[str]:
    """The hint for two matrices that fit when one is transposed."""
    if lhs.rank == rhs.rank == 2:
        if lhs.dims[left] == rhs.dims[1 - right]:
            yield f"rhs dimension {1 - right} is {lhs.dims[left]}, so lhs @ rhs.T fits"
        if lhs.dims[1 - left] == rhs.dims[right]:
            yield f"lhs dimension {1 - left} is {rhs.dims[right]}, so lhs.T @ rhs fits"


def check_precision(words: tuple[str, ...], count: int = 2) -> None:
    if len(words) != count or any(word not in _PRECISIONS for word in words):
        wanted = "two" if count == 2 else str(count)
        refuse(
            "invalid_attribute",
            f"operand_precision must be empty or have {wanted} values, each one of {', '.join(_PRECISIONS)}; "
            f"got {list(words)}",
        )


@infer
def ragged_dot(
    lhs: AnyShape,
    rhs: AnyShape,
    group_sizes: AnyShape,
    *,
    lhs_batch_dims: Dims,
    lhs_contracting_dims: Dims,
    rhs_batch_dims: Dims,
    rhs_contracting_dims: Dims,
    lhs_ragged_dims: Dims,
    rhs_group_dims: Dims,
    operand_precision: tuple[str, ...],
    preferred_element_type: PrimitiveType | None,
) -> Shape:
    if operand_precision:
        check_precision(operand_precision)
    left, right, groups = array("lhs", lhs), array("rhs", rhs), array("group_sizes", group_sizes)
    if len(lhs_ragged_dims) != 1:
        refuse(
            "attribute_length_mismatch",
            f"lhs_ragged_dims must have exactly 1 entry, got {list(lhs_ragged_dims)}",
        )
    ragged = dims.dimension("lhs_ragged_dims", lhs_ragged_dims[0], "lhs", left)
    batch, contracting = (lhs_batch_dims, rhs_batch_dims), (lhs_contracting_dims, rhs_contracting_dims)
    is_free = ragged not in lhs_batch_dims + lhs_contracting_dims
    whole = _product(left, without(right, rhs_group_dims), *_renumbered(batch, contracting, right, rhs_group_dims),
                     preferred_element_type)  # fmt: skip
    count = _group_count(groups, left, before(left.rank, ragged, lhs_batch_dims, lhs_contracting_dims))
    _check_group(right, rhs_group_dims, count, is_free)
    if ragged not in lhs_contracting_dims:
        return whole
    return Shape(whole.dtype, (count, *whole.dims), (False, *whole.dynamic) if whole.dynamic else ())


def before(rank: int, ragged: int, batch: Dims, contracting: Dims) -> Dims:
    """The dimensions of lhs that group_sizes may have before its last dimension."""
    if ragged in batch:
        return batch[: batch.index(ragged)]
    if ragged in contracting:
        return batch + contracting[: contracting.index(ragged)]
    return batch + tuple(dim for dim in range(ragged) if dim not in batch + contracting)


def without(shape: Shape, removed: Dims) -> Shape:
    """The shape without the listed dimensions."""
    kept = [dim for dim in range(shape.rank) if dim not in removed]
    return Shape(shape.dtype, tuple(shape.dims[dim] for dim in kept), dims.dynamic_of(len(kept), _flags(shape, kept)))


def renumbered(paired: Dims, removed: Dims) -> Dims:
    """The dimension numbers after the removal of the dimensions in `removed`."""
    return tuple(dim - sum(gone < dim for gone in removed) for dim in paired)


def _renumbered(
    batch: tuple[Dims, Dims], contracting: tuple[Dims, Dims], rhs: Shape, group: Dims
) -> tuple[tuple[Dims, Dims], tuple[Dims, Dims]]:
    """The batch and contracting pairs, numbered for rhs without its group dimension, which is in no pair."""
    dims.dimensions("rhs_group_dims", group, "rhs", rhs)
    for name, paired in (("rhs_batch_dims", batch[1]), ("rhs_contracting_dims", contracting[1])):
        dims.dimensions(name, paired, "rhs", rhs)
        if shared := set(group) & set(paired):
            dim = min(shared)
            refuse(
                "duplicate_dimension",
                f"rhs_group_dims {list(group)} and {name} {list(paired)} both contain dimension {dim} of rhs {rhs}",
            )
    return (batch[0], renumbered(batch[1], group)), (contracting[0], renumbered(contracting[1], group))


def _group_count(groups: Shape, lhs: Shape, prefix: Dims) -> int:
    """The number of groups: the last extent of group_sizes, which the dimensions `prefix` of lhs may precede."""
    dims.integer("group_sizes", groups)
    wanted = tuple(lhs.dims[dim] for dim in prefix)
    if groups.rank not in (1, len(prefix) + 1):
        ranks = "1" if not prefix else f"1 or {len(prefix) + 1}"
        refuse(
            "rank_mismatch",
            f"group_sizes must have rank {ranks}, and its last dimension must index the groups; got {groups}",
        )
    if groups.rank > 1 and groups.dims[:-1] != wanted:
        refuse(
            "dimension_mismatch",
            f"group_sizes {groups} must begin with the extents {list(wanted)} of dimensions {list(prefix)} of lhs "
            f"{lhs}, which precede the ragged dimension",
        )
    return groups.dims[-1]


def _check_group(rhs: Shape, group: Dims, count: int, is_free: bool) -> None:
    """Refuse rhs_group_dims other than one dimension of extent `count` (ragged dimension free) or none (not free)."""
    if len(group) != int(is_free):
        role = "free" if is_free else "a batch or contracting dimension"
        entries = "1 entry" if is_free else "no entries"
        refuse(
            "attribute_length_mismatch",
            f"rhs_group_dims must have {entries} because the ragged dimension is {role}, got {list(group)}",
        )
    if group and rhs.dims[group[0]] != count:
        refuse(
            "dimension_mismatch",
            f"the number of groups in group_sizes is {count}, but the group dimension {group[0]} of rhs {rhs} has "
            f"extent {rhs.dims[group[0]]}",
        )


@infer
def scaled_dot(
    lhs: AnyShape,
    rhs: AnyShape,
    lhs_scale: AnyShape,
    rhs_scale: AnyShape,
    *,
    lhs_batch_dims: Dims,
    lhs_contracting_dims: Dims,
    rhs_batch_dims: Dims,
    rhs_contracting_dims: Dims,
    operand_precision: tuple[str, ...],
    preferred_element_type: PrimitiveType | None,
) -> Shape:
    if operand_precision:
        check_precision(operand_precision, 4 if len(operand_precision) == 4 else 2)
    left, right = array("lhs", lhs), array("rhs", rhs)
    for name, operand, scale in (("lhs", left, lhs_scale), ("rhs", right, rhs_scale)):
        _check_scale(name, operand, array(f"{name}_scale", scale))
    batch, contracting = (lhs_batch_dims, rhs_batch_dims), (lhs_contracting_dims, rhs_contracting_dims)
    return _product(left, right, batch, contracting, preferred_element_type)


def _check_scale(name: str, operand: Shape, scale: Shape) -> None:
    """Refuse a scale that is no float, or whose rank or extents do not divide the operand into blocks."""
    for label, shape in ((name, operand), (f"{name}_scale", scale)):
        if not shape.dtype.is_float:
            refuse("element_type_unsupported", f"{label} is {shape}, but its element type must be floating point")
    if scale.rank not in (0, operand.rank):
        refuse(
            "rank_mismatch",
            f"{name}_scale is {scale} and {name} is {operand}; the scale must have rank 0 or the rank of {name}",
        )
    for dim, (blocks, extent) in enumerate(zip(scale.dims, operand.dims, strict=False)):
        if (extent % blocks if blocks else extent) or (
            operand.dynamic and operand.dynamic[dim] and blocks not in (1, extent)
        ):
            refuse(
                "divisibility",
                f"dimension {dim} has extent {blocks} in {name}_scale {scale} and extent {operand.bound(dim)} in "
                f"{name} {operand}; the first extent must divide the second",
            )


def check_dot_ranks(lhs: AnyShape, rhs: AnyShape) -> tuple[Shape, Shape]:
    """Refuse operands of rank 0, which XlaBuilder's Dot does not take and `dot` does."""
    shapes = array("lhs", lhs), array("rhs", rhs)
    for name, shape in zip(("lhs", "rhs"), shapes, strict=True):
        if not shape.dims:
            refuse(
                "rank_too_small",
                f"{name} is {shape} of rank 0, but a contraction requires rank 1 or more",
                "use xb.multiply to multiply by a scalar",
            )
    return shapes
