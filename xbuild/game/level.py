"""A level of the game: all states of a small program, which of them can still end, and where the program hangs.

Sections:

    Items of a level
    States of a board
    A level: all states of a program
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

from attrs import define, field, frozen

from shape_inference import refuse

from ..checking.dataflow.decisions import Decisions
from ..checking.deadlock.level_run import LevelContext
from ..checking.model.program import DeviceClass, as_program, program_of
from ..checking.model.verdict import CheckArguments, Verdict
from ..checking.scenarios import (
    ALL,
    MOST_EVENTS,
    EventKey,
    Scenarios,
    SimulatedEvent,
    TooLongError,
    Traces,
    order_parts,
)
from ..checking.stages import context_of
from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..process.limits import room_for_calls
from ..properties.sites import Site

# ----------------------------------------------------------------------------
# Items of a level
#
# The items that each device may start next, their order, and the events of each item.


@frozen
class Item:
    """A communicating instruction of an entry computation, the items before it as a set of bits, and its events."""

    instruction: Instruction
    before: int
    events: tuple[SimulatedEvent, ...]


@frozen
class Board:
    """The items of each device in one scenario; devices that run one program start their items in one order."""

    items: Mapping[int, tuple[Item, ...]]
    is_common_order: bool


def board_of(context: LevelContext, scenarios: Scenarios, scenario: int) -> Board:
    """The board of a scenario, by its number; raises too_many_states if the devices communicate too often."""
    try:
        traces = scenarios.traces(context, scenarios.enumerated[scenario])
    except TooLongError:
        refuse(
            "too_many_states",
            f"the devices communicate in more than {MOST_EVENTS:,} steps, which is too many for a page",
            "reduce the trip counts of loops, or the number of calls",
        )
    program = context.program
    items = {device: tuple(_items(program.class_of[device], traces, device)) for device in program.devices}
    return Board(items, program.spmd and len(program.devices) > 1)


def _items(each: DeviceClass, traces: Traces, device: int) -> Iterator[Item]:
    """The items of a device in the recorded order, each with the events of the trace that it contains."""
    parts = order_parts(each.module.entry)
    given = [i for i in each.order(each.module.entry) if i in parts.number]
    number = {instruction: place for place, instruction in enumerate(given)}
    inside: dict[Instruction, list[SimulatedEvent]] = {instruction: [] for instruction in given}
    for event in traces[device]:
        path = event.site.path
        inside[path[0].instruction if path else event.site.instruction].append(event)
    for place, instruction in zip(count(), given, strict=False):
        earlier = [place - 1] if each.given and place else [number[one] for one in parts.predecessors(instruction)]
        yield Item(instruction, sum(1 << one for one in set(earlier)), tuple(inside[instruction]))


# ----------------------------------------------------------------------------
# States of a board
#
# The items that each device has started, where it waits, and the possible moves.

MOST_STATES = 3000

Place: TypeAlias = tuple[
    int, int, int
]  # the started items, as bits; the item at which the device waits, or -1; its event
State: TypeAlias = tuple[Place, ...]
Move: TypeAlias = tuple[int, int]  # a device, and the item that it starts


@frozen
class GameWait:
    """Where a device waits: the item, the event that it waits for, and the devices that have not arrived."""

    device: int
    item: int
    event: SimulatedEvent
    missing: tuple[int, ...]


@define
class States:
    """All states that moves reach from the first, in the order of their discovery.

    After a move, every device goes on as far as it can. The order of devices does not matter, since a possible event
    stays possible.
    """

    board: Board
    orders: list[tuple[tuple[int, ...], ...]] = field(factory=list)
    states: list[State] = field(factory=list)
    moves: list[dict[Move, int]] = field(factory=list)

    def explore(self) -> States:
        """Find all states; raises too_many_states if there are more than MOST_STATES."""
        start = self._advance_all(tuple((0, -1, 0) for _ in self.board.items))
        known = {self._key(start, ()): 0}
        self.states, self.moves, self.orders = [start], [{}], [()]
        waiting = deque([0])
        while waiting:
            number = waiting.popleft()
            for move in self._legal_moves(self.states[number], self.orders[number]):
                after, order = self._after(number, move)
                key = self._key(after, order)
                if key not in known:
                    known[key] = len(self.states)
                    self._enter(after, order)
                    waiting.append(known[key])
                self.moves[number][move] = known[key]
        return self

    def _enter(self, state: State, order: tuple[tuple[int, ...], ...]) -> None:
        if len(self.states) == MOST_STATES:
            refuse(
                "too_many_states",
                f"the program has more than {MOST_STATES} states, which is too many for a page",
                "use a program with fewer ops",
            )
        self.states.append(state)
        self.moves.append({})
        self.orders.append(order)

    def _key(self, state: State, order: tuple[tuple[int, ...], ...]) -> tuple[State, tuple[tuple[int, ...], ...]]:
        return state, order

    def _legal_moves(self, state: State, order: tuple[tuple[int, ...], ...]) -> Iterator[Move]:
        """Yield the items that devices may start; in a common order, a device follows the devices ahead of it."""
        for (device, items), (begun, at, _) in zip(self.board.items.items(), state, strict=True):
            if at >= 0:
                continue
            ready = [n for n, item in enumerate(items) if not begun >> n & 1 and item.before & ~begun == 0]
            common = order[0] if order else ()
            if self.board.is_common_order and begun.bit_count() < len(common):
                ready = [n for n in ready if n == common[begun.bit_count()]]
            yield from ((device, n) for n in ready)

    def _after(self, number: int, move: Move) -> tuple[State, tuple[tuple[int, ...], ...]]:
        device, item = move
        state, order = self.states[number], self.orders[number]
        index = [*self.board.items].index(device)
        begun = state[index][0]
        if self.board.is_common_order:
            common = order[0] if order else ()
            order = ((*common, item),) if begun.bit_count() == len(common) else order
        moved = (*state[:index], (begun | 1 << item, item, 0), *state[index + 1 :])
        return self._advance_all(moved), order

    def _advance_all(self, state: State) -> State:
        """The state after every device has gone on as far as it can."""
        done = self._counts(state)
        places = [list(place) for place in state]
        moved = True
        while moved:
            moved = False
            for place, (device, items) in zip(places, self.board.items.items(), strict=True):
                while place[1] >= 0 and self._advance(place, items[place[1]], device, done):
                    moved = True
        return tuple((begun, at, event) for begun, at, event in places)

    def _advance(self, place: list[int], item: Item, device: int, done: Mapping[int, Counter[EventKey]]) -> bool:
        """Advance a device by one event, or end its item; returns False if the device waits."""
        if place[2] == len(item.events):
            place[1], place[2] = -1, 0
            return True
        event = item.events[place[2]]
        if event.is_possible(done):
            event.record(device, done)
            place[2] += 1
            return True
        return False

    def _counts(self, state: State) -> dict[int, Counter[EventKey]]:
        """The events that have happened, by device."""
        done: dict[int, Counter[EventKey]] = {device: Counter() for device in (ALL, *self.board.items)}
        for (device, items), (begun, at, position) in zip(self.board.items.items(), state, strict=True):
            for number, item in enumerate(items):
                if begun >> number & 1:
                    for event in item.events[: position if number == at else None]:
                        event.record(device, done)
        return done

    def is_end(self, number: int) -> bool:
        """Whether every device has ended."""
        return all(
            at < 0 and begun == (1 << len(items)) - 1
            for items, (begun, at, _) in zip(self.board.items.values(), self.states[number], strict=True)
        )

    def waits(self, number: int) -> Iterator[GameWait]:
        """Yield the devices that wait in a state, and the devices that they wait for."""
        state = self.states[number]
        done = self._counts(state)
        for (device, items), (_, at, position) in zip(self.board.items.items(), state, strict=True):
            if at >= 0:
                event = items[at].events[position]
                yield GameWait(device, at, event, tuple(_missing(event, done)))


def _missing(event: SimulatedEvent, done: Mapping[int, Counter[EventKey]]) -> Iterator[int]:
    """Yield the devices whose events have not happened yet."""
    for device, key, needed in event.needs:
        if device != ALL:
            if done[device][key] < needed:
                yield device
        else:
            kind, identity, turn = key
            yield from (each for each in event.members if done[each][kind, identity] < turn)


# ----------------------------------------------------------------------------
# A level: all states of a program
#
# Which states can still end, and where the program hangs.


@frozen
class Case:
    """One scenario: its words, its board, its states, and for each state whether it can end and whether it can hang."""

    words: str
    board: Board
    states: States
    can_end: tuple[bool, ...]
    can_hang: tuple[bool, ...]


@frozen
class Level:
    """A program as a game: its name and its cases; the data decide which case happens."""

    name: str
    cases: tuple[Case, ...]

    @property
    def can_end(self) -> bool:
        """Whether some order of moves ends, with some data."""
        return any(case.can_end[0] for case in self.cases)

    @property
    def can_hang(self) -> bool:
        """Whether some order of moves hangs, with some data."""
        return any(case.can_hang[0] for case in self.cases)

    def to_dict(self) -> dict[str, Any]:
        """The data of the page: names of items, and for each case its states with moves, waits and verdicts."""
        return {"name": self.name, "cases": [case_data(case) for case in self.cases]}


def level_of(
    program: Computation | Module | ModuleGroup,
    *,
    name: str | None = None,
    send_buffers: float = 0,
    infeed: Mapping[int, int] | None = None,
) -> Level:
    """The level of a program: every order in which its devices may start their instructions, and how each order ends.

    `send_buffers` and `infeed` are those of `xb.check`. Devices that run one program keep one order.
    Raises XbuildError: invalid_attribute for a program whose structure the check refuses, too_many_states for a program
    with more than 3,000 states.

    >>> import xbuild as xb
    >>> total = xb.Module("total", xb.computation(xb.f32[2])(xb.cross_replica_sum), num_replicas=2)
    >>> level = level_of(total)
    >>> level.can_end, level.can_hang
    (True, False)
    """
    asked = CheckArguments(program_of(as_program(program), None), send_buffers, dict(infeed) if infeed else None)
    with room_for_calls({each.module.entry for each in asked.program.classes}):
        context = context_of(asked)
        if isinstance(context, Verdict):
            first = str(context).partition("\n")[0]
            refuse(
                "invalid_attribute", f"the check refuses the structure of this program, so it cannot be played: {first}"
            )
        scenarios = Scenarios(context, Decisions(asked.program))
        cases = [
            explored(board_of(context, scenarios, n), _scenario_text(scenarios, n))
            for n in _scenario_numbers(scenarios)
        ]
    return Level(name or str(getattr(program, "name", "game")), tuple(cases))


def _scenario_numbers(scenarios: Scenarios) -> Sequence[int]:
    if len(scenarios.enumerated) > _MOST_CASES:
        count = len(scenarios.enumerated)
        refuse("too_many_states", f"the data can lead to {count} cases, but a page holds at most {_MOST_CASES}")
    return range(len(scenarios.enumerated))


_MOST_CASES = 16


def _scenario_text(scenarios: Scenarios, number: int) -> str:
    """The decisions that the data make, in words."""
    values = scenarios.enumerated[number]
    return "; ".join(choice.text(value) for choice, value in zip(scenarios.choices, values, strict=True))


def explored(board: Board, words: str) -> Case:
    """The case of a board: all its states, and which of them can end and hang."""
    states = States(board).explore()
    ends = [number for number in range(len(states.states)) if states.is_end(number)]
    hangs = [n for n, moves in enumerate(states.moves) if not moves and not states.is_end(n)]
    return Case(words, board, states, _reaching(states, ends), _reaching(states, hangs))


def _reaching(states: States, targets: Iterable[int]) -> tuple[bool, ...]:
    """For each state, whether moves lead from it to one of the targets."""
    before: list[list[int]] = [[] for _ in states.states]
    for number, moves in enumerate(states.moves):
        for after in moves.values():
            before[after].append(number)
    found = [False] * len(states.states)
    waiting = deque(targets)
    while waiting:
        number = waiting.popleft()
        if not found[number]:
            found[number] = True
            waiting.extend(before[number])
    return tuple(found)


def case_data(case: Case) -> dict[str, Any]:
    """A case for the page: its words, the items of its devices, its states, and the texts of the waits."""
    waits: dict[str, int] = {}
    rows = [_row(case, number, waits) for number in range(len(case.states.states))]
    devices = [
        [[item.instruction.name, item.instruction.opcode.replace("_", "-"), item.before] for item in items]
        for items in case.board.items.values()
    ]
    return {"words": case.words, "devices": devices, "states": rows, "waits": [*waits]}


def _row(case: Case, number: int, waits: dict[str, int]) -> list[Any]:
    """A state: [started, item, words of the wait] for each device, its moves, and whether it can end and can hang."""
    wait_of = {wait.device: waits.setdefault(wait_text(wait), len(waits)) for wait in case.states.waits(number)}
    places = [
        [begun, at, wait_of.get(device, -1)]
        for device, (begun, at, _) in zip(case.board.items, case.states.states[number], strict=True)
    ]
    moves = [[device, item, after] for (device, item), after in case.states.moves[number].items()]
    return [places, moves, int(case.can_end[number]), int(case.can_hang[number])]


def wait_text(wait: GameWait) -> str:
    """The wait of a device, in words."""
    if wait.event.is_starved:
        return "waits for an infeed item, but the infeed is empty"
    whom = _devices(wait.missing)
    site: Site = wait.event.site
    role = wait.event.does[0].name
    what = {
        "sent": "to post the buffer of its recv",
        "accepted": "to post the buffer of its recv",
        "received": "to send",
    }.get(role, f"to reach {_site_text(site)}")
    return f"waits for {whom} {what}"


def _site_text(site: Site) -> str:
    return f"{site.instruction.opcode.removesuffix('_done').replace('_', '-')} ({site.instruction.name})"


def _devices(devices: Sequence[int]) -> str:
    if len(devices) == 1:
        return f"device {devices[0]}"
    return f"devices {', '.join(map(str, devices[:-1]))} and {devices[-1]}" if devices else "its own operands"
