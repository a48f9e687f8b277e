"""Counts of replicas and partitions: stated by a caller or the header, inferred, and checked against collectives.

Sections:

    Counts of replicas and partitions, inferred if the header states none
    Ids of collectives, checked against the counts of replicas and partitions
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from shape_inference import XbuildError
from shape_inference.bounds import MOST_DEVICES

from ..core.graph import Computation, Instruction
from ..core.op import Schema
from ..properties.device_groups import count_of_ids, strategy
from ..properties.effects import COVERING, MEETS, base_of
from .header import Header
from .shardings import sharded_devices

if TYPE_CHECKING:
    from .reader import Body

# ----------------------------------------------------------------------------
# Counts of replicas and partitions, inferred if the header states none

INFERRED = "inferred_counts"
"""The annotation of a module whose counts are inferred: a sentence that says from what."""

Counted: TypeAlias = tuple[int | None, int | None]


def check_counts(replicas: int | None, partitions: int | None) -> None:
    """Refuse invalid counts from a caller."""
    for name, count in (("replicas", replicas), ("partitions", partitions)):
        if count is not None and (not isinstance(count, int) or isinstance(count, bool)):
            raise TypeError(f"{name} must be an int, got {count!r}")
        if count is not None and count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
    if (replicas or 1) * (partitions or 1) > MOST_DEVICES:
        raise ValueError(
            f"replicas={replicas} and partitions={partitions} result in more devices than the limit of {MOST_DEVICES:,}"
        )


def set_counts(header: Header, replicas: int | None, partitions: int | None) -> None:
    """Override the counts of a header by those of a caller."""
    header.num_replicas = replicas or header.num_replicas
    header.num_partitions = partitions or header.num_partitions
    header.states_counts |= bool(replicas or partitions)


def infer_counts(header: Header, computations: Iterable[Computation]) -> None:
    """Set the counts of a header that states none, and the annotation that says from what they are inferred."""
    found = None if header.states_counts else count_named_devices(computations)
    if found is not None:
        header.num_replicas, header.num_partitions = found.num_replicas, found.num_partitions
        header.annotations[INFERRED] = found.sentence


@frozen
class InferredCounts:
    """Inferred counts, and a sentence that says from what."""

    num_replicas: int
    num_partitions: int
    sentence: str


@frozen
class _NamedIds:
    """An instruction names ids 0 to `count` - 1 of a kind: replica, partition, device or shard."""

    count: int
    what: str
    by: str


def count_named_devices(computations: Iterable[Computation]) -> InferredCounts | None:
    """The counts that groups, pairs and shardings imply; None for one device, or for too many."""
    named = [found for each in computations for i in each.instructions for found in _ids_named_by(i)]
    replica, partition, device, shard = [_largest(named, what) for what in ("replica", "partition", "device", "shard")]
    replicas = replica.count
    partitions = max(partition.count, -(-device.count // replicas))
    by = [replica, partition, device]
    if replicas * partitions == 1:
        partitions, by = shard.count, [shard]
    if not 1 < replicas * partitions <= MOST_DEVICES:
        return None
    reasons = " and ".join(_reason(named_ids) for named_ids in by if named_ids.count > 1)
    return InferredCounts(
        replicas, partitions, f"replicas: {replicas}, partitions: {partitions} (inferred because {reasons})"
    )


def _reason(named: _NamedIds) -> str:
    if named.what == "shard":
        return f"the sharding of %{named.by} has {named.count} devices"
    return f"%{named.by} names {named.what} {named.count - 1}"


def _largest(named: list[_NamedIds], what: str) -> _NamedIds:
    found = [each for each in named if each.what == what]
    return max(found, key=lambda each: each.count, default=_NamedIds(1, what, ""))


def _ids_named_by(instruction: Instruction) -> Iterator[_NamedIds]:
    """The kinds of ids that an instruction names, with their counts."""
    name = instruction.name
    if "sharding" in instruction.annotations:
        yield _NamedIds(sharded_devices(instruction.annotations["sharding"]), "shard", name)
    if instruction.opcode in ("send", "recv"):
        yield from _ids_in(instruction.attributes.source_target_pairs, "device", name)
    elif instruction.opcode in MEETS:
        lists = getattr(instruction.attributes, "replica_groups", None)
        lists = instruction.attributes.source_target_pairs if lists is None else lists
        what = {"cross_partition": "partition", "flattened_ids": "device"}.get(strategy(instruction), "replica")
        yield from _ids_in(lists, what, name)
        if what == "replica" and not lists and (shards := getattr(instruction.attributes, "shard_count", 1)) > 1:
            yield _NamedIds(shards, what, name)  # one group of all replicas, of this size


def _ids_in(lists: Iterable[tuple[int, ...]], what: str, name: str) -> Iterator[_NamedIds]:
    greatest = max((each for ids in lists for each in ids), default=-1)
    if greatest >= 0:
        yield _NamedIds(greatest + 1, what, name)


# ----------------------------------------------------------------------------
# Ids of collectives, checked against the counts of replicas and partitions

_IDS = {"cross_partition": "partition", "flattened_ids": "device"}


def check_ids(body: Body, instruction: Instruction, schema: Schema, place: int) -> None:
    """Refuse groups and pairs that XLA's verifier refuses for the stated counts of replicas and partitions.

    Nothing is checked if the header states no counts, which the run then provides. If there is only one id, XLA assumes
    that the counts will be set later.
    """
    header = body.reader.header
    if schema.opcode not in MEETS or not header.states_counts:
        return
    problem = problem_of_ids(instruction, header)
    if problem:
        values = instruction.attribute_values()
        error = XbuildError("invalid_group", problem)
        raise body.fault_of(error, schema, instruction.operands, instruction.segments, values, place)


def problem_of_ids(instruction: Instruction, header: Header) -> str | None:
    """What is wrong with the ids of a collective, given the counts of a header; None if nothing is."""
    count = count_of_ids(instruction, header.num_replicas, header.num_partitions)
    problem = _find_problem(instruction, count, _IDS.get(strategy(instruction), "replica"))
    if count == 1 or not problem:
        return None
    counts = f"replica_count={header.num_replicas}, num_partitions={header.num_partitions}"
    by = "the header states" if header.states_counts else "the largest ids imply"
    return f"{problem}, but {by} the range 0..{count - 1} ({counts})"


def _find_problem(instruction: Instruction, count: int, what: str) -> str | None:
    pairs = getattr(instruction.attributes, "source_target_pairs", None)
    lists = instruction.attributes.replica_groups if pairs is None else pairs
    named = {each for ids in lists for each in ids}
    beyond = next((each for each in sorted(named) if each >= count), None)
    if beyond is not None:
        return f"{'source_target_pairs name' if pairs is not None else 'replica_groups name'} {what} {beyond}"
    if pairs is None and lists and base_of(instruction) in COVERING and len(named) < count:
        missing = next(each for each in range(count) if each not in named)
        return f"{what} {missing} is in no group of replica_groups"
    return None
