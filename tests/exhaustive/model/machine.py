"""One run: every device follows its own order with its own data, and they go on until nobody can.

A recv posts a buffer. The k-th send of a channel goes on when the k-th recv is posted (or a buffer is free), the k-th
recv-done when the k-th send has run. Who comes to a collective for the k-th time goes on when every member of its group
has come or started as often, and so does a done; an infeed goes on when there is an item.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Mapping
from typing import Any

from attrs import define, field, frozen

from ..arithmetic import folded
from ..program import Collective, Computation, Instruction, Program
from ..values import MOST_TRIPS, Code, Endless, chosen, compiled

Path = tuple[tuple[Instruction, str], ...]
Orders = Mapping[Computation, Code]  # where it is another than the one in which they stand
Data = tuple[tuple[int, ...], ...]  # for each device the numbers that it is given
Request = tuple[Instruction, Path, list[Any]]


@define(eq=False)
class Meeting:
    """A collective that some of its group have come to, with what they brought."""

    collective: Collective
    group: tuple[int, ...]
    brought: dict[int, Any] = field(factory=dict)
    results: dict[int, Any] | None = None

    def join(self, device: int, operand: Any) -> None:
        self.brought[device] = operand
        if len(self.brought) == len(self.group):
            self.results = results(self.collective, self.group, self.brought)


def results(collective: Collective, group: tuple[int, ...], brought: Mapping[int, Any]) -> dict[int, Any]:
    """What each member is given, once all have come."""
    values = [brought[member] for member in group]
    if collective.kind == "collective-permute":
        origin = {target: source for source, target in collective.pairs}
        return {each: brought[origin[each]] if each in origin else _zeros(brought[each]) for each in group}
    if collective.kind == "collective-broadcast":
        named = any(group[0] in each for each in collective.groups)
        return {each: values[0] if named else _zeros(values[0]) for each in group}
    if any(each is None for each in values):
        return dict.fromkeys(group)
    if collective.kind == "all-gather":
        return dict.fromkeys(group, sum(values, ()))
    if collective.kind == "all-to-all":
        return {each: _parts(values, number, len(group)) for number, each in enumerate(group)}
    assert collective.reducer is not None
    total = folded(collective.reducer.opcode, collective.reducer.split(".")[1], tuple(values))
    if collective.kind == "reduce-scatter":
        return {each: _parts([total], number, len(group)) for number, each in enumerate(group)}
    return dict.fromkeys(group, total)


def _zeros(like: Any) -> Any:
    return None if like is None else (0,) * len(like) if isinstance(like, tuple) else 0


def _parts(values: list[Any], number: int, count: int) -> Any:
    size = len(values[0]) // count
    return sum((each[number * size : (number + 1) * size] for each in values), ())


@frozen(eq=False)
class Outcome:
    """Whether all devices came to their end; else what each waits for (nothing where it has ended)."""

    ends: bool
    standing: tuple[Instruction | None, ...]
    traces: tuple[list[tuple[Any, ...]], ...] = ()


@define(eq=False)
class Device:
    """A device at work: its generator, what it waits for, and its counts of each event."""

    number: int
    work: Generator[Request, Any, Any]
    waits: tuple[Any, ...] | None = None
    request: Request | None = None
    ended: bool = False


class Machine:
    """A program with its data and one order on each device."""

    def __init__(self, program: Program, data: Data, orders: tuple[Orders, ...], *, is_traced: bool = False) -> None:
        self.program, self.data, self.is_traced = program, data, is_traced
        self.counts: dict[Any, int] = defaultdict(int)
        self.sent: dict[Any, Any] = {}
        self.meetings: dict[Any, Meeting] = {}
        self.traces: tuple[list[tuple[Any, ...]], ...] = tuple([] for _ in range(program.devices))
        self.devices = [Device(number, self._entry(number, orders[number])) for number in range(program.devices)]

    def _entry(self, number: int, orders: Orders) -> Generator[Request, Any, Any]:
        return Walker(orders, self.program.place(number)).walk(
            self.program.entries[number], [self.data[number], None], ()
        )

    def run(self) -> Outcome:
        for device in self.devices:
            self._resume(device, None)
        moved = True
        while moved:
            moved = False
            for device in self.devices:
                while not device.ended and (answer := self._answer(device)) is not None:
                    self._resume(device, answer[0])
                    moved = True
        standing = tuple(None if d.ended or d.request is None else d.request[0] for d in self.devices)
        return Outcome(not any(standing), standing, self.traces)

    def _resume(self, device: Device, answer: Any) -> None:
        try:
            device.request = device.work.send(answer)
        except StopIteration:
            device.ended = True
            return
        device.waits = self._asked(device.number, *device.request)
        if self.is_traced:
            self.traces[device.number].append(device.waits)

    def _asked(self, device: int, instruction: Instruction, path: Path, operands: list[Any]) -> tuple[Any, ...]:
        """The request as an event: it is counted, and who starts or comes is seen at once."""
        opcode, given = instruction.opcode, instruction.given
        if opcode == "infeed":
            return ("infeed", device, self._counted("infeed", device))
        if opcode in ("send", "recv"):
            peer = given.peer(device, sends=opcode == "send")
            if peer is None:
                return ("free", None)
            wire = (given.channel, device, peer) if opcode == "send" else (given.channel, peer, device)
            count = self._counted(opcode, wire)
            if opcode == "recv":
                return ("recv", wire, count)
            return ("send", wire, count, operands[0])
        if opcode == "recv-done":
            peer = given.peer(device, sends=False)
            if peer is None:
                return ("free", None)
            wire = (given.channel, peer, device)
            return ("recv-done", wire, self._counted(opcode, wire))
        if opcode == "send-done":
            return ("free", None)
        if opcode.endswith("-done"):
            return ("done", operands[0])
        return self._come(device, instruction, path, operands)

    def _come(self, device: int, instruction: Instruction, path: Path, operands: list[Any]) -> tuple[Any, ...]:
        collective = instruction.given
        group = collective.group(device)
        what = self._identity(instruction, path)
        key = what, group, self._counted("come", what, device)
        meeting = self.meetings.setdefault(key, Meeting(collective, group))
        meeting.join(device, operands[0])
        if instruction.opcode.endswith("-start"):
            return ("start", meeting)
        return ("meet", meeting, device)

    def _identity(self, instruction: Instruction, path: Path) -> Any:
        if self.program.is_one:
            return path, instruction
        if instruction.given.channel:
            return instruction.given.channel
        return tuple((each.name, role) for each, role in path), instruction.name

    def _counted(self, *key: Any) -> int:
        self.counts[key] += 1
        return self.counts[key]

    def _answer(self, device: Device) -> tuple[Any] | None:
        """What the device is given where it may go on."""
        assert device.waits is not None
        kind, what, *more = device.waits
        if kind in ("free", "recv"):
            return ((None, None),)
        if kind == "start":
            return (what,)
        if kind == "infeed":
            items = self.program.infeed
            return ((0, None),) if items is None or more[0] <= items[what] else None
        if kind == "send":
            if self.counts["recv", what] < more[0] - self.program.send_buffers:
                return None
            self.sent[what, more[0]] = more[1]
            return (None,)
        if kind == "recv-done":
            return ((self.sent[what, more[0]], None),) if (what, more[0]) in self.sent else None
        return None if what.results is None else (what.results[device.number],)


class Walker:
    """One device's way through its computations."""

    def __init__(self, orders: Orders, place: tuple[int, int]) -> None:
        self.orders, self.place = orders, place

    def walk(self, computation: Computation, arguments: list[Any], path: Path) -> Generator[Request, Any, Any]:
        code = self.orders.get(computation) or compiled(computation)
        env: list[Any] = [None] * code.size
        for index, number in code.parameters:
            env[index] = arguments[number]
        for step in code.steps:
            operands = [env[each] for each in step.operands]
            if step.ready is not None:
                env[step.index] = step.ready(operands, self.place)
            elif step.instruction.inner and step.instruction.opcode != "async-start":
                follow = getattr(self, f"_{step.instruction.opcode}")
                env[step.index] = yield from follow(step.instruction, operands, path)
            else:
                env[step.index] = yield step.instruction, path, operands
        return env[code.root]

    def _call(self, instruction: Instruction, operands: list[Any], path: Path) -> Generator[Request, Any, Any]:
        return self.walk(instruction.inner[0], operands, (*path, (instruction, "call")))

    def _conditional(self, instruction: Instruction, operands: list[Any], path: Path) -> Generator[Request, Any, Any]:
        branch = chosen(instruction, operands[0])
        return self.walk(instruction.inner[branch], [operands[1 + branch]], (*path, (instruction, f"branch {branch}")))

    def _while(self, instruction: Instruction, operands: list[Any], path: Path) -> Generator[Request, Any, Any]:
        condition, body = instruction.inner
        state = operands[0]
        for _ in range(MOST_TRIPS):
            if not (yield from self.walk(condition, [state], (*path, (instruction, "condition")))):
                return state
            state = yield from self.walk(body, [state], (*path, (instruction, "body")))
        raise Endless
