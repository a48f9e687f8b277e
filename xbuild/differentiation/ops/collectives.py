"""Cotangents of collectives, for a loss that is the sum of the losses of all devices."""

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
from ..rules import VISITED, Cotangents, Pullback, refuse_derivative, vjp
from ..support import is_equal


def _parts(back: Pullback, operands: Sequence[Value]) -> list[Any]:
    """The cotangent of the result of each operand."""
    return list(back.ct) if isinstance(back.ct, tuple | list) else [back.ct] * len(operands)


def _results(back: Pullback, count: int) -> list[Value]:
    """The results, one for each operand."""
    if not isinstance(back.result.shape, TupleShape):
        return [back.result]
    return [ops.get_tuple_element(back.result, index=n) for n in range(count)]


def _together(values: Sequence[Value | None], record: Any) -> list[Value | None]:
    """What one collective gives of those values that there are."""
    given = [each for each in values if each is not None]
    if not given:
        return [None for _ in values]
    result = record(tuple(given))
    found = iter([result] if len(given) == 1 else [ops.get_tuple_element(result, index=n) for n in range(len(given))])
    return [None if each is None else next(found) for each in values]


def _filled(back: Pullback, parts: Sequence[Any], results: Sequence[Value]) -> list[Any]:
    """The cotangents, with zeros for those that there are not, where each device has a program of its own."""
    if not back.context.is_group:
        return list(parts)
    return [part if part is not None else back.zeros(result) for part, result in zip(parts, results, strict=True)]


def _again(back: Pullback) -> dict[str, Any]:
    """The groups of the instruction, for another collective of the same devices."""
    attributes = back.instruction.attribute_values()
    kept: dict[str, Any] = {
        key: attributes[key] for key in ("replica_groups", "use_global_device_ids") if key in attributes
    }
    return {**kept, **_identity(back)}


def _identity(back: Pullback) -> dict[str, Any]:
    """A channel of its own, and a name that is the same in all programs of a group, which meet by it."""
    channel = back.context.channel(back.instruction.attributes.channel_id)
    if not back.context.is_group:
        return {"channel_id": channel}
    uses = back.memory[back.instruction] = back.memory.get(back.instruction, 0) + 1
    return {"channel_id": channel, "name": f"{back.instruction.name}.{uses}.vjp"}


def _sum(back: Pullback, values: Sequence[Any]) -> list[Any]:
    """The sums over the group."""
    return _together(values, lambda given: ops.all_reduce(given, to_apply=ops.add, **_again(back)))


@vjp
def all_reduce(back: Pullback, operands: Sequence[Value], *, to_apply: Computation, **groups: Any) -> Cotangents:
    """For a sum, the sum of the cotangents; for a maximum or minimum, shares for the operands that attain it."""
    reducer, results = reducer_of(to_apply), _results(back, len(operands))
    parts = _filled(back, _parts(back, operands), results)
    if reducer == "add":
        return _sum(back, parts)
    if reducer not in ("maximum", "minimum"):
        refuse_derivative(
            "its to_apply is no add, maximum or minimum, and others have no derivative here",
            "an all_gather and a reduce of what it gives have a derivative",
        )
    rows = zip(parts, operands, results, strict=True)
    wins = [None if ct is None else _is_result(operand, result) for ct, operand, result in rows]
    ones = [None if win is None else _as_type_of(win, ct) for win, ct in zip(wins, parts, strict=True)]
    shares = zip(wins, _sum(back, parts), _sum(back, ones), strict=True)
    return [None if win is None else ops.select(win, total / count, back.zeros(total)) for win, total, count in shares]


def _as_type_of(value: Value, like: Value) -> Value:
    return ops.convert(value, new_element_type=like.shape.dtype)  # type: ignore[union-attr]


def _is_result(operand: Value, result: Value) -> Value:
    """Where an operand is the result."""
    return is_equal(_as_type_of(operand, result), result)


@vjp
def all_gather(
    back: Pullback, operands: Sequence[Value], *, all_gather_dimension: int, shard_count: int, **groups: Any
) -> Cotangents:
    parts = _filled(back, _parts(back, operands), _results(back, len(operands)))
    return _together(
        parts,
        lambda given: ops.reduce_scatter(
            given, to_apply=ops.add, scatter_dimension=all_gather_dimension, shard_count=shard_count, **_again(back)
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
            "its to_apply is no add, and others have no derivative here",
            "an all_reduce and a slice of what it gives have a derivative for a maximum and a minimum",
        )
    parts = _filled(back, _parts(back, operands), _results(back, len(operands)))
    return _together(
        parts,
        lambda given: ops.all_gather(
            given, all_gather_dimension=scatter_dimension, shard_count=shard_count, **_again(back)
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
    again = _again(back)
    if split_dimension is not None:
        concat = split_dimension if concat_dimension is None else concat_dimension
        parts = _filled(back, _parts(back, operands), _results(back, 1))
        return _together(
            parts,
            lambda given: ops.all_to_all(
                given, split_dimension=concat, concat_dimension=split_dimension, split_count=split_count, **again
            ),
        )
    results = _results(back, len(operands))
    given = zip(_parts(back, operands), results, strict=True)
    parts = [part if part is not None else back.zeros(result) for part, result in given]
    result = ops.all_to_all(tuple(parts), **again)
    return [ops.get_tuple_element(result, index=n) for n in range(len(parts))]


@vjp
def collective_permute(
    back: Pullback, operands: Sequence[Value], *, source_target_pairs: Any, channel_id: Any, slice_sizes: Any
) -> Cotangents:
    if slice_sizes:
        refuse_derivative(
            "it is in place (slice_sizes), and has no derivative here",
            "a collective-permute of the slice and a dynamic-update-slice of what it gives have one",
        )
    parts = _filled(back, _parts(back, operands), _results(back, len(operands)))
    pairs = tuple([(target, source) for source, target in source_target_pairs])
    return _together(parts, lambda given: ops.collective_permute(given, source_target_pairs=pairs, **_identity(back)))


@vjp
def collective_broadcast(back: Pullback, operand: Value, *, replica_groups: Any, channel_id: Any) -> Cotangents:
    """The sum of the cotangents for the first device of each group, zeros for all others."""
    (ct,) = _filled(back, [back.ct], [back.result])
    is_of_partitions = strategy(back.instruction, back.context.is_group) == "cross_partition"
    groups, attributes = _reducing_groups(back, replica_groups, is_of_partitions)
    total = ops.all_reduce((ct,), to_apply=ops.add, replica_groups=groups, **attributes)
    device = ops.partition_id(back.builder) if is_of_partitions else ops.replica_id(back.builder)
    is_first = None
    for group in replica_groups or ((0,),):
        here = is_equal(device, back.full(group[0], device))
        is_first = here if is_first is None else ops.or_(is_first, here)
    assert is_first is not None
    return (ops.select(is_first, total, back.zeros(total)),)


def _reducing_groups(back: Pullback, groups: Any, is_of_partitions: bool) -> tuple[Any, dict[str, Any]]:
    """The groups of a broadcast as those of an all_reduce, which name every device."""
    replicas, partitions = back.context.num_replicas, back.context.num_partitions
    count = partitions if is_of_partitions else replicas
    if count is None:
        if is_of_partitions:
            refuse_derivative("the number of partitions is not known", "differentiate the Module instead of its entry")
        return groups, _identity(back)
    named = {each for group in groups for each in group}
    whole = (*groups, *((n,) for n in range(count) if n not in named)) if groups else ()
    if not is_of_partitions:
        return whole, _identity(back)
    lists = whole or (tuple(range(count)),)
    spread = tuple([tuple([r * count + p for p in group]) for r in range(replicas) for group in lists])
    return spread, {**_identity(back), "use_global_device_ids": True}


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
    """Rows go back to where they came from; the output keeps the cotangents of the rows that nobody wrote."""
    (ct,) = _filled(back, [back.ct], [back.result])

    def exchanged(offsets: Value) -> Value:
        count = offsets.shape.dims[0]  # type: ignore[union-attr]
        size = len(replica_groups[0]) if replica_groups else count
        return ops.all_to_all(
            (offsets,), split_dimension=0, concat_dimension=0, split_count=size, replica_groups=replica_groups,
            **_identity(back),
        )  # fmt: skip

    groups: dict[str, Any] = {"replica_groups": replica_groups}
    there, here = exchanged(output_offsets), exchanged(input_offsets)
    of_operand = ops.ragged_all_to_all(
        ct, back.zeros(operand), there, recv_sizes, here, send_sizes, **_identity(back), **groups
    )
    if not back.wants(1):
        return of_operand, None, None, None, None, None
    written = ops.ragged_all_to_all(
        back.full(1, operand), back.zeros(output), input_offsets, send_sizes, output_offsets, recv_sizes,
        **_identity(back), **groups,
    )  # fmt: skip
    kept = ops.select(is_equal(written, back.zeros(written)), ct, back.zeros(ct))
    return of_operand, kept, None, None, None, None


def _meets_others(context: Any, instruction: Any) -> bool:
    """Whether a collective needs a cotangent of this device though it has none: others may have one."""
    return context.is_group and bool(context.activity.varies_anywhere(instruction))


VISITED |= dict.fromkeys(MEETS, _meets_others)
