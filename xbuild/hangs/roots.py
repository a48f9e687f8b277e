"""The ranks at fault: the roots of the wait-for graph of a stuck job.

Who waits for nobody, and is waited for, is a root. A cycle without a way out has one as well: a rank that skipped an
operation, the ranks that launch operations of several groups in another order, or those whose messages find no partner.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import networkx as nx
from attrs import evolve

from .comparing import count_bytes, find_difference, signature
from .habits import Oddity
from .records import Launch, Root, StuckJob, user_frames
from .waits import JobWaits, RankWait, has_completed, peer_of, root_at

_CLOSE = 0.05


def find_roots(waits: JobWaits) -> list[Root]:
    """The ranks at fault, by rank."""
    job, graph = waits.job, waits.graph
    roots = dict(waits.flagged)
    for rank, evidence in job.dead.items():
        roots[rank] = _dead_root(waits, rank, evidence)
    condensed = waits.condensed
    alone: list[Root] = []
    aborted: list[Root] = []
    uncertain: list[list[int]] = []
    for number in condensed:
        if condensed.out_degree(number):
            continue
        members = sorted(condensed.nodes[number]["members"])
        if any(rank in roots for rank in members):
            continue
        if len(members) > 1:
            if any(wait.why == "absent" for rank in members for wait in waits.edges[rank].values()):
                uncertain.append(members)
            else:
                roots.update({root.rank: root for root in _cycle_roots(waits, members)})
            continue
        (rank,) = members
        root = _single_root(waits, rank)
        if root is None or _is_ended_by_disagreement(waits, root):
            continue
        skipping = [each for each in waits.skipped.values() if each.group == root.group]
        if root.kind == "not_completed" and skipping:
            roots.update({each.rank: each for each in skipping})
        elif rank in job.aborted:
            aborted.append(root)  # what it launched last is not in its dump
        elif graph.in_degree(rank):
            roots[rank] = root
        elif root.kind == "not_completed":
            alone.append(root)
    if not roots:
        found = [root for members in uncertain for root in _cycle_roots(waits, members)]
        found = found or [root for each in aborted for root in _unlike_roots(waits, each)] or alone
        found = found or _ended_roots(waits) or [*_completed_roots(waits)]
        roots = {root.rank: root for root in reversed(found)}
    else:
        for root in alone:  # it did not complete what others of its group did
            if _others_completed(job, root):
                roots[root.rank] = root
    return [roots[rank] for rank in sorted(roots)]


def _unlike_roots(waits: JobWaits, aborted: Root) -> list[Root]:
    """The roots where the back end ended a rank because of what it received, before the dump had its last launch.

    Another rank launched something else than expected; else it was this rank, and in a group of two nobody knows.
    """
    job, rank = waits.job, aborted.rank
    missed = waits.habits.expect_next(rank) or aborted.operation
    assert missed is not None
    group, number = missed.key
    members = [other for other in job.groups[group].members or () if other != rank and other in job.ranks]
    at = {other: own for other in members if (own := job.ranks[other].find(group, number)) is not None}
    if missed.pair is not None or not at:
        return [aborted]
    skipping = _skipping([each for other in (rank, *at) for each in waits.habits.oddities(other) if each.is_common])
    if skipping:
        return skipping
    kinds = {other: kind for other, own in at.items() if (kind := find_difference(missed, own))}
    kinds = kinds or dict.fromkeys(_unlike_sizes(at), "wrong_size")
    reason = f"the back end ended rank {rank} because of what it received for {missed} of group {group}"
    if not kinds and _is_next_size(waits, at, missed):
        return [
            evolve(
                aborted,
                kind="never_launched",
                group=group,
                sequence=number,
                operation=missed,
                reason=f"skipped {missed}; {reason}",
            )
        ]
    sides = [*kinds] if kinds and 2 * len(kinds) < len(at) + 1 else [rank]
    sides = [rank, *at] if 2 * len(sides) == len(at) + 1 else sides
    is_type = any(_is_other_type(missed, *each) for each in job.received)
    kind = min(kinds.values(), default="wrong_type" if is_type else "wrong_size")
    return [Root(each, kind, group, number, aborted.frames, at.get(each, missed), reason) for each in sides]


def _is_other_type(operation: Launch, came: int, expected: int) -> bool:
    """Whether a rank that received the bytes of an operation, and expected fewer, has elements of another type.

    These are no whole elements, or half the bytes of an odd number of elements.
    """
    elements = sum(operation.inputs)
    size = count_bytes(operation) // (elements or 1)
    return expected % (size or 1) != 0 or (elements % 2 == 1 and came == 2 * expected)


def _unlike_sizes(operations: Mapping[int, Launch]) -> list[int]:
    """The ranks whose sizes differ from those of all others, where several of these have the same."""
    sizes = Counter(each.inputs for each in operations.values())
    (usual, count), *others = sizes.most_common()
    if count < 2 or any(other > 1 for _, other in others):
        return []
    return [rank for rank, each in operations.items() if each.inputs != usual]


def _is_next_size(waits: JobWaits, operations: Mapping[int, Launch], missed: Launch) -> bool:
    """Whether a rank expected as many bytes as the operation after this one has: it skipped this one."""
    for rank in operations:
        record = waits.job.ranks[rank]
        for before in record.operations:
            following = record.find(before.group, before.sequence + 1)
            if before.group != missed.group or signature(before) != signature(missed) or following is None:
                continue
            for came, expected in waits.job.received:
                share = expected / (came or 1)
                size = count_bytes(following) / (count_bytes(before) or 1)
                is_uneven = following.name == "all_to_all" and not 0.4 < share < 2.5
                if is_uneven or (abs(size - 1) > _CLOSE and abs(share - size) < _CLOSE * size):
                    return True
    return False


def _ended_roots(waits: JobWaits) -> list[Root]:
    """The ranks that ended with an exit code, if nothing else is wrong."""
    return [_dead_root(waits, rank, evidence) for rank, evidence in waits.job.ended.items()]


def _completed_roots(waits: JobWaits) -> Iterator[Root]:
    """The ranks that launched less than the others of a group, or in another order, where all completed nevertheless.

    What has a root completes on some ranks before others have launched it.
    """
    job = waits.job
    for group in job.groups.values():
        counts = {
            rank: job.ranks[rank].launched.get(group.name, 0) for rank in group.members or () if rank in job.ranks
        }
        for rank, count in counts.items():
            if count < max(counts.values()):
                ahead = next(other for other, more in counts.items() if more > count)
                missed = job.ranks[ahead].find(group.name, count + 1)
                reason = f"launched {count} operations where rank {ahead} launched {counts[ahead]}"
                frames = user_frames(missed.frames) if missed is not None else ()
                yield Root(rank, "never_launched", group.name, count + 1, frames, missed, reason)
    odd = [
        each
        for rank in job.ranks
        for each in waits.habits.oddities(rank)
        if (each.is_common or each.is_tie) and not each.is_old and job.ranks[rank].find(each.group, each.sequence or 0)
    ]
    launched = {each.rank: each for each in reversed(odd)}
    for rank in _disordered(waits, [*job.ranks], odd) if odd else ():
        each = launched.get(rank, odd[0])
        reason = f"launched {each.launched} of group {each.launched.group} before {each.expected} of group {each.group}"
        reason = reason if rank in launched else f"launched them in another order than rank {each.rank}"
        yield root_at(job, rank, "wrong_order", each.launched, reason)


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
    return any(has_completed(record, operation) for record in others if record.rank != root.rank)


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
    if rank in job.ended:
        return _dead_root(waits, rank, job.ended[rank])
    frontier = waits.frontiers[rank]
    if frontier:
        reason = f"launched {frontier[0]} and has not completed it"
        return root_at(job, rank, "not_completed", frontier[0], reason)
    if missed is None:
        return None
    last = _last(job, rank)
    group, sequence = _place(missed)
    frames = user_frames(last.frames) if last is not None else ()
    if missed.group in job.ranks[rank].completed and job.ranks[rank].is_completion_count:
        return Root(rank, "not_completed", group, sequence, frames, missed, f"has not completed {missed}")
    return Root(rank, "never_launched", group, sequence, frames, missed, f"never launched {missed}")


def _cycle_roots(waits: JobWaits, members: Sequence[int]) -> Iterator[Root]:
    """The roots of a cycle of waits: ranks that skipped an operation, whose order is odd, or whose messages are."""
    skipping = [waits.skipped[rank] for rank in members if rank in waits.skipped]
    if skipping:
        yield from skipping
        return
    odd = [each for rank in members for each in waits.habits.oddities(rank) if _is_awaited(waits, each)]
    strays = _strays(waits, members)
    facing = [rank for rank in members if any(_is_facing(waits, rank, each) for each in waits.frontiers[rank])]
    if facing and any(rank in strays for rank in facing):
        odd, strays, members = [], [], facing
    skipping = _skipping(odd) if not strays else []
    if skipping:
        yield from skipping
        return
    dangling = [
        (rank, each)
        for rank, frontier in waits.frontiers.items()
        for each in frontier
        if each.pair is not None and (wait := waits.edges[rank].get(peer_of(rank, each))) and wait.why == "missing"
    ]
    if any(rank in members for rank, _ in dangling):
        ranks = strays or _unmatched_ranks(dangling)
        if not ranks and any(each.pair is None for rank in members for each in waits.frontiers[rank]):
            ranks = sorted({each for one in dangling for each in (one[0], peer_of(*one))} & {*members})
        for rank in ranks:
            operation = next((each for other, each in dangling if other == rank), None) or waits.frontiers[rank][0]
            reason = f"is at {operation}, and messages find no partner"
            yield root_at(waits.job, rank, "unmatched", operation, reason)
        if ranks:
            return
    for rank in _disordered(waits, members, odd):
        operation = waits.frontiers[rank][0]
        others = sorted({*members} & {*waits.edges[rank]})
        elsewhere = next((waits.frontiers[other][0] for other in others if waits.frontiers.get(other)), None)
        reason = f"is at {operation} of group {operation.group}" + (
            f", while rank {others[0]} is at {elsewhere} of group {elsewhere.group}" if elsewhere is not None else ""
        )
        yield root_at(waits.job, rank, "wrong_order", operation, reason)


def _is_awaited(waits: JobWaits, odd: Oddity) -> bool:
    """Whether others wait for the operation that a rank was expected to launch, or for a later one of its group."""
    return any(
        wait.at.pair == odd.expected.pair
        if odd.sequence is None
        else wait.at.group == odd.group and wait.at.pair is None and wait.at.sequence >= odd.sequence
        for wait in _incoming(waits, odd.rank)
    )


def _strays(waits: JobWaits, members: Sequence[int]) -> list[int]:
    """The ranks of a cycle at a message without a partner to a rank to which they never sent, or from such a one."""
    strays = []
    for rank in members:
        record = waits.job.ranks[rank]
        for each in waits.frontiers[rank]:
            if each.pair is not None and not record.is_partial and any(one.is_done for one in record.operations):
                wait = waits.edges[rank].get(peer_of(rank, each))
                is_new = sum(one.pair == each.pair for one in record.operations) == 1
                if is_new and wait is not None and wait.at is each and wait.why == "missing":
                    strays.append(rank)
    return strays


def _is_facing(waits: JobWaits, rank: int, operation: Launch) -> bool:
    """Whether a rank sends to one that sends to it, or both receive from each other."""
    pair = operation.pair
    return pair is not None and any(each.pair == pair[::-1] for each in waits.frontiers[peer_of(rank, operation)])


def _skipping(odd: Sequence[Oddity]) -> list[Root]:
    """The ranks that left out an operation which they had launched before: those that other ranks show, if any."""
    old = [each for each in odd if each.is_old and not (each.is_new and each.launched.group == each.group)]
    for chosen in (
        [each for each in old if each.is_common],
        [each for each in old if not each.is_tie and each.is_next],
        [each for each in old if each.is_early],
        [each for each in old if not each.is_tie],
        old,
    ):
        found = {each.rank: each for each in reversed(chosen)}
        if found:
            return [_skipping_root(each) for each in found.values()]
    return []


def _skipping_root(odd: Oddity) -> Root:
    missed = evolve(odd.expected, group=odd.group, sequence=odd.sequence or odd.expected.sequence)
    launched = odd.launched
    where = f" of group {launched.group}" if launched.group != odd.group else ""
    reason = f"skipped {missed} of group {odd.group} and went on to {launched}{where}"
    return Root(odd.rank, "never_launched", odd.group, odd.sequence, user_frames(launched.frames), missed, reason)


def _disordered(waits: JobWaits, members: Sequence[int], odd: Sequence[Oddity]) -> list[int]:
    """The ranks of a cycle with the order that fewer ranks have; all that are in both groups, if no order has fewer.

    Only ranks that are in both groups can have them in either order.
    """
    groups = waits.job.groups
    by_others = [each for each in odd if each.is_common or each.is_tie]
    for each in sorted(by_others, key=lambda each: each.is_tie):
        both = {*(groups[each.group].members or ())} & {*(groups[each.launched.group].members or ())}
        unlike = {one.rank for one in odd if (one.group, one.launched.group) == (each.group, each.launched.group)}
        if 2 * len(unlike) < len(both):
            return sorted(unlike)
        if both & {*members}:
            return sorted(both)
    sides: dict[tuple[str, int] | tuple[int, int], list[int]] = defaultdict(list)
    everyone: Counter[object] = Counter()
    for rank, frontier in waits.frontiers.items():
        for operation in frontier[:1]:
            side = operation.pair or operation.key
            everyone[side] += 1
            if rank in members:
                sides[side].append(rank)
    most = max(everyone[side] for side in sides)
    largest = [side for side in sides if everyone[side] == most]
    return sorted(rank for side, ranks in sides.items() if len(largest) > 1 or side not in largest for rank in ranks)


def _unmatched_ranks(dangling: Sequence[tuple[int, Launch]]) -> list[int]:
    """The ranks that explain several messages without a partner at once.

    Another partner of its own message would match both, or two ranks have messages for it.
    """
    found = set()
    sent = {each.pair for rank, each in dangling if each.pair is not None and each.pair[0] == rank}
    sent_both_ways = {pair for pair in sent if pair[::-1] in sent}
    addressed = Counter(peer_of(rank, own) for rank, own in dangling)
    for rank, own in dangling:
        for other, theirs in dangling:
            assert own.pair is not None
            assert theirs.pair is not None
            is_addressed = peer_of(other, theirs) == rank and peer_of(rank, own) != other
            opposite = (own.pair[0] == rank) != (theirs.pair[0] == other)
            if other != rank and is_addressed and opposite and own.pair not in sent_both_ways:
                found.add(rank)
    senders = {rank for rank, _ in dangling}
    return sorted(found or {rank for rank, count in addressed.items() if count > 1 and rank not in senders})
