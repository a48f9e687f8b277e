"""What happens to a program over all orders, all interleavings and all data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from attrs import frozen

from ..program import Program
from .machine import Data, Machine, Orders, Outcome
from .orders import choices

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


def judged(program: Program, *, is_every_asked: bool = True) -> Judgement:
    """Follow every order with all data; where nobody asks for `every`, until there is one that ends."""
    chosen = choices(program, max(MOST_RUNS // count_of_data(program), 3))
    every, some, ever = True, False, False
    for orders in chosen.orders:
        ends = outcomes(program, orders)
        every &= ends == {True}
        some |= ends == {True}
        ever |= True in ends
        if some and not (every and is_every_asked):
            break
    is_known = chosen.is_every and (is_every_asked or not some)
    return Judgement(
        (True if is_known else None) if every else False,
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


Need = tuple[int, int]  # a device, and how many of its events must have happened
NEVER = 1 << 30
MOST_STATES = 20_000


def interleavings(program: Program, data: Data) -> set[bool] | None:
    """How the runs of one order with one data end, over all interleavings of the devices, each state seen once.

    What a device does is fixed by its order and what it is given, so a state is how far each of them is. None where
    there may be too many states.
    """
    outcome = run(program, data, is_traced=True)
    if math.prod(len(events) + 1 for events in outcome.traces) > MOST_STATES:
        return None
    ended = [each is None for each in outcome.standing]
    needs = _needs(program, outcome)
    start = (0,) * len(needs)
    seen, stack, found = {start}, [start], set[bool]()
    while stack:
        at = stack.pop()
        ready = (at[d] < len(each) and all(at[o] >= n for o, n in each[at[d]]) for d, each in enumerate(needs))
        movable = [device for device, is_ready in enumerate(ready) if is_ready]
        if not movable:
            found.add(all(is_end and here == len(each) for is_end, here, each in zip(ended, at, needs, strict=True)))
        for device in movable:
            after = (*at[:device], at[device] + 1, *at[device + 1 :])
            if after not in seen:
                seen.add(after)
                stack.append(after)
    return found


def _needs(program: Program, outcome: Outcome) -> list[list[list[Need]]]:
    """For each event how far others must be; who comes to a collective is there before it is over."""
    keys = {"send": "send", "recv": "recv", "meet": "come", "start": "come"}
    places: dict[object, list[Need]] = {}
    for device, events in enumerate(outcome.traces):
        for number, (kind, what, *_) in enumerate(events):
            if kind in keys:
                after = number if kind == "meet" else number + 1
                places.setdefault((keys[kind], what), []).append((device, after))

    def needed(device: int, kind: str, what: object, *more: int) -> list[Need]:
        if kind == "infeed":
            is_there = program.infeed is None or more[0] <= program.infeed[device]
            return [] if is_there else [(device, NEVER)]
        if kind in ("send", "recv-done"):
            count = more[0] - (program.send_buffers if kind == "send" else 0)
            found = places.get(("recv" if kind == "send" else "send", what), [])
            return [] if count <= 0 else [found[count - 1] if count <= len(found) else (device, NEVER)]
        if kind in ("meet", "done"):
            come = dict(places.get(("come", what), []))
            return [(member, come.get(member, NEVER)) for member in what.group]
        return []

    return [[needed(device, *event) for event in events] for device, events in enumerate(outcome.traces)]
