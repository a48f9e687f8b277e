"""The convenience form of scatter: indices and updates as arrays or lists, defaults for the dimension numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shape_inference.indexing import last_dimension

from .. import ops
from ..core.builder import Value
from ..core.graph import Computation
from .support import as_list, as_values, dressed, dtype_of, require_value

__all__ = ["scatter"]


@dressed
def scatter(
    operands: Value | Sequence[Value],
    scatter_indices: Any,
    updates: Any,
    to_apply: Computation | Callable[..., Any],
    *,
    update_window_dims: Sequence[int],
    inserted_window_dims: Sequence[int],
    scatter_dims_to_operand_dims: Sequence[int],
    input_batching_dims: Sequence[int] = (),
    scatter_indices_batching_dims: Sequence[int] = (),
    index_vector_dim: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    name: str | None = None,
) -> Value:
    """Update the elements of the operands (one, or a list) that the indices select: each becomes to_apply(element,
    update).

    `scatter_indices` and `updates` may be arrays or lists of numbers. By default, the index vectors lie along the last
    dimension of `scatter_indices` (`index_vector_dim`).
    Raises: the same errors as xb.ops.scatter.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[3, 2])
    ... def overwrite(x):
    ...     return xb.scatter(
    ...         x, [[2], [0]], [[1.0, 2.0], [3.0, 4.0]], lambda current, update: update,
    ...         update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,),
    ...     )
    >>> xb.evaluate(overwrite, [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    array([[3., 4.],
           [0., 0.],
           [1., 2.]], dtype=float32)

    Source: Operation Semantics, Scatter.
    """
    values = as_list(operands)
    builder = require_value(values[0]).builder if values else None
    (indices,) = as_values((scatter_indices,), builder=builder)
    return ops.scatter(
        tuple(values),
        indices,
        _updates(values, updates),
        to_apply=to_apply,
        update_window_dims=update_window_dims,
        inserted_window_dims=inserted_window_dims,
        scatter_dims_to_operand_dims=scatter_dims_to_operand_dims,
        input_batching_dims=input_batching_dims,
        scatter_indices_batching_dims=scatter_indices_batching_dims,
        index_vector_dim=last_dimension("scatter_indices", indices.shape)
        if index_vector_dim is None
        else index_vector_dim,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        name=name,
    )


def _updates(operands: Sequence[Value], updates: Any) -> Sequence[Value]:
    """As many updates as operands, in their element types; a list for one operand is its numbers."""
    given = [updates] if len(operands) == 1 and not _are_values(updates) else list(as_list(updates))
    if len(given) != len(operands) or _are_values(given):
        return given
    return as_values(given, [dtype_of(operand) for operand in operands], operands[0].builder)


def _are_values(updates: Any) -> bool:
    return isinstance(updates, tuple | list) and all(isinstance(each, Value) for each in updates)
