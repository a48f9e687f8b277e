"""LaneMachine: devices do the steps of their calls until none can continue; the search for an order that hangs.

Sections:

    LaneMachine: the lanes, what was posted, and which places are taken
    Stops: where devices stop, and why
    Search: every order in which waiting calls take places
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field, frozen

from ..process.limits import ask
from .calls import AWAIT, GIVE, LOCK, POST, ROOM, STREAM, TAKE, THREADS, Lane, LaneStep, RuntimeCall
from .record import Runtime

# ----------------------------------------------------------------------------
# LaneMachine: the lanes, what was posted, and which places are taken

# What differs between two calls that meet, each with its device; None if they fit.
Differ: TypeAlias = Callable[[int, RuntimeCall, int, RuntimeCall], str | None]
Grant: TypeAlias = tuple[Lane, int]  # a lane that takes a place, at which of its steps


class CallsDiffer(Exception):
    """Two calls met that do not fit: they differ in `what`."""

    def __init__(self, what: str, first: tuple[int, RuntimeCall], second: tuple[int, RuntimeCall]) -> None:
        super().__init__(what)
        self.what, self.first, self.second = what, first, second


@define(eq=False)
class LaneMachine:
    """Lanes of steps, the events that were posted, and the places that are taken.

    Posts, waits and places given back never make another step impossible, so `settle` does all that are possible. Only
    the order in which places are taken matters, and `grant` chooses it.
    """

    runtime: Runtime
    differ: Differ
    lanes: dict[Lane, list[LaneStep]] = field(factory=dict)
    at: dict[Lane, int] = field(factory=dict)
    posted: Counter[Hashable] = field(factory=Counter)
    by: dict[Hashable, set[int]] = field(factory=dict)  # which devices have posted an event of a collective
    taken: dict[Hashable, list[Lane]] = field(factory=dict)
    purposes: dict[Hashable, Hashable] = field(factory=dict)  # for which the places of a pool were taken last
    rested: list[Lane] = field(factory=list)  # lanes that have done all their steps since somebody last looked
    _met: dict[Hashable, tuple[int, RuntimeCall]] = field(factory=dict)
    _waiting: dict[Hashable, list[Lane]] = field(factory=dict)
    _least: dict[Hashable, int] = field(factory=dict)  # the count at which the first of these lanes goes on
    _ready: deque[Lane] = field(factory=deque)

    def add(self, lane: Lane, steps: Iterable[LaneStep]) -> None:
        """Append steps to a lane."""
        own = self.lanes.setdefault(lane, [])
        was_idle = self.at.setdefault(lane, 0) == len(own)
        own += steps
        if was_idle:
            self._ready.append(lane)

    def is_idle(self, lane: Lane) -> bool:
        """Whether a lane has done all its steps."""
        return self.at[lane] == len(self.lanes[lane])

    def step(self, lane: Lane) -> LaneStep:
        """The next step of a lane that is not idle."""
        return self.lanes[lane][self.at[lane]]

    def settle(self) -> None:
        """Do every step that is possible, except that no place is taken. Raises CallsDiffer."""
        while self._ready:
            ask()
            lane = self._ready.popleft()
            while not self.is_idle(lane) and self._do(lane, self.step(lane)):
                self.at[lane] += 1
            if self.is_idle(lane):
                self.rested.append(lane)

    def _do(self, lane: Lane, step: LaneStep) -> bool:
        """Do a step, unless it must wait or takes a place."""
        if step.act == POST:
            self._post(lane, step)
            return True
        if step.act == GIVE:
            self.taken[step.key].remove(lane)
            return True
        if step.act == AWAIT and self.posted[step.key] < step.count:
            self._waiting.setdefault(step.key, []).append(lane)
            self._least[step.key] = min(step.count, self._least.get(step.key, step.count))
            return False
        return step.act == AWAIT

    def _post(self, lane: Lane, step: LaneStep) -> None:
        device, call = lane[0], step.call
        if step.meets:
            assert call is not None
            first = self._met.setdefault(step.key, (device, call))
            what = None if first[1] is call else self.differ(*first, device, call)
            if what is not None:
                raise CallsDiffer(what, first, (device, call))
        if len(step.members) > 1:
            self.by.setdefault(step.key, set()).add(device)
        self.posted[step.key] += 1
        if step.key in self._waiting and self.posted[step.key] >= self._least[step.key]:
            del self._least[step.key]
            self._ready.extend(self._waiting.pop(step.key))

    def capacity(self, step: LaneStep) -> float:
        """How many places there are of the kind that a step takes."""
        return {LOCK: 1, ROOM: self.runtime.resident, THREADS: self.runtime.threads}[step.about]

    def takers(self) -> list[Lane]:
        """The lanes that can take a place now."""
        return [
            lane
            for lane in self.lanes
            if not self.is_idle(lane) and (step := self.step(lane)).act == TAKE and self._has_place(step)
        ]

    def _has_place(self, step: LaneStep) -> bool:
        """Whether a place is free, or was taken for a purpose that the step shares."""
        taken = len(self.taken.get(step.key, ()))
        is_shared = step.purpose is not None and self.purposes.get(step.key) == step.purpose
        return taken < self.capacity(step) or is_shared

    def grant(self, lane: Lane) -> Grant:
        """Let a lane take the place that it waits for."""
        step = self.step(lane)
        self.taken.setdefault(step.key, []).append(lane)
        self.purposes[step.key] = step.purpose
        self.at[lane] += 1
        self._ready.append(lane)
        return lane, self.at[lane] - 1

    def copy(self) -> LaneMachine:
        """The machine in the same state; steps that are added to one are not added to the other."""
        return LaneMachine(
            self.runtime,
            self.differ,
            self.lanes,
            dict(self.at),
            Counter(self.posted),
            {key: set(devices) for key, devices in self.by.items()},
            {key: list(lanes) for key, lanes in self.taken.items()},
            dict(self.purposes),
            [],
            dict(self._met),
            {key: list(lanes) for key, lanes in self._waiting.items()},
            dict(self._least),
            deque(self._ready),
        )


# ----------------------------------------------------------------------------
# Stops: where devices stop, and why


@frozen(eq=False)
class MachineStop:
    """Where devices stop: `at` has the step at which each waits, and `awaited` for which devices.

    `steps` are the steps of the lanes at the end of all chains of waits, and `holders` the calls that hold the places
    for which these wait. `missing` are the devices that have ended, if these steps wait for such. `causes` are the
    devices at fault.
    """

    at: Mapping[int, LaneStep]
    awaited: Mapping[int, tuple[int, ...]]
    steps: tuple[tuple[Lane, LaneStep], ...]
    holders: tuple[tuple[Lane, RuntimeCall], ...]
    missing: tuple[int, ...]

    @property
    def causes(self) -> tuple[int, ...]:
        return self.missing or tuple(sorted({lane[0] for lane, _ in self.steps}))


def stop_of(machine: LaneMachine) -> MachineStop:
    """Where the devices of a machine stop that can do no step."""
    import networkx as nx

    stuck = [lane for lane in machine.lanes if not machine.is_idle(lane)]
    streams: dict[int, list[Lane]] = {}
    for lane in stuck:
        streams.setdefault(lane[0], [])
        if lane[1] is not None:
            streams[lane[0]].append(lane)
    waits: nx.DiGraph[Hashable] = nx.DiGraph()
    awaited: dict[Hashable, list[Lane]] = {}
    for lane in stuck:
        key = _key(machine, lane)
        if key not in awaited:
            awaited[key] = [*_awaited(machine, machine.step(lane), streams)]
            waits.add_edges_from((key, other) for other in awaited[key])
        waits.add_edge(lane, key)
    rounds = nx.condensation(waits)
    last = {each for node in rounds if not rounds.out_degree(node) for each in rounds.nodes[node]["members"]}
    ended = {(device, None) for device, _ in machine.lanes} - {*stuck}
    missing = sorted(lane[0] for lane in ended if lane in last)
    empty = [lane for lane in stuck if not awaited[_key(machine, lane)]]
    chain = empty or [
        lane
        for lane in stuck
        if (lane in last if not missing else any(each in ended & last for each in awaited[_key(machine, lane)]))
    ]
    steps = tuple((lane, machine.step(lane)) for lane in chain)
    return MachineStop(
        {lane[0]: machine.step(lane) for lane in stuck if lane[1] is None},
        {lane[0]: _devices(machine, awaited, lane) for lane in stuck if lane[1] is None},
        steps,
        tuple(_holders(machine, steps)),
        () if empty else tuple(missing),
    )


def _key(machine: LaneMachine, lane: Lane) -> Hashable:
    """The node of what a lane waits for, which lanes that wait for the same share."""
    step = machine.step(lane)
    return step.act, step.key


def _awaited(machine: LaneMachine, step: LaneStep, streams: Mapping[int, Sequence[Lane]]) -> Iterator[Lane]:
    """The lanes without which a step is not possible: those that hold places, or that have yet to post."""
    if step.act == TAKE:
        yield from machine.taken.get(step.key, ())
        return
    posted = machine.by.get(step.key, set()) if len(step.members) > 1 else set()
    for member in step.members:
        if member not in posted:
            own = (lane for lane in streams.get(member, ()) if _will_post(machine, lane, step.key))
            yield next(own, (member, None))


def _will_post(machine: LaneMachine, lane: Lane, key: Hashable) -> bool:
    """Whether a stream has yet to post an event, for a collective that its device has launched."""
    for step in machine.lanes[lane][machine.at[lane] :]:
        if step.about == STREAM and step.act == AWAIT and machine.posted[step.key] < step.count:
            return False
        if step.act == POST and step.key == key:
            return True
    return False


def _has_yet_to_take(machine: LaneMachine, lane: Lane, key: Hashable) -> bool:
    """Whether a lane has yet to take a place of a pool."""
    return any(step.act == TAKE and step.key == key for step in machine.lanes[lane][machine.at[lane] :])


def _devices(machine: LaneMachine, awaited: Mapping[Hashable, Sequence[Lane]], lane: Lane) -> tuple[int, ...]:
    """The other devices for which a lane waits, by itself or by the streams of its device."""
    found, seen, stack = set[int](), {lane}, [lane]
    while stack:
        for other in awaited.get(_key(machine, here), ()) if not machine.is_idle(here := stack.pop()) else ():
            if other[0] != lane[0]:
                found.add(other[0])
            elif other not in seen:
                seen.add(other)
                stack.append(other)
    return tuple(sorted(found))


def _holders(machine: LaneMachine, steps: Iterable[tuple[Lane, LaneStep]]) -> Iterator[tuple[Lane, RuntimeCall]]:
    """The calls that hold the places for which these steps wait."""
    for _, step in steps:
        for holder in machine.taken.get(step.key, ()) if step.act == TAKE else ():
            done = machine.lanes[holder][: machine.at[holder]]
            call = next((each.call for each in reversed(done) if each.act == TAKE and each.key == step.key), None)
            if call is not None:
                yield holder, call


# ----------------------------------------------------------------------------
# Search: every order in which waiting calls take places

MOST_STATES = 20_000


@frozen(eq=False)
class Interleaving:
    """An order in which calls take places and hang, and what the lanes do, by which a run recognizes it."""

    grants: tuple[Grant, ...]
    lanes: Mapping[Lane, tuple[Hashable, ...]]

    def fits(self, machine: LaneMachine) -> bool:
        """Whether the lanes of a machine have so far got the steps of these lanes."""
        return all(_acts(steps) == self.lanes.get(lane, ())[: len(steps)] for lane, steps in machine.lanes.items())


def interleaving_of(machine: LaneMachine, grants: tuple[Grant, ...]) -> Interleaving:
    """The order in which a machine with all its steps hangs."""
    return Interleaving(grants, {lane: _acts(steps) for lane, steps in machine.lanes.items()})


def _acts(steps: Iterable[LaneStep]) -> tuple[Hashable, ...]:
    """What steps do, whoever made them."""
    return tuple([(step.act, step.about, None if step.call is None else step.call.instruction) for step in steps])


@frozen(eq=False)
class SearchResult:
    """The result of a search: where devices stop, or which calls differ, after which places were taken.

    `gave_up`: whether there were too many orders to try all.
    """

    stop: MachineStop | None = None
    differ: CallsDiffer | None = None
    grants: tuple[Grant, ...] = ()
    gave_up: bool = False

    @property
    def ends(self) -> bool:
        return self.stop is None and self.differ is None


def search(machine: LaneMachine, most: int = MOST_STATES) -> SearchResult:
    """A hang, or calls that differ, in some order in which the calls take places; no such thing if all orders end."""
    free = _uncontended(machine)
    seen: set[Any] = set()
    stack: list[tuple[LaneMachine, tuple[Grant, ...]]] = [(machine, ())]
    while stack:
        ask()
        here, grants = stack.pop()
        try:
            here.settle()
            while easy := [lane for lane in here.takers() if here.step(lane).key in free]:
                grants = (*grants, *map(here.grant, easy))  # in full, as a run follows them
                here.settle()
        except CallsDiffer as error:
            return SearchResult(differ=error, grants=grants)
        takers = here.takers()
        if not takers:
            if all(map(here.is_idle, here.lanes)):
                continue
            return SearchResult(stop_of(here), grants=grants)
        state = tuple(here.at.values())
        if state in seen:
            continue
        seen.add(state)
        if len(seen) > most:
            return SearchResult(gave_up=True)
        for lane in _choices(here, takers):
            after = here.copy() if len(takers) > 1 else here
            stack.append((after, (*grants, after.grant(lane))))
    return SearchResult()


def _choices(machine: LaneMachine, takers: Sequence[Lane]) -> Sequence[Lane]:
    """The lanes among which to choose.

    They are all takers, or those of one pool, if no other lane can ask for a place of it before one of them has taken
    one: then the takers of other pools may as well come later.
    """
    for lane in takers:
        step = machine.step(lane)
        if step.about == ROOM and machine.runtime.launch_order:
            return (lane,)
        pool = [other for other in takers if machine.step(other).key == step.key]
        if all(other in pool or not _has_yet_to_take(machine, other, step.key) for other in machine.lanes):
            return pool
    return takers


def _uncontended(machine: LaneMachine) -> set[Hashable]:
    """The pools in which a place is always free: as many places as all lanes together hold at any time."""
    need: Counter[Hashable] = Counter()
    capacity: dict[Hashable, float] = {}
    for steps in machine.lanes.values():
        most, now = Counter[Hashable](), Counter[Hashable]()
        for step in steps:
            if step.act == TAKE:
                now[step.key] += 1
                most[step.key] = max(most[step.key], now[step.key])
                capacity[step.key] = machine.capacity(step)
            elif step.act == GIVE:
                now[step.key] -= 1
        need += most
    return {key for key, count in need.items() if count <= capacity[key]}
