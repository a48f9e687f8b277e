"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Callable, Mapping, Sequence

from ..core.builder import Builder, Value
from ..core.graph import Computation

def all_reduce(
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
def all_gather(
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
def reduce_scatter(
    operands: Sequence[Value] | Value,
    /,
    *,
    to_apply: Computation | Callable[..., object],
    scatter_dimension: int,
    shard_count: int,
    replica_groups: Sequence[Sequence[int]] | None = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def all_to_all(
    operands: Sequence[Value] | Value,
    /,
    *,
    split_dimension: int | None = None,
    concat_dimension: int | None = None,
    split_count: int | None = None,
    replica_groups: Sequence[Sequence[int]] | None = (),
    channel_id: int | None = None,
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def collective_permute(
    operands: Sequence[Value] | Value,
    /,
    *,
    source_target_pairs: Sequence[Sequence[int]] | Mapping[int, int],
    channel_id: int | None = None,
    slice_sizes: Sequence[Sequence[int]] | None = (),
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def collective_broadcast(
    operand: Value,
    /,
    *,
    replica_groups: Sequence[Sequence[int]] | None = (),
    channel_id: int | None = None,
    name: str | None = None,
) -> Value: ...
def ragged_all_to_all(
    operand: Value,
    output: Value,
    input_offsets: Value,
    send_sizes: Value,
    output_offsets: Value,
    recv_sizes: Value,
    /,
    *,
    replica_groups: Sequence[Sequence[int]] | None = (),
    channel_id: int | None = None,
    name: str | None = None,
) -> Value: ...
