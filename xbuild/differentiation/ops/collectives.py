"""Cotangents of collectives, for a loss that is the sum of all devices' losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shape_inference import TupleShape

from ... import ops
from ...core.builder import Value
from ...core.graph import Computation
from ...properties.device_groups import strategy
from ...properties.effects import MEETS
from ...properties.patterns import reducer_of
from ..arrays import is_equal
from ..rules import VISITED, Cotangents, Pullback, refuse_derivative, vjp


def _cotangents(back: Pullback, operands: Sequence[Value]) -> list[Any]:
    """The cotangent of each operand's result."""
    return list(back.ct) if isinstance(back.ct, tuple | list) else [back.ct] * len(operands)


def _results(back: Pullback, count: int) -> list[Value]:
    """The results, one for each operand."""
    if not isinstance(back.result.shape, TupleShape):
        return [back.result]
    return [ops.get_tuple_element(back.result, index=n) for n in range(count)]


def _record_together(values: Sequence[Value | None], record: Any) -> list[Value | None]:
    """The results of one collective on the values that exist; None for the others."""
    present = [value for value in values if value is not None]
    if not present:
        return [None for _ in values]
    result = record(tuple(present))
    results = iter(
        [result] if len(present) == 1 else [ops.get_tuple_element(result, index=n) for n in range(len(present))]
    )
    return [None if value is None else next(results) for value in values]


def _fill_zeros(back: Pullback, parts: Sequence[Any], results: Sequence[Value]) -> list[Any]:
    """The cotangents; in a group of programs, with zeros for missing ones."""
    if not back.context.is_group:
        return list(parts)
    return [part if part is not None else back.zeros(result) for part, result in zip(parts, results, strict=True)]


def _groups_and_channel(back: Pullback) -> dict[str, Any]:
    """The groups, channel and name for another collective of the same devices."""
    attributes = back.instruction.attribute_values()
    kept: dict[str, Any] = {
        key: attributes[key] for key in ("replica_groups", "use_global_device_ids") if key in attributes
    }
    return {**kept, **_channel_and_name(back)}


def _channel_and_name(back: Pullback) -> dict[str, Any]:
    """A new channel, and in a group a name by which the programs match their collectives."""
    channel = back.context.collective_channel(back.instruction.attributes.channel_id)
    if not back.context.is_group:
        return {"channel_id": channel}
    uses = back.memory[back.instruction] = back.memory.get(back.instruction, 0) + 1
    return {"channel_id": channel, "name": f"{back.instruction.name}.{uses}.vjp"}


def _sum_over_group(back: Pullback, values: Sequence[Any]) -> list[Any]:
    """The sums over the group."""
    return _record_together(
        values, lambda present: ops.all_reduce(present, to_apply=ops.add, **_groups_and_channel(back))
    )


@vjp
def all_reduce(back: Pullback, operands: Sequence[Value], *, to_apply: Computation, **groups: Any) -> Cotangents:
    """For a sum, the sum of the cotangents; for an extremum, shared by the operands that attain it."""
    reducer, results = reducer_of(to_apply), _results(back, len(operands))
    parts = _fill_zeros(back, _cotangents(back, operands), results)
    if reducer == "add":
        return _sum_over_group(back, parts)
    if reducer not in ("maximum", "minimum"):
        refuse_derivative(
            "its to_apply is not an add, a maximum or a minimum, and no other reducer has a derivative",
            "use an all_gather followed by a reduce, which has a derivative",
        )
    rows = zip(parts, operands, results, strict=True)
    wins = [None if ct is None else _is_result(operand, result) for ct, operand, result in rows]
    ones = [None if win is None else _convert_like(win, ct) for win, ct in zip(wins, parts, strict=True)]
    shares = zip(wins, _sum_over_group(back, parts), _sum_over_group(back, ones), strict=True)
    return [None if win is None else ops.select(win, total / count, back.zeros(total)) for win, total, count in shares]


def _convert_like(value: Value, like: Value) -> Value:
    return ops.convert(value, new_element_type=like.shape.dtype)  # type: ignore[union-attr]


def _is_result(operand: Value, result: Value) -> Value:
    """A mask of where an operand equals the result."""
    return is_equal(_convert_like(operand, result), result)


@vjp
def all_gather(
    back: Pullback, operands: Sequence[Value], *, all_gather_dimension: int, shard_count: int, **groups: Any
) -> Cotangents:
    parts = _fill_zeros(back, _cotangents(back, operands), _results(back, len(operands)))
    return _record_together(
        parts,
        lambda values: ops.reduce_scatter(
            values,
            to_apply=ops.add,
            scatter_dimension=all_gather_dimension,
            shard_count=shard_count,
            **_groups_and_channel(back),
        ),
    )


@vjp
def reduce_scatter(
    back: Pullback,
    operands: Sequence[Value],
    *,
    to_apply: Computation,
    scatter_dimension: int,
    shard_count: int,
    **groups: Any,
) -> Cotangents:
    if reducer_of(to_apply) != "add":
        refuse_derivative(
            "its to_apply is not an add, and no other reducer has a derivative",
            "for a maximum or a minimum, use an all_reduce followed by a slice, which has a derivative",
        )
    parts = _fill_zeros(back, _cotangents(back, operands), _results(back, len(operands)))
    return _record_together(
        parts,
        lambda values: ops.all_gather(
            values, all_gather_dimension=scatter_dimension, shard_count=shard_count, **_groups_and_channel(back)
        ),
    )


@vjp
def all_to_all(
    back: Pullback,
    operands: Sequence[Value],
    *,
    split_dimension: int | None,
    concat_dimension: int | None,
    split_count: int | None,
    **groups: Any,
) -> Cotangents:
    again = _groups_and_channel(back)
    if split_dimension is not None:
        concat = split_dimension if concat_dimension is None else concat_dimension
        parts = _fill_zeros(back, _cotangents(back, operands), _results(back, 1))
        return _record_together(
            parts,
            lambda values: ops.all_to_all(
                values, split_dimension=concat, concat_dimension=split_dimension, split_count=split_count, **again
            ),
        )
    results = _results(back, len(operands))
    values = zip(_cotangents(back, operands), results, strict=True)
    parts = [part if part is not None else back.zeros(result) for part, result in values]
    result = ops.all_to_all(tuple(parts), **again)
    return [ops.get_tuple_element(result, index=n) for n in range(len(parts))]


@vjp
def collective_permute(
    back: Pullback, operands: Sequence[Value], *, source_target_pairs: Any, channel_id: Any, slice_sizes: Any
) -> Cotangents:
    if slice_sizes:
        refuse_derivative(
            "it works in place (slice_sizes), and the in-place form has no derivative",
            "use a collective-permute of the slice followed by a dynamic-update-slice, which has a derivative",
        )
    parts = _fill_zeros(back, _cotangents(back, operands), _results(back, len(operands)))
    pairs = tuple([(target, source) for source, target in source_target_pairs])
    return _record_together(
        parts, lambda values: ops.collective_permute(values, source_target_pairs=pairs, **_channel_and_name(back))
    )


@vjp
def collective_broadcast(back: Pullback, operand: Value, *, replica_groups: Any, channel_id: Any) -> Cotangents:
    """The sum of the cotangents for the first device of each group, zeros for the others."""
    (ct,) = _fill_zeros(back, [back.ct], [back.result])
    is_of_partitions = strategy(back.instruction, back.context.is_group) == "cross_partition"
    groups, attributes = _all_reduce_groups(back, replica_groups, is_of_partitions)
    total = ops.all_reduce((ct,), to_apply=ops.add, replica_groups=groups, **attributes)
    device = ops.partition_id(back.builder) if is_of_partitions else ops.replica_id(back.builder)
    is_first = None
    for group in replica_groups or ((0,),):
        here = is_equal(device, back.full(group[0], device))
        is_first = here if is_first is None else ops.or_(is_first, here)
    assert is_first is not None
    return (ops.select(is_first, total, back.zeros(total)),)


def _all_reduce_groups(back: Pullback, groups: Any, is_of_partitions: bool) -> tuple[Any, dict[str, Any]]:
    """The groups of a broadcast as groups of an all_reduce, which must contain every device."""
    replicas, partitions = back.context.num_replicas, back.context.num_partitions
    count = partitions if is_of_partitions else replicas
    if count is None:
        if is_of_partitions:
            refuse_derivative("the number of partitions is unknown", "differentiate the Module instead of its entry")
        return groups, _channel_and_name(back)
    named = {member for group in groups for member in group}
    whole = (*groups, *((n,) for n in range(count) if n not in named)) if groups else ()
    if not is_of_partitions:
        return whole, _channel_and_name(back)
    lists = whole or (tuple(range(count)),)
    spread = tuple([tuple([r * count + p for p in group]) for r in range(replicas) for group in lists])
    return spread, {**_channel_and_name(back), "use_global_device_ids": True}


@vjp
def ragged_all_to_all(
    back: Pullback,
    operand: Value,
    output: Value,
    input_offsets: Value,
    send_sizes: Value,
    output_offsets: Value,
    recv_sizes: Value,
    *,
    replica_groups: Any,
    channel_id: Any,
) -> Cotangents:
    """Rows go back to where they came from; the output keeps the cotangents of rows that no device wrote."""
    (ct,) = _fill_zeros(back, [back.ct], [back.result])

    def exchanged(offsets: Value) -> Value:
        count = offsets.shape.dims[0]  # type: ignore[union-attr]
        size = len(replica_groups[0]) if replica_groups else count
        return ops.all_to_all(
            (offsets,), split_dimension=0, concat_dimension=0, split_count=size, replica_groups=replica_groups,
            **_channel_and_name(back),
        )  # fmt: skip

    groups: dict[str, Any] = {"replica_groups": replica_groups}
    there, here = exchanged(output_offsets), exchanged(input_offsets)
    of_operand = ops.ragged_all_to_all(
        ct, back.zeros(operand), there, recv_sizes, here, send_sizes, **_channel_and_name(back), **groups
    )
    if not back.wants(1):
        return of_operand, None, None, None, None, None
    written = ops.ragged_all_to_all(
        back.full(1, operand), back.zeros(output), input_offsets, send_sizes, output_offsets, recv_sizes,
        **_channel_and_name(back), **groups,
    )  # fmt: skip
    kept = ops.select(is_equal(written, back.zeros(written)), ct, back.zeros(ct))
    return of_operand, kept, None, None, None, None


def _meets_others(context: Any, instruction: Any) -> bool:
    """Whether a collective must run although this device has no cotangent: other devices may have one."""
    return context.is_group and bool(context.activity.varies_anywhere(instruction))


VISITED |= dict.fromkeys(MEETS, _meets_others)
