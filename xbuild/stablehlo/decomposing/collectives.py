"""Rules of collectives with a root that is a value, and of collective_reduce, by broadcasts from each member."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shape_inference import TupleShape, s32, u32

from ... import ops
from ...core.builder import Value
from ...core.graph import Computation
from ...derived.elementwise import eq, select
from ...derived.reduction import reduce
from ...derived.tuples import tuple_
from ..op_rules.collectives import channel, groups
from ..reading.operation import Reading
from ..reading.rules import Results, Rule, around, both, rule
from .composed import composed

Ids = dict[str, Any]


@around(*both("collective_broadcast"))
def collective_broadcast(op: Reading, plain: Rule) -> Results:
    """The root of operand j is the member of each group whose number is element j of the last operand."""
    if not op.flag("has_dynamic_root", False):
        return plain(op)
    ids = {**groups(op), **channel(op)}

    def chosen(*given: Value) -> Value:
        *values, roots = given
        return tuple_([_at(_from_members(value, ids), _element(roots, n)) for n, value in enumerate(values)])

    return _results(op, composed(op, "collective_broadcast", chosen, *op.operands, key=repr(ids)))


@rule(*both("collective_reduce"))
def collective_reduce(op: Reading) -> Results:
    """The root, the first member where no operand names it, has the reduction over its group; all others have zeros.

    The ids of the groups are read as those of collective_broadcast.
    """
    ids = {**groups(op), **channel(op)}
    has_roots = op.flag("has_dynamic_root", False)
    reducer = op.region(0, "reducer", 2)

    def reduced(*given: Value) -> Value:
        values, roots = (given[:-1], given[-1]) if has_roots else (given, None)
        found = []
        for number, value in enumerate(values):
            whole = _folded(_from_members(value, ids), reducer)
            root: Any = 0 if roots is None else _element(roots, number)
            found.append(select(eq(_place(whole, ids), root), whole, 0))
        return tuple_(found)

    return _results(op, composed(op, "collective_reduce", reduced, *op.operands, key=(repr(ids), reducer)))


def _results(op: Reading, made: Any) -> Results:
    assert isinstance(made.shape, TupleShape)
    return op.elements(made)


def _size(ids: Ids) -> int:
    return max((len(group) for group in ids["replica_groups"]), default=0)


def _from_members(value: Value, ids: Ids) -> list[Value]:
    """The value of each member of the group, by its number there; of smaller groups the members come again."""

    def led_by(number: int) -> tuple[tuple[int, ...], ...]:
        turns = [(group, number % len(group)) for group in ids["replica_groups"]]
        return tuple(group[turn:] + group[:turn] for group, turn in turns)

    return [ops.collective_broadcast(value, **{**ids, "replica_groups": led_by(n)}) for n in range(_size(ids))]


def _at(values: Sequence[Value], number: Value) -> Value:
    """The value of the member of this number."""
    found = values[0]
    for place, value in enumerate(values[1:], 1):
        found = select(eq(number, place), value, found)
    return found


def _folded(values: Sequence[Value], reducer: Computation) -> Value:
    whole = values[0]
    for value in values[1:]:
        dims = range(len(value.shape.dims))  # type: ignore[union-attr]
        whole = ops.map([whole, value], to_apply=reducer, dimensions=dims)
    return whole


def _element(vector: Value, number: int) -> Value:
    one = ops.slice(vector, start_indices=[number], limit_indices=[number + 1], strides=[1])
    return ops.reshape(one, new_sizes=())


def _place(model: Value, ids: Ids) -> Value:
    """The number of this device in its group; -1 where no group names it."""
    own: Callable[..., Value] = ops.partition_id if ids.get("channel_id") else ops.replica_id
    members = [each for group in ids["replica_groups"] for each in group]
    numbers = [number for group in ids["replica_groups"] for number in range(len(group))]
    named = ops.constant(builder=model.builder, literal=np.array(members, u32.dtype))
    places = ops.constant(builder=model.builder, literal=np.array(numbers, s32.dtype))
    return reduce(select(eq(named, own(builder=model.builder)), places, -1), -1, ops.maximum, [0])
