"""Check of a collective's ids against the numbers of replicas and partitions that the text's header states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shape_inference import XbuildError

from ...core.graph import Instruction
from ...core.op import Schema
from ...properties.device_groups import count_of_ids, strategy
from ...properties.effects import COVERING, MEETS, base_of

if TYPE_CHECKING:
    from ..reading.body import Body
    from .header import Header

_IDS = {"cross_partition": "partition", "flattened_ids": "device"}


def check_ids(body: Body, instruction: Instruction, schema: Schema, place: int) -> None:
    """Refuse groups and pairs that XLA's verifier refuses of a program of so many replicas and partitions.

    Where the header states no counts, they are given at the run, and nothing is known here; where there is but one id,
    XLA takes it that the counts are still to come.
    """
    header = body.reader.header
    if schema.opcode not in MEETS or not header.states_counts:
        return
    problem = problem_of_ids(instruction, header)
    if problem:
        values = instruction.attribute_values()
        error = XbuildError("invalid_group", problem)
        raise body.refused(error, schema, instruction.operands, instruction.segments, values, place)


def problem_of_ids(instruction: Instruction, header: Header) -> str | None:
    """What is wrong with the ids of a collective by the counts of a header; None where nothing is."""
    count = count_of_ids(instruction, header.num_replicas, header.num_partitions)
    problem = _problem(instruction, count, _IDS.get(strategy(instruction), "replica"))
    if count == 1 or not problem:
        return None
    counts = f"replica_count={header.num_replicas}, num_partitions={header.num_partitions}"
    by = "by the header" if header.states_counts else "by the greatest ids that are named"
    return f"{problem}, and {by} there are {count}, 0..{count - 1}: {counts}"


def _problem(instruction: Instruction, count: int, what: str) -> str | None:
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
