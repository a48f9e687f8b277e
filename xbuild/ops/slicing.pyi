"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Sequence

from ..core.builder import Value

def slice(
    operand: Value,
    /,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] = (),
    name: str | None = None,
) -> Value: ...
def dynamic_slice(
    operand: Value,
    start_indices: Sequence[Value] | Value,
    /,
    *,
    dynamic_slice_sizes: Sequence[int],
    name: str | None = None,
) -> Value: ...
def dynamic_update_slice(
    operand: Value,
    update: Value,
    start_indices: Sequence[Value] | Value,
    /,
    *,
    name: str | None = None,
) -> Value: ...
