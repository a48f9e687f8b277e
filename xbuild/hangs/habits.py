"""What a rank should have launched: what it used to launch, and what other ranks launched at the same place.

All ranks execute one program, so ranks whose last operations have the same numbers in groups of the same kind are at
the same place. A rank is *odd* at the first place where more ranks went on to another operation; and, where no other
rank is at its place, where it always went on to another operation before.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence, Set

from attrs import define, evolve, field, frozen

from .comparing import content, signature
from .records import Launch, RankRecord, StuckJob

_UNNAMED = ("", "undefined", "default_pg")
_PLACE = 4
"""So many operations with their numbers identify a place."""
_CONTEXT = 64

_Token = tuple[Hashable, int, Hashable]
"""An operation in terms of all ranks: the kind of its group, its number there, and its signature."""


@frozen
class Oddity:
    """A place where a rank launched something else than expected.

    `expected` is an example from this rank or from another one; `group` and `sequence` are those that the expected
    operation would have had here.

    is_old: the rank executed the line of the expected operation before.
    is_new: it never executed the line that it launched.
    is_next: it launched nothing in the group since, or no such message.
    is_early: it used to launch more of the expected operations before the one that it launched.
    is_common: more ranks, at the same place, launched the expected operation.
    is_tie: as many ranks did.
    """

    rank: int
    launched: Launch
    expected: Launch
    group: str
    sequence: int | None
    is_old: bool
    is_new: bool
    is_next: bool
    is_early: bool
    is_common: bool = False
    is_tie: bool = False


@define(eq=False)
class Habits:
    """The places of all ranks of a job, and what they launched there."""

    job: StuckJob
    _roles: dict[int, dict[str, Hashable]] = field(factory=dict, init=False)
    _next: dict[Hashable, dict[_Token, dict[int, Launch]]] = field(
        factory=lambda: defaultdict(lambda: defaultdict(dict)), init=False
    )
    _places: dict[int, list[tuple[Hashable, _Token]]] = field(factory=dict, init=False)
    _kinds: dict[int, frozenset[Hashable]] = field(factory=dict, init=False)
    _counts: dict[tuple[Hashable, Set[Hashable]], dict[_Token, tuple[int, tuple[int, Launch]]]] = field(
        factory=dict, init=False
    )
    _last: dict[int, Hashable] = field(factory=dict, init=False)
    _shared: dict[int, list[Hashable]] = field(factory=dict, init=False)

    _of_all: set[str] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        everyone = {*self.job.ranks}
        self._of_all = {name for name, group in self.job.groups.items() if everyone <= {*(group.members or ())}}
        for rank, record in self.job.ranks.items():
            if record.is_ordered:
                self._roles[rank] = dict(self._find_roles(rank, record))
                self._places[rank] = [*self._find_places(rank, record)]
                self._kinds[rank] = frozenset({
                    *self._roles[rank].values(), *(token[0] for _, token in self._places[rank])
                })  # fmt: skip
                self._shared[rank] = [*self._find_shared_places(rank, record)]
                for (place, token), shared, each in zip(
                    self._places[rank], self._shared[rank], record.operations, strict=True
                ):
                    self._next[place][token][rank] = each
                    if shared is not None:
                        self._next[shared][token][rank] = each

    def _find_roles(self, rank: int, record: RankRecord) -> Iterator[tuple[str, Hashable]]:
        """The kind of each group of a rank: its description, and which one of those with this description it is."""
        found: dict[str, list[str]] = defaultdict(list)
        for name, group in self.job.groups.items():
            if name in record.launched or rank in (group.members or ()):
                found[group.description].append(name)
        for description, names in found.items():
            for number, name in enumerate(sorted(names, key=lambda name: (len(name), name))):
                yield name, name if description in _UNNAMED else (description, number)

    def _find_places(self, rank: int, record: RankRecord) -> Iterator[tuple[Hashable, _Token]]:
        """For each operation, the place where the rank was before it, and the operation in terms of all ranks."""
        numbers: Counter[Hashable] = Counter()
        last: tuple[Hashable, ...] = (rank,) if record.is_partial else ("start",)
        for each in record.operations:
            role: Hashable = self._roles[rank][each.group]
            if each.pair is not None:
                role = (role, each.name, each.pair[0] - rank, each.pair[1] - rank)
                numbers[role] += 1
            token = (role, numbers[role] if each.pair is not None else each.sequence, signature(each))
            yield last, token
            last = (*last, token)[-_PLACE:]
        self._last[rank] = last

    def _find_shared_places(self, rank: int, record: RankRecord) -> Iterator[Hashable | None]:
        """The place before each operation of a group of all ranks, in terms of such groups alone; None for others."""
        last: tuple[Hashable, ...] = ("all", rank) if record.is_partial else ("all", "start")
        for (_, token), each in zip(self._places[rank], record.operations, strict=True):
            if each.pair is None and each.group in self._of_all:
                yield last
                last = ("all", *last[1:], token)[-_PLACE - 1 :]
                last = last if last[0] == "all" else ("all", *last[1:])
            else:
                yield None

    def oddities(self, rank: int) -> Iterator[Oddity]:
        """The places where a rank went on to something else than expected, up to one where other ranks show it."""
        record = self.job.ranks[rank]
        if rank not in self._places:
            return
        contents = [content(each) for each in record.operations]
        kinds = self._kinds[rank]
        for number, ((place, token), each) in enumerate(zip(self._places[rank], record.operations, strict=True)):
            own, most, example = self._compare(place, token, kinds, kinds)
            if most <= own and (shared := self._shared[rank][number]) is not None:
                own_there, most_there, example_there = self._compare(shared, token, kinds, frozenset())
                if most_there > own_there:
                    own, most, example = own_there, most_there, example_there
            if most > own and example is not None:
                yield self._find_oddity(rank, number, example[1], example[0], True)
                return
            found = []
            if most == own and example is not None:
                found.append(self._find_oddity(rank, number, example[1], example[0]))
            elif own > 1:
                continue
            usual = usual_places(contents, number)
            if usual and contents[number] not in {contents[one] for one in usual}:
                found.append(self._find_oddity(rank, number, record.operations[usual[-1]]))
            elif (before := _usual_before(contents, number)) is not None:
                found.append(self._find_oddity(rank, number, record.operations[before]))
            for oddity in found:
                if self._is_refuted(oddity):
                    continue
                like, unlike = self._count_orders(oddity)
                if like == unlike or like + unlike < 2 or each.pair is not None:
                    yield oddity
                elif like < unlike:
                    yield evolve(oddity, is_common=True, is_tie=False)

    def _compare(
        self, place: Hashable, token: _Token, kinds: Set[Hashable], peers: Set[Hashable]
    ) -> tuple[int, int, tuple[int, Launch] | None]:
        """How many ranks went on from a place to one operation, how many to the most common other, and one of these.

        Only ranks in groups of all the kinds of `peers` count, and only operations in groups of `kinds`.
        """
        key = place, peers
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = {}
            for other, ranks in self._next[place].items():
                like = [rank for rank in ranks if peers <= self._kinds[rank]]
                if like:
                    counts[other] = (len(like), (like[0], ranks[like[0]]))
        own = counts.get(token, (0, None))[0]
        others = [found for other, found in counts.items() if other != token and other[0] in kinds]
        return own, *max(others, key=lambda each: each[0], default=(0, None))

    def _is_refuted(self, odd: Oddity) -> bool:
        """Whether other ranks launched something else where an operation was expected."""
        expected = signature(odd.expected)
        return odd.sequence is not None and any(
            (own := record.find(odd.group, odd.sequence)) is not None and signature(own) != expected
            for rank, record in self.job.ranks.items()
            if rank != odd.rank
        )

    def is_odd(self, rank: int, group: str) -> bool:
        """Whether other ranks show that a rank left out an operation of a group."""
        return any(each.is_common and each.group == group for each in self.oddities(rank))

    def _count_orders(self, odd: Oddity) -> tuple[int, int]:
        """How many ranks launched what this rank launched before what was expected, and how many in the other order."""
        counts = [0, 0]
        if odd.sequence is None or odd.launched.pair is not None or odd.group == odd.launched.group:
            return 0, 0
        groups = [self.job.groups[name].members or () for name in (odd.launched.group, odd.group)]
        for rank in {*groups[0]} & {*groups[1]} & {*self.job.ranks}:
            record = self.job.ranks[rank]
            places: list[float] = []
            for group, sequence in (odd.launched.key, (odd.group, odd.sequence)):
                own = record.find(group, sequence)
                is_past = record.launched.get(group, -1) >= sequence
                places.append(own.place if own is not None else -1.0 if is_past else math.inf)
            if places[0] != places[1]:
                counts[places[0] > places[1]] += 1
        return counts[0], counts[1]

    def expect_next(self, rank: int) -> Launch | None:
        """What a rank would launch after its last operation: what most other ranks did there, or it did before."""
        if rank not in self._places:
            return None
        record = self.job.ranks[rank]
        roles = {role: name for name, role in self._roles[rank].items()}
        sides = [
            [(one, each) for one, each in ranks.items() if self._roles[one][each.group] in roles]
            for ranks in self._next.get(self._last[rank], {}).values()
        ]
        most = max(sides, key=len, default=[])
        if most:
            other, expected = most[0]
            expected = evolve(expected, group=roles[self._roles[other][expected.group]])
        else:
            usual = usual_places([content(each) for each in record.operations], len(record.operations))
            if not usual:
                return None
            expected = record.operations[usual[-1]]
        return evolve(expected, sequence=record.launched.get(expected.group, 0) + 1)

    def _find_oddity(
        self, rank: int, number: int, expected: Launch, other: int | None = None, is_common: bool = False
    ) -> Oddity:
        """The oddity at a place of a rank, with an expected operation of its own or of another rank."""
        record = self.job.ranks[rank]
        launched, before = record.operations[number], record.operations[:number]
        group, is_old = expected.group, True
        is_new = sum(content(each) == content(launched) for each in record.operations) == 1
        if other is not None:
            role = self._roles[other][expected.group]
            group = next(name for name, each in self._roles[rank].items() if each == role)
            if expected.pair is not None:
                pair = (expected.pair[0] + rank - other, expected.pair[1] + rank - other)
                expected = evolve(expected, pair=pair)
            expected = evolve(expected, group=group)
            contents = Counter(map(content, before))
            is_again = max(contents.values(), default=0) > 1 and _line(expected) in {*map(_line, before)}
            is_old = record.is_partial or is_again or content(expected) in contents
            usual = usual_places([content(each) for each in record.operations], number)
            if usual and is_new:  # the rank was here before, and knows what comes
                is_old = _line(expected) in {_line(record.operations[each]) for each in usual}
        sequence, after = None, record.operations[number + 1 :]
        is_next = not any(each.pair == expected.pair and each.group == group for each in (launched, *after))
        if expected.pair is None:
            numbers = [each.sequence for each in record.operations if each.group == group and each.pair is None]
            done = sum(each.group == group and each.pair is None for each in before)
            first = numbers[0] if numbers else record.launched.get(group, 0) + 1
            sequence = first + done
        is_tie = other is not None and not is_common
        is_early = _is_early([*map(_line, before), _line(launched)], _line(expected))
        return Oddity(rank, launched, expected, group, sequence, is_old, is_new, is_next, is_early, is_common, is_tie)


def _line(operation: Launch) -> Hashable:
    """An operation without its lines, which differ where other ranks execute them."""
    return operation.group, signature(operation), operation.pair


def usual_places(contents: Sequence[Hashable], number: int) -> list[int]:
    """The places of what followed the last operations before a place, where they occurred before.

    As many of them are compared as occurred at all.
    """
    best, found = 0, []
    for end in range(number - 1, 0, -1):
        length = 0
        while length < min(_CONTEXT, end) and contents[end - 1 - length] == contents[number - 1 - length]:
            length += 1
        if length > best:
            best, found = length, [end]
        elif length == best and best:
            found.append(end)
    return found[::-1]


def _usual_before(contents: Sequence[Hashable], number: int) -> int | None:
    """The place of what always came directly before this operation, and did not now; None if there is no such one."""
    places = [place for place in range(1, number) if contents[place] == contents[number]]
    before = {contents[place - 1] for place in places}
    if len(before) != 1 or contents[number - 1] in before or contents[number] in before:
        return None
    return places[-1] - 1


def _is_early(contents: Sequence[Hashable], expected: Hashable) -> bool:
    """Whether the last operation came after fewer of the expected ones, since it came last, than ever before."""
    counts = [0]
    for each in contents:
        counts[-1] += each == expected
        if each == contents[-1]:
            counts.append(0)
    return len(counts) > 2 and counts[-2] < min(counts[:-2])
