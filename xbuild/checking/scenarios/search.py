"""Search for orders in which the programs end in given scenarios, and the order that ends in most of them.

Sections:

    Search: backtracking over orders of what communicates
    Candidates: the orders that are simulated, and the best of them
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import ChainMap, Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush
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
    Decide,
    DeviceWalker,
    Happened,
    Need,
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
    """The communicating instructions of a computation in recorded order, and the bits of those that each comes after.

    Instruction n has bit n; `early` and `late` are the bits of those to run early or late, `rest` lists the others.
    """

    items: tuple[Instruction, ...]
    before: tuple[int, ...]
    early: int
    late: int
    rest: tuple[Instruction, ...]
    number: Mapping[Instruction, int]

    def predecessors(self, instruction: Instruction) -> Iterator[Instruction]:
        """Those that an instruction comes after."""
        return map(self.items.__getitem__, _numbers(self.before[self.number[instruction]]))


def _numbers(bits: int) -> Iterator[int]:
    """The numbers of the bits that are set, in order."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


@remembered
def order_parts(computation: Computation) -> CommunicatingParts:
    """The parts of a computation for the search, in recorded order."""
    number: dict[Instruction, int] = {}
    found: list[int] = []
    reach: dict[Instruction, int] = {}  # the bits of all items up to an instruction
    last: dict[Hashable, Instruction] = {}
    for instruction in linear(computation) or ():
        before = 0
        for operand in (*instruction.operands, *instruction.control):
            before |= reach.get(operand, 0)
        if communicates_anywhere(instruction) and instruction.opcode not in SILENT:
            sequences = _sequences(instruction)
            for sequence in sequences:
                if sequence in last:
                    before |= reach[last[sequence]]
            last |= dict.fromkeys(sequences, instruction)
            number[instruction] = len(found)
            reach[instruction] = before | 1 << len(found)
            found.append(before)
        elif before:
            reach[instruction] = before
    early = sum(1 << n for each, n in number.items() if each.opcode in POSTING)
    late = sum(1 << n for each, n in number.items() if each.opcode in COMPLETING)
    for n in _numbers(early):
        late &= ~found[n]
    rest = tuple(each for each, n in number.items() if not (early | late) >> n & 1)
    return CommunicatingParts(tuple(number), tuple(found), early, late, rest, number)


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
    computation: Computation, order: Callable[[], Sequence[Instruction]], choose: Callable[[Instruction], None]
) -> Iterator[Instruction | tuple[Instruction, ...]]:
    """A walk of a computation in an order of its rest; at the end of the order, the instructions that may come next."""
    has = order_parts(computation)
    walk = _PartialOrder(has)
    for place in range(len(has.rest)):
        yield from walk.take_early()
        while place == len(order()):
            if len(walk.options) > 1:
                yield tuple([has.items[n] for n in walk.options])
            else:
                choose(has.items[walk.options[0]])
        yield from walk.take(order()[place])
    yield from walk.take_early()
    yield from (has.items[n] for n in _numbers((1 << len(has.items)) - 1 & ~walk.done))


@define(eq=False)
class _PartialOrder:
    """The instructions of a computation that are done in a walk, and those of the rest that may come next.

    An instruction that waits is watched from the last instruction that it comes after and that is not done.
    """

    has: CommunicatingParts
    done: int = 0
    options: list[int] = field(factory=list)
    _early: list[int] = field(factory=list)
    _watchers: dict[int, list[int]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for n in range(len(self.has.items)):
            if not self.has.late >> n & 1:
                self._watch(n)

    def take_early(self) -> Iterator[Instruction]:
        """The instructions to run early that come after nothing else, in recorded order."""
        while self._early:
            yield self._finish(heappop(self._early))

    def take(self, instruction: Instruction) -> Iterator[Instruction]:
        """An instruction of the rest, after those to run late that it comes after."""
        number = self.has.number[instruction]
        for late in _numbers(self.has.before[number] & self.has.late & ~self.done):
            yield self._finish(late)
        del self.options[bisect_left(self.options, number)]
        yield self._finish(number)

    def _finish(self, number: int) -> Instruction:
        self.done |= 1 << number
        for watcher in self._watchers.pop(number, ()):
            self._watch(watcher)
        return self.has.items[number]

    def _watch(self, number: int) -> None:
        missing = self.has.before[number] & ~(self.done | self.has.late)
        if missing:
            self._watchers.setdefault(missing.bit_length() - 1, []).append(number)
        elif self.has.early >> number & 1:
            heappush(self._early, number)
        else:
            insort(self.options, number)


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
    traces: dict[int, Iterator[SimulatedEvent | OpenPoint]] = field(factory=dict)
    happened: Happened[int] = field(factory=Happened)
    heads: dict[int, SimulatedEvent | OpenPoint | None] = field(factory=dict)
    _open: list[int] = field(
        factory=list
    )  # the places, among the devices, of open points that may have a possible option
    _waits: dict[tuple[int, Instruction], Need] = field(factory=dict)  # of options, until they are possible

    def run(self) -> tuple[OrderKey, list[Instruction]] | None:
        """None if the programs end; else the order to extend and its options, none if the programs stop."""
        context = self.search.context
        for device, each in context.program.class_of.items():
            walk = communicating_order(each) if each.given else self._free(device)
            self.tracers[device] = DeviceWalker(context, device, walk, self.scenario(device))
        self.traces = {device: tracer.trace() for device, tracer in self.tracers.items()}
        self.heads = {device: next(trace, None) for device, trace in self.traces.items()}
        moving = [*self.traces]
        while True:
            while moving:
                self._advance(moving.pop(), moving)
            if self.search.gave_up:
                return self._nowhere, []
            if not any(self.heads.values()):
                return None
            extended = self._extend_greedily()
            if extended is None:
                return self._choose_extension()
            moving.append(extended)

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

    def _advance(self, device: int, moving: list[int]) -> None:
        """Advance a device as far as possible, and list the devices that waited for its events as moving."""
        trace, head = self.traces[device], self.heads[device]
        while head is not None and not self.search.gave_up:
            if isinstance(head, SimulatedEvent):
                need = self.happened.missing(head.needs)
                if need is not None:
                    self.happened.wait(need, device)
                    break
                for other in self.happened.record(device, head):
                    if isinstance(self.heads[other], OpenPoint):
                        heappush(self._open, other)
                    else:
                        moving.append(other)
                self.search.step()
            elif self._is_open(device, head):
                heappush(self._open, device)
                break
            head = next(trace, None)
        self.heads[device] = head

    def _key(self, device: int, head: OpenPoint) -> OrderKey:
        entry = self.search.context.program.class_of[device].module.entry
        return self.search.owner(device), head.path[-1].computation if head.path else entry

    def _is_open(self, device: int, head: OpenPoint) -> bool:
        """Whether the order has no next instruction: none of the options is chosen."""
        chosen = self.chosen.get(self._key(device, head), ())
        return not any(option in chosen for option in head.options)

    def _extend_greedily(self) -> int | None:
        """Extend an order by a possible instruction if it runs once in one scenario, since that blocks no device.

        Returns the device whose order it is, or None.
        """
        while self.is_only and self._open:
            device = heappop(self._open)
            head = self.heads[device]
            if not isinstance(head, OpenPoint) or not self._is_open(device, head):
                continue
            key = self._key(device, head)
            if self.search.is_run_once(head.path, key[1]):
                for option in head.options:
                    if self._level(device, option, head.path) == POSSIBLE:
                        self._choose(key, option)
                        return device
        return None

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
        need = self._waits.get((device, instruction))
        if need is None or not self.happened.missing((need,)):
            need = self._missing_need(device, instruction, path)
            if need is None:
                return POSSIBLE
            self._waits[device, instruction] = need
            self.happened.wait(need, device)
        return WAITING

    def _missing_need(self, device: int, instruction: Instruction, path: Path) -> Need | None:
        """What an instruction would wait for as the next one of its device, beyond what it does itself."""
        tracer = self.tracers[device]
        events = [*evolve(tracer, counts=ChainMap({}, tracer.counts)).at(instruction, path)]
        mine = [event.common for event in events]
        return self.happened.missing(
            (awaited, key, count - mine.count(key)) for event in events for awaited, key, count in event.needs
        )


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
