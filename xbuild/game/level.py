"""A level of the game: the states of a program, from which of them it can still end, and where it hangs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from shape_inference import refuse

from ..checking.dataflow.decisions import Decisions
from ..checking.model.program import program_of, runnable
from ..checking.model.verdict import CheckArguments, Verdict
from ..checking.scenarios import Scenarios
from ..checking.stages import context_of
from ..core.graph import Computation, Module, ModuleGroup
from ..process.recursion_limit import room_for_calls
from ..properties.sites import Site
from .items import Board, board_of
from .states import States, Wait


@frozen
class Case:
    """One scenario: its words, its board and its states; `can_end` and `can_hang` for each state."""

    words: str
    board: Board
    states: States
    can_end: tuple[bool, ...]
    can_hang: tuple[bool, ...]


@frozen
class Level:
    """A program as a game: its name, and its cases, of which the data decide."""

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
        """What the page reads: names of items, and for each case its states with moves, waits and verdicts."""
        return {"name": self.name, "cases": [_case(case) for case in self.cases]}


def level_of(
    program: Computation | Module | ModuleGroup,
    *,
    name: str | None = None,
    send_buffers: float = 0,
    infeed: Mapping[int, int] | None = None,
) -> Level:
    """The level of a program: every order in which its devices may begin what they do, and how each ends.

    `send_buffers` and `infeed` are those of `xb.check`. With one program for all devices these keep one order.
    Raises XbuildError: invalid_attribute for a program of a structure that the check refuses, too_many_states for one
    of more than 3,000 states.

    >>> import xbuild as xb
    >>> total = xb.Module("total", xb.computation(xb.f32[2])(xb.cross_replica_sum), num_replicas=2)
    >>> level = level_of(total)
    >>> level.can_end, level.can_hang
    (True, False)
    """
    asked = CheckArguments(program_of(runnable(program), None), send_buffers, dict(infeed) if infeed else None)
    with room_for_calls({each.module.entry for each in asked.program.classes}):
        context = context_of(asked)
        if isinstance(context, Verdict):
            first = str(context).partition("\n")[0]
            refuse("invalid_attribute", f"there is no game of a program that the check refuses: {first}")
        scenarios = Scenarios(context, Decisions(asked.program))
        cases = [_explored(board_of(context, scenarios, n), _words(scenarios, n)) for n in _numbers(scenarios)]
    return Level(name or str(getattr(program, "name", "game")), tuple(cases))


def _numbers(scenarios: Scenarios) -> Sequence[int]:
    if len(scenarios.enumerated) > _MOST_CASES:
        count = len(scenarios.enumerated)
        refuse("too_many_states", f"the data of the program decide in {count} ways, and a page has {_MOST_CASES}")
    return range(len(scenarios.enumerated))


_MOST_CASES = 16


def _words(scenarios: Scenarios, number: int) -> str:
    """The decisions of the data, in words."""
    values = scenarios.enumerated[number]
    return "; ".join(choice.text(value) for choice, value in zip(scenarios.choices, values, strict=True))


def _explored(board: Board, words: str) -> Case:
    states = States(board).explore()
    ends = [number for number in range(len(states.states)) if states.is_end(number)]
    hangs = [n for n, moves in enumerate(states.moves) if not moves and not states.is_end(n)]
    return Case(words, board, states, _reaching(states, ends), _reaching(states, hangs))


def _reaching(states: States, targets: Iterable[int]) -> tuple[bool, ...]:
    """For each state whether moves lead from it to one of these."""
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


def _case(case: Case) -> dict[str, Any]:
    waits: dict[str, int] = {}
    rows = [_row(case, number, waits) for number in range(len(case.states.states))]
    devices = [
        [[item.instruction.name, item.instruction.opcode.replace("_", "-"), item.before] for item in items]
        for items in case.board.items.values()
    ]
    return {"words": case.words, "devices": devices, "states": rows, "waits": [*waits]}


def _row(case: Case, number: int, waits: dict[str, int]) -> list[Any]:
    """A state: [begun, item, words of the wait] for each device, its moves, whether it can end, whether it can hang."""
    told = {wait.device: waits.setdefault(_told(wait), len(waits)) for wait in case.states.waits(number)}
    places = [
        [begun, at, told.get(device, -1)]
        for device, (begun, at, _) in zip(case.board.items, case.states.states[number], strict=True)
    ]
    moves = [[device, item, after] for (device, item), after in case.states.moves[number].items()]
    return [places, moves, int(case.can_end[number]), int(case.can_hang[number])]


def _told(wait: Wait) -> str:
    """What a device waits for, in words."""
    if wait.event.is_starved:
        return "waits for an item of its infeed, and there is none left"
    whom = _devices(wait.missing)
    site: Site = wait.event.site
    role = wait.event.does[0].name
    what = {
        "sent": "to post the buffer of its recv",
        "accepted": "to post the buffer of its recv",
        "received": "to send",
    }.get(role, f"to come to {_same(site)}")
    return f"waits for {whom} {what}"


def _same(site: Site) -> str:
    return f"{site.instruction.opcode.removesuffix('_done').replace('_', '-')} ({site.instruction.name})"


def _devices(devices: Sequence[int]) -> str:
    if len(devices) == 1:
        return f"device {devices[0]}"
    return f"devices {', '.join(map(str, devices[:-1]))} and {devices[-1]}" if devices else "its own operands"
