"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Callable, Mapping, Sequence

from shape_inference import AnyShape, PrimitiveType

from ..core.builder import Builder, Value
from ..core.graph import Computation

def all_reduce_start(
    operands: Sequence[Value] | Value,
    /,
    *,
    to_apply: Computation | Callable[..., object],
    replica_groups: Sequence[Sequence[int]] | None = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def all_reduce_done(start: Value, /, *, name: str | None = None) -> Value: ...
def all_gather_start(
    operands: Sequence[Value] | Value,
    /,
    *,
    all_gather_dimension: int,
    shard_count: int,
    replica_groups: Sequence[Sequence[int]] | None = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def all_gather_done(start: Value, /, *, name: str | None = None) -> Value: ...
def collective_permute_start(
    operands: Sequence[Value] | Value,
    /,
    *,
    source_target_pairs: Sequence[Sequence[int]] | Mapping[int, int],
    channel_id: int | None = None,
    slice_sizes: Sequence[Sequence[int]] | None = (),
    context_shapes: Sequence[AnyShape | PrimitiveType] = (),
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def collective_permute_done(start: Value, /, *, name: str | None = None) -> Value: ...
def copy_start(operand: Value, /, *, name: str | None = None) -> Value: ...
def copy_done(start: Value, /, *, name: str | None = None) -> Value: ...
def async_start(
    operands: Sequence[Value] | Value,
    /,
    *,
    calls: Computation | Callable[..., object],
    context_shapes: Sequence[AnyShape | PrimitiveType] = (),
    async_execution_thread: str = "main",
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def async_update(start: Value, /, *, name: str | None = None) -> Value: ...
def async_done(start: Value, /, *, name: str | None = None) -> Value: ...
