"""Values of collectives: a rule takes the operands of a group's members, in group order, and returns their results.

For an op with a list of operands, the rule takes a tuple of operands for each member; for other ops, it takes a list of
the members' values for each operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ..compiler.requests import emit_request
from ..kernels.folds import Array, combine
from ..rules import compute, planned
from ..rules.region import AppliedComputation

Members: TypeAlias = Sequence[tuple[Array, ...]]
Column: TypeAlias = Sequence[Array]
Groups: TypeAlias = Sequence[tuple[int, ...]]


@compute
def all_reduce(
    operands: Members,
    *,
    to_apply: AppliedComputation,
    replica_groups: Groups,
    channel_id: int | None,
    use_global_device_ids: bool,
) -> list[Any]:
    if len(operands) == 1 and len(replica_groups) <= 1:  # XLA omits an all-reduce over one device
        return [_unwrap_single(list(operands[0]))]
    return [_unwrap_single([_reduce(to_apply, column) for column in zip(*operands, strict=True)])] * len(operands)


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
    gathered = [np.concatenate(column, axis=all_gather_dimension) for column in zip(*operands, strict=True)]
    return [_unwrap_single(gathered)] * len(operands)


@compute
def reduce_scatter(
    operands: Members,
    *,
    to_apply: AppliedComputation,
    scatter_dimension: int,
    shard_count: int,
    replica_groups: Groups,
    channel_id: int | None,
    use_global_device_ids: bool,
) -> list[Any]:
    parts = [
        np.split(_reduce(to_apply, column), len(operands), axis=scatter_dimension)
        for column in zip(*operands, strict=True)
    ]
    return [_unwrap_single(results) for results in zip(*parts, strict=True)]


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
    return [np.concatenate(pieces, axis=axis) for pieces in zip(*parts, strict=True)]


@compute
def collective_permute(
    operands: Members,
    *,
    source_target_pairs: Sequence[tuple[int, int]],
    channel_id: int | None,
    slice_sizes: Sequence[tuple[int, ...]] = (),
) -> list[Any]:
    """The result of each member: the source member's operand, else zeros; pairs have member numbers in the group."""
    source = {target: origin for origin, target in source_target_pairs}
    return [
        _unwrap_single(
            list(operands[source[member]]) if member in source else [np.zeros_like(operand) for operand in mine]
        )
        for member, mine in enumerate(operands)
    ]


@compute
def collective_broadcast(operand: Column, *, replica_groups: Groups, channel_id: int | None) -> list[Any]:
    return [operand[0]] * len(operand)


@compute
def ragged_all_to_all(
    operand: Column,
    output: Column,
    input_offsets: Column,
    send_sizes: Column,
    output_offsets: Column,
    recv_sizes: Column,
    *,
    replica_groups: Groups,
    channel_id: int | None,
) -> list[Any]:
    """The outputs with the sent rows written; slices are cut at the ends of both arrays, `recv_sizes` is not read."""
    results = [np.array(each) for each in output]
    for rows, *numbers in zip(operand, input_offsets, send_sizes, output_offsets, strict=True):
        of_members = (np.asarray(number).reshape(len(operand), -1).tolist() for number in numbers)
        for result, *updates in zip(results, *of_members, strict=True):
            for start, size, place in zip(*updates, strict=True):
                _pass_rows(rows, result, start, size, place)
    return results


def _pass_rows(source: Array, target: Array, start: int, size: int, place: int) -> None:
    skipped = max(0, -start, -place)
    start, place = start + skipped, place + skipped
    count = min(size - skipped, len(source) - start, len(target) - place)
    if count > 0:
        target[place : place + count] = source[start : start + count]


for _opcode in (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", "collective_broadcast",
    "ragged_all_to_all",
):  # fmt: skip
    planned.enter(_opcode, emit_request)


def _reduce(to_apply: AppliedComputation, values: Sequence[Any]) -> Any:
    arrays = [np.asarray(value).astype(to_apply.types[0], copy=False) for value in values]
    return np.asarray(combine(to_apply, arrays))


def _unwrap_single(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)
