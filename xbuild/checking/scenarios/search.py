"""Search for orders in which the programs end in given scenarios: backtracking over the orders of what communicates.

Posting instructions go as early as they can and completing ones as late as they can: neither keeps another device
from going on, so where any order ends, one of this form does. The order of the rest is searched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import define, evolve, field, frozen

from ...core.graph import Computation, Instruction
from ...process.deadline import ask
from ...properties.effects import (
    LOOPS,
    Path,
    communicates,
    communicates_anywhere,
    communicates_itself,
    notable,
    remembered,
    steps,
)
from ...properties.order import linear
from ...properties.sites import reached, sites
from ...properties.waiting import COMPLETING, POSTING, SILENT, sequences_of
from ..dataflow.analysis import Key, key_of
from ..deadlock.level_run import Context
from ..deadlock.orders import arranged
from ..model.verdict import Orders
from .simulate import ALL, Decide, EventKey, Open, SimulatedEvent, TooLongError, Tracer, Walk, communicating_order

OrderKey: TypeAlias = tuple[Hashable, Computation]  # whose order (see `Search.owner`), and of which computation
Chosen: TypeAlias = dict[OrderKey, tuple[Instruction, ...]]  # the first instructions of the rest
Deciders: TypeAlias = Callable[[int], Decide]  # the decisions of each device in a scenario

MOST_STEPS = 100_000
MOST_ITEMS = 500  # communicating instructions of one computation
POSSIBLE, ENTERED, WAITING = range(3)


@frozen(eq=False)
class Parts:
    """The communicating instructions of a computation: their predecessors, those that go early or late, the rest."""

    before: Mapping[Instruction, frozenset[Instruction]]
    early: frozenset[Instruction]
    late: frozenset[Instruction]
    rest: tuple[Instruction, ...]


@remembered
def order_parts(computation: Computation) -> Parts:
    """The parts of a computation for the search, in recorded order."""
    before: dict[Instruction, frozenset[Instruction]] = {}
    reach: dict[Instruction, frozenset[Instruction]] = {}
    last: dict[Hashable, Instruction] = {}
    for each in linear(computation) or ():
        needed = {o for o in (*each.operands, *each.control) if reach.get(o)}
        if communicates_anywhere(each) and each.opcode not in SILENT:
            sequences = _sequences(each)
            needed |= {last[sequence] for sequence in sequences if sequence in last}
            last |= dict.fromkeys(sequences, each)
            before[each] = frozenset().union(*(reach[o] for o in needed))
            reach[each] = before[each] | {each}
        elif needed:
            reach[each] = reach[needed.pop()].union(*(reach[o] for o in needed))
    early = frozenset(each for each in before if each.opcode in POSTING)
    dones = frozenset(each for each in before if each.opcode in COMPLETING)
    late = dones.difference(*(before[each] for each in early))
    return Parts(before, early, late, tuple(each for each in before if each not in early | late))


def _sequences(instruction: Instruction) -> list[Hashable]:
    """The sequences in which an instruction keeps its recorded order beyond dependencies; of a call those inside it."""
    inside = (site.instruction for called in instruction.called for site in sites(called))
    every = (instruction,) if communicates_itself(instruction) else inside
    return [sequence for each in every for sequence in sequences_of(each)]


@define(eq=False)
class Search:
    """The search for orders of one program; `gave_up` once it has taken too many steps."""

    context: Context
    gave_up: bool = False
    _steps: int = 0
    _once: dict[Computation, set[Key]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for each in self.context.program.classes:
            self._count(each.module.entry, ())
            if any(sum(map(communicates_anywhere, notable(c))) > MOST_ITEMS for c in reached(each.module.entry)):
                self.gave_up = True

    def _count(self, computation: Computation, path: Path) -> None:
        """Collect the paths on which each computation is reached."""
        self._once.setdefault(computation, set()).add(key_of(computation.root, path))
        for instruction in notable(computation):
            for step in steps(instruction):
                if communicates(step.computation) and not communicates_itself(instruction):
                    self._count(step.computation, (*path, step))

    def order(self, scenarios: Sequence[Deciders]) -> Mapping[int, Orders] | None:
        """Orders in which the programs end in all of these scenarios; None where none was found."""
        stack: list[tuple[Chosen, int]] = [({}, 0)]
        while stack and not self.gave_up:
            ask()
            chosen, number = stack.pop()
            at = self._attempt(scenarios, number, chosen)
            if at is None and number + 1 == len(scenarios):
                return self._orders(chosen)
            if at is None:
                stack.append((chosen, number + 1))
            else:
                key, options = at
                stack += [({**chosen, key: (*chosen.get(key, ()), each)}, number) for each in reversed(options)]
        return None

    def _attempt(
        self, scenarios: Sequence[Deciders], number: int, chosen: Chosen
    ) -> tuple[OrderKey, list[Instruction]] | None:
        try:
            return _Attempt(self, scenarios[number], chosen, is_only=len(scenarios) == 1).run()
        except TooLongError:
            self.gave_up = True
            return (None, self.context.program.classes[0].module.entry), []

    def step(self) -> None:
        self._steps += 1
        self.gave_up = self.gave_up or self._steps > MOST_STEPS

    def owner(self, device: int) -> Hashable:
        """The key of an order: a device, or the program where one serves all devices."""
        program = self.context.program
        return program.class_of[device].module if program.spmd else device

    def is_run_once(self, path: Path, computation: Computation) -> bool:
        repeated = any(step.instruction.opcode in LOOPS for step in path)
        return not repeated and not self.context.program.spmd and len(self._once[computation]) == 1

    def _orders(self, chosen: Chosen) -> Mapping[int, Orders]:
        found: dict[int, Orders] = {}
        for device, each in self.context.program.class_of.items():
            if each.given:
                found[device] = each.orders
                continue
            orders = []
            for computation in reached(each.module.entry):
                order = linear(computation)
                if (self.owner(device), computation) in chosen:
                    order = self._whole(computation, chosen[self.owner(device), computation])
                if order is not None and order != computation.instructions:
                    orders.append((computation, order))
            if orders:
                found[device] = tuple(orders)
        return found

    def _whole(self, computation: Computation, order: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
        walk = _walk(computation, lambda: order, lambda chosen: None)
        return arranged(computation, {each: None for each in walk if isinstance(each, Instruction)})


def _walk(
    computation: Computation, order: Callable[[], tuple[Instruction, ...]], choose: Callable[[Instruction], None]
) -> Iterator[Instruction | tuple[Instruction, ...]]:
    """A walk of a computation in an order of its rest; where the order ends, the instructions that may come next."""
    has = order_parts(computation)
    done: set[Instruction] = set()
    place = 0
    while True:
        for each, before in has.before.items():
            if each in has.early and each not in done and before <= done:
                done.add(each)
                yield each
        if place == len(has.rest):
            break
        if place == len(order()):
            options = tuple(r for r in has.rest if r not in done and has.before[r] - has.late <= done)
            if len(options) > 1:
                yield options
            else:
                choose(options[0])
            continue
        following = order()[place]
        late = [each for each in has.before if each in has.late and each in has.before[following] and each not in done]
        for each in (*late, following):
            done.add(each)
            yield each
        place += 1
    yield from (each for each in has.before if each not in done)


@define(eq=False)
class _Attempt:
    """One simulation of a scenario in partial orders, until it ends, stops, or an order has to be extended."""

    search: Search
    scenario: Deciders
    chosen: Chosen
    is_only: bool
    tracers: dict[int, Tracer] = field(factory=dict)
    done: dict[int, Counter[EventKey]] = field(factory=dict)
    heads: dict[int, SimulatedEvent | Open | None] = field(factory=dict)

    def run(self) -> tuple[OrderKey, list[Instruction]] | None:
        """None where the programs end; else the order to extend and its options, none where the programs stop."""
        context = self.search.context
        self.done[ALL] = Counter()
        for device, each in context.program.class_of.items():
            walk = communicating_order(each) if each.given else self._free(device)
            self.tracers[device] = Tracer(context, device, walk, self.scenario(device))
            self.done[device] = Counter()
        traces = {device: tracer.trace() for device, tracer in self.tracers.items()}
        self.heads = {device: next(trace, None) for device, trace in traces.items()}
        while True:
            moved = [self._advance(device, trace) for device, trace in traces.items()]
            if self.search.gave_up:
                return self._nowhere, []
            if not any(self.heads.values()):
                return None
            if not any(moved) and not self._greedy():
                return self._branches()

    @property
    def _nowhere(self) -> OrderKey:
        return None, self.search.context.program.classes[0].module.entry

    def _free(self, device: int) -> Walk:
        owner = self.search.owner(device)

        def walk(computation: Computation) -> Iterator[Instruction | tuple[Instruction, ...]]:
            key = owner, computation
            return _walk(computation, lambda: self.chosen.get(key, ()), lambda each: self._choose(key, each))

        return walk

    def _choose(self, key: tuple[Hashable, Computation], instruction: Instruction) -> None:
        self.chosen[key] = (*self.chosen.get(key, ()), instruction)

    def _advance(self, device: int, trace: Iterator[SimulatedEvent | Open]) -> bool:
        """Advance a device as far as possible; whether it advanced at all."""
        moved = False
        while True:
            head = self.heads[device]
            if isinstance(head, SimulatedEvent) and head.is_possible(self.done) and not self.search.gave_up:
                head.happen(device, self.done)
                self.search.step()
            elif not isinstance(head, Open) or self._is_open(device, head):
                return moved
            self.heads[device], moved = next(trace, None), True

    def _key(self, device: int, head: Open) -> OrderKey:
        entry = self.search.context.program.class_of[device].module.entry
        return self.search.owner(device), head.path[-1].computation if head.path else entry

    def _is_open(self, device: int, head: Open) -> bool:
        """Whether the order has no next instruction: none of the options is chosen."""
        chosen = self.chosen.get(self._key(device, head), ())
        return not any(option in chosen for option in head.options)

    def _greedy(self) -> bool:
        """Extend an order by a possible instruction, where it is run once in one scenario: that blocks no device."""
        for device, head in self.heads.items():
            if self.is_only and isinstance(head, Open):
                key = self._key(device, head)
                level, first = self._options(device, head)[0]
                if level == POSSIBLE and self.search.is_run_once(head.path, key[1]):
                    self._choose(key, first)
                    return True
        return False

    def _branches(self) -> tuple[OrderKey, list[Instruction]]:
        """The order to extend and its options: of possible ones the fewest; none where no device has options."""
        found: list[tuple[int, int, OrderKey, list[Instruction]]] = []
        for device, head in self.heads.items():
            if isinstance(head, Open):
                options = self._options(device, head)
                found.append((options[0][0], len(options), self._key(device, head), [each for _, each in options]))
        return min(found, key=lambda each: each[:2])[2:] if found else (self._nowhere, [])

    def _options(self, device: int, head: Open) -> list[tuple[int, Instruction]]:
        """The options of a device: first those that are possible, last those that wait."""
        levels = ((self._level(device, each, head.path), each) for each in head.options)
        return sorted(levels, key=lambda each: each[0])

    def _level(self, device: int, instruction: Instruction, path: Path) -> int:
        if not communicates_itself(instruction):
            return ENTERED
        tracer = self.tracers[device]
        probe = evolve(tracer, counts=Counter(tracer.counts))
        events = [*probe.at(instruction, path)]
        mine = [event.common for event in events]
        needs = [(d, key, count - mine.count(key)) for event in events for d, key, count in event.needs]
        return POSSIBLE if all(self.done[d][key] >= count for d, key, count in needs) else WAITING
