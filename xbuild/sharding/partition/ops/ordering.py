"""The greatest elements along a cut dimension: each device gives those of its part, and of these they are chosen."""

from __future__ import annotations

from typing import Any

from .... import ops
from ....core.builder import Value
from ....core.graph import Instruction
from ...axis import Axis
from ...factors import Factor, ShardingRule
from ...planning.record import dims_of, spread
from ..parts.frame import Frame
from ..parts.layouts import bytes_of
from ..parts.masks import count_of
from ..parts.tables import Cut, adapted, gathered, gathering, halos, local_attributes
from ..reasons import Gathered


def _last(instruction: Instruction) -> tuple[int, int]:
    """The number and the extent of the last dimension."""
    dims = instruction.operands[0].shape.dims  # type: ignore[union-attr]
    return len(dims) - 1, dims[-1]


@adapted
def topk(instruction: Instruction, rule: ShardingRule) -> ShardingRule:
    """The last dimension of the operand is a reduction, that of the results is whole."""
    last, extent = _last(instruction)
    given = (*rule.operands[0][:last], (len(rule.factors),))
    made = (*rule.results[0][:last], (len(rule.factors) + 1,))
    factors = (*rule.factors, Factor(extent, "reduction"), Factor(instruction.attributes.k, "need_replication"))
    return ShardingRule(factors, (given,), (made, made))


@gathering
def topk_(instruction: Instruction, factor: int) -> bool:
    return bool(instruction.attributes.k) and _last(instruction)[1] > 0


def _axes(cut: Cut) -> tuple[Axis, ...]:
    sharding = cut.operands[0]
    assert sharding is not None
    return sharding.dim(_last(cut.instruction)[0]).axes


@halos
def topk__(cut: Cut) -> dict[tuple[int, int], None]:
    """Too much where a part has padding, which no number is sure to stand behind."""
    last, extent = _last(cut.instruction)
    return {(0, last): None} if extent % count_of(_axes(cut)) else {}


@local_attributes
def topk___(cut: Cut) -> dict[str, Any]:
    return {"k": min(cut.instruction.attributes.k, cut.operand_dims(0)[-1])}


@gathered
def topk____(frame: Frame, cut: Cut, values: list[Value]) -> list[Value]:
    """The greatest of those that all devices give, and their places; of equal ones the first comes first."""
    numbers, places = values
    dims, attributes = dims_of(places), cut.instruction.attributes
    start = frame.recorder.place(_axes(cut), cut.operand_dims(0)[-1])
    everyone, where = (_of_all(frame, cut, each) for each in (numbers, ops.add(places, spread(start, dims))))
    found = ops.topk(everyone, k=attributes.k, largest=attributes.largest)
    chosen = ops.get_tuple_element(found, index=1)
    rank = len(dims)
    batch = tuple(range(rank - 1))
    at = ops.gather(
        where, ops.reshape(chosen, new_sizes=(*dims_of(chosen), 1)), offset_dims=(), collapsed_slice_dims=(rank - 1,),
        start_index_map=(rank - 1,), operand_batching_dims=batch, start_indices_batching_dims=batch,
        index_vector_dim=rank, slice_sizes=(1,) * rank,
    )  # fmt: skip
    return [ops.get_tuple_element(found, index=0), at]


def _of_all(frame: Frame, cut: Cut, value: Value) -> Value:
    axes, last = _axes(cut), len(dims_of(value)) - 1
    found = ops.all_gather(
        [value], all_gather_dimension=last, shard_count=count_of(axes), **frame.recorder.global_groups(axes)
    )
    reason = Gathered(cut.instruction, cut.site.mesh, cut.site.rule, cut.assignment)
    frame.note(found, axes, bytes_of(found.shape), cut.instruction, reason)  # type: ignore[arg-type]
    return found
