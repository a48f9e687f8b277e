"""Search for orders in which the programs end in given scenarios, and the order that ends in most of them.

Sections:

    Search: backtracking over orders of what communicates
    Candidates: the orders that are simulated, and the best of them
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from attrs import define, evolve, field, frozen

from ...core.graph import Computation, Instruction
from ...process.limits import ask
from ...process.progress import during
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
from ..deadlock.level_run import LevelContext
from ..deadlock.levels import LevelStage, arrange_instructions
from ..model.program import Orders
from .scenarios import Outcomes, Scenario, Scenarios
from .simulate import (
    ALL,
    Decide,
    DeviceWalker,
    EventKey,
    OpenPoint,
    SimulatedEvent,
    TooLongError,
    Walk,
    communicating_order,
)

# ----------------------------------------------------------------------------
# Search: backtracking over orders of what communicates
#
# Looks for orders in which the programs end in given scenarios. Posting instructions go as early and completing ones as
# late as possible: neither blocks another device, so if any order ends, one of this form does. The order of the rest is
# searched.

OrderKey: TypeAlias = tuple[Hashable, Computation]  # whose order (see `Search.owner`), and of which computation
Chosen: TypeAlias = dict[OrderKey, tuple[Instruction, ...]]  # the first instructions of the rest
Deciders: TypeAlias = Callable[[int], Decide]  # the decisions of each device in a scenario

MOST_STEPS = 100_000
MOST_ITEMS = 500  # communicating instructions of one computation
POSSIBLE, ENTERED, WAITING = range(3)


@frozen(eq=False)
class CommunicatingParts:
    """The communicating instructions of a computation: their predecessors, those to run early or late, the rest."""

    before: Mapping[Instruction, frozenset[Instruction]]
    early: frozenset[Instruction]
    late: frozenset[Instruction]
    rest: tuple[Instruction, ...]


@remembered
def order_parts(computation: Computation) -> CommunicatingParts:
    """The parts of a computation for the search, in recorded order."""
    before: dict[Instruction, frozenset[Instruction]] = {}
    reach: dict[Instruction, frozenset[Instruction]] = {}
    last: dict[Hashable, Instruction] = {}
    for instruction in linear(computation) or ():
        needed = {o for o in (*instruction.operands, *instruction.control) if reach.get(o)}
        if communicates_anywhere(instruction) and instruction.opcode not in SILENT:
            sequences = _sequences(instruction)
            needed |= {last[sequence] for sequence in sequences if sequence in last}
            last |= dict.fromkeys(sequences, instruction)
            before[instruction] = frozenset().union(*(reach[o] for o in needed))
            reach[instruction] = before[instruction] | {instruction}
        elif needed:
            reach[instruction] = reach[needed.pop()].union(*(reach[o] for o in needed))
    early = frozenset(each for each in before if each.opcode in POSTING)
    dones = frozenset(each for each in before if each.opcode in COMPLETING)
    late = dones.difference(*(before[each] for each in early))
    return CommunicatingParts(before, early, late, tuple(each for each in before if each not in early | late))


def _sequences(instruction: Instruction) -> list[Hashable]:
    """The sequences in which an instruction keeps its recorded order beyond dependencies; for a call, those inside."""
    inside = (site.instruction for called in instruction.called for site in sites(called))
    communicating = (instruction,) if communicates_itself(instruction) else inside
    return [sequence for one in communicating for sequence in sequences_of(one)]


@define(eq=False)
class Search:
    """The search for orders of one program; `gave_up` once it has taken too many steps."""

    context: LevelContext
    gave_up: bool = False
    _steps: int = 0
    _paths: Counter[Computation] = field(factory=Counter)

    def __attrs_post_init__(self) -> None:
        for entry in dict.fromkeys(device_class.module.entry for device_class in self.context.program.classes):
            self._paths += paths_of_calls(entry)
            if any(sum(map(communicates_anywhere, notable(c))) > MOST_ITEMS for c in reached(entry)):
                self.gave_up = True

    def order(self, scenarios: Sequence[Deciders]) -> Mapping[int, Orders] | None:
        """Orders in which the programs end in all of these scenarios; None if none was found."""
        with during("searching for an order", lambda: self._steps, None, "steps"):
            return self._order(scenarios)

    def _order(self, scenarios: Sequence[Deciders]) -> Mapping[int, Orders] | None:
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
                stack += [({**chosen, key: (*chosen.get(key, ()), option)}, number) for option in reversed(options)]
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
        """The key of an order: a device, or the program if one order serves all devices."""
        program = self.context.program
        return program.class_of[device].module if program.spmd else device

    def is_run_once(self, path: Path, computation: Computation) -> bool:
        repeated = any(step.instruction.opcode in LOOPS for step in path)
        return not repeated and not self.context.program.spmd and self._paths[computation] == 1

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
                    order = self._fill_order(computation, chosen[self.owner(device), computation])
                if order is not None and order != computation.instructions:
                    orders.append((computation, order))
            if orders:
                found[device] = tuple(orders)
        return found

    def _fill_order(self, computation: Computation, order: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
        walk = _walk_in_order(computation, lambda: order, lambda chosen: None)
        return arrange_instructions(computation, {each: None for each in walk if isinstance(each, Instruction)})


def _walk_in_order(
    computation: Computation, order: Callable[[], tuple[Instruction, ...]], choose: Callable[[Instruction], None]
) -> Iterator[Instruction | tuple[Instruction, ...]]:
    """A walk of a computation in an order of its rest; at the end of the order, the instructions that may come next."""
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


def paths_of_calls(entry: Computation) -> Counter[Computation]:
    """On how many paths of calls from the entry each communicating computation is reached."""
    found = Counter({entry: 1})
    for computation in reversed(reached(entry)):
        for instruction in notable(computation):
            for step in steps(instruction):
                if communicates(step.computation) and not communicates_itself(instruction):
                    found[step.computation] += found[computation]
    return found


@define(eq=False)
class _Attempt:
    """One simulation of a scenario in partial orders, until it ends, stops, or an order has to be extended."""

    search: Search
    scenario: Deciders
    chosen: Chosen
    is_only: bool
    tracers: dict[int, DeviceWalker] = field(factory=dict)
    done: dict[int, Counter[EventKey]] = field(factory=dict)
    heads: dict[int, SimulatedEvent | OpenPoint | None] = field(factory=dict)

    def run(self) -> tuple[OrderKey, list[Instruction]] | None:
        """None if the programs end; else the order to extend and its options, none if the programs stop."""
        context = self.search.context
        self.done[ALL] = Counter()
        for device, each in context.program.class_of.items():
            walk = communicating_order(each) if each.given else self._free(device)
            self.tracers[device] = DeviceWalker(context, device, walk, self.scenario(device))
            self.done[device] = Counter()
        traces = {device: tracer.trace() for device, tracer in self.tracers.items()}
        self.heads = {device: next(trace, None) for device, trace in traces.items()}
        while True:
            moved = [self._advance(device, trace) for device, trace in traces.items()]
            if self.search.gave_up:
                return self._nowhere, []
            if not any(self.heads.values()):
                return None
            if not any(moved) and not self._extend_greedily():
                return self._choose_extension()

    @property
    def _nowhere(self) -> OrderKey:
        return None, self.search.context.program.classes[0].module.entry

    def _free(self, device: int) -> Walk:
        owner = self.search.owner(device)

        def walk(computation: Computation) -> Iterator[Instruction | tuple[Instruction, ...]]:
            key = owner, computation
            return _walk_in_order(computation, lambda: self.chosen.get(key, ()), lambda each: self._choose(key, each))

        return walk

    def _choose(self, key: tuple[Hashable, Computation], instruction: Instruction) -> None:
        self.chosen[key] = (*self.chosen.get(key, ()), instruction)

    def _advance(self, device: int, trace: Iterator[SimulatedEvent | OpenPoint]) -> bool:
        """Advance a device as far as possible; whether it advanced at all."""
        moved = False
        while True:
            head = self.heads[device]
            if isinstance(head, SimulatedEvent) and head.is_possible(self.done) and not self.search.gave_up:
                head.record(device, self.done)
                self.search.step()
            elif not isinstance(head, OpenPoint) or self._is_open(device, head):
                return moved
            self.heads[device], moved = next(trace, None), True

    def _key(self, device: int, head: OpenPoint) -> OrderKey:
        entry = self.search.context.program.class_of[device].module.entry
        return self.search.owner(device), head.path[-1].computation if head.path else entry

    def _is_open(self, device: int, head: OpenPoint) -> bool:
        """Whether the order has no next instruction: none of the options is chosen."""
        chosen = self.chosen.get(self._key(device, head), ())
        return not any(option in chosen for option in head.options)

    def _extend_greedily(self) -> bool:
        """Extend an order by a possible instruction if it runs once in one scenario, since that blocks no device."""
        for device, head in self.heads.items():
            if self.is_only and isinstance(head, OpenPoint):
                key = self._key(device, head)
                level, first = self._options(device, head)[0]
                if level == POSSIBLE and self.search.is_run_once(head.path, key[1]):
                    self._choose(key, first)
                    return True
        return False

    def _choose_extension(self) -> tuple[OrderKey, list[Instruction]]:
        """The order to extend and its options: possible ones, as few as there are; none if no device has options."""
        found: list[tuple[int, int, OrderKey, list[Instruction]]] = []
        for device, head in self.heads.items():
            if isinstance(head, OpenPoint):
                options = self._options(device, head)
                found.append((options[0][0], len(options), self._key(device, head), [option for _, option in options]))
        return min(found, key=lambda extension: extension[:2])[2:] if found else (self._nowhere, [])

    def _options(self, device: int, head: OpenPoint) -> list[tuple[int, Instruction]]:
        """The options of a device: first those that are possible, last those that wait."""
        levels = ((self._level(device, option, head.path), option) for option in head.options)
        return sorted(levels, key=lambda pair: pair[0])

    def _level(self, device: int, instruction: Instruction, path: Path) -> int:
        if not communicates_itself(instruction):
            return ENTERED
        tracer = self.tracers[device]
        probe = evolve(tracer, counts=Counter(tracer.counts))
        events = [*probe.at(instruction, path)]
        mine = [event.common for event in events]
        needs = [(d, key, count - mine.count(key)) for event in events for d, key, count in event.needs]
        return POSSIBLE if all(self.done[d][key] >= count for d, key, count in needs) else WAITING


# ----------------------------------------------------------------------------
# Candidates: the orders that are simulated, and the best of them, which ends in most scenarios

MOST_ORDERS = 8  # scenarios for which the levels search for an order


@frozen(eq=False)
class Candidate:
    """Orders of the programs, and how the programs end in them."""

    orders: Mapping[int, Orders]
    context: LevelContext
    outcomes: Outcomes


@define(eq=False, slots=False)
class Candidates:
    """The orders of programs that are simulated, one after the other until the programs end in all scenarios."""

    context: LevelContext
    levels: LevelStage
    scenarios: Scenarios

    @cached_property
    def search(self) -> Search:
        return Search(self.context)

    @property
    def gave_up(self) -> bool:
        """Whether there are orders that were not searched."""
        return not self.context.program.given and self.search.gave_up

    def best(self) -> Candidate | None:
        """The orders in which the programs end in most scenarios; None if simulation would take too long."""
        best: Candidate | None = None
        for orders in self._list_orders():
            candidate = self._candidate(orders)
            if candidate is None:
                return None
            if best is None or candidate.outcomes.rank > best.outcomes.rank:
                best = candidate
            if best.outcomes.rank == 2:
                return best
        return best and self._search_orders(best)

    def _candidate(self, orders: Mapping[int, Orders]) -> Candidate | None:
        context = evolve(self.context, program=self.context.program.with_orders(orders))
        outcomes = self.scenarios.outcomes(context)
        return None if outcomes is None else Candidate(orders, context, outcomes)

    def _list_orders(self) -> Iterator[Mapping[int, Orders]]:
        """The order that binds or that the levels found; if they are stuck, those that run in some scenario."""
        found = self.levels.recorder.orders()
        yield found
        if self.context.program.given or not self.levels.is_refused:
            return
        seen = [found]
        for scenario in self.scenarios.enumerated[:MOST_ORDERS]:
            assumed = self.levels.assuming(self.context, self.scenarios.assumed(scenario))
            if not assumed.stuck and assumed.recorder.find_conflict() is None:
                orders = _merge_orders(found, assumed.recorder.orders())
                if orders not in seen:
                    seen.append(orders)
                    yield orders
        if {} not in seen:
            yield {}

    def _search_orders(self, best: Candidate) -> Candidate:
        """The first orders of the search in which the programs end in more scenarios; else these."""
        if self.context.program.given:
            return best
        for some in self._scenarios_to_search(best.outcomes):
            orders = self.search.order([self.scenarios.decide(scenario) for scenario in some])
            candidate = None if orders is None else self._candidate(orders)
            if candidate is not None and candidate.outcomes.rank > best.outcomes.rank:
                return candidate
        return best

    def _scenarios_to_search(self, outcomes: Outcomes) -> Iterator[list[Scenario]]:
        """The sets of scenarios to find an order for: all together, or if none ends, each separately."""
        scenarios, hopeless = self.scenarios.enumerated, self.scenarios.is_hopeless
        is_hopeless = outcomes.bad is not None and hopeless(outcomes.bad)
        if not is_hopeless and not any(map(hopeless, scenarios)):
            yield [*scenarios]
        if not outcomes.rank:
            yield from ([scenario] for scenario in scenarios if not hopeless(scenario))


def _merge_orders(first: Mapping[int, Orders], second: Mapping[int, Orders]) -> Mapping[int, Orders]:
    """The orders of both; if both have one of a computation, that of the second."""
    return {d: tuple({**dict(first.get(d, ())), **dict(second.get(d, ()))}.items()) for d in {**first, **second}}
