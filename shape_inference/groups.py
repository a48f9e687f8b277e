"""Checks of replica groups and of source-target pairs."""

from __future__ import annotations

from collections.abc import Sequence

from .rules import refuse
from .types import Dims, Shape

Groups = Sequence[Dims]
Pairs = Sequence[tuple[int, int]]


def positive(attribute: str, value: int) -> None:
    if value <= 0:
        refuse("non_positive", f"{attribute} must be at least 1, got {value}")


def divisible(operand: Shape, attribute: str, dim: int, count: str, parts: int) -> None:
    if operand.dims[dim] % parts:
        refuse(
            "divisibility",
            f"{count}={parts} does not divide {operand.dims[dim]}, the extent of {attribute} {dim} in operand "
            f"{operand}",
        )


def check_groups(
    groups: Groups, channel_id: int | None, global_ids: bool, attribute: str | None = None, size: int | None = None
) -> None:
    """Refuse empty groups, repeated ids, negative ids, and groups of a different size than the op demands.

    A channel_id of 0 or less counts as no channel.
    """
    is_across = channel_id is not None and channel_id > 0
    if global_ids and not is_across:
        channel = "channel_id is missing" if channel_id is None else f"got channel_id={channel_id}"
        refuse(
            "invalid_attribute",
            f"use_global_device_ids=True requires a positive channel_id; {channel}",
            "without a channel, replica_groups lists replicas; pass a different positive channel_id to each collective",
        )
    if global_ids and not groups:
        refuse(
            "invalid_group",
            "use_global_device_ids=True requires replica_groups with the ids of all devices",
        )
    shown = [list(group) for group in groups]
    seen: set[int] = set()
    for number, group in enumerate(groups):
        if not group:
            refuse("invalid_group", f"group {number} of replica_groups {shown} is empty")
        for replica in group:
            if replica < 0 or replica in seen:
                problem = "negative" if replica < 0 else "listed twice"
                refuse("invalid_group", f"replica {replica} in replica_groups {shown} is {problem}")
            seen.add(replica)
        if attribute and not is_across and len(group) != size:
            refuse(
                "invalid_group",
                f"group {number} of replica_groups {shown} has size {len(group)}, but {attribute} is {size}",
            )
        if attribute and len(group) != len(groups[0]):
            refuse(
                "invalid_group",
                f"replica_groups {shown} has groups of sizes {len(groups[0])} and {len(group)}; "
                "all groups must have the same size",
            )


def check_pairs(pairs: Pairs, attribute: str = "source_target_pairs") -> None:
    """Refuse pairs with negative ids, and pairs in which a source or a target is repeated."""
    shown = [tuple(pair) for pair in pairs]
    for place, role in ((0, "source"), (1, "target")):
        seen: set[int] = set()
        for pair in pairs:
            device = pair[place]
            if device < 0 or device in seen:
                problem = "negative" if device < 0 else "listed twice"
                refuse("invalid_group", f"{role} {device} in {attribute} {shown} is {problem}")
            seen.add(device)


def check_replica_group_ids(ids: Dims, num_replicas: int | None) -> Groups:
    """The groups of CrossReplicaSum's replica_group_ids, which are the group numbers of the replicas."""
    if num_replicas is not None and len(ids) != num_replicas:
        refuse(
            "invalid_group",
            f"replica_group_ids must have one id for each replica: expected {num_replicas}, got {len(ids)} in "
            f"{list(ids)}",
        )
    return tuple(tuple(replica for replica, number in enumerate(ids) if number == group) for group in sorted(set(ids)))


def check_equal_groups(groups: Groups) -> None:
    """Refuse groups of different sizes, which CrossReplicaSum does not allow."""
    for group in groups[1:]:
        if len(group) != len(groups[0]):
            refuse(
                "invalid_group",
                f"groups {list(groups[0])} and {list(group)} of replica_groups {[list(each) for each in groups]} have "
                f"sizes {len(groups[0])} and {len(group)}; all groups must have the same size",
            )
