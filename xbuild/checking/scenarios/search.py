"""An order of each free program with which it ends in given scenarios: all of them are tried, as far as they differ.

What only posts goes as early as it can, and what only waits for a value as late: neither keeps anybody from going on,
so that where any order ends, one of this form does. What is left to choose is the order of the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import define, evolve, field, frozen

from ...core.graph import Computation, Instruction
from ...process.deadline import ask
from ...properties.effects import FEEDS, LOOPS, Path, acts, communicates, notable, remembered, steps, talks
from ...properties.order import linear
from ...properties.sites import reached, sites
from ..dataflow.analysis import Key, key_of
from ..deadlock.orders import arranged
from ..deadlock.run import Context
from ..model.verdict import Orders
from .simulate import ALL, Decide, Open, SimulatedEvent, TooLongError, Tracer, Walk, order_of

OrderKey: TypeAlias = tuple[Hashable, Computation]  # whose order of which computation
Chosen: TypeAlias = dict[OrderKey, tuple[Instruction, ...]]  # what of the rest comes first
Scenario: TypeAlias = Callable[[int], Decide]  # how a device decides

MOST_STEPS = 100_000
MOST_ITEMS = 500  # of one computation
SILENT = ("send_done", "outfeed")  # what nobody waits for, and what waits for nobody
POSSIBLE, ENTERED, WAITING = range(3)


@frozen(eq=False)
class Parts:
    """What communicates in a computation: what each comes after, what goes early, what goes late, what is left."""

    before: Mapping[Instruction, frozenset[Instruction]]
    early: frozenset[Instruction]
    late: frozenset[Instruction]
    rest: tuple[Instruction, ...]


@remembered
def parts(computation: Computation) -> Parts:
    """The parts of a computation, in recorded order."""
    before: dict[Instruction, frozenset[Instruction]] = {}
    reach: dict[Instruction, frozenset[Instruction]] = {}
    last: dict[object, Instruction] = {}
    for each in linear(computation) or ():
        needed = {o for o in (*each.operands, *each.control) if reach.get(o)}
        if talks(each) and each.opcode not in SILENT:
            queues = _queues(each)
            needed |= {last[queue] for queue in queues if queue in last}
            last |= dict.fromkeys(queues, each)
            before[each] = frozenset().union(*(reach[o] for o in needed))
            reach[each] = before[each] | {each}
        elif needed:
            reach[each] = reach[needed.pop()].union(*(reach[o] for o in needed))
    early = frozenset(each for each in before if each.opcode == "recv" or each.opcode.endswith("_start"))
    dones = frozenset(each for each in before if each.opcode.endswith("_done"))
    late = dones.difference(*(before[each] for each in early))
    return Parts(before, early, late, tuple(each for each in before if each not in early | late))


def _queues(instruction: Instruction) -> list[object]:
    """What keeps its recorded order: each feed, each half of a channel, a collective with itself."""
    inside = [site.instruction for called in instruction.called for site in sites(called)]
    found = [instruction] if acts(instruction) else inside
    return [
        (i.opcode, getattr(i.attributes, "channel_id", None)) if i.opcode in (*FEEDS, "send", "recv") else i
        for i in found
    ]


@define(eq=False)
class Search:
    """The search in one program; `gave_up` once it has taken too many steps to go on."""

    context: Context
    gave_up: bool = False
    _steps: int = 0
    _once: dict[Computation, set[Key]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for each in self.context.program.classes:
            self._count(each.module.entry, ())
            if any(sum(map(talks, notable(c))) > MOST_ITEMS for c in reached(each.module.entry)):
                self.gave_up = True

    def _count(self, computation: Computation, path: Path) -> None:
        """Each place from which a computation is run."""
        self._once.setdefault(computation, set()).add(key_of(computation.root, path))
        for instruction in notable(computation):
            for step in steps(instruction):
                if communicates(step.computation) and not acts(instruction):
                    self._count(step.computation, (*path, step))

    def order(self, scenarios: Sequence[Scenario]) -> Mapping[int, Orders] | None:
        """Orders in which the programs end in all of these scenarios."""
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
        self, scenarios: Sequence[Scenario], number: int, chosen: Chosen
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
        """Who has an order of its own: a device, or where one program serves all, that program."""
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
    """A run of a computation in an order of its rest; the options where that has an end."""
    has = parts(computation)
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
    """One run in a scenario with what is chosen, until it ends, stops, or there is something to choose."""

    search: Search
    scenario: Scenario
    chosen: Chosen
    is_only: bool
    tracers: dict[int, Tracer] = field(factory=dict)
    done: dict[int, Counter[Hashable]] = field(factory=dict)
    heads: dict[int, SimulatedEvent | Open | None] = field(factory=dict)

    def run(self) -> tuple[OrderKey, list[Instruction]] | None:
        """None where it ends; else where to choose and between what, which is nothing where it stops."""
        context = self.search.context
        self.done[ALL] = Counter()
        for device, each in context.program.class_of.items():
            walk = order_of(each) if each.given else self._free(device)
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
        """Go on as far as possible; whether that was anywhere."""
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
        """Whether nothing is chosen yet: all that is chosen is done, or goes first."""
        chosen = self.chosen.get(self._key(device, head), ())
        return not any(option in chosen for option in head.options)

    def _greedy(self) -> bool:
        """In one scenario, and where an order is followed once, what is possible is done at once: it keeps nobody."""
        for device, head in self.heads.items():
            if self.is_only and isinstance(head, Open):
                key = self._key(device, head)
                level, first = self._options(device, head)[0]
                if level == POSSIBLE and self.search.is_run_once(head.path, key[1]):
                    self._choose(key, first)
                    return True
        return False

    def _branches(self) -> tuple[OrderKey, list[Instruction]]:
        """Where to choose, and between what: there where most is possible; nothing where no device has a choice."""
        found: list[tuple[int, int, OrderKey, list[Instruction]]] = []
        for device, head in self.heads.items():
            if isinstance(head, Open):
                options = self._options(device, head)
                found.append((options[0][0], len(options), self._key(device, head), [each for _, each in options]))
        return min(found, key=lambda each: each[:2])[2:] if found else (self._nowhere, [])

    def _options(self, device: int, head: Open) -> list[tuple[int, Instruction]]:
        """What may come next, first what is possible, last what waits."""
        levels = ((self._level(device, each, head.path), each) for each in head.options)
        return sorted(levels, key=lambda each: each[0])

    def _level(self, device: int, instruction: Instruction, path: Path) -> int:
        if not acts(instruction):
            return ENTERED
        tracer = self.tracers[device]
        probe = evolve(tracer, counts=Counter(tracer.counts))
        events = [*probe.at(instruction, path)]
        mine = [event.common for event in events]
        needs = [(d, key, count - mine.count(key)) for event in events for d, key, count in event.needs]
        return POSSIBLE if all(self.done[d][key] >= count for d, key, count in needs) else WAITING
