"""Constant propagation for each device: the walk that finds branches and trip counts before a run.

A walk evaluates the backward slice (`backward_slice`) in program order: leaves (`lattice`) by the value rules of the
interpreter (`running`), by bounds where operands are unknown (`ranges`), and through collectives (`exchange`). A loop
is walked trip by trip as long as its condition is known; else its state is joined with that of one more trip up to a
fixpoint (bounds are widened after a few trips), and decisions inside hold for every trip.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from attrs import define, field

from shape_inference import AnyShape, TupleShape
from shape_inference.types import leaves

from ...core.graph import Computation, Instruction
from ...properties.effects import MEETS, Path, collective_in, communicates, steps
from ...properties.sites import Site
from ...running import result_shape
from ..model.scans import scan_result, slices_of, split_carries, trip_results
from .analysis import Reading, flat, key_of
from .backward_slice import CALLS, SAME, BackwardSlice
from .exchange import MOST_STEPS, Exchange, Promise, WalkCoroutine, promised
from .facts import Facts, ways_of
from .lattice import Leaf, Open, bounds_of, is_value
from .ranges import open_result
from .readings import (
    another,
    fresh,
    full,
    joined_columns,
    mark,
    settled,
    shaped,
    sliced,
    stacked,
    stays,
    ways_of_state,
    widened,
)

MOST_ROUNDS = 16  # rounds of a loop; then everything that it changes is unknown
WIDENED = 3  # rounds of a loop; then bounds that still grow are dropped
MOST_SILENT = 5_000  # instructions of all trips of a scan that is walked though nothing in it communicates


@define(eq=False)
class Propagation:
    """The walk of one device through its program."""

    exchange: Exchange
    needed: BackwardSlice
    device: int
    facts: Facts = field(factory=Facts)
    _ids: tuple[int, int] = field(init=False)
    _repeated: int = 0  # loops and branches around the walk that may run any number of times
    _silent: int = 0  # loops around the walk whose state is no fixpoint yet
    _alike: dict[Hashable, tuple[Leaf, Any]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._ids = divmod(self.device, self.needed.module.num_partitions)

    def walk(self) -> WalkCoroutine:
        entry = self.needed.module.entry
        yield from self.run(entry, [fresh(p.shape) for p in entry.parameters], ())

    def run(self, computation: Computation, parameters: Sequence[Reading], path: Path) -> WalkCoroutine:
        """The reading of the root, by that of the parameters."""
        wanted = self.needed.of(computation)
        self.exchange.spend(len(wanted) + 1)
        known: dict[Instruction, Reading] = dict(zip(computation.parameters, parameters, strict=True))
        for instruction in wanted:
            operands = [known.get(o) for o in instruction.operands]
            follow = _FOLLOWED.get(instruction.opcode)
            if follow is not None:
                known[instruction] = yield from follow(self, instruction, operands, path)
            elif instruction.opcode in _PASSED:
                known[instruction] = _PASSED[instruction.opcode](instruction, operands)
            elif instruction.opcode in MEETS:
                known[instruction] = yield from self._meet(instruction, operands, path)
            else:
                given = [*operands]
                for n, each in enumerate(operands):
                    if each.__class__ is Promise or each.__class__ is tuple:
                        given[n] = yield from settled(each)
                known[instruction] = self._value(instruction, given)
        return known.get(computation.root)

    def _value(self, instruction: Instruction, operands: Sequence[Reading]) -> Reading:
        """The result of an op that only computes; unknown where the op or an operand is."""
        if not all(is_value(leaf) for each in operands for leaf in flat(each)):
            return self._open(instruction, operands)
        value = self.exchange.evaluator.value(instruction, operands, self._ids)
        return fresh(instruction.shape) if value is None else value

    def _open(self, instruction: Instruction, operands: Sequence[Reading]) -> Reading:
        """The result of an op with unknown operands; one leaf for equal ops of equal operands."""
        if not self.exchange.evaluator.is_pure(instruction) or any(
            leaf is None for each in operands for leaf in flat(each)
        ):
            return fresh(instruction.shape)
        made = (self.exchange.structure.label(instruction), *(mark(leaf) for each in operands for leaf in flat(each)))
        if made not in self._alike:
            found = open_result(instruction, operands, lambda given: self._value(instruction, given))
            reading = fresh(instruction.shape) if found is None else found
            self._alike[made] = reading, operands  # kept, since the marks are ids
        return self._alike[made][0]

    def _meet(self, instruction: Instruction, operands: Sequence[Reading], path: Path) -> WalkCoroutine:
        """The promised result of a collective, blocking or started."""
        shape, brought = result_shape(instruction), []
        for each in operands:
            brought += flat((yield from settled(each)))
        if self._silent:
            return fresh(shape)
        known = len(brought) == len(operands) and not any(leaf is None for leaf in brought)
        instance = self.exchange.arrive(
            self.device, Site(path, instruction), brought if known else None, self._repeated > 0
        )
        return promised(instance, self.device, shape)

    def call(self, instruction: Instruction, operands: list[Reading], path: Path) -> WalkCoroutine:
        if collective_in(instruction) is not None:
            return (yield from self._meet(instruction, operands, path))
        step = next(steps(instruction))
        return (yield from self.run(step.computation, operands, (*path, step)))

    def loop(self, instruction: Instruction, operands: list[Reading], path: Path) -> WalkCoroutine:
        """A while, trip by trip as long as its condition is known; the decision is the number of trips."""
        state, trips, has_ended = yield from self._trips(instruction, full(operands[0], instruction.shape), path)
        if has_ended:
            self._decide(instruction, path, frozenset((trips,)))
            return state
        ends = yield from self._each_way(instruction, state, path)
        if ends:
            self._decide(instruction, path, frozenset(trips + more for _, more in ends))
            return shaped([*joined_columns([left for left, _ in ends], instruction.shape)], instruction.shape)
        self._decide(instruction, path, None)
        condition, body = steps(instruction)

        def trip(now: Reading) -> WalkCoroutine:
            yield from self.run(condition.computation, [now], (*path, condition))
            return full((yield from self.run(body.computation, [now], (*path, body))), instruction.shape)

        return (yield from self._any_trips(trip, state, instruction.shape))

    def _trips(self, loop: Instruction, state: Reading, path: Path) -> WalkCoroutine:
        """The state after the trips that are known to be run, how many these are, and whether the loop has ended."""
        condition, body = steps(loop)
        trips = 0
        while not self.exchange.is_short:
            goes_on = yield from settled((yield from self.run(condition.computation, [state], (*path, condition))))
            if not is_value(goes_on) or not goes_on:
                return state, trips, is_value(goes_on)
            state = full((yield from self.run(body.computation, [state], (*path, body))), loop.shape)
            trips += 1
        return state, trips, False

    def _each_way(self, loop: Instruction, state: Reading, path: Path) -> WalkCoroutine:
        """The end states and trips of a loop for each of the few states it may begin in; empty where one never ends."""
        ends: list[tuple[list[Leaf], int]] = []
        ways = ways_of_state(flat((yield from settled(state))))
        self._repeated += 1
        for way in ways:
            left, trips, has_ended = yield from self._trips(loop, shaped(way, loop.shape), path)
            if not has_ended:
                ends = []
                break
            ends.append((flat((yield from settled(left))), trips))
        self._repeated -= 1
        return ends

    def _any_trips(self, trip: Callable[[Reading], WalkCoroutine], state: Reading, shape: AnyShape) -> WalkCoroutine:
        """The state after any number of trips; in the last walk of the body, decisions inside hold for every trip."""
        now, shapes = flat((yield from settled(state))), [*leaves(shape)]
        changed: set[int] = set()
        self._silent += 1
        for turn in range(MOST_ROUNDS + 1):
            after = flat((yield from settled((yield from trip(shaped(now, shape))))))
            moved = [n for n, leaf in enumerate(after) if not stays(now[n], leaf, shapes[n], n in changed)]
            if not moved:
                break
            changed |= {*moved} if turn < MOST_ROUNDS else {*range(len(now))}
            for n in changed if turn == MOST_ROUNDS else moved:
                now[n] = widened(now[n], after[n], shapes[n]) if turn < WIDENED else fresh(shapes[n])
        self._silent -= 1
        if not self._silent:
            self._repeated += 1
            yield from trip(shaped(now, shape))
            self._repeated -= 1
        return shaped([another(leaf) if n in changed else leaf for n, leaf in enumerate(now)], shape)

    def scan(self, instruction: Instruction, operands: list[Reading], path: Path) -> WalkCoroutine:
        """A scan, trip by trip where anything may become known; its trip count is known unless it is a bound."""
        (body,) = steps(instruction)
        count, is_bound = slices_of(instruction)
        given = []
        for each, of in zip(operands, instruction.operands, strict=True):
            given.append(full((yield from settled(each)), of.shape))
        inputs, state = split_carries(instruction, given)
        self._decide(instruction, path, None if is_bound else frozenset((count,)))
        is_silent = not communicates(body.computation) and not any(is_value(leaf) for leaf in flat((*given,)))
        steps_of_all = count * (len(self.needed.of(body.computation)) + 1)
        most = MOST_STEPS if communicates(body.computation) else MOST_SILENT
        if is_bound or is_silent or self.exchange.is_short or steps_of_all > most:
            return (yield from self._any_slices(instruction, inputs, state, path))
        outputs = []
        for number in range(count):
            place = count - 1 - number if instruction.attributes.is_reverse else number
            slices = [sliced(each, instruction, place) for each in inputs]
            root = yield from settled((yield from self.run(body.computation, [*slices, *state], (*path, body))))
            some, state = trip_results(instruction, full(root, body.computation.root.shape))
            outputs.append(some)
        return scan_result(instruction, [*stacked(instruction, outputs), *state])

    def _any_slices(self, instruction: Instruction, inputs: list[Leaf], state: list[Leaf], path: Path) -> WalkCoroutine:
        (body,) = steps(instruction)
        shapes = [i.shape for i in split_carries(instruction, instruction.operands)[0]]
        carried = TupleShape([i.shape for i in split_carries(instruction, instruction.operands)[1]])

        def trip(now: Reading) -> WalkCoroutine:
            slices = [Open(bounds_of(leaf, shape)) for leaf, shape in zip(inputs, shapes, strict=True)]
            root = yield from self.run(body.computation, [*slices, *now], (*path, body))
            return (*trip_results(instruction, full(root, body.computation.root.shape))[1],)

        after = yield from self._any_trips(trip, (*state,), carried)
        return scan_result(instruction, [*stacked(instruction, ()), *after])

    def branches(self, instruction: Instruction, operands: list[Reading], path: Path) -> WalkCoroutine:
        """The result of the branch that is taken, or the join of those that may be."""
        taken = [*steps(instruction)]
        index = yield from settled(operands[0])
        ways = ways_of(instruction, index, len(taken))
        self._decide(instruction, path, ways)
        results = []
        self._repeated += len(ways) > 1
        for number in sorted(ways):
            step = taken[number]
            result = yield from self.run(step.computation, [operands[1 + number]], (*path, step))
            results.append(full(result, instruction.shape))
        self._repeated -= len(ways) > 1
        if len(results) == 1:
            return results[0]
        for n, result in enumerate(results):
            results[n] = flat((yield from settled(result)))
        return shaped([*joined_columns(results, instruction.shape)], instruction.shape)

    def _decide(self, instruction: Instruction, path: Path, ways: frozenset[int] | None) -> None:
        if not self._silent:
            self.facts.add(key_of(instruction, path), ways, self._repeated > 0)


_FOLLOWED: Mapping[str, Callable[..., WalkCoroutine]] = {
    **dict.fromkeys(CALLS, Propagation.call),
    "while": Propagation.loop,
    "scan": Propagation.scan,
    "conditional": Propagation.branches,
}
_PASSED: Mapping[str, Callable[[Instruction, list[Reading]], Reading]] = {
    "tuple": lambda _, operands: (*operands,),
    "get_tuple_element": lambda of, operands: operands[0] and operands[0][of.attributes.index],
    **dict.fromkeys(SAME, lambda _, operands: operands[0]),
}
