"""Who is in a group, where the back end does not say: gloo lists no members.

The first group has all ranks. A program makes the groups of one description one after the other, mostly as blocks of
neighbours (0-3, 4-7), as ranks at equal distances (0, 4; 1, 5), or each one rank further than the one before; sizes
follow from gathers, and groups across the blocks of another description are preferred. If exactly one such rule fits
what the ranks launched, it gives the members that have launched nothing. Any other group has the members that used it,
and those that may be missing in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set

from attrs import frozen

from .comparing import ROOTED, find_difference
from .records import Group, StuckJob


def find_members(job: StuckJob) -> None:
    """Give groups without a list of members those that follow a rule."""
    unlisted = [group for group in job.groups.values() if group.members is None]
    job.unlisted = [group.name for group in unlisted]
    if not unlisted:
        return
    last = max(job.ranks, default=-1)
    world = last + 1
    for group in unlisted:
        if _holds_all(group):
            world = max(world, _size_from_gathers(job, group.name))
            group.members = tuple(range(world))
    others = [group for group in unlisted if group.members is None]
    for group in others:
        if _has_met(job, group.name):
            group.members = tuple(users(job, group.name))
    for group, members in _regular(job, others, world):
        group.members = members


def add_unseen_members(job: StuckJob) -> None:
    """Give the groups that are left the ranks that used them, and those that may be missing."""
    last = max(job.ranks, default=-1)
    for group in job.groups.values():
        if group.members is None:
            seen = users(job, group.name)
            group.members = tuple(seen)
            group.unseen = tuple(_unseen_members(job, group.name, seen))
            job.add_limit(
                "the back end lists no members of groups: those of a group whose ranks follow no rule are the ranks "
                "that used it"
            )
    for name in job.unlisted:
        if not job.absent and not job.aborted and _are_all_at(job, name):
            job.groups[name].members = (*(job.groups[name].members or ()), last + 1)
            job.add_limit(
                "all ranks with a dump are at one operation, and the back end lists no members: either a rank is "
                "missing, which is numbered as the next one, or the operation itself does not complete"
            )


def users(job: StuckJob, name: str) -> list[int]:
    """The ranks that launched something in a group."""
    return [rank for rank, record in job.ranks.items() if name in record.launched]


def _has_met(job: StuckJob, name: str) -> bool:
    """Whether an operation for which all members of a group are needed has completed: then all of them used it."""
    return any(
        each.group == name and each.is_done and each.pair is None and each.name not in ROOTED
        for rank in users(job, name)
        for each in job.ranks[rank].operations[:-1]
    )


def _holds_all(group: Group) -> bool:
    return group.description == "default_pg" or group.name in ("0", "default_pg")


def _regular(job: StuckJob, groups: Sequence[Group], world: int) -> Iterator[tuple[Group, tuple[int, ...]]]:
    """The members of the groups of each description that follow a rule, if there is exactly one."""
    families: dict[str, dict[int, Group]] = defaultdict(dict)
    for group in groups:
        if group.name.isdigit() and group.description not in ("", "undefined"):
            families[group.description][int(group.name)] = group
    start, blocks = 1, set[int]()
    for family in sorted(families.values(), key=min):
        seen = {number: {*users(job, group.name)} for number, group in family.items()}
        size = max(_size_from_gathers(job, group.name) for group in family.values())
        following = min((each for other in families.values() for each in other if each > max(family)), default=None)
        found = _find_rule(seen, start, following, size, world, blocks)
        if found is not None:
            first, rule = found
            if rule.is_partition and rule.stride == 1:
                blocks.add(rule.size)
            for number, group in family.items():
                if group.members is None:
                    yield group, rule.members(number - first)
            start = first + rule.count
        start = max(start, max(family) + 1)


@frozen
class _Rule:
    """A regular way to make groups of `size` ranks, `stride` apart.

    They are either all ranks once, in blocks of neighbours that the groups of one block divide, or group `n` begins
    with rank `n`.
    """

    size: int
    stride: int
    world: int
    is_partition: bool

    @property
    def count(self) -> int:
        return self.world // self.size if self.is_partition else self.world - (self.size - 1) * self.stride

    def members(self, number: int) -> tuple[int, ...]:
        """The members of one of the groups."""
        begin = number
        if self.is_partition:
            block, place = divmod(number, self.stride)
            begin = block * self.size * self.stride + place
        return tuple(range(begin, begin + self.size * self.stride, self.stride))


def _find_rule(
    seen: Mapping[int, set[int]], start: int, following: int | None, size: int, world: int, blocks: Set[int]
) -> tuple[int, _Rule] | None:
    """The number of the first group of a description, and the rule of its groups; None if no rule is clear."""
    for first in range(start, min(seen) + 1):
        fitting = [
            rule
            for rule in _rules(world)
            if rule.size == size or not size
            if following is None or first + rule.count <= following
            if all(
                number - first < rule.count and ranks <= {*rule.members(number - first)}
                for number, ranks in seen.items()
            )
        ]
        across = [rule for rule in fitting if rule.stride in blocks and rule.size * rule.stride == world]
        fitting = across or fitting
        counts = (max(seen) + 1, following)
        fitting = [rule for rule in fitting if first + rule.count in counts] or fitting
        if len(seen) > 1:
            smallest = min((rule.size for rule in fitting), default=0)
            fitting = [rule for rule in fitting if rule.size == smallest]
        found = {tuple(rule.members(number - first) for number in seen): rule for rule in fitting}
        if found:
            return (first, next(iter(found.values()))) if len(found) == 1 else None
    return None


def _rules(world: int) -> Iterator[_Rule]:
    for size in range(2, world + 1):
        for stride in range(1, (world - 1) // (size - 1) + 1):
            if world % (size * stride) == 0:
                yield _Rule(size, stride, world, True)
            yield _Rule(size, stride, world, False)


def _size_from_gathers(job: StuckJob, name: str) -> int:
    """The number of ranks of a group, from the sizes of a gather; 0 if it launched none."""
    for rank in users(job, name):
        for each in job.ranks[rank].operations:
            if each.group == name and each.name == "all_gather" and len(each.inputs) == 1:
                if len(each.outputs) > 1:
                    return len(each.outputs)
                size, rest = divmod(sum(each.outputs), each.inputs[0] or 1)
                if size and not rest and size < 1 << 20:
                    return size
    return 0


def _are_all_at(job: StuckJob, name: str) -> bool:
    """Whether all ranks with a dump are at one collective of a group, and agree on it."""
    fronts = [record.frontier[:1] for record in job.ranks.values()]
    keys = {each.key for front in fronts for each in front if each.pair is None}
    if not fronts or not all(fronts) or len(keys) != 1 or fronts[0][0].group != name:
        return False
    return all(find_difference(fronts[0][0], front[0]) is None for front in fronts)


def _unseen_members(job: StuckJob, name: str, seen: Sequence[int]) -> list[int]:
    """The ranks that may be missing in a group whose known members are all stuck at one operation.

    They are those without a dump, else those that launched nothing more, else all others.
    """
    fronts = {rank: record.frontier for rank, record in job.ranks.items()}
    at = {each.sequence for rank in seen for each in fronts[rank] if each.group == name and each.pair is None}
    is_stuck = len(at) == 1 and all(any(each.group == name for each in fronts[rank]) for rank in seen)
    if not is_stuck:
        return []
    if job.absent:
        return job.absent
    others = [rank for rank in job.ranks if rank not in seen]
    idle = [rank for rank in others if not job.ranks[rank].pending]
    return idle or others
