"""Which operations have completed, and who is in a group, where the recorder does not say it itself.

Counts of completed operations go beyond the entries of a dump. Some back ends record no completion, and gloo retires
what failed as well as what completed, so that other ranks have to tell.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from attrs import evolve

from .comparing import ROOTED, find_difference
from .members import add_unseen_members, find_members, users
from .records import Launch, StuckJob


def settle_completion(job: StuckJob) -> None:
    """Set which operations of a job have completed, and the members of its groups."""
    _drop_message_counts(job)
    _apply_completed_counts(job)
    find_members(job)
    _infer_completion(job)
    _correct_retired(job)
    add_unseen_members(job)


def _drop_message_counts(job: StuckJob) -> None:
    """Drop counts of groups with messages that count these and not collectives: they exceed every known collective."""
    with_messages = {each.group for record in job.ranks.values() for each in record.operations if each.pair is not None}
    most: dict[str, int] = defaultdict(lambda: -1)
    for record in job.ranks.values():
        for each in record.operations:
            if each.pair is None and each.group in with_messages:
                most[each.group] = max(most[each.group], each.sequence)
    for record in job.ranks.values():
        for group in with_messages & {*record.launched}:
            if record.launched[group] > most[group]:
                del record.launched[group]
                record.completed.pop(group, None)


def _apply_completed_counts(job: StuckJob) -> None:
    """Mark collectives as completed up to the last completed number of their group."""
    for record in job.ranks.values():
        if record.is_completion_count:
            continue
        done = {
            id(each)
            for each in record.operations
            if not each.is_done and each.pair is None and each.sequence <= record.completed.get(each.group, -1)
        }
        if done:
            record.replace_operations([
                evolve(each, is_done=True) if id(each) in done else each for each in record.operations
            ])  # fmt: skip


def _infer_completion(job: StuckJob) -> None:
    """Where no rank has a completed operation, the back end keeps no states: infer them.

    A collective that all members launched, and a message that both sides launched, has completed if a rank launched
    another operation after it.
    """
    records = [record for record in job.ranks.values() if record.operations]
    if not records or any(each.is_done for record in records for each in record.operations):
        return
    if any(number >= 0 for record in records for number in record.completed.values()):
        return
    job.add_limit(
        "the back end records no completion: an operation counts as completed if all ranks of its group launched it, "
        "and one of them went on"
    )
    passed = {each.key for record in records for each in record.operations[:-1] if each.pair is None}
    messages: dict[tuple[tuple[int, int], int], list[Launch]] = defaultdict(list)
    for record in records:
        numbers: Counter[tuple[int, int]] = Counter()
        for each in record.operations:
            if each.pair is not None:
                messages[each.pair, numbers[each.pair]].append(each)
                numbers[each.pair] += 1
    last = {id(record.operations[-1]) for record in records}
    done = {
        id(each)
        for sides in messages.values()
        for each in sides
        if len(sides) == 2 and find_difference(*sides) is None and not all(id(side) in last for side in sides)
    }
    for record in records:
        done |= {
            id(each)
            for each in record.operations
            if each.pair is None and each.key in passed and _have_all_launched(job, each)
        }
    for record in records:
        record.replace_operations([
            evolve(each, is_done=True) if id(each) in done else each for each in record.operations
        ])  # fmt: skip


def _correct_retired(job: StuckJob) -> None:
    """Where a back end keeps no states, correct what was retired because it failed, and what ended before it retired.

    A collective that a member never launched has not completed, but one with a root completes on some ranks earlier:
    it has failed if it is the last one of its rank and connections were lost. If a rank has ended, the others are ended
    soon after, perhaps before the last completion is in their dumps.
    """
    lost = {*job.dead, *job.ended, *job.aborted}
    least: dict[str, int] = {}
    absent: dict[str, list[int]] = {}
    for name, group in job.groups.items():
        counts = {
            rank: job.ranks[rank].launched.get(name, 0)
            for rank in group.members or users(job, name)
            if rank in job.ranks
        }
        least[name] = min(counts.values(), default=0)
        absent[name] = [rank for rank, count in counts.items() if count == least[name]]
    passed = {
        each.key
        for record in job.ranks.values()
        for each in record.operations[:-1]
        if each.is_done and each.pair is None and each.name not in ROOTED
    }
    pending = {each.key for record in job.ranks.values() for each in record.pending if each.pair is None}
    for record in job.ranks.values():
        changed = {}
        for each in record.operations:
            if each.pair is not None or each.is_started is not None or record.is_completion_count:
                continue
            is_missing = least[each.group] < each.sequence
            is_last = each is record.operations[-1]
            is_failed = is_last and job.aborted and each.key in pending and each.key not in passed
            if each.is_done and (is_missing or is_failed):
                is_lost = job.is_disconnected or not lost.isdisjoint(absent[each.group])
                if each.name not in ROOTED or (is_last and is_lost):
                    changed[id(each)] = False
            elif not each.is_done and not is_missing and lost and each.key in passed:
                changed[id(each)] = True
        if changed:
            record.replace_operations([
                evolve(each, is_done=changed.get(id(each), each.is_done)) for each in record.operations
            ])  # fmt: skip


def _have_all_launched(job: StuckJob, operation: Launch) -> bool:
    """Whether all members of the group, or else all ranks that used it, launched a collective."""
    members = job.groups[operation.group].members
    return all(
        record.launched.get(operation.group, -1) >= operation.sequence
        for rank, record in job.ranks.items()
        if (rank in members if members is not None else operation.group in record.launched)
    )
