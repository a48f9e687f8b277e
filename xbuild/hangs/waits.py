"""The wait-for graph of a stuck job over all its groups, and the ranks at its roots.

A rank is blocked at its first operation that has not completed (at all of them, if they were launched together or if
the recorder keeps no order). There it waits for each member of the group that has not launched the operation, that is
blocked at an earlier operation of its own, or that launched something else in its place. Who waits for nobody, and is
waited for, is a root; a cycle without a way out is one as well, and the order of the operations in it is wrong.

Sections:

    The graph
    Disagreements: ranks that launched something else under the same number
    Roots
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import pairwise

import networkx as nx
from attrs import define, evolve, field, frozen

from .records import Group, Launch, RankRecord, Root, StuckJob, name_ranks, user_frames


@frozen
class RankWait:
    """Why a rank waits for another one: at which operation, and what that one has done instead."""

    at: Launch
    why: str
    """`missing`, `behind`, `differs`, `absent`, or `dead`; `perhaps` until it is settled."""


@define(eq=False)
class JobWaits:
    """Who waits for whom in a job: `edges[rank][other]`."""

    job: StuckJob
    edges: dict[int, dict[int, RankWait]] = field(factory=lambda: defaultdict(dict))
    frontiers: dict[int, list[Launch]] = field(factory=dict)
    flagged: dict[int, Root] = field(factory=dict)
    """The ranks of a minority that launched something else."""
    skipped: dict[int, Root] = field(factory=dict)
    """The ranks that left out an operation and went on with others that look the same; all of these may complete."""
    holders: dict[tuple[str, int], _Holders] = field(factory=dict)

    @cached_property
    def graph(self) -> nx.DiGraph[int]:
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(self.job.ranks)
        graph.add_edges_from((rank, other) for rank, others in self.edges.items() for other in others)
        return graph

    @cached_property
    def condensed(self) -> nx.DiGraph[int]:
        """The graph of its cycles: a node for each set of ranks that wait for each other."""
        condensed: nx.DiGraph[int] = nx.condensation(self.graph)
        return condensed


# ----------------------------------------------------------------------------
# The graph


def build_waits(job: StuckJob) -> JobWaits:
    """The wait-for graph of a job."""
    waits = JobWaits(job)
    _drop_message_counts(job)
    _apply_completed_counts(job)
    _infer_completion(job)
    _correct_retired(job)
    _members_without_lists(job)
    weak = {**_message_disagreements(waits), **_disagreements(waits)}
    waits.flagged.update({rank: root for rank, root in job.different.items() if rank not in waits.flagged})
    for rank, record in job.ranks.items():
        waits.frontiers[rank] = _frontier(record)
    messages = _Messages(job)
    first_ordinal = {rank: {id(each) for each in frontier} for rank, frontier in waits.frontiers.items()}
    for rank, frontier in waits.frontiers.items():
        if rank in job.dead or rank in waits.flagged:
            continue
        for operation in frontier:
            found = (
                _waits_in_group(waits, rank, operation)
                if operation.pair is None
                else messages.waits(waits, rank, operation, first_ordinal)
            )
            for other, wait in found:
                waits.edges[rank].setdefault(other, wait)
    _settle_messages(waits)
    if not waits.flagged:
        for rank, root in weak.items():
            if not any(waits.edges.values()):
                waits.flagged[rank] = root
    return waits


def _settle_messages(waits: JobWaits) -> None:
    """Decide on messages whose other side is in no dump, where dumps hold pending operations only.

    The other side has not launched it, or has completed it. It has completed it if that rank itself waits for this one,
    since a rank whose messages do not complete holds up the others.
    """
    certain: nx.DiGraph[int] = nx.DiGraph()
    certain.add_nodes_from(waits.job.ranks)
    perhaps = []
    for rank, others in waits.edges.items():
        for other, wait in others.items():
            if wait.why == "perhaps":
                perhaps.append((rank, other, wait))
            else:
                certain.add_edge(rank, other)
    behind: dict[int, set[int]] = {}
    for rank, other, wait in perhaps:
        if other not in behind:
            behind[other] = nx.descendants(certain, other)
        if rank in behind[other]:
            del waits.edges[rank][other]
        else:
            waits.edges[rank][other] = RankWait(wait.at, "missing")


def _frontier(record: RankRecord) -> list[Launch]:
    pending = record.pending
    if not pending or not record.is_ordered:
        return pending
    return [each for each in pending if each.batch == pending[0].batch or each is pending[0]]


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
        if len(sides) == 2 and _difference(*sides) is None and not all(id(side) in last for side in sides)
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


_ROOTED = ("broadcast", "reduce", "gather", "scatter")


def _correct_retired(job: StuckJob) -> None:
    """Where a back end keeps no states, correct what was retired because it failed, and what ended before it retired.

    A collective that a member never launched has not completed, but one with a root completes on some ranks earlier:
    it has failed if it is the last one of its rank and connections were lost. If a rank has ended, the others are ended
    soon after, perhaps before the last completion is in their dumps.
    """
    lost = {*job.dead, *job.ended, *job.aborted}
    users: dict[str, list[RankRecord]] = defaultdict(list)
    for record in job.ranks.values():
        for group in record.launched:
            users[group].append(record)
    least = {group: min(record.launched[group] for record in records) for group, records in users.items()}
    absent = {
        group: [each.rank for each in records if each.launched[group] == least[group]]
        for group, records in users.items()
    }
    retired = {
        each.key for record in job.ranks.values() for each in record.operations if each.is_done and each.pair is None
    }
    for record in job.ranks.values():
        changed = {}
        for each in record.operations:
            if each.pair is not None or each.is_started is not None or record.is_completion_count:
                continue
            is_missing = least[each.group] < each.sequence
            if each.is_done and is_missing:
                is_last = each is record.operations[-1]
                is_lost = job.is_disconnected or not lost.isdisjoint(absent[each.group])
                if each.name not in _ROOTED or (is_last and is_lost):
                    changed[id(each)] = False
            elif not each.is_done and not is_missing and lost and each.key in retired:
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


def _members_without_lists(job: StuckJob) -> None:
    """Give groups without a list of members those that the dumps show.

    The first group that was made holds all ranks. A rank of another group that never used it is not visible.
    """
    unlisted = [group for group in job.groups.values() if group.members is None]
    last = max(job.ranks, default=-1)
    for group in sorted(unlisted, key=lambda each: not _holds_all(each)):
        seen = [rank for rank, record in job.ranks.items() if group.name in record.launched]
        if _holds_all(group):
            group.members = tuple(range(max(_size_from_gathers(job, group.name), last + 1)))
        else:
            group.members = tuple(sorted({*seen, *_unseen_members(job, group.name, seen)}))
            job.add_limit(
                "the back end lists no members of groups: those of a group other than the first are the ranks that "
                "used it"
            )
        if not job.absent and _are_all_at(job, group.name):
            group.members = (*group.members, last + 1)
            job.add_limit(
                "all ranks with a dump are at one operation, and the back end lists no members: either a rank is "
                "missing, which is numbered as the next one, or the operation itself does not complete"
            )


def _holds_all(group: Group) -> bool:
    return group.description == "default_pg" or group.name in ("0", "default_pg")


def _size_from_gathers(job: StuckJob, name: str) -> int:
    """The number of ranks of a group, from the sizes of a gather; 0 if it launched none."""
    for record in job.ranks.values():
        for each in record.operations:
            if each.group == name and each.name == "all_gather" and len(each.inputs) == len(each.outputs) == 1:
                size, rest = divmod(each.outputs[0], each.inputs[0] or 1)
                if size and not rest and size < 1 << 20:
                    return size
    return 0


def _are_all_at(job: StuckJob, name: str) -> bool:
    """Whether all ranks with a dump are at one collective of a group, and agree on it."""
    fronts = [_frontier(record)[:1] for record in job.ranks.values()]
    keys = {each.key for front in fronts for each in front if each.pair is None}
    if len(fronts) < 2 or not all(fronts) or len(keys) != 1 or fronts[0][0].group != name:
        return False
    return all(_difference(fronts[0][0], front[0]) is None for front in fronts)


def _unseen_members(job: StuckJob, name: str, seen: Sequence[int]) -> list[int]:
    """The ranks that may be missing in a group whose known members are all stuck at one operation.

    They are those without a dump, else those that launched nothing more, else those that themselves wait for one of the
    known members.
    """
    fronts = {rank: _frontier(record) for rank, record in job.ranks.items()}
    at = {each.sequence for rank in seen for each in fronts[rank] if each.group == name and each.pair is None}
    is_stuck = len(at) == 1 and all(any(each.group == name for each in fronts[rank]) for rank in seen)
    if not is_stuck:
        return []
    if job.absent:
        return job.absent
    others = [rank for rank in job.ranks if rank not in seen]
    idle = [rank for rank in others if not job.ranks[rank].pending]
    return idle or [
        rank
        for rank in others
        if any(
            job.ranks[one].launched.get(each.group, -1) < each.sequence
            for each in fronts[rank]
            if each.pair is None
            for one in seen
        )
    ]


@frozen
class _Holders:
    """The members of a group that hold up a collective, each with the reason; `absent` ones left no dump.

    `not_started` are at the collective and have not started it, which holds up those that have.
    """

    known: tuple[tuple[int, str], ...]
    absent: tuple[int, ...]
    not_started: tuple[int, ...]


def _waits_in_group(waits: JobWaits, rank: int, operation: Launch) -> Iterator[tuple[int, RankWait]]:
    """For whom a rank waits that is blocked at a collective."""
    holders = waits.holders.get(operation.key)
    if holders is None:
        holders = waits.holders[operation.key] = _find_holders(waits, operation)
    found = [(other, RankWait(operation, why)) for other, why in holders.known if other != rank]
    if operation.is_started:
        found += [(other, RankWait(operation, "behind")) for other in holders.not_started if other != rank]
    yield from found
    if not found:
        yield from ((other, RankWait(operation, "absent")) for other in holders.absent if other != rank)


def _find_holders(waits: JobWaits, operation: Launch) -> _Holders:
    job, (name, sequence) = waits.job, operation.key
    known: list[tuple[int, str]] = []
    absent, not_started = [], []
    for other in job.groups[name].members or ():
        record = job.ranks.get(other)
        if other in job.dead and (record is None or not _has_completed(record, operation)):
            known.append((other, "dead"))
        elif record is None:
            absent.append(other)
        elif record.launched.get(name, -1) < sequence:
            known.append((other, "missing"))
        elif (root := waits.flagged.get(other)) and root.group == name and root.sequence in (None, sequence):
            known.append((other, "differs"))
        elif (own := record.find(name, sequence)) is not None and not own.is_done:
            if not any(each is own for each in waits.frontiers[other]):
                known.append((other, "behind"))
            elif own.is_started is False:
                not_started.append(other)
    return _Holders(tuple(known), tuple(absent), tuple(not_started))


def _has_completed(record: RankRecord, operation: Launch) -> bool:
    own = record.find(*operation.key)
    return own.is_done if own is not None else operation.sequence <= record.completed.get(operation.group, -1)


@define(eq=False)
class _Messages:
    """The messages of a job: the pending ones of each rank by sender and receiver, in order."""

    job: StuckJob
    pending: dict[tuple[int, tuple[int, int]], list[Launch]] = field(factory=lambda: defaultdict(list))
    totals: Counter[tuple[int, tuple[int, int]]] = field(factory=Counter)

    def __attrs_post_init__(self) -> None:
        for rank, record in self.job.ranks.items():
            for each in record.operations:
                if each.pair is not None:
                    self.totals[rank, each.pair] += 1
                    if not each.is_done:
                        self.pending[rank, each.pair].append(each)

    def partner(self, rank: int, operation: Launch) -> Launch | None:
        """The pending operation of the other side that belongs to a pending message, if there is such a one."""
        assert operation.pair is not None
        other = _peer(rank, operation)
        own, theirs = self.pending[rank, operation.pair], self.pending[other, operation.pair]
        number = next(place for place, each in enumerate(own) if each is operation)
        return theirs[number] if number < len(theirs) else None

    def waits(
        self, waits: JobWaits, rank: int, operation: Launch, fronts: Mapping[int, set[int]]
    ) -> Iterator[tuple[int, RankWait]]:
        """For whom a rank waits that is blocked at a message."""
        assert operation.pair is not None
        other = _peer(rank, operation)
        record = self.job.ranks.get(other)
        if other in self.job.dead:
            yield other, RankWait(operation, "dead")
            return
        if record is None:
            yield other, RankWait(operation, "absent")
            return
        partner = self.partner(rank, operation)
        if partner is None:
            own = self.job.ranks[rank]
            launched = self.totals[rank, operation.pair] - len(self.pending[rank, operation.pair])
            if own.has_only_pending or record.has_only_pending:
                yield other, RankWait(operation, "perhaps")
            elif own.is_partial or record.is_partial or self.totals[other, operation.pair] <= launched:
                yield other, RankWait(operation, "missing")
        elif (kind := _difference(operation, partner)) is not None:
            for one, each, two in ((rank, operation, other), (other, partner, rank)):
                reason = _differs_text(kind, each, partner if each is operation else operation, [two])
                waits.flagged.setdefault(one, _root(waits.job, one, kind, each, reason))
            yield other, RankWait(operation, "differs")
        elif id(partner) not in fronts[other]:
            yield other, RankWait(operation, "behind")


def _peer(rank: int, operation: Launch) -> int:
    assert operation.pair is not None
    return operation.pair[1] if operation.pair[0] == rank else operation.pair[0]


# ----------------------------------------------------------------------------
# Disagreements

_NO_SIZES = ("all_to_all", "barrier", "coalesced", "unknown")
_OUTPUT_SIZES = ("scatter", "reduce_scatter")


def _difference(one: Launch, other: Launch) -> str | None:
    """The kind in which two operations under the same number differ; None if they agree."""
    if one.pair is None and one.name != other.name:
        return "wrong_op"
    if one.pair is not None or one.name not in _NO_SIZES:
        side = "outputs" if one.name in _OUTPUT_SIZES else "inputs"
        sizes = getattr(one, side), getattr(other, side)
        if all(sizes) and sum(sizes[0]) != sum(sizes[1]) and not _is_uneven(one, other):
            return "wrong_size"
    if one.types and other.types and one.types[0] != other.types[0]:
        return "wrong_type"
    return None


def _is_uneven(one: Launch, other: Launch) -> bool:
    """Whether a gather states different sizes for its ranks, which is allowed."""
    return one.name in ("all_gather", "gather") and any(len({*each.outputs}) > 1 for each in (one, other))


def _disagreements(waits: JobWaits) -> dict[int, Root]:
    """Flag the ranks that launched something else than the others at the first number of a group where they disagree.

    Returns those of operations that completed nevertheless: they are faults only if nothing else is.
    """
    job = waits.job
    at: dict[tuple[str, int], dict[int, Launch]] = defaultdict(dict)
    for rank, record in job.ranks.items():
        for each in record.operations:
            if each.pair is None:
                at[each.key][rank] = each
    weak: dict[int, Root] = {}
    done: set[str] = set()
    shifted: dict[str, set[int]] = {}  # by group, the ranks that are one ahead since they left something out
    for key in sorted(at):
        operations, group = at[key], key[0]
        if group in done or len(operations) < 2:
            continue
        classes = _classes(operations) if len({*map(_signature, operations.values())}) > 1 else []
        is_pending = any(not each.is_done for each in operations.values())
        if len(classes) > 1:
            found = [*_judge(job, key, classes, operations, shifted.get(group, set()))]
            launched = (job.ranks[rank].launched.get(group) for rank in operations)
            is_strong = is_pending or any(number == key[1] for number in launched)
        elif group not in shifted and (found := [*_skipped_lines(job, key, operations)]):
            shifted[group] = {root.rank for root in found}
            waits.skipped.update({root.rank: root for root in found})
            if not is_pending:
                continue  # it completes, and the rank goes on one ahead of the others
            is_strong = True
        else:
            continue
        done.add(group)
        for root in found:
            (waits.flagged if is_strong else weak).setdefault(root.rank, root)
        if is_strong:
            _reopen(job, operations)
    return weak


def _skipped_lines(job: StuckJob, key: tuple[str, int], operations: Mapping[int, Launch]) -> Iterator[Root]:
    """The ranks that left out a collective and launched the next one, which looks the same but is at another line."""
    lines: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for rank, each in operations.items():
        lines[each.frames].append(rank)
    if len(lines) != 2:
        return
    largest, smallest = sorted(lines.values(), key=len, reverse=True)
    for ranks, others in ((smallest, largest), (largest, smallest)):
        skipping = [rank for rank in ranks if _has_skipped(job.ranks[rank], job.ranks[others[0]], key)]
        for rank in skipping:
            yield _skip_root(job.ranks[rank], operations[rank], operations[others[0]])
        if skipping:
            return


def _skip_root(record: RankRecord, own: Launch, skipped: Launch) -> Root:
    last = record.find(skipped.group, skipped.sequence - 1)
    reason = f"skipped {skipped} and launched {own.name} in its place"
    return Root(record.rank, "never_launched", *_place(skipped), user_frames((last or own).frames), skipped, reason)


def _message_disagreements(waits: JobWaits) -> dict[int, Root]:
    """Flag both sides of the first message between two ranks whose size or type differs.

    Returns those of messages that completed nevertheless. Messages are counted, so all of them have to be recorded.
    """
    job = waits.job
    sides: dict[tuple[int, int], dict[int, list[Launch]]] = defaultdict(lambda: defaultdict(list))
    for rank, record in job.ranks.items():
        for each in record.operations if not record.is_partial else ():
            if each.pair is not None:
                sides[each.pair][rank].append(each)
    weak: dict[int, Root] = {}
    for (sender, receiver), found in sides.items():
        for sent, received in zip(found[sender], found[receiver], strict=False):
            kind = _difference(sent, received)
            if kind is None:
                continue
            is_strong = not (sent.is_done and received.is_done)
            for rank, own, other, peer in ((sender, sent, received, receiver), (receiver, received, sent, sender)):
                root = _root(job, rank, kind, own, _differs_text(kind, own, other, [peer]))
                (waits.flagged if is_strong else weak).setdefault(rank, root)
            break
    return weak


def _signature(operation: Launch) -> tuple[object, ...]:
    return operation.name, operation.inputs, operation.outputs, operation.types


def _classes(operations: Mapping[int, Launch]) -> list[list[int]]:
    """The ranks by what they launched, the largest class first."""
    classes: list[list[int]] = []
    for rank in sorted(operations):
        for each in classes:
            if _difference(operations[each[0]], operations[rank]) is None:
                each.append(rank)
                break
        else:
            classes.append([rank])
    return sorted(classes, key=len, reverse=True)


def _judge(
    job: StuckJob,
    key: tuple[str, int],
    classes: Sequence[Sequence[int]],
    operations: Mapping[int, Launch],
    shifted: Set[int],
) -> Iterator[Root]:
    """The roots of a disagreement: the ranks that are one ahead, else the minority; all sides in a tie."""
    classes = _with_usual_sides(job, key, classes, operations)
    is_tie = len(classes[0]) == len(classes[1])
    classes = [[rank for rank in ranks if rank in operations] for ranks in classes]
    pairs = [(rank, classes[0 if place else 1]) for place, ranks in enumerate(classes) for rank in ranks]
    sides = pairs if is_tie else pairs[len(classes[0]) :]
    skipping = [
        rank for rank, others in sides if rank in shifted or _has_skipped(job.ranks[rank], job.ranks[others[0]], key)
    ]
    for rank, others in sides:
        own, other = operations[rank], operations[others[0]]
        if rank in skipping:
            yield _skip_root(job.ranks[rank], own, other)
        elif not (is_tie and skipping):
            kind = _difference(own, other) or "wrong_op"
            yield _root(job, rank, kind, own, _differs_text(kind, own, other, others))


def _with_usual_sides(
    job: StuckJob, key: tuple[str, int], classes: Sequence[Sequence[int]], operations: Mapping[int, Launch]
) -> list[list[int]]:
    """The classes, with ranks that were aborted before their dumps were written at the side that they used to be on."""
    found = [[*ranks] for ranks in classes]
    for rank in sorted(job.aborted & {*job.ranks} - {*operations}):
        usual = {_signature(each) for each in job.ranks[rank].operations if each.group == key[0]}
        sides = [ranks for ranks in found if _signature(operations[ranks[0]]) in usual]
        if len(sides) == 1:
            sides[0].append(rank)
    return sorted(found, key=len, reverse=True)


def _differs_text(kind: str, own: Launch, other: Launch, ranks: Iterable[int]) -> str:
    others = name_ranks(ranks)
    has = "has" if "ranks" not in others else "have"
    if kind == "wrong_size":
        side = "outputs" if own.name in _OUTPUT_SIZES else "inputs"
        return f"{own} has {sum(getattr(own, side)):,} elements where {others} {has} {sum(getattr(other, side)):,}"
    if kind == "wrong_type":
        return f"{own} has elements of type {own.types[0]} where {others} {has} {other.types[0]}"
    return f"launched {own} where {others} launched {other}"


def _has_skipped(record: RankRecord, reference: RankRecord, key: tuple[str, int]) -> bool:
    """Whether a rank left out the operation with this number: what it launched there is what the others launch next.

    What the others launch next is known if they went on, or from what the rank itself did in earlier steps.
    """
    group, sequence = key
    own, skipped = record.find(group, sequence), reference.find(group, sequence)
    assert own is not None
    assert skipped is not None
    compared = 0
    while (mine := record.find(group, sequence + compared)) and (
        theirs := reference.find(group, sequence + compared + 1)
    ):
        if _content(mine) != _content(theirs):
            return False
        compared += 1
    within = RankRecord(record.rank)
    within.replace_operations(each for each in record.operations if each.group == group)
    return compared > 0 or _used_to_launch(record, own, skipped) or _used_to_launch(within, own, skipped)


def _used_to_launch(record: RankRecord, own: Launch, other: Launch) -> bool:
    """Whether a rank used to launch another operation, then this one, at the place where it launched only this one now.

    Operations are the same if they have the same group, name, sizes and lines.
    """
    skipped, launched = _content(other), _content(own)
    place = next(number for number, each in enumerate(record.operations) if each is own)
    if skipped == launched or not place:
        return False
    contents = [_content(each) for each in record.operations[:place]]
    return _followers(contents) in ({skipped}, set()) and (skipped, launched) in {*pairwise(contents)}


def _is_due(record: RankRecord, own: Launch, other: Launch) -> bool:
    """Whether a rank used to launch another operation at the place where it launched this one for the first time."""
    place = next(number for number, each in enumerate(record.operations) if each is own)
    followers = _followers([*map(_content, record.operations[:place])])
    return _content(other) in followers and _content(own) not in followers


def _is_unusual(record: RankRecord, own: Launch) -> bool:
    """Whether a rank always launched something else at the place where it launched this operation now."""
    place = next(number for number, each in enumerate(record.operations) if each is own)
    followers = _followers([*map(_content, record.operations[:place])])
    return bool(followers) and _content(own) not in followers


_CONTEXT = 8


def _followers(contents: Sequence[tuple[object, ...]]) -> set[tuple[object, ...]]:
    """What followed the last operations where they occurred before: as many of them as occurred at all, up to eight."""
    for length in range(min(_CONTEXT, len(contents) - 1), 0, -1):
        last = contents[-length:]
        found = {contents[end] for end in range(length, len(contents)) if contents[end - length : end] == last}
        if found:
            return found
    return set()


def _content(operation: Launch) -> tuple[object, ...]:
    signature = _signature(operation) if operation.name not in _NO_SIZES else (operation.name,)
    return operation.group, *signature, operation.pair, operation.frames


def _reopen(job: StuckJob, operations: Mapping[int, Launch]) -> None:
    """An operation in which ranks disagree has not completed, whatever the recorder says: it may have been aborted."""
    for rank, operation in operations.items():
        record = job.ranks[rank]
        record.replace_operations([
            evolve(each, is_done=False) if each is operation else each for each in record.operations
        ])  # fmt: skip


def _root(job: StuckJob, rank: int, kind: str, operation: Launch, reason: str = "") -> Root:
    return Root(rank, kind, operation.group, operation.sequence, user_frames(operation.frames), operation, reason)


# ----------------------------------------------------------------------------
# Roots


def find_roots(waits: JobWaits) -> list[Root]:
    """The ranks at fault, by rank."""
    job, graph = waits.job, waits.graph
    roots = dict(waits.flagged)
    for rank, evidence in job.dead.items():
        roots[rank] = _dead_root(waits, rank, evidence)
    condensed = waits.condensed
    alone: list[Root] = []
    aborted: list[Root] = []
    for number in condensed:
        if condensed.out_degree(number):
            continue
        members = sorted(condensed.nodes[number]["members"])
        if len(members) > 1:
            if not any(rank in roots for rank in members):
                roots.update({root.rank: root for root in _cycle_roots(waits, members)})
            continue
        (rank,) = members
        if rank in roots:
            continue
        root = _single_root(waits, rank)
        if root is None or _is_ended_by_disagreement(waits, root):
            continue
        if rank in job.aborted:
            aborted.append(root)  # what it launched last is not in its dump
            continue
        if graph.in_degree(rank):
            roots[rank] = root
        elif root.kind == "not_completed":
            alone.append(root)
    if not roots:
        roots = {root.rank: root for root in alone or aborted}
    else:
        for root in alone:  # it did not complete what others of its group did
            if _others_completed(job, root):
                roots[root.rank] = root
    return [roots[rank] for rank in sorted(roots)]


def reach_roots(waits: JobWaits, roots: Iterable[Root]) -> dict[int, list[int]]:
    """For each rank that is not at fault, the ranks at fault for which it waits, directly or not."""
    condensed = waits.condensed
    at_fault = {root.rank: 1 << number for number, root in enumerate(sorted(roots, key=lambda root: root.rank))}
    reached: dict[int, int] = {}  # by component, the ranks at fault as bits
    for number in reversed([*nx.topological_sort(condensed)]):
        bits = 0
        for rank in condensed.nodes[number]["members"]:
            bits |= at_fault.get(rank, 0)
        for other in condensed.successors(number):
            bits |= reached[other]
        reached[number] = bits
    names: dict[int, list[int]] = {}
    found: dict[int, list[int]] = {}
    for rank, number in sorted(condensed.graph["mapping"].items()):
        bits = reached[number]
        if bits and rank not in at_fault:
            found[rank] = names.setdefault(bits, [other for other, bit in at_fault.items() if bits & bit])
    return found


def _is_ended_by_disagreement(waits: JobWaits, root: Root) -> bool:
    """Whether a rank is missing only in an operation in which others disagree; such an operation may end any rank."""
    disagreements = {(each.group, each.sequence): each for each in waits.flagged.values() if each.rank != root.rank}
    if root.kind != "never_launched" or (root.group, root.sequence) not in disagreements:
        return False
    other = disagreements[root.group, root.sequence]
    waits.job.facts.append(
        f"rank {root.rank} did not launch {other.operation} either: the disagreement may have ended it"
    )
    return True


def _others_completed(job: StuckJob, root: Root) -> bool:
    operation = root.operation
    if operation is None or operation.pair is not None:
        return False
    others = [job.ranks[rank] for rank in job.groups[operation.group].members or () if rank in job.ranks]
    return any(_has_completed(record, operation) for record in others if record.rank != root.rank)


def _incoming(waits: JobWaits, rank: int) -> list[RankWait]:
    return [others[rank] for others in waits.edges.values() if rank in others]


def _missed(waits: JobWaits, rank: int) -> Launch | None:
    """The operation that most ranks wait for this one to launch, the first one in a tie."""
    counts: Counter[tuple[str, int]] = Counter()
    by_key: dict[tuple[str, int], Launch] = {}
    for wait in _incoming(waits, rank):
        counts[wait.at.key] += 1
        by_key.setdefault(wait.at.key, wait.at)
    if not counts:
        return None
    most = max(counts.values())
    return by_key[min(key for key, count in counts.items() if count == most)]


def _last(job: StuckJob, rank: int) -> Launch | None:
    record = job.ranks.get(rank)
    return record.operations[-1] if record is not None and record.operations else None


def _dead_root(waits: JobWaits, rank: int, evidence: str) -> Root:
    missed, last = _missed(waits, rank), _last(waits.job, rank)
    frames = user_frames(last.frames) if last is not None else ()
    group, sequence = (None, None) if missed is None else _place(missed)
    return Root(rank, "dead", group, sequence, frames, missed, evidence)


def _place(missed: Launch) -> tuple[str, int | None]:
    """The group and number of an operation that a rank has not launched; each side numbers messages on its own."""
    return missed.group, missed.sequence if missed.pair is None else None


def _single_root(waits: JobWaits, rank: int) -> Root | None:
    """The root at a rank that waits for nobody; None if it is neither blocked nor waited for."""
    job = waits.job
    missed = _missed(waits, rank)
    if rank not in job.ranks:
        group, sequence = (None, None) if missed is None else _place(missed)
        return Root(rank, "unknown", group, sequence, (), missed, "left no dump")
    frontier = waits.frontiers[rank]
    if frontier:
        reason = f"launched {frontier[0]} and has not completed it"
        return _root(job, rank, "not_completed", frontier[0], reason)
    if missed is None:
        return None
    last = _last(job, rank)
    group, sequence = _place(missed)
    frames = user_frames(last.frames) if last is not None else ()
    if rank in job.ended:
        return Root(rank, "dead", group, sequence, frames, missed, job.ended[rank])
    if missed.group in job.ranks[rank].completed and job.ranks[rank].is_completion_count:
        return Root(rank, "not_completed", group, sequence, frames, missed, f"has not completed {missed}")
    return Root(rank, "never_launched", group, sequence, frames, missed, f"never launched {missed}")


def _cycle_roots(waits: JobWaits, members: Sequence[int]) -> Iterator[Root]:
    """The roots of a cycle of waits: the side with fewer ranks; all if no side has fewer."""
    inside = {*members}
    skipping = [waits.skipped[rank] for rank in members if rank in waits.skipped] or [
        *_skipped_messages(waits, members)
    ]
    if skipping:
        yield from skipping
        return
    dangling = [
        (rank, each)
        for rank, frontier in waits.frontiers.items()
        for each in frontier
        if each.pair is not None and (wait := waits.edges[rank].get(_peer(rank, each))) and wait.why == "missing"
    ]
    if any(rank in inside for rank, _ in dangling):
        at_fault = _unmatched_ranks(dangling)
        unusual = [rank for rank, each in dangling if rank in at_fault and _is_unusual(waits.job.ranks[rank], each)]
        at_fault = unusual or at_fault
        mixed = any(each.pair is None for rank in members for each in waits.frontiers[rank])
        if at_fault or mixed:
            ranks = at_fault or sorted({each for one in dangling for each in (one[0], _peer(*one))} & inside)
            for rank in ranks:
                operation = next((each for other, each in dangling if other == rank), None) or waits.frontiers[rank][0]
                reason = f"is at {operation}, and messages find no partner"
                yield _root(waits.job, rank, "unmatched", operation, reason)
            return
    skipping = [*_skipping_roots(waits, members)]
    if skipping:
        yield from skipping
        return
    sides: dict[tuple[str, int] | tuple[int, int], list[int]] = defaultdict(list)
    everyone: Counter[object] = Counter()
    for rank, frontier in waits.frontiers.items():
        for each in frontier[:1]:
            side = each.pair or each.key
            everyone[side] += 1
            if rank in inside:
                sides[side].append(rank)
    most = max(everyone[side] for side in sides)
    largest = [side for side in sides if everyone[side] == most]
    minority = [rank for side, ranks in sides.items() if len(largest) > 1 or side not in largest for rank in ranks]
    for rank in sorted(minority):
        operation = waits.frontiers[rank][0]
        others = sorted(inside & {*waits.edges[rank]})
        elsewhere = next((waits.frontiers[other][0] for other in others if waits.frontiers.get(other)), None)
        reason = f"is at {operation} of group {operation.group}" + (
            f", while rank {others[0]} is at {elsewhere} of group {elsewhere.group}" if elsewhere is not None else ""
        )
        yield _root(waits.job, rank, "wrong_order", operation, reason)


def _skipping_roots(waits: JobWaits, members: Sequence[int]) -> Iterator[Root]:
    """The ranks of a cycle that left out an operation which they launched at this place in earlier steps.

    A wrong order of two groups would have stopped the first step; an operation that is missing for once was skipped.
    """
    for rank in members:
        frontier, record = waits.frontiers[rank], waits.job.ranks[rank]
        if not frontier or frontier[0].pair is not None:
            continue
        own = frontier[0]
        expected = [_missed(waits, rank), *(wait.at for wait in _incoming(waits, rank))]
        for missed in expected:
            if missed is None or missed.pair is not None or missed.group == own.group:
                continue
            if record.launched.get(missed.group, -1) >= missed.sequence:
                continue
            if _used_to_launch(record, own, missed) or _is_due(record, own, missed):
                frames = user_frames(own.frames)
                reason = f"skipped {missed} of group {missed.group} and went on to {own} of group {own.group}"
                yield Root(rank, "never_launched", missed.group, missed.sequence, frames, missed, reason)
                break


def _skipped_messages(waits: JobWaits, members: Sequence[int]) -> Iterator[Root]:
    """The ranks of a cycle that left out a message of two ranks and launched the next one between these two."""
    for rank in members:
        own = waits.frontiers[rank][0]
        other = _peer(rank, own) if own.pair is not None else rank
        records = [waits.job.ranks[each] for each in (rank, other) if each in waits.job.ranks]
        if own.pair is None or len(records) < 2 or any(record.is_partial for record in records):
            continue
        mine, theirs = (
            [each for each in record.operations if {*(each.pair or ())} == {rank, other}] for record in records
        )
        differing = ((one, two) for one, two in zip(mine, theirs, strict=False) if one.pair != two.pair)
        launched, expected = next(differing, (None, None))
        skipped = next((each for each in mine if expected is not None and each.pair == expected.pair), None)
        between = RankRecord(rank)
        between.replace_operations(mine)
        if launched is not None and skipped is not None and _used_to_launch(between, launched, skipped):
            reason = f"skipped {skipped} and went on to {launched}"
            yield Root(rank, "never_launched", skipped.group, None, user_frames(launched.frames), skipped, reason)


def _unmatched_ranks(dangling: Sequence[tuple[int, Launch]]) -> list[int]:
    """The ranks that explain several messages without a partner at once.

    Another partner of its own message would match both, or two ranks have messages for it.
    """
    found = set()
    sent = {each.pair for rank, each in dangling if each.pair is not None and each.pair[0] == rank}
    sent_both_ways = {pair for pair in sent if pair[::-1] in sent}
    addressed = Counter(_peer(rank, own) for rank, own in dangling)
    for rank, own in dangling:
        for other, theirs in dangling:
            assert own.pair is not None
            assert theirs.pair is not None
            is_addressed = _peer(other, theirs) == rank and _peer(rank, own) != other
            opposite = (own.pair[0] == rank) != (theirs.pair[0] == other)
            if other != rank and is_addressed and opposite and own.pair not in sent_both_ways:
                found.add(rank)
    senders = {rank for rank, _ in dangling}
    return sorted(found or {rank for rank, count in addressed.items() if count > 1 and rank not in senders})
