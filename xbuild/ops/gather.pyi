"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Sequence

from ..core.builder import Value

def gather(
    operand: Value,
    start_indices: Value,
    /,
    *,
    offset_dims: Sequence[int],
    collapsed_slice_dims: Sequence[int],
    start_index_map: Sequence[int],
    operand_batching_dims: Sequence[int] = (),
    start_indices_batching_dims: Sequence[int] = (),
    index_vector_dim: int,
    slice_sizes: Sequence[int],
    indices_are_sorted: bool = False,
    name: str | None = None,
) -> Value: ...
