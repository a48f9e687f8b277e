"""Which values are the same on which devices, whatever the data, of one program or of several: a number for each value.

Two values have one number where they are computed alike from the same, or where a collective has made them one. What a
loop carries gets its numbers by refinement: all are alike at first, and parted until every trip keeps equals equal.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field, frozen

from shape_inference import AnyShape, TupleShape

from ..graph import Instruction, Module
from .analysis import Analysis, Key, Leaf, Reading, flat, key_of
from .effects import Path, Site, base_of, collective_in, collectives_of, has_side_effect, reached, start_of, steps
from .meetings import Identities, identities
from .program import Program
from .uniformity import SHARED, asks, varies

Carried: TypeAlias = tuple[int, Key, int]  # a device, a loop, a place in the state of it

MOST_WORK = 40_000  # instructions of all devices together
MOST_ROUNDS = 20
MOST_ROWS = 200  # of what a loop's condition is made of
FOLLOWED = ("tuple", "get_tuple_element", "call", "fusion", "while", "conditional")
SAME = ("copy", "opt_barrier", "add_dependency")
OWN = ("infeed", "recv", "recv_done", "rng", "rng_get_and_update_state")


@frozen
class Kind:
    """Carried values of one number; `trips` are the depths of the loops in whose trips they differ."""

    number: int
    trips: frozenset[int]


@define(eq=False, slots=False)
class Values:
    """The numbers of all that is decided in the programs of all devices, found when first asked for."""

    program: Program
    _kinds: dict[Carried, Kind] = field(factory=dict, init=False)

    def decided(self, device: int, instruction: Instruction, path: Path) -> int | None:
        """The number of what decides at a place; None where that was too much to find out."""
        return self._numbers.decides.get((device, key_of(instruction, path)))

    def is_steady(self, number: int, path: Path) -> bool:
        """Whether it is the same in every trip of the loops around a place."""
        return not any(depth < _depth(path) for depth in self._numbers.trips[number])

    @functools.cached_property
    def identity(self) -> Identities:
        return identities(self.program)

    @functools.cached_property
    def structure(self) -> Any:
        from ..editing.structure import Structure

        return Structure({})

    @functools.cached_property
    def _numbers(self) -> Numbers:
        entries = ((len(each.devices), each.module.entry) for each in self.program.classes)
        if sum(n * sum(len(c.instructions) for c in reached(entry)) for n, entry in entries) > MOST_WORK:
            return Numbers({})
        for _ in range(MOST_ROUNDS):
            numbers = Numbers(self._kinds)
            for device, each in self.program.class_of.items():
                walk = _Walk(varies, self, numbers, device, each.module)
                parameters = each.module.entry.parameters
                walk.run(each.module.entry, [walk.own(("parameter", n), p.shape) for n, p in enumerate(parameters)])
            found = numbers.refined()
            if found == self._kinds:
                return numbers
            self._kinds = found
        return Numbers({})

    def meeting(self, module: Module, site: Site) -> Hashable:
        """What tells this coming to a collective from others; None where nobody knows which it is."""
        key, places = self.identity.of(module, site), self._places(module)
        same = places[key]
        repeated = len(same) > 1 and any(
            step.instruction.opcode in ("while", "conditional") for each in same.values() for step in each.path
        )
        return None if repeated else (key, [*same].index(site.key))

    @functools.lru_cache(maxsize=64)  # noqa: B019
    def _places(self, module: Module) -> dict[Hashable, dict[Key, Site]]:
        found: dict[Hashable, dict[Key, Site]] = {}
        for site in collectives_of(module.entry):
            found.setdefault(self.identity.of(module, site), {})[site.key] = site
        return found


def _depth(path: Path) -> int:
    return sum(step.instruction.opcode == "while" for step in path)


@define(eq=False)
class Numbers:
    """One round: numbers by what values are made of, with the loops in whose trips each differs."""

    kinds: dict[Carried, Kind]
    trips: list[frozenset[int]] = field(factory=list)
    made: list[tuple[Hashable, ...]] = field(factory=list)  # of each number the head and the parts
    decides: dict[tuple[int, Key], int] = field(factory=dict)
    carried: dict[Carried, tuple[int, int, int, int]] = field(factory=dict)
    _known: dict[Hashable, int] = field(factory=dict)

    def of(self, head: Hashable, parts: Sequence[int] = (), trips: Iterable[int] = ()) -> int:
        """The number of what is made in this way, of these."""
        made = head, *parts
        number = self._known.setdefault(made, len(self.trips))
        differs = frozenset(trips).union(*(self.trips[part] for part in parts))
        if number == len(self.trips):
            self.trips.append(differs)
            self.made.append(made)
        else:
            self.trips[number] |= differs
        return number

    def trips_of(self, holds: int, own: Mapping[int, tuple[int, int]], depth: int) -> int:
        """The number of how often a loop goes round: loops that count alike have one, at whatever depth.

        `own` has what the loop carries, by number: what came in, and what the next trip gets.
        """
        rows: list[Hashable] = []
        at: dict[int, int] = {}
        outside: dict[int, None] = {}

        def visit(number: int) -> int:
            if number not in at:
                at[number] = len(rows)
                rows.append(None)
                rows[at[number]] = row(number)
            return at[number]

        def row(number: int) -> Hashable:
            if number in own:
                came, following = own[number]
                outside[came] = None
                return "own", came, visit(following)
            head, *parts = self.made[number]
            if depth in self.trips[number] and parts and len(rows) < MOST_ROWS:
                return head, *map(visit, parts)  # type: ignore[arg-type]
            outside[number] = None
            return number

        visit(holds)
        differs = frozenset().union(*(self.trips[number] for number in outside)) - {depth}
        return self.of(("trips", *rows), (), differs)

    def refined(self) -> dict[Carried, Kind]:
        """The kinds of the next round: parted where they begin or go on differently."""
        kinds: dict[tuple[int, int, int, int], int] = {}
        trips: dict[int, frozenset[int]] = {}
        for signature in self.carried.values():
            number = kinds.setdefault(signature, len(kinds))
            _, depth, *values = signature
            trips[number] = trips.get(number, frozenset({depth})).union(*(self.trips[value] for value in values))
        return {at: Kind(kinds[signature], trips[kinds[signature]]) for at, signature in self.carried.items()}


@define(eq=False)
class _Walk(Analysis):
    """The walk of one device through its program."""

    values: Values
    numbers: Numbers
    device: int
    module: Module

    def join(self, a: Leaf, b: Leaf) -> Leaf:
        return a if a == b else self.numbers.of("either", (a, b))

    def default(self, instruction: Instruction, leaves: list[Leaf]) -> Leaf:
        """The same of the same, but for regions that ask who the device is."""
        label = self.values.structure.label(instruction)
        asking = self.device if any(map(asks, instruction.called)) else None
        return self.numbers.of((label, asking), leaves)

    def own(self, what: Hashable, shape: AnyShape, path: Path = ()) -> Reading:
        """What no other device has, or this in another trip."""
        return self._parts(self.numbers.of(("own", self.device, what), (), range(_depth(path))), shape)

    def _parts(self, number: int, shape: AnyShape) -> Reading:
        if not isinstance(shape, TupleShape):
            return number
        return tuple(
            self._parts(self.numbers.of(("part", n), (number,)), each) for n, each in enumerate(shape.elements)
        )

    def _read(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        opcode = instruction.opcode
        if opcode in FOLLOWED:
            return super()._read(instruction, operands, path)
        if opcode in SAME:
            return operands[0]
        if opcode in OWN or has_side_effect(instruction):
            return self.own(key_of(instruction, path), instruction.shape, path)
        if opcode in ("replica_id", "partition_id"):
            parts = self.values.program.num_partitions
            number = self.device // parts if opcode == "replica_id" else self.device % parts
            return self.numbers.of((opcode, number))
        start = start_of(instruction) if opcode.endswith("_done") else instruction
        collective = None if start is None else collective_in(start)
        if start is not None and collective is not None:
            return self._met(instruction, start, collective, path)
        return self._parts(self.default(instruction, [leaf for o in operands for leaf in flat(o)]), instruction.shape)

    def _met(self, instruction: Instruction, start: Instruction, collective: Instruction, path: Path) -> Reading:
        """The members of a group have the same, where they come there alike."""
        meeting = self.values.meeting(self.module, Site(path, start))
        if meeting is None or base_of(collective) not in SHARED or instruction.opcode.endswith("_start"):
            return self.own(key_of(instruction, path), instruction.shape, path)
        group = self.values.program.group(collective, self.device)
        before = [key_of(step.instruction, path[:n]) for n, step in enumerate(path)]
        ways = [self.numbers.decides.get((self.device, key)) for key in before]
        made = "met", base_of(collective), meeting, group, tuple(n for n in ways if n is not None)
        return self._parts(self.numbers.of(made, (), range(_depth(path))), instruction.shape)

    def decide(self, instruction: Instruction, path: Path, leaf: Leaf) -> None:
        self.numbers.decides[self.device, key_of(instruction, path)] = leaf

    def loop(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The state after as many trips as its condition says; what stays as it came in is not carried."""
        condition, body = steps(instruction)
        place, depth, numbers = key_of(instruction, path), _depth(path), self.numbers
        first = flat(operands[0])
        state = [self._carried((self.device, place, n), leaf) for n, leaf in enumerate(first)]
        shaped = _shaped(state, operands[0])
        holds = self.run(condition.computation, [shaped], (*path, condition))
        after = flat(self.run(body.computation, [shaped], (*path, body)))
        own = {now: (came, following) for came, now, following in zip(first, state, after, strict=True) if came != now}
        self.decide(instruction, path, numbers.trips_of(holds, own, depth))
        result = []
        for n, (came, now, following) in enumerate(zip(first, state, after, strict=True)):
            at = self.device, place, n
            if at in numbers.kinds or now != following:
                kind = numbers.kinds[at].number if at in numbers.kinds else -1
                numbers.carried[at] = (kind, depth, came, following)
                differs = (numbers.trips[now] | numbers.trips[holds]) - {depth}
                result.append(numbers.of(("after", now, holds), (), differs))
            else:
                result.append(came)
        return _shaped(result, operands[0])

    def _carried(self, at: Carried, came: int) -> int:
        kind = self.numbers.kinds.get(at)
        return came if kind is None else self.numbers.of(("carried", kind.number), (), kind.trips)

    def branches(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The result of all branches where that is one, else by what decides between them."""
        index, taken = operands[0], [*steps(instruction)]
        self.decide(instruction, path, index)
        results = [self.run(s.computation, [o], (*path, s)) for s, o in zip(taken, operands[1:], strict=True)]
        found = []
        for leaves in zip(*map(flat, results), strict=True):
            one = len({*leaves}) == 1
            found.append(leaves[0] if one else self.numbers.of("of", (index, *leaves)))
        return _shaped(found, results[0])


def _shaped(leaves: Sequence[int], like: Reading) -> Reading:
    """The leaves in the tuples of another reading."""
    left = iter(leaves)

    def shaped(each: Reading) -> Reading:
        return tuple(map(shaped, each)) if isinstance(each, tuple) else next(left)

    return shaped(like)
