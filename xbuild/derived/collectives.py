"""Convenience forms of the collectives, and Operation Semantics' CrossReplicaSum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shape_inference import TupleShape
from shape_inference.dims import array

from .. import ops
from ..core.builder import Value
from .support import (
    Groups,
    Operands,
    Reducer,
    dressed,
    groups_of,
    groups_of_sum,
    members,
    normalize_dimensions,
    rank_of,
    shape_of,
    sum_of,
    sum_of_tuple,
)

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "cross_replica_sum",
    "multi_collective_permute", "ragged_all_to_all", "reduce_scatter",
]  # fmt: skip


@dressed
def all_reduce(
    operands: Operands,
    to_apply: Reducer,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    *,
    name: str | None = None,
) -> Value:
    """Reduce each element with `to_apply` over the devices of the group; all members get the same result.

    Raises: the same errors as xb.ops.all_reduce.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    >>> xb.all_reduce(x, xb.add, [(0, 1), (2, 3)]).shape
    f32[2]

    Source: StableHLO, all_reduce; xla_builder.h, AllReduce.
    """
    return ops.all_reduce(
        operands,
        to_apply=to_apply,
        replica_groups=replica_groups,
        channel_id=channel_id,
        use_global_device_ids=use_global_device_ids,
        name=name,
    )


@dressed
def cross_replica_sum(
    operand: Value,
    replica_group_ids: Sequence[int] | None = None,
    replica_groups: Groups | None = None,
    num_replicas: int | None = None,
    *,
    name: str | None = None,
) -> Value:
    """Sum over the replicas of the group; for pred, the sum is the logical or. Records an all_reduce.

    The elements of a tuple become the operands of one all_reduce, or of one for each element type if the types differ;
    the result is a tuple.
    `replica_group_ids` gives the group id of each replica; `replica_groups` lists the replicas of each group. Without
    either, all replicas are one group.
    Raises: not_array; arity_mismatch for an empty tuple; invalid_attribute if both arguments are given; invalid_group
    if the groups differ in size, or if the number of ids is not `num_replicas`.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    >>> xb.cross_replica_sum(x, [0, 1, 2, 3, 0, 1, 2, 3]).instruction.attributes.replica_groups
    ((0, 4), (1, 5), (2, 6), (3, 7))

    Source: Operation Semantics, CrossReplicaSum; xla_builder.h, CrossReplicaSum.
    """
    groups = groups_of_sum(replica_group_ids, replica_groups, num_replicas)
    if isinstance(shape_of(operand), TupleShape):
        return sum_of_tuple(operand, groups, name)
    return sum_of(operand, array("operand", shape_of(operand)).dtype, groups, name)


@dressed
def all_gather(
    operands: Operands,
    all_gather_dimension: int,
    shard_count: int | None = None,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    *,
    name: str | None = None,
) -> Value:
    """Concatenate the operands of the group along a dimension, in group order; all members get the same result.

    If groups are given, `shard_count` defaults to their size.
    Raises: invalid_attribute if shard_count is neither given nor known; otherwise the same errors as xb.ops.all_gather.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 3])
    >>> xb.all_gather(x, 1, replica_groups=[(0, 1), (2, 3)]).shape
    f32[2,6]

    Source: StableHLO, all_gather; xla_builder.h, AllGather.
    """
    groups = groups_of(replica_groups)
    return ops.all_gather(
        operands,
        all_gather_dimension=normalize_dimensions(all_gather_dimension, rank_of(operands)),
        shard_count=members("shard_count", shard_count, groups, channel_id, use_global_device_ids),
        replica_groups=groups,
        channel_id=channel_id,
        use_global_device_ids=use_global_device_ids,
        name=name,
    )


@dressed
def reduce_scatter(
    operands: Operands,
    to_apply: Reducer,
    scatter_dimension: int,
    shard_count: int | None = None,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    *,
    name: str | None = None,
) -> Value:
    """Reduce over the group, and split the result into `shard_count` parts along a dimension: member i keeps part i.

    If groups are given, `shard_count` defaults to their size.
    Raises: invalid_attribute if shard_count is neither given nor known; otherwise the same errors as
    xb.ops.reduce_scatter.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[8, 3])
    >>> xb.reduce_scatter(x, xb.add, 0, replica_groups=[(0, 1, 2, 3)]).shape
    f32[2,3]

    Source: StableHLO, reduce_scatter; xla_builder.h, ReduceScatter.
    """
    groups = groups_of(replica_groups)
    return ops.reduce_scatter(
        operands,
        to_apply=to_apply,
        scatter_dimension=normalize_dimensions(scatter_dimension, rank_of(operands)),
        shard_count=members("shard_count", shard_count, groups, channel_id, use_global_device_ids),
        replica_groups=groups,
        channel_id=channel_id,
        use_global_device_ids=use_global_device_ids,
        name=name,
    )


@dressed
def all_to_all(
    operands: Operands,
    split_dimension: int | None = None,
    concat_dimension: int | None = None,
    split_count: int | None = None,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    *,
    name: str | None = None,
) -> Value:
    """Send part i of the operand to member i, and concatenate the parts from all members in group order.

    If groups are given, `split_count` defaults to their size. Without dimensions, `operands` is a list with one operand
    for each member, and the result is a tuple.
    Raises: invalid_attribute if split_count is neither given nor known; otherwise the same errors as xb.ops.all_to_all.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4, 16])
    >>> xb.all_to_all(x, 1, 0, 4).shape
    f32[16,4]

    Source: Operation Semantics, AllToAll.
    """
    groups = groups_of(replica_groups)
    if split_dimension is not None:
        split_count = members("split_count", split_count, groups, channel_id, True)
    return ops.all_to_all(
        operands,
        split_dimension=normalize_dimensions(split_dimension, rank_of(operands)),
        concat_dimension=normalize_dimensions(concat_dimension, rank_of(operands)),
        split_count=split_count,
        replica_groups=groups,
        channel_id=channel_id,
        name=name,
    )


@dressed
def collective_permute(
    operand: Value,
    source_target_pairs: Sequence[tuple[int, int]] | Mapping[int, int],
    channel_id: int | None = None,
    *,
    name: str | None = None,
) -> Value:
    """Return the value of the device whose target is this device, or zeros if there is no such device.

    Raises: the same errors as xb.ops.collective_permute.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    >>> xb.collective_permute(x, [(0, 1), (1, 0)]).shape
    f32[2]

    Source: StableHLO, collective_permute; xla_builder.h, CollectivePermute.
    """
    return ops.collective_permute(operand, source_target_pairs=source_target_pairs, channel_id=channel_id, name=name)


def multi_collective_permute(
    operands: Sequence[Value],
    source_target_pairs: Sequence[tuple[int, int]] | Mapping[int, int],
    channel_id: int | None = None,
    *,
    name: str | None = None,
) -> Value:
    """Apply collective_permute to each operand, and return the results as a tuple.

    Raises: no_builder (BuildError) for an empty list; otherwise the same errors as xb.ops.collective_permute.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    >>> xb.multi_collective_permute([x, x], [(0, 1), (1, 0)]).shape
    (f32[2], f32[2])

    Source: xla_builder.h, MultiCollectivePermute.
    """
    found = [collective_permute(operand, source_target_pairs, channel_id) for operand in operands]
    return ops.tuple_(found, name=name)


@dressed
def collective_broadcast(
    operand: Value, replica_groups: Groups = (), channel_id: int | None = None, *, name: str | None = None
) -> Value:
    """Send the value of the group's first device to all members of the group; devices outside all groups get zeros.

    Raises: the same errors as xb.ops.collective_broadcast.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    >>> xb.collective_broadcast(x, [(1, 0), (2, 3)]).shape
    f32[2]

    Source: StableHLO, collective_broadcast; xla_builder.h, CollectiveBroadcast.
    """
    return ops.collective_broadcast(operand, replica_groups=replica_groups, channel_id=channel_id, name=name)


def ragged_all_to_all(
    operand: Value,
    output: Value,
    input_offsets: Value,
    send_sizes: Value,
    output_offsets: Value,
    recv_sizes: Value,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    *,
    name: str | None = None,
) -> Value:
    """Send some rows of the operand to each member, which writes them over rows of its `output`.

    The operands are in HLO's order; in XlaBuilder's order, `output` is the fourth.
    Raises: the same errors as xb.ops.ragged_all_to_all.

    >>> import xbuild as xb
    >>> b = xb.Builder("b")
    >>> rows = xb.parameter(b, number=0, shape=xb.f32[8, 3])
    >>> numbers = xb.parameter(b, number=1, shape=xb.s32[2])
    >>> xb.ragged_all_to_all(rows, rows, *[numbers] * 4, replica_groups=[(0, 1)]).shape
    f32[8,3]

    Source: hlo_opcode.h, ragged-all-to-all; xla_builder.h, RaggedAllToAll.
    """
    return ops.ragged_all_to_all(
        operand,
        output,
        input_offsets,
        send_sizes,
        output_offsets,
        recv_sizes,
        replica_groups=replica_groups,
        channel_id=channel_id,
        name=name,
    )
