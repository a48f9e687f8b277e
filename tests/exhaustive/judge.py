"""What happens to a program over all orders, all interleavings and all data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from attrs import frozen

from .machine import Data, Machine, Orders, Outcome
from .orders import choices
from .program import Program

MOST_RUNS = 200  # of one program


@frozen
class Judgement:
    """`some`: in one order it ends with all data; `every`: in every order; `ever`: in some order with some data.

    None where there are too many orders to tell.
    """

    every: bool | None
    some: bool | None
    ever: bool | None

    @property
    def kind(self) -> str | None:
        if self.some:
            return "ok"
        if self.some is None or self.ever is None:
            return None
        return "depends" if self.ever else "deadlock"


def judged(program: Program) -> Judgement:
    """Follow every order with all data."""
    chosen = choices(program, max(MOST_RUNS // count_of_data(program), 3))
    every, some, ever = True, False, False
    for orders in chosen.orders:
        ends = outcomes(program, orders)
        every &= ends == {True}
        some |= ends == {True}
        ever |= True in ends
        if some and not every:
            break
    return Judgement(
        (every if chosen.is_every else None) if every else False,
        some or (False if chosen.is_some else None),
        ever or (False if chosen.is_some else None),
    )


def outcomes(program: Program, orders: tuple[Orders, ...]) -> set[bool]:
    """How it ends in one order, over all data."""
    found = set[bool]()
    for data in all_data(program):
        found.add(run(program, data, orders).ends)
        if len(found) == 2:
            break
    return found


def all_data(program: Program) -> Iterator[Data]:
    """Every choice of the numbers that the devices are given."""
    return itertools.product(*([*itertools.product(*slots)] for slots in program.domains))


def count_of_data(program: Program) -> int:
    return math.prod(len(domain) for slots in program.domains for domain in slots)


def run(program: Program, data: Data, orders: tuple[Orders, ...] | None = None, *, is_traced: bool = False) -> Outcome:
    return Machine(program, data, orders or ({},) * program.devices, is_traced=is_traced).run()


def interleavings(program: Program, data: Data) -> set[bool]:
    """How the runs of one order with one data end, over all interleavings of the devices, each state seen once.

    What a device does is fixed by its order and what it is given, so a state is how far each of them is.
    """
    outcome = run(program, data, is_traced=True)
    ends = [
        len(events) if at is None else math.inf for events, at in zip(outcome.traces, outcome.standing, strict=True)
    ]
    start = (0,) * len(ends)
    seen, stack, found = {start}, [start], set[bool]()
    while stack:
        at = stack.pop()
        movable = [d for d, place in enumerate(at) if _may(program, outcome, at, d)]
        if not movable:
            found.add(all(place == end for place, end in zip(at, ends, strict=True)))
        for device in movable:
            after = (*at[:device], at[device] + 1, *at[device + 1 :])
            if after not in seen:
                seen.add(after)
                stack.append(after)
    return found


def _may(program: Program, outcome: Outcome, at: tuple[int, ...], device: int) -> bool:
    """Whether the next event of a device may happen when the others have come this far."""
    events = outcome.traces[device]
    if at[device] == len(events):
        return False
    kind, what, *more = events[at[device]]
    if kind == "infeed":
        return program.infeed is None or what <= program.infeed[device]
    if kind == "send":
        return _passed(outcome, at, ("recv", what)) >= more[0] - program.send_buffers
    if kind == "recv-done":
        return _passed(outcome, at, ("send", what)) >= more[0]
    if kind in ("meet", "done"):
        return all(_has_come(outcome, at, member, what) for member in what.group)
    return True


def _passed(outcome: Outcome, at: tuple[int, ...], key: tuple[object, ...]) -> int:
    return sum(
        (event[0], event[1]) == key
        for events, place in zip(outcome.traces, at, strict=True)
        for event in events[:place]
    )


def _has_come(outcome: Outcome, at: tuple[int, ...], member: int, meeting: object) -> bool:
    """Whether a member stands at a meeting or has begun it before."""
    events = outcome.traces[member]
    return any(event[1] is meeting and event[0] in ("meet", "start") for event in events[: at[member]]) or (
        at[member] < len(events) and events[at[member]][0] == "meet" and events[at[member]][1] is meeting
    )
