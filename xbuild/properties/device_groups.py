"""The device groups of a collective, and the source-target pairs of a permutation or a transfer, as device numbers."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TypeAlias

from attrs import field, frozen

from ..core.graph import Instruction

Group: TypeAlias = tuple[int, ...]
Groups: TypeAlias = tuple[Group, ...]
Pairs: TypeAlias = tuple[tuple[int, int], ...]

_REDUCING = ("all_reduce", "all_gather", "reduce_scatter")


def strategy(instruction: Instruction, is_own: bool = False) -> str:
    """How the ids of a collective are read: cross_replica, cross_partition, cross_replica_and_partition, flattened_ids.

    `is_own`: each device has its own program, so that an id names a replica even if a channel id is given.

    Source: StableHLO, all_reduce and collective_permute (process groups); so does XLA:CPU.
    """
    attributes = instruction.attributes
    if (getattr(attributes, "channel_id", None) or 0) <= 0:
        return "cross_replica"
    if instruction.opcode.removesuffix("_start") in _REDUCING:
        return "flattened_ids" if getattr(attributes, "use_global_device_ids", False) else "cross_replica_and_partition"
    return "cross_replica" if is_own else "cross_partition"


def named_lists(lists: Groups, reading: str, count: int) -> Groups:
    """The replica groups that apply: with one partition XLA ignores groups that do not name partition 0."""
    is_single = reading == "cross_partition" and count == 1
    return tuple(ids for ids in lists if 0 in ids) or lists if is_single else lists


def named_pairs(pairs: Pairs, reading: str, count: int) -> Pairs:
    """The pairs that apply: with one partition XLA ignores pairs whose target is another partition."""
    return tuple(pair for pair in pairs if pair[1] == 0) if reading == "cross_partition" and count == 1 else pairs


def count_of_ids(instruction: Instruction, num_replicas: int, num_partitions: int, is_own: bool = False) -> int:
    """The number of ids that groups may name: that of replicas, of partitions, or of devices."""
    return count_named(strategy(instruction, is_own), num_replicas, num_partitions)


def count_named(reading: str, replicas: int, partitions: int) -> int:
    """The number of ids that groups read in this way may name."""
    if reading == "cross_partition":
        return partitions
    return replicas * partitions if reading == "flattened_ids" else replicas


@frozen(eq=False)
class Grouping:
    """The groups of a collective, the group of each device, and the sizes of the groups."""

    groups: Groups
    of: Mapping[int, Group] = field(init=False)
    sizes: tuple[int, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "of", {device: group for group in self.groups for device in group})
        object.__setattr__(self, "sizes", tuple(sorted({len(group) for group in self.groups})))


@functools.lru_cache(maxsize=4096)
def grouping(instruction: Instruction, num_replicas: int, num_partitions: int = 1, is_own: bool = False) -> Grouping:
    """The groups of a collective, each in its order; without groups, and for a permutation, there is one of all.

    Device = replica * num_partitions + partition. Ids are assumed to be in range, as `check` verifies. Collectives with
    the same groups share one result.
    """
    lists = getattr(instruction.attributes, "replica_groups", ())
    return _grouping_of_object(_Same(lists), strategy(instruction, is_own), num_replicas, num_partitions)


class _Same:
    """Groups as a key by identity: a program of many collectives shares them, and their hash reads every id."""

    __slots__ = ("lists",)

    def __init__(self, lists: Groups) -> None:
        self.lists = lists

    def __hash__(self) -> int:
        return id(self.lists)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.lists is other.lists


@functools.lru_cache(maxsize=1024)
def _grouping_of_object(lists: _Same, reading: str, replicas: int, partitions: int) -> Grouping:
    return _grouping(lists.lists, reading, replicas, partitions)


@functools.lru_cache(maxsize=1024)
def _grouping(lists: Groups, reading: str, replicas: int, partitions: int) -> Grouping:
    every = (
        named_lists(lists, reading, count_named(reading, replicas, partitions))
        if lists
        else (tuple(range(count_named(reading, replicas, partitions))),)
    )
    return Grouping(tuple(group for ids in every for group in _groups_of_list(ids, reading, replicas, partitions)))


def groups_of(instruction: Instruction, num_replicas: int, num_partitions: int = 1, is_own: bool = False) -> Groups:
    """The groups of a collective."""
    return grouping(instruction, num_replicas, num_partitions, is_own).groups


def _groups_of_list(ids: Group, reading: str, replicas: int, partitions: int) -> list[Group]:
    if reading == "cross_replica":
        return [tuple(r * partitions + p for r in ids) for p in range(partitions)]
    if reading == "cross_partition":
        return [tuple(r * partitions + p for p in ids) for r in range(replicas)]
    if reading == "cross_replica_and_partition":
        return [tuple(r * partitions + p for r in ids for p in range(partitions))]
    return [ids]


def group_of(
    instruction: Instruction, device: int, num_replicas: int, num_partitions: int = 1, is_own: bool = False
) -> Group:
    """The group in which a device meets others in this collective; only the device itself if no group names it."""
    return grouping(instruction, num_replicas, num_partitions, is_own).of.get(device, (device,))


def is_member(
    instruction: Instruction, device: int, num_replicas: int, num_partitions: int = 1, is_own: bool = False
) -> bool:
    """Whether a group of this collective names the device."""
    return device in grouping(instruction, num_replicas, num_partitions, is_own).of


@functools.lru_cache(maxsize=4096)
def pairs_of(instruction: Instruction, num_replicas: int, num_partitions: int = 1, is_own: bool = False) -> Pairs:
    """The source and target devices: of a permutation by its strategy; send and recv name devices themselves."""
    pairs: Pairs = instruction.attributes.source_target_pairs
    if instruction.opcode in ("send", "recv"):
        return pairs
    reading = strategy(instruction, is_own)
    halves = [
        group
        for pair in named_pairs(pairs, reading, count_named(reading, num_replicas, num_partitions))
        for group in _groups_of_list(pair, reading, num_replicas, num_partitions)
    ]
    return tuple((source, target) for source, target in halves)
