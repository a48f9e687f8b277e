"""What the comfortable forms of collectives, blocking and started, make of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from shape_inference import Dims, refuse
from shape_inference.groups import check_equal_groups, check_replica_group_ids

from ..attributes import ReplicaGroups, reader
from ..builder import Value
from ..graph import Computation

Groups: TypeAlias = Sequence[Sequence[int]]
Operands: TypeAlias = Value | Sequence[Value]
Reducer: TypeAlias = Computation | Callable[..., Any]

groups_of = reader("replica_groups", ReplicaGroups)
_ids_of = reader("replica_group_ids", Dims)


def members(attribute: str, count: int | None, groups: ReplicaGroups, channel_id: int | None, global_ids: bool) -> int:
    """The count that is given, or the size of the first group where its ids are the members."""
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
