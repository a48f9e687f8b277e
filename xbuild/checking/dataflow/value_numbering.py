"""Value numbering across devices and programs: values with equal numbers are equal, whatever the data.

Sections:

    One pass of global value numbering
    Value numbers of all devices, by partition refinement
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field, frozen

from shape_inference import AnyShape, TupleShape
from shape_inference.trees import flatten, unflatten

from ...core.graph import Instruction, Module
from ...properties.effects import (
    IDENTITIES,
    LOOPS,
    UNITS,
    Path,
    base_of,
    collective_in,
    has_side_effect,
    start_of,
    steps,
)
from ...properties.sites import Key, Site, collectives_of, reached, site_key
from ...properties.trip_counts import scan_result, slices_of, split_carries, trip_results
from ..model.program import GridProgram
from ..structure.collective_matching import CollectiveIdentities, collective_identities
from .analysis import WALK_RULES, DataflowAnalysis, Leaf, Reading, TooMuchError
from .replication import PER_DEVICE, SHARED, depends_on_device, varies

# ----------------------------------------------------------------------------
# One pass of global value numbering: a number for each value, by its op and the numbers of its operands

Carried: TypeAlias = tuple[int, Key, int]  # a device, a loop, the index of a leaf in its state

MOST_ROWS = 200  # of the expression of a loop's condition


@frozen
class CongruenceClass:
    """A class of loop-carried values with one number; `trips` are the depths of the loops in which they change."""

    number: int
    trips: frozenset[int]


@define(eq=False)
class NumberingPass:
    """One pass; `classes` are the congruence classes of carried values that the previous pass found."""

    classes: dict[Carried, CongruenceClass]
    trips: list[frozenset[int]] = field(factory=list)  # by number: depths of the loops in which the value changes
    expressions: list[tuple[Hashable, ...]] = field(factory=list)  # by number: head and numbers of the parts
    decides: dict[tuple[int, Key], int] = field(factory=dict)
    carried: dict[Carried, tuple[int, int, int, int]] = field(factory=dict)
    _known: dict[Hashable, int] = field(factory=dict)

    def number_of(self, head: Hashable, parts: Sequence[int] = (), trips: Iterable[int] = ()) -> int:
        """The number of a value, given the head of its expression and the numbers of its parts."""
        expression = head, *parts
        number = self._known.setdefault(expression, len(self.trips))
        differs = frozenset(trips).union(*(self.trips[part] for part in parts))
        if number == len(self.trips):
            self.trips.append(differs)
            self.expressions.append(expression)
        else:
            self.trips[number] |= differs
        return number

    def number_trips(self, holds: int, own: Mapping[int, tuple[int, int]], depth: int) -> int:
        """The number of the trip count of a loop; loops that count equally share it, at any depth.

        `own` has, by number, each value that the loop carries: its number before the loop, and for the next trip.
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
                initial, following = own[number]
                outside[initial] = None
                return "own", initial, visit(following)
            head, *parts = self.expressions[number]
            if depth in self.trips[number] and parts and len(rows) < MOST_ROWS:
                return head, *map(visit, parts)  # type: ignore[arg-type]
            outside[number] = None
            return number

        visit(holds)
        differs = frozenset().union(*(self.trips[number] for number in outside)) - {depth}
        return self.number_of(("trips", *rows), (), differs)

    def refine(self) -> dict[Carried, CongruenceClass]:
        """The classes for the next pass: partition refinement by the numbers of initial and next values."""
        classes: dict[tuple[int, int, int, int], int] = {}
        trips: dict[int, frozenset[int]] = {}
        for signature in self.carried.values():
            number = classes.setdefault(signature, len(classes))
            _, depth, *values = signature
            trips[number] = trips.get(number, frozenset({depth})).union(*(self.trips[value] for value in values))
        return {
            at: CongruenceClass(classes[signature], trips[classes[signature]]) for at, signature in self.carried.items()
        }


# ----------------------------------------------------------------------------
# Value numbers of all devices, by partition refinement
#
# Two values have one number if equal ops compute them from operands with equal numbers, or if one collective returns
# them. Loop-carried values are numbered by partition refinement: all begin in one class, and classes are
# split until each trip gives equal values for equal values.

MOST_WORK = 40_000  # instructions of all devices, without repeated calls
MOST_ROUNDS = 20
MOST_WALK = 100_000  # instructions of one device, with each call of a computation counted


@define(eq=False, slots=False)
class ValueNumbers:
    """The value numbers of all predicates, branch indices and trip counts of all devices, computed on demand."""

    program: GridProgram
    _classes: dict[Carried, CongruenceClass] = field(factory=dict, init=False)

    def decision_number(self, device: int, instruction: Instruction, path: Path) -> int | None:
        """The number of the predicate, index or trip count at a site; None if the programs are too large."""
        return self._numbers.decides.get((device, site_key(instruction, path)))

    def is_steady(self, number: int, path: Path) -> bool:
        """Whether a value is the same in every trip of the loops around a site."""
        return not any(depth < _depth(path) for depth in self._numbers.trips[number])

    @functools.cached_property
    def identity(self) -> CollectiveIdentities:
        return collective_identities(self.program)

    @functools.cached_property
    def structure(self) -> Any:
        from ...properties.structure import Structure

        return Structure({})

    @functools.cached_property
    def _numbers(self) -> NumberingPass:
        entries = ((len(device_class.devices), device_class.module.entry) for device_class in self.program.classes)
        if sum(n * sum(len(c.instructions) for c in reached(entry)) for n, entry in entries) > MOST_WORK:
            return NumberingPass({})
        try:
            return self._run_passes()
        except TooMuchError:
            return NumberingPass({})

    def _run_passes(self) -> NumberingPass:
        for _ in range(MOST_ROUNDS):
            numbers = NumberingPass(self._classes)
            for device, each in self.program.class_of.items():
                walk = _NumberingWalk(varies, self, numbers, device, each.module)
                parameters = each.module.entry.parameters
                walk.run(
                    each.module.entry,
                    [walk.device_specific(("parameter", n), p.shape) for n, p in enumerate(parameters)],
                )
            classes = numbers.refine()
            if classes == self._classes:
                return numbers
            self._classes = classes
        return NumberingPass({})

    def instance_key(self, module: Module, site: Site) -> Hashable:
        """The key of an instance of a collective; None if loops or branches decide which of several sites it is."""
        key, places = self.identity.of(module, site), self._places(module)
        same = places[key]
        repeated = len(same) > 1 and any(
            step.instruction.opcode in UNITS for each in same.values() for step in each.path
        )
        return None if repeated else (key, [*same].index(site.key))

    @functools.lru_cache(maxsize=64)  # noqa: B019
    def _places(self, module: Module) -> dict[Hashable, dict[Key, Site]]:
        places: dict[Hashable, dict[Key, Site]] = {}
        for site in collectives_of(module.entry):
            places.setdefault(self.identity.of(module, site), {})[site.key] = site
        return places


def _depth(path: Path) -> int:
    return sum(step.instruction.opcode in LOOPS for step in path)


@define(eq=False)
class _NumberingWalk(DataflowAnalysis):
    """The walk of one device through its program."""

    most = MOST_WALK
    values: ValueNumbers
    numbers: NumberingPass
    device: int
    module: Module

    def join(self, a: Leaf, b: Leaf) -> Leaf:
        return a if a == b else self.numbers.number_of("either", (a, b))

    def default_fact(self, instruction: Instruction, leaves: list[Leaf]) -> Leaf:
        """One number for equal ops of equal operands; a separate one for each device if a region uses the device id."""
        label = self.values.structure.label(instruction)
        device = self.device if any(map(depends_on_device, instruction.called)) else None
        return self.numbers.number_of((label, device), leaves)

    def device_specific(self, key: Hashable, shape: AnyShape, path: Path = ()) -> Reading:
        """A value that no other device holds, and that changes with each trip of the loops around it."""
        return self._parts(self.numbers.number_of(("own", self.device, key), (), range(_depth(path))), shape)

    def _parts(self, number: int, shape: AnyShape) -> Reading:
        if not isinstance(shape, TupleShape):
            return number
        return tuple(
            self._parts(self.numbers.number_of(("part", n), (number,)), each) for n, each in enumerate(shape.elements)
        )

    def _read(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        opcode = instruction.opcode
        if opcode in WALK_RULES:
            return super()._read(instruction, operands, path)
        if opcode in IDENTITIES:
            return operands[0]
        if opcode in PER_DEVICE or has_side_effect(instruction):
            return self.device_specific(site_key(instruction, path), instruction.shape, path)
        if opcode in ("replica_id", "partition_id"):
            parts = self.values.program.num_partitions
            number = self.device // parts if opcode == "replica_id" else self.device % parts
            return self.numbers.number_of((opcode, number))
        start = start_of(instruction) if opcode.endswith("_done") else instruction
        collective = None if start is None else collective_in(start)
        if start is not None and collective is not None:
            return self._collective_result(instruction, start, collective, path)
        return self._parts(
            self.default_fact(instruction, [leaf for o in operands for leaf in flatten(o)]), instruction.shape
        )

    def _collective_result(
        self, instruction: Instruction, start: Instruction, collective: Instruction, path: Path
    ) -> Reading:
        """The result of a collective: one number for the participants of a group that arrive by equal decisions."""
        instance_key = self.values.instance_key(self.module, Site(path, start))
        if instance_key is None or base_of(collective) not in SHARED or instruction.opcode.endswith("_start"):
            return self.device_specific(site_key(instruction, path), instruction.shape, path)
        group = self.values.program.group(collective, self.device)
        before = [site_key(step.instruction, path[:n]) for n, step in enumerate(path)]
        ways = [self.numbers.decides.get((self.device, key)) for key in before]
        expression = "met", base_of(collective), instance_key, group, tuple(n for n in ways if n is not None)
        return self._parts(self.numbers.number_of(expression, (), range(_depth(path))), instruction.shape)

    def decide(self, instruction: Instruction, path: Path, leaf: Leaf) -> None:
        self.numbers.decides[self.device, site_key(instruction, path)] = leaf

    def run_while(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The state after a loop; an element that no trip changes keeps its number."""
        condition, body = steps(instruction)
        place, depth, numbers = site_key(instruction, path), _depth(path), self.numbers
        first = flatten(operands[0])
        state = [self._carried((self.device, place, n), leaf) for n, leaf in enumerate(first)]
        shaped = unflatten(operands[0], state)
        holds = self.run(condition.computation, [shaped], (*path, condition))
        after = flatten(self.run(body.computation, [shaped], (*path, body)))
        own = {
            now: (initial, following)
            for initial, now, following in zip(first, state, after, strict=True)
            if initial != now
        }
        self.decide(instruction, path, numbers.number_trips(holds, own, depth))
        return unflatten(operands[0], self._loop_results(place, depth, holds, [*zip(first, state, after, strict=True)]))

    def _loop_results(self, place: Key, depth: int, holds: int, state: Sequence[tuple[int, int, int]]) -> list[int]:
        """The numbers of the state after a loop, given each element before the loop, in a trip and after the trip."""
        numbers, result = self.numbers, []
        for n, (initial, now, following) in enumerate(state):
            at = self.device, place, n
            if at in numbers.classes or now != following:
                kind = numbers.classes[at].number if at in numbers.classes else -1
                numbers.carried[at] = (kind, depth, initial, following)
                result.append(self._after_loop("after", now, holds, depth))
            else:
                result.append(initial)
        return result

    def _after_loop(self, head: Hashable, now: int, holds: int, depth: int) -> int:
        """The number, after a loop, of a value that changes from trip to trip."""
        differs = (self.numbers.trips[now] | self.numbers.trips[holds]) - {depth}
        return self.numbers.number_of((head, now, holds), (), differs)

    def trip_count_fact(self, scan: Instruction, operands: list[Reading]) -> int:
        count, is_bound = slices_of(scan)
        return self.numbers.number_of(
            ("count", count), flatten((*split_carries(scan, operands)[0],)) if is_bound else ()
        )

    def run_scan(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The stacked outputs and the final carries of a scan; in one trip, slices of equal inputs are equal."""
        (body,) = steps(instruction)
        place, depth, numbers = site_key(instruction, path), _depth(path), self.numbers
        count, order = (
            self.trip_count_fact(instruction, operands),
            (instruction.attributes.dimension, instruction.attributes.is_reverse),
        )
        self.decide(instruction, path, count)
        inputs, carries = split_carries(instruction, operands)
        slices = [numbers.number_of(("slice", *order, count), (each,), (depth,)) for each in inputs]
        first = flatten((*carries,))
        state = [self._carried((self.device, place, n), leaf) for n, leaf in enumerate(first)]
        root = self.run(body.computation, [*slices, *unflatten((*carries,), state)], (*path, body))
        outputs, following = trip_results(instruction, root)
        after = self._loop_results(place, depth, count, [*zip(first, state, flatten((*following,)), strict=True)])
        stacked = [self._after_loop(("stacked", *order), each, count, depth) for each in outputs]
        return scan_result(instruction, [*stacked, *unflatten((*carries,), after)])

    def _carried(self, at: Carried, initial: int) -> int:
        kind = self.numbers.classes.get(at)
        return initial if kind is None else self.numbers.number_of(("carried", kind.number), (), kind.trips)

    def run_conditional(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The result of a conditional: the number that all branches return, else one of the index and all results."""
        index, branches = operands[0], [*steps(instruction)]
        self.decide(instruction, path, index)
        results = [self.run(s.computation, [o], (*path, s)) for s, o in zip(branches, operands[1:], strict=True)]
        numbers = []
        for leaves in zip(*map(flatten, results), strict=True):
            is_one = len({*leaves}) == 1
            numbers.append(leaves[0] if is_one else self.numbers.number_of("of", (index, *leaves)))
        return unflatten(results[0], numbers)
