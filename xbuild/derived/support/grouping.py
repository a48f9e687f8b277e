"""Arguments of collectives: replica groups and operands, for blocking and for asynchronous forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from shape_inference import Dims, PrimitiveType, pred, refuse
from shape_inference.dims import array
from shape_inference.groups import check_equal_groups, check_replica_group_ids

from ... import ops
from ...core.attributes import ReplicaGroups, reader
from ...core.builder import Value
from ...core.graph import Computation

Groups: TypeAlias = Sequence[Sequence[int]]
Operands: TypeAlias = Value | Sequence[Value]
Reducer: TypeAlias = Computation | Callable[..., Any]

groups_of = reader("replica_groups", ReplicaGroups)
_ids_of = reader("replica_group_ids", Dims)


def members(attribute: str, count: int | None, groups: ReplicaGroups, channel_id: int | None, global_ids: bool) -> int:
    """The given count, or the size of the first group if its ids are the members."""
    if count is not None:
        return count
    if not groups or (channel_id is not None and not global_ids):
        shown = [list(group) for group in groups]
        refuse(
            "invalid_attribute", f"{attribute} is missing, and replica_groups {shown} do not tell the size of a group"
        )
    return len(groups[0])


def groups_of_sum(ids: Sequence[int] | None, groups: Groups | None, num_replicas: int | None) -> ReplicaGroups:
    """The groups of CrossReplicaSum, of one size, by the id of each replica's group or by their lists."""
    if ids is not None and groups is not None:
        refuse(
            "invalid_attribute",
            "replica_group_ids and replica_groups say the same thing in two ways; one of them is enough",
        )
    read = _ids_of(ids or ())
    found: ReplicaGroups = tuple(check_replica_group_ids(read, num_replicas)) if read else groups_of(groups)
    check_equal_groups(found)
    return found


def sum_of(operands: Operands, dtype: PrimitiveType, groups: ReplicaGroups, name: str | None) -> Value:
    """The all_reduce that sums arrays of one element type."""
    return ops.all_reduce(operands, to_apply=ops.or_ if dtype is pred else ops.add, replica_groups=groups, name=name)


def sum_of_tuple(operand: Value, groups: ReplicaGroups, name: str | None) -> Value:
    """The tuple of the sums, in one all_reduce for each element type."""
    shapes = [array(f"element {n} of operand", each) for n, each in enumerate(operand.shape.elements)]  # type: ignore[union-attr]
    if not shapes:
        refuse("arity_mismatch", "operand is the empty tuple, which has nothing to sum; one element or more is wanted")
    types = dict.fromkeys(shape.dtype for shape in shapes)
    elements = list(operand)
    if len(types) == 1 and len(elements) > 1:
        return sum_of(elements, shapes[0].dtype, groups, name)
    sums: dict[int, Value] = {}
    for dtype in types:
        places = [n for n, shape in enumerate(shapes) if shape.dtype is dtype]
        found = sum_of([elements[n] for n in places], dtype, groups, None)
        sums.update(zip(places, found if len(places) > 1 else (found,), strict=True))
    return ops.tuple_([sums[n] for n in range(len(elements))], name=name)
