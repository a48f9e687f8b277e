"""The wait-for graph of a stuck job over all its groups.

A rank is blocked at its first operation that has not completed (at all of them, if they were launched together or if
the recorder keeps no order). There it waits for each member of the group that has not launched the operation, that is
blocked at an earlier operation of its own, or that launched something else in its place.

Sections:

    The graph
    Waits at collectives
    Waits at messages
    Disagreements: ranks that launched something else under the same number
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import pairwise

import networkx as nx
from attrs import define, evolve, field, frozen

from .comparing import OUTPUT_SIZES, content, count_bytes, find_difference
from .completion import settle_completion
from .habits import Habits, usual_places
from .records import Launch, RankRecord, Root, StuckJob, name_ranks, user_frames


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
    def habits(self) -> Habits:
        return Habits(self.job)

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
    settle_completion(job)
    weak = {**_message_disagreements(waits), **_disagreements(waits)}
    waits.flagged.update({rank: root for rank, root in job.different.items() if rank not in waits.flagged})
    for rank, record in job.ranks.items():
        waits.frontiers[rank] = record.frontier
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


# ----------------------------------------------------------------------------
# Waits at collectives


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
        if other in job.dead and (record is None or not has_completed(record, operation)):
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
    absent += job.groups[name].unseen
    return _Holders(tuple(known), tuple(absent), tuple(not_started))


def has_completed(record: RankRecord, operation: Launch) -> bool:
    own = record.find(*operation.key)
    return own.is_done if own is not None else operation.sequence <= record.completed.get(operation.group, -1)


# ----------------------------------------------------------------------------
# Waits at messages


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
        other = peer_of(rank, operation)
        own, theirs = self.pending[rank, operation.pair], self.pending[other, operation.pair]
        number = next(place for place, each in enumerate(own) if each is operation)
        return theirs[number] if number < len(theirs) else None

    def waits(
        self, waits: JobWaits, rank: int, operation: Launch, fronts: Mapping[int, set[int]]
    ) -> Iterator[tuple[int, RankWait]]:
        """For whom a rank waits that is blocked at a message."""
        assert operation.pair is not None
        other = peer_of(rank, operation)
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
        elif (kind := find_difference(operation, partner)) is not None:
            for one, each, two in ((rank, operation, other), (other, partner, rank)):
                reason = _differs_text(kind, each, partner if each is operation else operation, [two])
                waits.flagged.setdefault(one, root_at(waits.job, one, kind, each, reason))
            yield other, RankWait(operation, "differs")
        elif id(partner) not in fronts[other]:
            yield other, RankWait(operation, "behind")


def peer_of(rank: int, operation: Launch) -> int:
    assert operation.pair is not None
    return operation.pair[1] if operation.pair[0] == rank else operation.pair[0]


# ----------------------------------------------------------------------------
# Disagreements

_CLOSE = 0.05


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
            found = [*_judge(waits, key, classes, operations, shifted.get(group, set()))]
            launched = (job.ranks[rank].launched.get(group) for rank in operations)
            is_strong = is_pending or bool(job.aborted) or any(number == key[1] for number in launched)
        elif group not in shifted and (found := [*_skipped_lines(waits, key, operations)]):
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


def _skipped_lines(waits: JobWaits, key: tuple[str, int], operations: Mapping[int, Launch]) -> Iterator[Root]:
    """The ranks that left out a collective and launched the next one, which looks the same but is at another line."""
    lines: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for rank, each in operations.items():
        lines[each.frames].append(rank)
    if len(lines) != 2:
        return
    records = waits.job.ranks
    largest, smallest = sorted(lines.values(), key=len, reverse=True)
    found = [
        {rank: others[0] for rank in ranks if _has_skipped(records[rank], records[others[0]], key)}
        for ranks, others in ((smallest, largest), (largest, smallest))
    ]
    if all(found):
        odd = [{rank: other for rank, other in each.items() if waits.habits.is_odd(rank, key[0])} for each in found]
        found = odd if any(odd) else found
    for rank, other in next(filter(None, found), {}).items():
        yield _skip_root(records[rank], operations[rank], operations[other])


def _skip_root(record: RankRecord, own: Launch, skipped: Launch) -> Root:
    last = record.find(skipped.group, skipped.sequence - 1)
    reason = f"skipped {skipped} and launched {own.name} in its place"
    return Root(
        record.rank,
        "never_launched",
        skipped.group,
        skipped.sequence,
        user_frames((last or own).frames),
        skipped,
        reason,
    )


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
            kind = find_difference(sent, received)
            if kind is None:
                continue
            is_strong = not (sent.is_done and received.is_done)
            for rank, own, other, peer in ((sender, sent, received, receiver), (receiver, received, sent, sender)):
                root = root_at(job, rank, kind, own, _differs_text(kind, own, other, [peer]))
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
            if find_difference(operations[each[0]], operations[rank]) is None:
                each.append(rank)
                break
        else:
            classes.append([rank])
    return sorted(classes, key=len, reverse=True)


def _judge(
    waits: JobWaits,
    key: tuple[str, int],
    classes: Sequence[Sequence[int]],
    operations: Mapping[int, Launch],
    shifted: Set[int],
) -> Iterator[Root]:
    """The roots of a disagreement: the ranks that are one ahead, else the minority; all sides in a tie."""
    job = waits.job
    classes = _with_usual_sides(waits, key, classes, operations)
    is_tie = len(classes[0]) == len(classes[1])
    classes = [[rank for rank in ranks if rank in operations] for ranks in classes]
    pairs = [(rank, classes[0 if place else 1]) for place, ranks in enumerate(classes) for rank in ranks]
    sides = pairs if is_tie else pairs[len(classes[0]) :]
    skipping = [
        rank for rank, others in sides if rank in shifted or _has_skipped(job.ranks[rank], job.ranks[others[0]], key)
    ]
    if is_tie and 0 < sum(waits.habits.is_odd(rank, key[0]) for rank in skipping) < len(skipping):
        skipping = [rank for rank in skipping if waits.habits.is_odd(rank, key[0])]
    for rank, others in sides:
        own, other = operations[rank], operations[others[0]]
        if rank in skipping:
            yield _skip_root(job.ranks[rank], own, other)
        elif not (is_tie and skipping):
            kind = find_difference(own, other) or "wrong_op"
            yield root_at(job, rank, kind, own, _differs_text(kind, own, other, others))


def _with_usual_sides(
    waits: JobWaits, key: tuple[str, int], classes: Sequence[Sequence[int]], operations: Mapping[int, Launch]
) -> list[list[int]]:
    """The classes, with ranks that were aborted before their dumps had this operation at the side that they were on.

    The bytes that they received and expected show it, else what they or other groups of this kind used to launch.
    """
    job = waits.job
    found = [[*ranks] for ranks in classes]
    for rank in sorted(job.aborted & {*job.ranks} - {*operations}):
        expected = waits.habits.expect_next(rank)
        usual = [each for each in job.ranks[rank].operations if each.group == key[0]]
        usual = [expected] if expected is not None and expected.key == key else usual
        sides = [
            [
                ranks
                for ranks in found
                if any(_is_share(job, operations[ranks[0]], operations[one[0]]) for one in found)
            ],
            [ranks for ranks in found if any(find_difference(operations[ranks[0]], each) is None for each in usual)],
        ]
        for side in sides:
            if len(side) == 1:
                side[0].append(rank)
                break
    return sorted(found, key=len, reverse=True)


def _is_share(job: StuckJob, one: Launch, other: Launch) -> bool:
    """Whether a rank was aborted that expected the bytes of one operation and received those of another one."""
    sizes = count_bytes(one), count_bytes(other)
    return sizes[0] < sizes[1] and any(
        abs(expected * sizes[1] - came * sizes[0]) < _CLOSE * expected * sizes[1] for came, expected in job.received
    )


def _differs_text(kind: str, own: Launch, other: Launch, ranks: Iterable[int]) -> str:
    others = name_ranks(ranks)
    has = "has" if "ranks" not in others else "have"
    if kind == "wrong_size":
        side = "outputs" if own.name in OUTPUT_SIZES else "inputs"
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
        if content(mine) != content(theirs):
            return False
        compared += 1
    within = RankRecord(record.rank)
    within.replace_operations(each for each in record.operations if each.group == group)
    return compared > 0 or _used_to_launch(record, own, skipped) or _used_to_launch(within, own, skipped)


def _used_to_launch(record: RankRecord, own: Launch, other: Launch) -> bool:
    """Whether a rank used to launch another operation, then this one, at the place where it launched only this one now.

    Operations are the same if they have the same group, name, sizes and lines.
    """
    skipped, launched = content(other), content(own)
    place = next(number for number, each in enumerate(record.operations) if each is own)
    if skipped == launched or not place:
        return False
    contents = [content(each) for each in record.operations[:place]]
    usual = {contents[each] for each in usual_places(contents, place)}
    return usual <= {skipped} and (skipped, launched) in {*pairwise(contents)}


def _reopen(job: StuckJob, operations: Mapping[int, Launch]) -> None:
    """An operation in which ranks disagree has not completed, whatever the recorder says: it may have been aborted."""
    for rank, operation in operations.items():
        record = job.ranks[rank]
        record.replace_operations([
            evolve(each, is_done=False) if each is operation else each for each in record.operations
        ])  # fmt: skip


def root_at(job: StuckJob, rank: int, kind: str, operation: Launch, reason: str = "") -> Root:
    return Root(rank, kind, operation.group, operation.sequence, user_frames(operation.frames), operation, reason)
