"""Values of collectives: a rule takes what the members of a group bring, in group order, and gives what each gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ..folds import Array, combine
from ..region import Region
from ..requests import emit_request
from ..rules import compute, planned

Members: TypeAlias = Sequence[tuple[Array, ...]]
Groups: TypeAlias = Sequence[tuple[int, ...]]


@compute
def all_reduce(
    operands: Members, *, to_apply: Region, replica_groups: Groups, channel_id: int | None, use_global_device_ids: bool
) -> list[Any]:
    return [_collated([_reduced(to_apply, each) for each in zip(*operands, strict=True)])] * len(operands)


@compute
def all_gather(
    operands: Members,
    *,
    all_gather_dimension: int,
    shard_count: int,
    replica_groups: Groups,
    channel_id: int | None,
    use_global_device_ids: bool,
) -> list[Any]:
    gathered = [np.concatenate(each, axis=all_gather_dimension) for each in zip(*operands, strict=True)]
    return [_collated(gathered)] * len(operands)


@compute
def reduce_scatter(
    operands: Members,
    *,
    to_apply: Region,
    scatter_dimension: int,
    shard_count: int,
    replica_groups: Groups,
    channel_id: int | None,
    use_global_device_ids: bool,
) -> list[Any]:
    parts = [
        np.split(_reduced(to_apply, each), len(operands), axis=scatter_dimension)
        for each in zip(*operands, strict=True)
    ]
    return [_collated(each) for each in zip(*parts, strict=True)]


@compute
def all_to_all(
    operands: Members,
    *,
    split_dimension: int | None,
    concat_dimension: int | None,
    split_count: int | None,
    replica_groups: Groups,
    channel_id: int | None,
) -> list[Any]:
    if split_dimension is None:
        return [tuple(row) for row in zip(*operands, strict=True)]
    parts = [np.split(operand, len(operands), axis=split_dimension) for (operand,) in operands]
    axis = split_dimension if concat_dimension is None else concat_dimension
    return [np.concatenate(each, axis=axis) for each in zip(*parts, strict=True)]


@compute
def collective_permute(
    operand: Members, *, source_target_pairs: Sequence[tuple[int, int]], channel_id: int | None
) -> list[Any]:
    """The pairs count members of the group."""
    source = {target: origin for origin, target in source_target_pairs}
    return [
        operand[source[member]][0] if member in source else np.zeros_like(mine)
        for member, (mine,) in enumerate(operand)
    ]


for _opcode in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute"):
    planned.enter(_opcode, emit_request)


def _reduced(to_apply: Region, values: Sequence[Any]) -> Any:
    arrays = [np.asarray(value).astype(to_apply.types[0], copy=False) for value in values]
    return np.asarray(combine(to_apply, arrays))


def _collated(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)
