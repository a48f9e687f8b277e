"""Faults: how one is drawn, what the ranks then do, and what is at fault by the rules of docs/hangs.md."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import Any

from .jobs import Call, Fault, Job, Launch
from .layouts import LAYOUTS

# 24 jobs of collectives.
KINDS = (
    *["skip"] * 5, *["swap"] * 4, *["size"] * 3, *["type"] * 2, "op",
    *["die"] * 3, *["sleep"] * 2, *["uneven"] * 3, "frozen",
)  # fmt: skip
_RECORDED = {"broadcast_back": "broadcast", "all_gather_list": "all_gather", "all_to_all_uneven": "all_to_all"}
Operation = tuple[str, tuple[int, ...], int]  # role, group, index in the group


@dataclasses.dataclass
class Course:
    """What the ranks of a job do: their launches in each group, and where they end."""

    logs: dict[tuple[str, tuple[int, ...]], dict[int, list[Launch]]]
    totals: dict[int, list[tuple[str, tuple[int, ...]]]]  # the group of each launch of a rank
    stuck: dict[int, Operation]  # a rank that waits, and the operation for which it waits
    different: list[Operation]  # operations that members launched differently


def follow(job: Job) -> Course:
    """Lets each rank of a job go as far as it gets; a collective needs all its members, and holds those that differ."""
    course = Course({}, {rank: [] for rank in range(job.world)}, {}, [])
    runs = {rank: list(job.launches(rank)) for rank in range(job.world)}
    waiting: dict[int, list[Operation]] = {rank: [] for rank in runs}
    started: dict[int, list[Operation]] = {rank: [] for rank in runs}
    moved = True
    while moved:
        moved = False
        for rank, run in runs.items():
            while run and all(_is_complete(course, each) for each in waiting[rank]):
                launch, moved = run.pop(0), True
                waiting[rank] = []
                if launch.group:
                    (started if launch.call.later else waiting)[rank].append(_launch(course, rank, launch))
                elif launch.call.op == "wait":
                    waiting[rank], started[rank] = started[rank], []
    for rank, operations in waiting.items():
        unfinished = [each for each in operations if not _is_complete(course, each)]
        if unfinished:
            course.stuck[rank] = unfinished[0]
    for (role, group), logs in course.logs.items():
        for number in range(max(map(len, logs.values()))):
            if len({signature(log[number]) for log in logs.values() if len(log) > number}) > 1:
                course.different.append((role, group, number))
    return course


def _launch(course: Course, rank: int, launch: Launch) -> Operation:
    key = (launch.call.role, launch.group)
    logs = course.logs.setdefault(key, {member: [] for member in launch.group})
    logs[rank].append(launch)
    course.totals[rank].append(key)
    return *key, len(logs[rank]) - 1


def _is_complete(course: Course, operation: Operation) -> bool:
    role, group, number = operation
    logs = course.logs[role, group]
    return all(len(log) > number for log in logs.values()) and (
        len({signature(log[number]) for log in logs.values()}) == 1
    )


def signature(launch: Launch) -> tuple[str, int, str]:
    op, numel, dtype = launch.signature
    return _RECORDED.get(op, op), numel, dtype


def draw_job(rng: random.Random, kind: str) -> tuple[Job, dict[str, Any]]:
    """A job with a fault of one kind, and what is at fault."""
    for _ in range(20_000):
        job = rng.choice(LAYOUTS)(rng)
        fault = _draw_fault(rng, kind, job)
        if fault is None:
            continue
        job = dataclasses.replace(job, fault=fault)
        if kind in ("skip", "sleep", "die") and rng.random() < 0.4:
            job = dataclasses.replace(job, ring=3 * max(len(each.calls) for each in job.phases))
        truth = find_truth(job)
        if truth:
            return job, truth
    raise RuntimeError(f"no job with a fault of kind {kind}")


def _draw_fault(rng: random.Random, kind: str, job: Job) -> Fault | None:
    rank = rng.randrange(job.world)
    if kind == "frozen":
        return Fault(kind, (rank,))
    phase = rng.choice((0, 0, 0, rng.randrange(len(job.phases))))
    calls = job.phases[phase].calls
    epoch, step, place = rng.randrange(job.epochs), rng.randrange(job.phases[phase].steps), rng.randrange(len(calls))
    call = calls[place]
    at = (epoch, phase, step, place)
    if kind == "uneven":
        then = rng.choice(("return", "leave", "continue", "continue"))
        return Fault(kind, (rank,), (epoch, 0, job.phases[0].steps - rng.randint(1, 2), 0), (("then", then),))
    if not call.role:
        return None
    if kind == "skip":
        return Fault(kind, (rank,), at)
    if kind == "die":
        return Fault(kind, (rank,), at, (("by", rng.choice(("exception", "SIGKILL", "SIGSEGV", "exit"))),))
    if kind == "sleep":
        return Fault(kind, (rank,), at, (("where", rng.choice(("loader", "compute"))),))
    if kind == "size":
        if call.op in ("barrier", "all_to_all_uneven", "scatter", "gather"):
            return None
        return Fault(kind, (rank,), at, (("numel", rng.choice((call.numel // 2, call.numel + 8, call.numel - 1))),))
    if kind == "type":
        if call.op == "barrier":
            return None
        return Fault(kind, (rank,), at, (("dtype", rng.choice(("float64", "bfloat16", "int32"))),))
    if kind == "op":
        if call.op != "all_reduce":
            return None
        return Fault(kind, (rank,), at, (("op", rng.choice(("reduce", "broadcast", "all_gather"))),))
    return _draw_swap(rng, job, rank, (epoch, phase, place))


def _draw_swap(rng: random.Random, job: Job, rank: int, at: tuple[int, int, int]) -> Fault | None:
    """Two calls, mostly of two groups, in the other order on one rank or on half of those that are in both."""
    epoch, phase, place = at
    calls = job.phases[phase].calls
    other = rng.randrange(len(calls))
    if epoch or other <= place or not calls[other].role or calls[place].every != 1 or calls[other].every != 1:
        return None
    if calls[place].role == calls[other].role and rng.random() < 0.8:
        return None
    common = sorted(set(job.group(calls[place].role, rank)) & set(job.group(calls[other].role, rank)))
    if rank not in common:
        return None
    ranks = (rank,) if rng.random() < 0.75 else tuple(sorted(rng.sample(common, max(1, len(common) // 2))))
    return Fault("swap", ranks, (0, phase, 0, place), (("other", other),))


def find_truth(job: Job) -> dict[str, Any] | None:
    """The ranks at fault, their kind, and where; None if the fault has no effect or no kind by the rules."""
    assert job.fault is not None
    healthy = follow(dataclasses.replace(job, fault=None))
    assert not healthy.stuck
    assert not healthy.different
    course = follow(job)
    kind = job.fault.kind
    if kind == "frozen":
        return _truth(job, "unknown", job.fault.ranks) if course.stuck else None
    if not course.stuck and not course.different:
        return None
    if kind in ("size", "type", "op") or (kind == "swap" and len({call.role for call in _calls(job)}) == 1):
        return _truth_of_difference(job, healthy, course)
    if kind == "swap":
        return _truth_of_swap(job, course)
    if kind == "die":
        role, group, number = _first_missing(job)
        return _truth(job, "dead", job.fault.ranks, role, group, number)
    return _truth_of_missing(job, healthy, course)


def _truth(
    job: Job, kind: str, ranks: tuple[int, ...], role: str = "", group: tuple[int, ...] = (), number: int | None = None
) -> dict[str, Any]:
    sequence = None if number is None else number + 1
    return {"ranks": sorted(ranks), "kinds": [kind], "role": role, "group": list(group), "sequence": sequence}


def _calls(job: Job) -> tuple[Call, Call]:
    assert job.fault is not None
    calls = job.phases[job.fault.at[1]].calls
    return calls[job.fault.at[3]], calls[job.fault.get("other", job.fault.at[3])]


def _sides(ranks: tuple[int, ...], members: tuple[int, ...]) -> tuple[int, ...] | None:
    """Those at fault if some of the members differ: the minority, in a tie all."""
    if 2 * len(ranks) > len(members):
        return None
    return members if 2 * len(ranks) == len(members) else ranks


def _truth_of_difference(job: Job, healthy: Course, course: Course) -> dict[str, Any] | None:
    """One rank launches another operation, size or type under the number of the others."""
    assert job.fault is not None
    if len(course.different) < 1:
        return None
    role, group, number = course.different[0]
    members = tuple(rank for rank in group if len(course.logs[role, group][rank]) > number)
    sides = _sides(job.fault.ranks, members)
    seen = {signature(course.logs[role, group][rank][number]) for rank in members}
    if sides is None or len(seen) != 2 or members != group:
        return None
    normal = signature(healthy.logs[role, group][group[0]][number])
    (odd,) = seen - {normal}
    if any(signature(each) == odd for log in healthy.logs[role, group].values() for each in log[:number]):
        return None  # it was launched before, in its place: a skip, by the page
    kind = "wrong_op" if odd[0] != normal[0] else "wrong_size" if odd[1] != normal[1] else "wrong_type"
    return _truth(job, kind, sides, role, group, number)


def _truth_of_swap(job: Job, course: Course) -> dict[str, Any] | None:
    assert job.fault is not None
    first, second = (call.role for call in _calls(job))
    rank = job.fault.ranks[0]
    one, two = job.group(first, rank), job.group(second, rank)
    common = tuple(sorted(set(one) & set(two)))
    if course.different or not course.stuck or not set(job.fault.ranks) <= set(common) or len(common) < 2:
        return None
    sides = _sides(job.fault.ranks, common)
    several = sum(len(set(each) & set(two)) > 1 for each in job.roles[first].groups) > 1
    several |= sum(len(set(each) & set(one)) > 1 for each in job.roles[second].groups) > 1
    if sides is None or (several and 2 * len(job.fault.ranks) >= len(common)):
        return None  # the other groups of the role suggest one order, and the tie all sides
    swapped = {(role, signature(Launch(call))) for role, call in zip((first, second), _calls(job), strict=True)}
    before = [each for each in job.launches(rank) if each.position < (0, job.fault.at[1], 0, 0)]
    if any((each.call.role, signature(each)) in swapped for each in before):
        return None
    return _truth(job, "wrong_order", sides)


def _first_missing(job: Job) -> Operation:
    """The group and index of the operation that the rank should have launched next."""
    assert job.fault is not None
    rank = job.fault.ranks[0]
    counts: dict[tuple[str, tuple[int, ...]], int] = {}
    for launch in dataclasses.replace(job, fault=None).launches(rank):
        if launch.group:
            key = (launch.call.role, launch.group)
            if launch.position[1] >= 0 and launch.position >= job.fault.at:
                return *key, counts.get(key, 0)
            counts[key] = counts.get(key, 0) + 1
    raise AssertionError("the fault is after the last launch")


def _truth_of_missing(job: Job, healthy: Course, course: Course) -> dict[str, Any] | None:
    """A rank skips, sleeps, or leaves its loop: where its launches differ from those of healthy ranks, or end."""
    assert job.fault is not None
    rank = job.fault.ranks[0]
    if not course.stuck:
        return None
    role, group, number = _first_missing(job)
    if len(group) < 2:
        return None
    due, done = healthy.logs[role, group][rank], course.logs[role, group][rank]
    while number < len(done) and signature(done[number]) == signature(due[number]):
        number += 1
    expected = signature(due[number])
    if number >= len(done):
        ended = job.fault.kind == "sleep" or rank not in course.stuck
        place = due[number].position
        if not ended and not any((each.position[1], each.position[3]) == (place[1], place[3]) for each in due[:number]):
            return None  # in the first step, a wrong order looks the same
        return _truth(job, "never_launched", (rank,), role, group, number)
    launched = signature(done[number])
    pairs = [(signature(a), signature(b)) for a, b in itertools.pairwise(due[:number])]
    # A ring that is overwritten has the last launches only.
    places = [place for place, key in enumerate(course.totals[rank]) if key == (role, group)]
    oldest = len(course.totals[rank]) - job.ring
    if (expected, launched) in [pair for pair, place in zip(pairs, places, strict=False) if place >= oldest]:
        return _truth(job, "never_launched", (rank,), role, group, number)
    if any(launched in pair for pair in pairs) or job.fault.kind == "skip":
        return None
    kind = "wrong_op" if expected[0] != launched[0] else "wrong_size"
    sides = _sides((rank,), group)
    return _truth(job, kind, sides, role, group, number) if sides else None
