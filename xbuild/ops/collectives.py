"""Collectives: every member of a group brings a value, and each gets a result."""

from __future__ import annotations

from ..core.attributes import Region, ReplicaGroups, SliceSizes, SourceTargetPairs
from ..core.builder import Value, Values
from ..core.op import op
from ..core.properties import Properties

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "ragged_all_to_all",
    "reduce_scatter",
]  # fmt: skip


@op(Properties("mixed", needs="group", calls="reducer", states_shape=True))
def all_reduce(
    operands: Values,
    *,
    to_apply: Region,
    replica_groups: ReplicaGroups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> Value:
    """Reduce each element with `to_apply` over the devices of the group; all members get the same result.

    The values are combined in ascending device order.
    Shapes: takes arrays of any shape. With several operands, the op returns a tuple. `to_apply` maps scalars: (E, E) ->
    E, where E is the element type or a wider type. Groups: an empty list means one group of all devices. Groups may
    differ in size, but together must contain every id exactly once.
    Raises: not_array, arity_mismatch, signature_mismatch or invalid_group.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2])
    ... def largest(x):
    ...     return xb.all_reduce(x, to_apply=xb.maximum)
    >>> xb.execute(xb.Module("m", largest, num_replicas=2), [[[1.0, 5.0]], [[3.0, 2.0]]])[0]
    array([3., 5.], dtype=float32)

    Source: StableHLO, all_reduce; Operation Semantics, CrossReplicaSum.
    """
    ...


@op(Properties("moved", moves=("operands",), needs="group", states_shape=True))
def all_gather(
    operands: Values,
    *,
    all_gather_dimension: int,
    shard_count: int,
    replica_groups: ReplicaGroups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> Value:
    """Concatenate the operands of the group along `all_gather_dimension`, in group order.

    All members get the same result.
    Shapes: takes arrays of any shape. With several operands, the op returns a tuple. The extent of the dimension is
    multiplied by `shard_count`, the size of each group.
    Raises: not_array, dimension_out_of_range, non_positive or invalid_group.

    >>> import xbuild as xb
    >>> @xb.computation(xb.s32[1])
    ... def everyone(x):
    ...     return xb.all_gather(x, all_gather_dimension=0, shard_count=2)
    >>> xb.execute(xb.Module("m", everyone, num_replicas=2), [[[7]], [[8]]])[1]
    array([7, 8], dtype=int32)

    Source: StableHLO, all_gather.
    """
    ...


@op(Properties("mixed", needs="group", calls="reducer", states_shape=True, work="none"))
def reduce_scatter(
    operands: Values,
    *,
    to_apply: Region,
    scatter_dimension: int,
    shard_count: int,
    replica_groups: ReplicaGroups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> Value:
    """Reduce over the group, and split the result along `scatter_dimension`: member i keeps part i of `shard_count`.

    Shapes: takes arrays of any shape. With several operands, the op returns a tuple. The extent of the dimension is
    divided by `shard_count`, the size of each group.
    Raises: not_array, dimension_out_of_range, non_positive, divisibility, signature_mismatch or invalid_group.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2])
    ... def share(x):
    ...     return xb.reduce_scatter(x, to_apply=xb.add, scatter_dimension=0, shard_count=2)
    >>> xb.execute(xb.Module("m", share, num_replicas=2), [[[1.0, 2.0]], [[10.0, 20.0]]])
    [array([11.], dtype=float32), array([22.], dtype=float32)]

    Source: StableHLO, reduce_scatter.
    """
    ...


@op(Properties("moved", moves=("operands",), needs="group", states_shape=True))
def all_to_all(
    operands: Values,
    *,
    split_dimension: int | None = None,
    concat_dimension: int | None = None,
    split_count: int | None = None,
    replica_groups: ReplicaGroups = (),
    channel_id: int | None = None,
) -> Value:
    """Send part i of the operand to member i, and concatenate the parts from all members in group order.

    Shapes: with dimensions, takes one array; the extent of split_dimension is divided by split_count, and that of
    concat_dimension is multiplied by it. Without dimensions, takes one array for each member, all of the same shape,
    and returns the tuple of the arrays that the members sent.
    Raises: not_array, dimension_out_of_range, non_positive, divisibility, dimension_mismatch or invalid_group.

    >>> import xbuild as xb
    >>> @xb.computation(xb.s32[2])
    ... def swap(x):
    ...     return xb.all_to_all(x, split_dimension=0, concat_dimension=0, split_count=2)
    >>> xb.execute(xb.Module("m", swap, num_replicas=2), [[[1, 2]], [[3, 4]]])
    [array([1, 3], dtype=int32), array([2, 4], dtype=int32)]

    Source: Operation Semantics, AllToAll; StableHLO, all_to_all.
    """
    ...


@op(Properties("moved", moves=("operands",), needs="group", states_shape=True))
def collective_permute(
    operands: Values,
    *,
    source_target_pairs: SourceTargetPairs,
    channel_id: int | None = None,
    slice_sizes: SliceSizes = (),
) -> Value:
    """Return the value of the device whose target is this device, or zeros if there is no such device.

    Shapes: takes arrays of any shape. With several operands, the op returns a tuple. A device may be the source of one
    pair and the target of one pair, and may send to itself. With `slice_sizes`, the update is in place, and the
    operands are (input, output, input_start_indices, output_start_indices). Input and output are arrays or tuples of
    arrays. The indices have a tuple of scalars for each slice. Returns the output after the slices of the source are
    written into it.
    Raises: not_array, arity_mismatch or invalid_group; in place, also rank_mismatch, element_type_mismatch or
    not_tuple.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[()])
    ... def shift(x):
    ...     return xb.collective_permute(x, source_target_pairs=[(0, 1), (1, 2)])
    >>> xb.execute(xb.Module("m", shift, num_replicas=3), [[1.0], [2.0], [3.0]])
    [np.float32(0.0), np.float32(1.0), np.float32(2.0)]

    Source: StableHLO, collective_permute; xla_builder.h, CollectivePermute.
    """
    ...


@op(Properties("moved", moves=("operand",), needs="group", states_shape=True))
def collective_broadcast(operand: Value, *, replica_groups: ReplicaGroups = (), channel_id: int | None = None) -> Value:
    """Send the value of the group's first device to all members of the group; devices outside all groups get zeros.

    Shapes: takes an array of any shape.
    Groups: an empty list means one group of all devices. Groups may omit devices.
    Raises: not_array or invalid_group.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[()])
    ... def from_two(x):
    ...     return xb.collective_broadcast(x, [(2, 1)])
    >>> xb.execute(xb.Module("m", from_two, num_replicas=3), [[1.0], [2.0], [3.0]])
    [np.float32(0.0), np.float32(3.0), np.float32(3.0)]

    Source: StableHLO, collective_broadcast; xla_builder.h, CollectiveBroadcast.
    """
    ...


@op(
    Properties(
        "moved",
        moves=("operand", "output"),
        chosen_by=("input_offsets", "send_sizes", "output_offsets", "recv_sizes"),
        needs="group",
        states_shape=True,
    )
)
def ragged_all_to_all(
    operand: Value,
    output: Value,
    input_offsets: Value,
    send_sizes: Value,
    output_offsets: Value,
    recv_sizes: Value,
    *,
    replica_groups: ReplicaGroups = (),
    channel_id: int | None = None,
) -> Value:
    """Send some rows of the operand to each member, which writes them over rows of its `output`.

    Formula: send_sizes[j] rows of this member's operand, starting at input_offsets[j], go to member j. Member j writes
    them into its output, starting at output_offsets[j] of the sender. Member i sends recv_sizes[i] rows to this member.
    All other rows of the output are unchanged. Rows that would start or end outside an array are omitted.
    Shapes: operand [n, ...] and output [m, ...] have the same element type. The other operands are integer arrays of
    the same shape, either [members] or [members, updates of each member]. The result has the shape of `output`.
    Raises: not_array, rank_too_small, rank_mismatch, dimension_mismatch, element_type_mismatch,
    element_type_unsupported or invalid_group.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[3], xb.s32[2], xb.s32[2], xb.s32[2], xb.s32[2])
    ... def pass_rows(x, start, sent, to, received):
    ...     zeros = xb.broadcast(xb.constant(x.builder, 0.0), [4])
    ...     return xb.ragged_all_to_all(x, zeros, start, sent, to, received)
    >>> first = [[1.0, 2.0, 3.0], [0, 1], [1, 2], [0, 0], [1, 2]]
    >>> second = [[4.0, 5.0, 6.0], [0, 2], [2, 1], [1, 2], [2, 1]]
    >>> xb.execute(xb.Module("m", pass_rows, num_replicas=2), [first, second])
    [array([1., 4., 5., 0.], dtype=float32), array([2., 3., 6., 0.], dtype=float32)]

    Source: hlo_opcode.h, ragged-all-to-all; jax.lax.ragged_all_to_all.
    """
    ...
