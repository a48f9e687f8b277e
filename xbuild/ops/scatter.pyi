"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Callable, Sequence

from ..core.builder import Value
from ..core.graph import Computation

def scatter(
    operands: Sequence[Value] | Value,
    scatter_indices: Value,
    updates: Sequence[Value] | Value,
    /,
    *,
    to_apply: Computation | Callable[..., object],
    update_window_dims: Sequence[int],
    inserted_window_dims: Sequence[int],
    scatter_dims_to_operand_dims: Sequence[int],
    input_batching_dims: Sequence[int] = (),
    scatter_indices_batching_dims: Sequence[int] = (),
    index_vector_dim: int,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    name: str | None = None,
) -> Value: ...
