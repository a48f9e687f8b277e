"""Value numbering across devices and programs: values with equal numbers are equal, whatever the data.

Two values have one number where equal ops compute them from operands of equal numbers, or where one collective gives
them. Loop-carried values are numbered by partition refinement: all begin in one class, and classes are split until each
trip gives equal values for equal values.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from typing import Any

from attrs import define, field

from shape_inference import AnyShape, TupleShape

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
from ...properties.sites import Site, collectives_of, reached
from ..model.program import Program
from ..model.scans import scan_result, slices_of, split_carries, trip_results
from ..structure.collective_matching import CollectiveIdentities, collective_identities
from .analysis import BY_THE_WALK, Analysis, Key, Leaf, Reading, TooMuchError, flat, key_of
from .replication import PER_DEVICE, depends_on_device, varies
from .shared_results import SHARED
from .value_numbering import Carried, CongruenceClass, NumberingPass

MOST_WORK = 40_000  # instructions of all devices, without repeated calls
MOST_ROUNDS = 20
MOST_WALK = 100_000  # instructions of one device, with each call of a computation counted


@define(eq=False, slots=False)
class ValueNumbers:
    """The value numbers of all predicates, branch indices and trip counts of all devices, computed on demand."""

    program: Program
    _classes: dict[Carried, CongruenceClass] = field(factory=dict, init=False)

    def decided(self, device: int, instruction: Instruction, path: Path) -> int | None:
        """The number of the predicate, index or trip count at a site; None where the programs are too large."""
        return self._numbers.decides.get((device, key_of(instruction, path)))

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
        entries = ((len(each.devices), each.module.entry) for each in self.program.classes)
        if sum(n * sum(len(c.instructions) for c in reached(entry)) for n, entry in entries) > MOST_WORK:
            return NumberingPass({})
        try:
            return self._rounds()
        except TooMuchError:
            return NumberingPass({})

    def _rounds(self) -> NumberingPass:
        for _ in range(MOST_ROUNDS):
            numbers = NumberingPass(self._classes)
            for device, each in self.program.class_of.items():
                walk = _NumberingWalk(varies, self, numbers, device, each.module)
                parameters = each.module.entry.parameters
                walk.run(
                    each.module.entry,
                    [walk.device_specific(("parameter", n), p.shape) for n, p in enumerate(parameters)],
                )
            found = numbers.refined()
            if found == self._classes:
                return numbers
            self._classes = found
        return NumberingPass({})

    def instance_key(self, module: Module, site: Site) -> Hashable:
        """The key of an instance of a collective; None where loops or branches decide which of several sites it is."""
        key, places = self.identity.of(module, site), self._places(module)
        same = places[key]
        repeated = len(same) > 1 and any(
            step.instruction.opcode in UNITS for each in same.values() for step in each.path
        )
        return None if repeated else (key, [*same].index(site.key))

    @functools.lru_cache(maxsize=64)  # noqa: B019
    def _places(self, module: Module) -> dict[Hashable, dict[Key, Site]]:
        found: dict[Hashable, dict[Key, Site]] = {}
        for site in collectives_of(module.entry):
            found.setdefault(self.identity.of(module, site), {})[site.key] = site
        return found


def _depth(path: Path) -> int:
    return sum(step.instruction.opcode in LOOPS for step in path)


@define(eq=False)
class _NumberingWalk(Analysis):
    """The walk of one device through its program."""

    most = MOST_WALK
    values: ValueNumbers
    numbers: NumberingPass
    device: int
    module: Module

    def join(self, a: Leaf, b: Leaf) -> Leaf:
        return a if a == b else self.numbers.of("either", (a, b))

    def default(self, instruction: Instruction, leaves: list[Leaf]) -> Leaf:
        """One number for equal ops of equal operands, and for each device its own where a region uses the device id."""
        label = self.values.structure.label(instruction)
        asking = self.device if any(map(depends_on_device, instruction.called)) else None
        return self.numbers.of((label, asking), leaves)

    def device_specific(self, what: Hashable, shape: AnyShape, path: Path = ()) -> Reading:
        """A value that no other device has, and that changes with each trip of the loops around it."""
        return self._parts(self.numbers.of(("own", self.device, what), (), range(_depth(path))), shape)

    def _parts(self, number: int, shape: AnyShape) -> Reading:
        if not isinstance(shape, TupleShape):
            return number
        return tuple(
            self._parts(self.numbers.of(("part", n), (number,)), each) for n, each in enumerate(shape.elements)
        )

    def _read(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        opcode = instruction.opcode
        if opcode in BY_THE_WALK:
            return super()._read(instruction, operands, path)
        if opcode in IDENTITIES:
            return operands[0]
        if opcode in PER_DEVICE or has_side_effect(instruction):
            return self.device_specific(key_of(instruction, path), instruction.shape, path)
        if opcode in ("replica_id", "partition_id"):
            parts = self.values.program.num_partitions
            number = self.device // parts if opcode == "replica_id" else self.device % parts
            return self.numbers.of((opcode, number))
        start = start_of(instruction) if opcode.endswith("_done") else instruction
        collective = None if start is None else collective_in(start)
        if start is not None and collective is not None:
            return self._collective_result(instruction, start, collective, path)
        return self._parts(self.default(instruction, [leaf for o in operands for leaf in flat(o)]), instruction.shape)

    def _collective_result(
        self, instruction: Instruction, start: Instruction, collective: Instruction, path: Path
    ) -> Reading:
        """The result of a collective: one number for the members of a group that arrive by equal decisions."""
        instance_key = self.values.instance_key(self.module, Site(path, start))
        if instance_key is None or base_of(collective) not in SHARED or instruction.opcode.endswith("_start"):
            return self.device_specific(key_of(instruction, path), instruction.shape, path)
        group = self.values.program.group(collective, self.device)
        before = [key_of(step.instruction, path[:n]) for n, step in enumerate(path)]
        ways = [self.numbers.decides.get((self.device, key)) for key in before]
        made = "met", base_of(collective), instance_key, group, tuple(n for n in ways if n is not None)
        return self._parts(self.numbers.of(made, (), range(_depth(path))), instruction.shape)

    def decide(self, instruction: Instruction, path: Path, leaf: Leaf) -> None:
        self.numbers.decides[self.device, key_of(instruction, path)] = leaf

    def loop(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The state after a loop; an element that no trip changes keeps its number."""
        condition, body = steps(instruction)
        place, depth, numbers = key_of(instruction, path), _depth(path), self.numbers
        first = flat(operands[0])
        state = [self._carried((self.device, place, n), leaf) for n, leaf in enumerate(first)]
        shaped = _shaped(state, operands[0])
        holds = self.run(condition.computation, [shaped], (*path, condition))
        after = flat(self.run(body.computation, [shaped], (*path, body)))
        own = {now: (came, following) for came, now, following in zip(first, state, after, strict=True) if came != now}
        self.decide(instruction, path, numbers.trips_of(holds, own, depth))
        return _shaped(self._loop_results(place, depth, holds, [*zip(first, state, after, strict=True)]), operands[0])

    def _loop_results(self, place: Key, depth: int, holds: int, state: Sequence[tuple[int, int, int]]) -> list[int]:
        """The numbers of the state after a loop, given each element before the loop, in a trip and after the trip."""
        numbers, result = self.numbers, []
        for n, (came, now, following) in enumerate(state):
            at = self.device, place, n
            if at in numbers.classes or now != following:
                kind = numbers.classes[at].number if at in numbers.classes else -1
                numbers.carried[at] = (kind, depth, came, following)
                result.append(self._after_loop("after", now, holds, depth))
            else:
                result.append(came)
        return result

    def _after_loop(self, head: Hashable, now: int, holds: int, depth: int) -> int:
        """The number, after a loop, of a value that changes from trip to trip."""
        differs = (self.numbers.trips[now] | self.numbers.trips[holds]) - {depth}
        return self.numbers.of((head, now, holds), (), differs)

    def counted(self, scan: Instruction, operands: list[Reading]) -> int:
        count, is_bound = slices_of(scan)
        return self.numbers.of(("count", count), flat((*split_carries(scan, operands)[0],)) if is_bound else ())

    def scan(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The stacked outputs and the final carries of a scan; in one trip, slices of equal inputs are equal."""
        (body,) = steps(instruction)
        place, depth, numbers = key_of(instruction, path), _depth(path), self.numbers
        count, how = (
            self.counted(instruction, operands),
            (instruction.attributes.dimension, instruction.attributes.is_reverse),
        )
        self.decide(instruction, path, count)
        inputs, carries = split_carries(instruction, operands)
        slices = [numbers.of(("slice", *how, count), (each,), (depth,)) for each in inputs]
        first = flat((*carries,))
        state = [self._carried((self.device, place, n), leaf) for n, leaf in enumerate(first)]
        root = self.run(body.computation, [*slices, *_shaped(state, (*carries,))], (*path, body))
        outputs, following = trip_results(instruction, root)
        after = self._loop_results(place, depth, count, [*zip(first, state, flat((*following,)), strict=True)])
        stacked = [self._after_loop(("stacked", *how), each, count, depth) for each in outputs]
        return scan_result(instruction, [*stacked, *_shaped(after, (*carries,))])

    def _carried(self, at: Carried, came: int) -> int:
        kind = self.numbers.classes.get(at)
        return came if kind is None else self.numbers.of(("carried", kind.number), (), kind.trips)

    def branches(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The result of a conditional: the number that all branches give, else one of the index and all results."""
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
