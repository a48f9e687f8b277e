"""Enumeration of a program's runs: every interleaving of its devices, every legal order, all data.

The rules, of the definition alone. A recv posts a buffer. The k-th send of a channel goes on when the k-th recv is
posted (or a buffer is free), the k-th recv-done when the k-th send has run. Who comes to a collective for the k-th
time goes on when every member of its group has come or started as often, and so does a done; an infeed goes on when
there is an item.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator

from attrs import evolve, frozen

from .programs import Data, Op, Ops, Program

MOST_ORDERS = 300


@frozen
class Event:
    """A step of a device: what it does (a key that others count), and what it needs: so many of a key on a device."""

    does: tuple[object, ...]
    needs: tuple[tuple[int, tuple[object, ...], int], ...] = ()


@frozen
class Judgement:
    """What happens: in every order and for all data it ends, in one order for all data, ever; in every order never."""

    every: bool
    some: bool
    ever: bool

    @property
    def kind(self) -> str:
        return "ok" if self.some else "depends" if self.ever else "deadlock"


def judged(program: Program) -> Judgement | None:
    """The outcome of a program over all orders and data; None where there are too many orders to try."""
    orders = _orders(program)
    if orders is None:
        return None
    every, some, ever = True, False, False
    for ordered in orders:
        outcomes = _outcomes(ordered)
        every &= outcomes == {True}
        some |= outcomes == {True}
        ever |= True in outcomes
        if some and not every:
            break
    return Judgement(every, some, ever)


def _outcomes(program: Program) -> set[bool]:
    """How it ends in this order: in all ways, or in both."""
    found = set[bool]()
    for fed in _fed(program):
        for data in all_data(program):
            found.add(ends(fed, data))
            if len(found) == 2:
                return found
    return found


def _fed(program: Program) -> Iterator[Program]:
    """Where nobody says how many items there are: none at all, and more than are asked for."""
    items = (None,) if program.infeed is not None else ((0,) * program.devices, None)
    return (evolve(program, infeed=each or program.infeed) for each in items)


def all_data(program: Program) -> Iterator[Data]:
    """Every choice of the numbers that the devices are given."""
    rows = [*itertools.product(*program.domains)]
    return itertools.product(rows, repeat=program.devices)


def ends(program: Program, data: Data) -> bool:
    """Whether the lists, in their order, run to the end; whoever can move moves, which decides nothing (`explored`)."""
    traces = [trace(program, device, data) for device in range(program.devices)]
    needs = _positions(traces)
    at = [0] * len(traces)
    moved = True
    while moved:
        moved = False
        for device, each in enumerate(needs):
            while at[device] < len(each) and all(at[d] > place for d, place in each[at[device]]):
                at[device] += 1
                moved = True
    return all(place == len(each) for place, each in zip(at, needs, strict=True))


def explored(program: Program, data: Data) -> set[bool]:
    """How runs end, over all interleavings of the devices: True at the end, False where nobody can move."""
    needs = _positions([trace(program, device, data) for device in range(program.devices)])
    start = (0,) * len(needs)
    seen, stack, found = {start}, [start], set()
    while stack:
        at = stack.pop()
        movable = [
            d for d, each in enumerate(needs) if at[d] < len(each) and all(at[o] > place for o, place in each[at[d]])
        ]
        if not movable:
            found.add(all(place == len(each) for place, each in zip(at, needs, strict=True)))
        for device in movable:
            after = (*at[:device], at[device] + 1, *at[device + 1 :])
            if after not in seen:
                seen.add(after)
                stack.append(after)
    return found


def _positions(traces: list[list[Event]]) -> list[list[list[tuple[float, float]]]]:
    """For each event the places that other devices must have passed; infinity where they never come there."""
    places: list[dict[tuple[object, ...], list[int]]] = []
    for events in traces:
        found: dict[tuple[object, ...], list[int]] = {}
        for number, event in enumerate(events):
            found.setdefault(event.does, []).append(number)
        places.append(found)

    def passed(device: int, key: tuple[object, ...], count: int) -> tuple[int, float]:
        there = places[device].get(key, []) if device < len(places) else []
        return device, there[count - 1] if count <= len(there) else math.inf

    return [[[passed(*need) for need in event.needs if need[2] > 0] for event in events] for events in traces]


def trace(program: Program, device: int, data: Data) -> list[Event]:
    """What a device does, one step after the other: the data have decided."""
    return [*_Tracer(program, device, data).of(program.lists[device])]


class _Tracer:
    def __init__(self, program: Program, device: int, data: Data) -> None:
        self.program, self.device, self.data = program, device, data
        self.counts = Counter[tuple[object, ...]]()

    def of(self, ops: Ops, trip: int = 0) -> Iterator[Event]:
        for op in ops:
            if op.inside:
                for inner, number in _entered(op, self.device, self.data, trip):
                    yield from self.of(inner, number)
            else:
                yield from self._steps(op)

    def _steps(self, op: Op) -> Iterator[Event]:
        if op.word in ("send", "recv", "recv_done"):
            for source, target in op.pairs:
                me, other = (source, target) if op.word == "send" else (target, source)
                if me == self.device:
                    yield self._transfer(op, source, target, other)
        elif op.word == "infeed":
            items = math.inf if self.program.infeed is None else self.program.infeed[self.device]
            count = self._counted("infeed")
            yield Event(("infeed",), () if count <= items else ((self.device, ("nothing",), 1),))
        elif op.word in ("meet", "agree", "start", "done"):
            yield from self._collective(op)

    def _transfer(self, op: Op, source: int, target: int, other: int) -> Event:
        wire = (op.number, source, target)
        count = self._counted(op.word, *wire)
        if op.word == "recv":
            return Event(("recv", *wire))
        if op.word == "send":
            return Event(("send", *wire), ((other, ("recv", *wire), count - self.program.send_buffers),))
        return Event(("recv_done", *wire), ((other, ("send", *wire), count),))

    def _collective(self, op: Op) -> Iterator[Event]:
        come, group = ("come", op.number), next(g for g in op.groups if self.device in g)
        if op.word != "done":
            yield Event(come)
        if op.word != "start":
            count = self._counted("over", op.number)
            yield Event(("over", op.number), tuple((member, come, count) for member in group if member != self.device))

    def _counted(self, *key: object) -> int:
        self.counts[key] += 1
        return self.counts[key]


def _entered(op: Op, device: int, data: Data, trip: int) -> Iterator[tuple[Ops, int]]:
    """The lists that an op runs, one after the other, each with the trip of the loop around it."""
    if op.word == "call":
        yield op.inside[0], trip
        return
    assert op.decision is not None
    number = op.decision.of(device, data, trip)
    if op.word == "choice":
        yield op.inside[number], trip
        return
    *condition, body = op.inside
    for each in range(number):
        yield from ((test, each) for test in condition)
        yield body, each
    yield from ((test, number) for test in condition)


def _orders(program: Program) -> list[Program] | None:
    """The program with each of its orders; of one program for all the orders are those of all devices alike."""
    if program.is_given:
        return [program]
    count = math.prod(_count(ops) for ops in (program.lists[:1] if program.is_one else program.lists))
    if count > MOST_ORDERS:
        return None
    if program.is_one:
        lists = [(ops,) * program.devices for ops in _arranged(program.lists[0])]
    else:
        lists = [*itertools.product(*([*_arranged(ops)] for ops in program.lists))]
    return [evolve(program, lists=each) for each in lists]


def _count(ops: Ops) -> int:
    """How many orders a list and those inside of it have together."""
    return sum(1 for _ in itertools.islice(_extensions(ops), MOST_ORDERS + 1)) * math.prod(
        _count(inner) for op in ops for inner in op.inside
    )


def _arranged(ops: Ops) -> Iterator[Ops]:
    """A list in each of its orders, with the lists inside in each of theirs."""
    choices = [
        [evolve(op, inside=inside) for inside in itertools.product(*([*_arranged(inner)] for inner in op.inside))]
        for op in ops
    ]
    for chosen in itertools.product(*choices):
        yield from _extensions(chosen)


def _extensions(ops: Ops) -> Iterator[Ops]:
    """Every order in which each op comes after those that it names; what takes items of the infeed stays in order."""
    if not ops:
        yield ()
    names = {op.name for op in ops}
    feeds = False
    for number, op in enumerate(ops):
        if not (op.after & names) and not (op.feeds and feeds):
            for rest in _extensions((*ops[:number], *ops[number + 1 :])):
                yield (op, *rest)
        feeds |= op.feeds
