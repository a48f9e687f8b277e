"""The convenience form of gather: indices as arrays or lists, defaults for the dimension numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shape_inference.indexing import last_dimension

from .. import ops
from ..core.builder import Value
from .support import as_values, dressed, require_value

__all__ = ["gather"]


@dressed
def gather(
    operand: Value,
    start_indices: Any,
    *,
    offset_dims: Sequence[int],
    collapsed_slice_dims: Sequence[int],
    start_index_map: Sequence[int],
    slice_sizes: Sequence[int],
    operand_batching_dims: Sequence[int] = (),
    start_indices_batching_dims: Sequence[int] = (),
    index_vector_dim: int | None = None,
    indices_are_sorted: bool = False,
    name: str | None = None,
) -> Value:
    """For each index vector, take a slice of size `slice_sizes` at that index, shifted to lie inside the operand.

    `start_indices` may be an array or a list of ints; by default, the vectors lie along its last dimension
    (`index_vector_dim`).
    Raises: the same errors as xb.ops.gather.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[16, 11])
    >>> whole = {"offset_dims": (1, 2), "collapsed_slice_dims": (), "start_index_map": (0, 1)}
    >>> xb.gather(x, [[0, 0], [2, 3], [8, 5], [1, 1], [4, 4]], slice_sizes=(8, 6), **whole).shape
    f32[5,8,6]

    Source: Operation Semantics, Gather.
    """
    (starts,) = as_values((start_indices,), builder=require_value(operand).builder)
    return ops.gather(
        operand,
        starts,
        offset_dims=offset_dims,
        collapsed_slice_dims=collapsed_slice_dims,
        start_index_map=start_index_map,
        operand_batching_dims=operand_batching_dims,
        start_indices_batching_dims=start_indices_batching_dims,
        index_vector_dim=last_dimension("start_indices", starts.shape)
        if index_vector_dim is None
        else index_vector_dim,
        slice_sizes=slice_sizes,
        indices_are_sorted=indices_are_sorted,
        name=name,
    )
