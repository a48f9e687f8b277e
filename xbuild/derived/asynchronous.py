"""Convenience forms of asynchronous ops: groups as lists, the size of a group where it is known, functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shape_inference import AnyShape

from .. import ops
from ..core.builder import Builder, Value
from ..core.graph import Computation
from .support import (
    Groups,
    Operands,
    Reducer,
    as_list,
    as_values,
    dressed,
    groups_of,
    members,
    normalize_dimensions,
    rank_of,
)

__all__ = ["all_gather_start", "all_reduce_start", "async_start", "collective_permute_start"]


def all_reduce_start(
    operands: Operands,
    to_apply: Reducer,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    *,
    name: str | None = None,
) -> Value:
    """Start an all_reduce without waiting; xb.all_reduce_done waits for the other members.

    Raises: the same errors as xb.ops.all_reduce_start.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    >>> xb.all_reduce_done(xb.all_reduce_start(x, xb.add, [(0, 1)])).shape
    f32[2]

    Source: hlo_opcode.h, all-reduce-start.
    """
    return ops.all_reduce_start(
        operands,
        to_apply=to_apply,
        replica_groups=replica_groups,
        channel_id=channel_id,
        use_global_device_ids=use_global_device_ids,
        name=name,
    )


@dressed
def all_gather_start(
    operands: Operands,
    all_gather_dimension: int,
    shard_count: int | None = None,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    *,
    name: str | None = None,
) -> Value:
    """Start an all_gather without waiting; xb.all_gather_done waits for the other members.

    If groups are given, `shard_count` defaults to their size.
    Raises: invalid_attribute if shard_count is neither given nor known; otherwise the same errors as
    xb.ops.all_gather_start.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    >>> xb.all_gather_start(x, 0, replica_groups=[(0, 1), (2, 3)]).shape
    (f32[2], f32[4])

    Source: hlo_opcode.h, all-gather-start.
    """
    groups = groups_of(replica_groups)
    return ops.all_gather_start(
        operands,
        all_gather_dimension=normalize_dimensions(all_gather_dimension, rank_of(operands)),
        shard_count=members("shard_count", shard_count, groups, channel_id, use_global_device_ids),
        replica_groups=groups,
        channel_id=channel_id,
        use_global_device_ids=use_global_device_ids,
        name=name,
    )


def collective_permute_start(
    operand: Value,
    source_target_pairs: Sequence[tuple[int, int]] | Mapping[int, int],
    channel_id: int | None = None,
    context_shapes: Sequence[AnyShape] = (),
    *,
    name: str | None = None,
) -> Value:
    """Start a collective_permute without waiting; xb.collective_permute_done waits for the other members.

    Raises: the same errors as xb.ops.collective_permute_start.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    >>> xb.collective_permute_start(x, [(0, 1), (1, 0)]).shape
    (f32[2], f32[2])

    Source: hlo_opcode.h, collective-permute-start.
    """
    return ops.collective_permute_start(
        operand,
        source_target_pairs=source_target_pairs,
        channel_id=channel_id,
        context_shapes=context_shapes,
        name=name,
    )


@dressed
def async_start(
    operands: Any,
    calls: Computation | Callable[..., Any],
    *,
    context_shapes: Sequence[AnyShape] = (),
    async_execution_thread: str = "main",
    builder: Builder | None = None,
    name: str | None = None,
) -> Value:
    """Start the computation `calls` on the operands (one, or a list) without waiting; xb.async_done waits for it.

    This function can start any collective: `xb.async_start(x, lambda y: xb.all_to_all(y, 0, 0, 2))`.
    Raises: the same errors as xb.ops.async_start.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    >>> xb.async_done(xb.async_start((x, x), xb.add)).shape
    f32[2]

    Source: hlo_opcode.h, async-start; StableHLO, async_start.
    """
    return ops.async_start(
        as_values(as_list(operands), builder=builder),
        calls=calls,
        context_shapes=context_shapes,
        async_execution_thread=async_execution_thread,
        builder=builder,
        name=name,
    )
