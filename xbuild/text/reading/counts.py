"""Numbers of replicas and partitions of a text whose header states none: at least what its groups and pairs name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from attrs import frozen

from ...core.graph import Computation, Instruction
from ...properties.device_groups import strategy
from ...properties.effects import MEETS
from ...properties.partitioning import sharded_devices
from ..codecs.header import Header
from ..spelling.groups import MOST_DEVICES

INFERRED = "inferred_counts"
"""The annotation of a module whose counts were inferred: the sentence that says so."""

Counted: TypeAlias = tuple[int | None, int | None]


def check_counts(replicas: int | None, partitions: int | None) -> None:
    """Refuse counts that a caller gives and that no program has."""
    for name, count in (("replicas", replicas), ("partitions", partitions)):
        if count is not None and (not isinstance(count, int) or isinstance(count, bool)):
            raise TypeError(f"{name}={count!r}, and an int is wanted")
        if count is not None and count < 1:
            raise ValueError(f"{name}={count}, and at least 1 is wanted")
    if (replicas or 1) * (partitions or 1) > MOST_DEVICES:
        raise ValueError(f"replicas={replicas}, partitions={partitions}: {MOST_DEVICES} devices are the most")


def set_counts(header: Header, replicas: int | None, partitions: int | None) -> None:
    """The counts that a caller gives stand before those of the header."""
    header.num_replicas = replicas or header.num_replicas
    header.num_partitions = partitions or header.num_partitions
    header.states_counts |= bool(replicas or partitions)


def infer_counts(header: Header, computations: Iterable[Computation]) -> None:
    """The counts of a header that states none, and the sentence that says from what they are inferred."""
    found = None if header.states_counts else inferred(computations)
    if found is not None:
        header.num_replicas, header.num_partitions = found.num_replicas, found.num_partitions
        header.annotations[INFERRED] = found.sentence


@frozen
class Counts:
    """How many replicas and partitions there are, and the sentence that says from what that is inferred."""

    num_replicas: int
    num_partitions: int
    sentence: str


@frozen
class _Named:
    """So many ids of a kind (replica, partition, device) are named by an instruction."""

    count: int
    what: str
    by: str


def inferred(computations: Iterable[Computation]) -> Counts | None:
    """The counts that groups, pairs and shardings need; None where one device is enough, or there would be too many."""
    named = [found for each in computations for i in each.instructions for found in _named(i)]
    replica, partition, device, shard = [_most(named, what) for what in ("replica", "partition", "device", "shard")]
    replicas = replica.count
    partitions = max(partition.count, -(-device.count // replicas))
    by = [replica, partition, device]
    if replicas * partitions == 1:
        partitions, by = shard.count, [shard]
    if not 1 < replicas * partitions <= MOST_DEVICES:
        return None
    told = "; ".join(_told(each) for each in by if each.count > 1)
    return Counts(replicas, partitions, f"replicas: {replicas}, partitions: {partitions}, inferred, as {told}")


def _told(named: _Named) -> str:
    if named.what == "shard":
        return f"the sharding of %{named.by} is of {named.count} devices"
    return f"%{named.by} names {named.what} {named.count - 1}"


def _most(named: list[_Named], what: str) -> _Named:
    found = [each for each in named if each.what == what]
    return max(found, key=lambda each: each.count, default=_Named(1, what, ""))


def _named(instruction: Instruction) -> Iterator[_Named]:
    """The ids that an instruction names, as their number from 0 to the greatest."""
    name = instruction.name
    if "sharding" in instruction.annotations:
        yield _Named(sharded_devices(instruction.annotations["sharding"]), "shard", name)
    if instruction.opcode in ("send", "recv"):
        yield from _greatest(instruction.attributes.source_target_pairs, "device", name)
    elif instruction.opcode in MEETS:
        lists = getattr(instruction.attributes, "replica_groups", None)
        lists = instruction.attributes.source_target_pairs if lists is None else lists
        what = {"cross_partition": "partition", "flattened_ids": "device"}.get(strategy(instruction), "replica")
        yield from _greatest(lists, what, name)
        if what == "replica" and not lists and (shards := getattr(instruction.attributes, "shard_count", 1)) > 1:
            yield _Named(shards, what, name)  # one group of all replicas, of this size


def _greatest(lists: Iterable[tuple[int, ...]], what: str, name: str) -> Iterator[_Named]:
    greatest = max((each for ids in lists for each in ids), default=-1)
    if greatest >= 0:
        yield _Named(greatest + 1, what, name)
