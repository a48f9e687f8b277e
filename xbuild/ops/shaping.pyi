"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Sequence

from ..core.attributes import PaddingDimension
from ..core.builder import Builder, Value

def broadcast(
    operand: Value,
    /,
    *,
    sizes: Sequence[int],
    dimensions: Sequence[int],
    name: str | None = None,
) -> Value: ...
def reshape(operand: Value, /, *, new_sizes: Sequence[int], name: str | None = None) -> Value: ...
def transpose(operand: Value, /, *, permutation: Sequence[int], name: str | None = None) -> Value: ...
def reverse(operand: Value, /, *, dimensions: Sequence[int], name: str | None = None) -> Value: ...
def concatenate(
    operands: Sequence[Value] | Value,
    /,
    *,
    dimension: int,
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def pad(
    operand: Value,
    padding_value: Value,
    /,
    *,
    padding: Sequence[PaddingDimension | Sequence[int]],
    name: str | None = None,
) -> Value: ...
def get_dimension_size(operand: Value, /, *, dimension: int, name: str | None = None) -> Value: ...
def set_dimension_size(operand: Value, size: Value, /, *, dimension: int, name: str | None = None) -> Value: ...
def dynamic_reshape(
    operand: Value,
    dim_sizes: Sequence[Value] | Value,
    /,
    *,
    new_size_bounds: Sequence[int],
    dims_are_dynamic: Sequence[bool],
    name: str | None = None,
) -> Value: ...
