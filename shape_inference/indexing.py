"""Checks that gather and scatter share: of index vectors and of the operand dimensions that they index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from attrs import frozen

from . import dims
from .rules import refuse
from .types import AnyShape, Dims, Shape

Entry = TypeVar("Entry")


@frozen
class IndexNames:
    """An op's names for the array of index vectors and for the attributes that relate the array to the operand."""

    indices: str
    index_map: str
    excluded: str
    batching: str
    indices_batching: str


def check_vectors(names: IndexNames, indices: Shape, index_vector_dim: int) -> None:
    """Refuse index vectors that are not integers, and an index_vector_dim that is out of range."""
    dims.integer(names.indices, indices)
    if not 0 <= index_vector_dim <= indices.rank:
        refuse(
            "dimension_out_of_range",
            f"index_vector_dim={index_vector_dim} is out of range for {names.indices} {indices}; expected "
            f"0..{indices.rank}, where {indices.rank} makes each element an index vector",
        )


def without(values: Sequence[Entry], index_vector_dim: int) -> tuple[Entry, ...]:
    """A list with one entry for each dimension of the index array, without the entry of index_vector_dim."""
    return (*values[:index_vector_dim], *values[index_vector_dim + 1 :])


def check_index_map(names: IndexNames, index_map: Dims, index_vector_dim: int, indices: Shape, operand: Shape) -> None:
    """Refuse an index map that does not map each entry of an index vector to an operand dimension of its own."""
    size = indices.dims[index_vector_dim] if index_vector_dim < indices.rank else 1
    if len(index_map) != size:
        refuse(
            "attribute_length_mismatch",
            f"{names.index_map} {list(index_map)} has length {len(index_map)}, but the index vectors of "
            f"{names.indices} {indices} (index_vector_dim={index_vector_dim}) have length {size}",
        )
    dims.dimensions(names.index_map, index_map, "operand", operand)


def check_excluded(
    names: IndexNames, excluded: Dims, batching: Dims, indices_batching: Dims, index_map: Dims, operand: Shape
) -> None:
    """Refuse unordered or repeated dimensions excluded from slices, and batching dimensions in the index map."""
    dims.dimensions(names.excluded, excluded, "operand", operand, ascending=True)
    dims.dimensions(names.batching, batching, "operand", operand, ascending=True)
    if batching:
        dims.distinct(f"{names.excluded} and {names.batching}", excluded + batching)
        dims.distinct(f"{names.index_map} and {names.batching}", index_map + batching)
    if len(batching) != len(indices_batching):
        refuse(
            "attribute_length_mismatch",
            f"{names.batching} {list(batching)} and {names.indices_batching} {list(indices_batching)} must have the "
            f"same length, got {len(batching)} and {len(indices_batching)}",
        )


def check_pairs(
    names: IndexNames, batching: Dims, indices_batching: Dims, index_vector_dim: int, operand: Shape, indices: Shape
) -> None:
    """Refuse batching dimensions of the operand and of the index array whose extents differ pairwise."""
    dims.dimensions(names.indices_batching, indices_batching, names.indices, indices)
    if index_vector_dim in indices_batching:
        refuse(
            "invalid_attribute",
            f"{names.indices_batching} {list(indices_batching)} must not contain index_vector_dim={index_vector_dim}, "
            "the dimension of the index vectors",
        )
    for left, right in zip(batching, indices_batching, strict=True):
        if operand.dims[left] != indices.dims[right]:
            refuse(
                "dimension_mismatch",
                f"{names.batching} {list(batching)} and {names.indices_batching} {list(indices_batching)} pair "
                f"dimension {left} of operand {operand} with dimension {right} of {names.indices} {indices}, but their "
                f"extents {operand.dims[left]} and {indices.dims[right]} differ",
            )


def merge_dimensions(placed: Dims, values: Iterable[Entry], others: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries `values` at the dimensions `placed` (ascending), and `others` at all other dimensions."""
    first, second = list(values), list(others)
    mine, rest = iter(first), iter(second)
    return tuple(next(mine) if dim in placed else next(rest) for dim in range(len(first) + len(second)))


def last_dimension(name: str, indices: AnyShape) -> int:
    """The default index_vector_dim: the last dimension of the index array, or 0 if it is a scalar."""
    return max(dims.array(name, indices).rank - 1, 0)
