"""`Scheme`: what each device sends, receives and meets, written once for any number of devices.

Sections:

    The scheme, and the program that it is for one number of devices
    Devices, which record what a scheme does: as events, as instructions, or for all sizes
    One number of devices, event by event
"""

from __future__ import annotations

import dis
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field, frozen

from shape_inference import f32

from .. import ops
from ..core.builder import Builder, Value
from ..core.graph import Module, ModuleGroup
from ..properties.waiting import ARRIVED, CHANNEL, COMPLETED, POSTED, RECEIVED, SENT, EventKind
from .linear import LinearSum, names_in
from .sizes import DependsOnTrip, Exploration, OutsideTheorem, Size, linear_of

Number: TypeAlias = int | Size
Place: TypeAlias = tuple[Number, ...]
Key: TypeAlias = int | Size | tuple[int | Size, ...] | None


# ----------------------------------------------------------------------------
# The scheme, and the program that it is for one number of devices.


@frozen(eq=False, repr=False, init=False)
class Scheme:
    """What each device sends, receives and meets, in order, for any number of devices.

    `devices` is their number, or the extents of a grid of devices, such as `(n, 4)`. `program(device)` records what one
    device does with the methods of `device`; `device.index` is its number, or the tuple of its coordinates. `groups`
    maps the name of each group of collectives to a function of an index: devices with equal keys are one group, and a
    device whose key is None is in none. For an int, `scheme.module` is the program of all devices, in which each
    device's order is binding, and `xb.check(scheme)` checks it.

    Raises ValueError if there are fewer devices than one, a device communicates with itself or with a device that does
    not exist, waits for a value for which it has posted no recv, never waits for one, or meets a group that it is not
    in. TypeError if an argument has a wrong type.

    >>> import xbuild as xb
    >>> def ring(n):
    ...     def program(device):
    ...         device.exchange((device.index + 1) % n, (device.index - 1) % n)
    ...     return xb.Scheme(n, program)
    >>> print(xb.check(ring(8)))
    ok: the given schedule runs to completion: devices 0-7 have 8 channels

    Source: Operation Semantics, Send and Recv.
    """

    extents: Place
    program: Callable[[Any], object]
    groups: Mapping[str, Callable[[Any], Key]]
    is_grid: bool

    def __init__(
        self,
        devices: Number | Sequence[Number],
        program: Callable[[Any], object],
        groups: Mapping[str, Callable[[Any], Key]] | None = None,
    ) -> None:
        is_grid = isinstance(devices, Sequence)
        extents: Place = tuple(devices) if isinstance(devices, Sequence) else (devices,)
        if not extents or any(isinstance(each, bool) or not isinstance(each, int | Size) for each in extents):
            raise TypeError(f"scheme: expected a number of devices or the extents of a grid, got {devices!r}")
        if not callable(program):
            raise TypeError(f"scheme: expected a function of a device as the program, got {program!r}")
        for each in extents:
            if each < 1:
                raise ValueError(f"scheme: the extents of the devices must be at least 1, got {each!r}")
        self.__attrs_init__(extents, program, dict(groups or {}), is_grid)

    def index(self, place: Place) -> Any:
        """A place as users see it: a number, or a tuple in a grid."""
        return place if self.is_grid else place[0]

    def places(self) -> Iterator[tuple[int, ...]]:
        """The places of all devices, in the order of their numbers."""
        extents = [self._count(each) for each in self.extents]
        total = 1
        for extent in extents:
            total *= extent
        for number in range(total):
            place = []
            for extent in reversed(extents):
                number, last = divmod(number, extent)
                place.append(last)
            yield tuple(reversed(place))

    def _count(self, extent: Number) -> int:
        if isinstance(extent, Size):
            raise TypeError(f"the scheme is for all sizes: it has no program for {extent!r} devices")
        return extent

    def keys(self) -> dict[str, dict[tuple[int, ...], Key]]:
        """The key of each device in each group."""
        return {name: {place: key(self.index(place)) for place in self.places()} for name, key in self.groups.items()}

    def members(self) -> dict[tuple[str, tuple[int, ...]], tuple[tuple[int, ...], ...]]:
        """The members of the group with a name in which a device is."""
        found: dict[tuple[str, tuple[int, ...]], tuple[tuple[int, ...], ...]] = {}
        for name, keys in self.keys().items():
            together: dict[Key, list[tuple[int, ...]]] = {}
            for place, key in keys.items():
                if key is not None:
                    together.setdefault(key if isinstance(key, tuple) else (key,), []).append(place)
            for members in together.values():
                found |= dict.fromkeys(((name, place) for place in members), tuple(members))
        return found

    @property
    def module(self) -> ModuleGroup:
        """The program of all devices, for an int as the number of devices."""
        shared = _Channels(self)
        modules = []
        for number, place in enumerate(self.places()):
            device = _BuildingDevice(self, place, f"device_{number}", shared)
            self.program(device)
            device._end()
            modules.append(device._module())
        return ModuleGroup(modules)

    def __repr__(self) -> str:
        extents = " x ".join(str(each) if isinstance(each, int) else repr(each) for each in self.extents)
        return f"<Scheme of {extents} devices>"


# ----------------------------------------------------------------------------
# Devices, which record what a scheme does: as events, as instructions, or for all sizes.


@frozen
class Step:
    """One event of a device: its kind, its channel or the name of its group, and the place of its peer."""

    kind: EventKind
    key: int | str
    peer: tuple[LinearSum, ...] = ()


class SchemeDevice(ABC):
    """One device of a scheme, whose methods record what it does, in order.

    `index` is its number, or the tuple of its coordinates. A target or source is such an index. A send waits until its
    target has posted the recv. The n-th send to a device on a channel pairs with its n-th recv from this device there.
    """

    def __init__(self, scheme: Scheme, place: Place) -> None:
        self._scheme, self._place = scheme, place
        self.index: Any = scheme.index(place)

    def send(self, target: Any, channel: int = 1) -> None:
        """Send a value, and wait until `target` has posted a recv for it."""
        self._transfer(SENT, target, channel)

    def post(self, source: Any, channel: int = 1) -> None:
        """Post a recv for a value of `source`, without waiting."""
        self._transfer(POSTED, source, channel)

    def wait(self, source: Any, channel: int = 1) -> None:
        """Wait for the value of the oldest posted recv from `source` for which nothing has waited."""
        self._transfer(RECEIVED, source, channel)

    def recv(self, source: Any, channel: int = 1) -> None:
        """Post a recv for a value of `source`, and wait for the value."""
        self.post(source, channel)
        self.wait(source, channel)

    def exchange(self, target: Any, source: Any, channel: int = 1) -> None:
        """Post a recv from `source`, send to `target`, then wait for the value: no cycle of exchanges hangs."""
        self.post(source, channel)
        self.send(target, channel)
        self.wait(source, channel)

    def all_reduce(self, group: str) -> None:
        """Meet all other members of a group; the n-th meeting of a group is the n-th call of each member.

        Every collective that waits for the whole group behaves so: all-gather, reduce-scatter, all-to-all, barrier.
        """
        if group not in self._scheme.groups:
            known = ", ".join(self._scheme.groups) or "no groups"
            raise ValueError(f"scheme: {group!r} is not one of its groups ({known}); pass groups={{{group!r}: ...}}")
        self._meet(group)

    def repeat(self, count: Number, body: Callable[[Any], object]) -> None:
        """Run `body(trip)` for each trip from 0 to `count` - 1. `body` must not keep anything between trips."""
        for trip in range(self._scheme._count(count)):
            body(trip)

    def _peer(self, peer: Any) -> Place:
        place: Place = tuple(peer) if self._scheme.is_grid and isinstance(peer, tuple | list) else (peer,)
        extents = self._scheme.extents
        if len(place) != len(extents) or any(isinstance(i, bool) or not isinstance(i, int | Size) for i in place):
            raise TypeError(f"scheme: {peer!r} is not an index of a device; expected one like {self.index!r}")
        return place

    def _transfer(self, kind: EventKind, peer: Any, channel: int) -> None:
        if isinstance(channel, bool) or not isinstance(channel, int) or channel < 1:
            raise TypeError(f"scheme: expected a positive int as a channel, got {channel!r}")
        place = self._peer(peer)
        if isinstance(self.index, Size) or not all(isinstance(each, int) for each in (*place, *self._place)):
            raise TypeError(f"scheme: device {self.index!r} communicates with {peer!r}, which is not an int")
        if any(not 0 <= at < extent for at, extent in zip(place, self._scheme.extents, strict=True)):
            extents = self._scheme.index(self._scheme.extents)
            raise ValueError(f"scheme: device {self.index} communicates with {peer}, and there are {extents} devices")
        if place == self._place:
            raise ValueError(f"scheme: device {self.index} communicates with itself")
        self._record(kind, channel, place)

    def _meet(self, group: str) -> None:
        if self._scheme.groups[group](self.index) is None:
            raise ValueError(f"scheme: device {self.index} meets the group {group!r}, whose key for it is None")
        self._record(ARRIVED, group, ())
        self._record(COMPLETED, group, ())

    @abstractmethod
    def _record(self, kind: EventKind, key: int | str, place: Any) -> None:
        """Record an event. The place is that of the peer, and empty in a group."""


class EventDevice(SchemeDevice):
    """Records the events of one device of one number of devices."""

    def __init__(self, scheme: Scheme, place: tuple[int, ...]) -> None:
        super().__init__(scheme, place)
        self.events: list[tuple[EventKind, int | str, tuple[int, ...]]] = []
        self._pending: dict[tuple[int | str, Place], int] = {}

    def _record(self, kind: EventKind, key: int | str, place: Any) -> None:
        self.events.append((kind, key, place))
        if kind in (POSTED, RECEIVED):
            self._pending[key, place] = self._pending.get((key, place), 0) + (1 if kind is POSTED else -1)
            if self._pending[key, place] < 0:
                source = self._scheme.index(place)
                raise ValueError(f"scheme: device {self.index} waits for {source} and has posted no recv from it")

    def _end(self) -> None:
        for (_, place), pending in self._pending.items():
            if pending:
                source = self._scheme.index(place)
                raise ValueError(f"scheme: device {self.index} posts a recv from {source} and never waits for it")


@define(eq=False)
class _Channels:
    """Channel ids: one for each transfer and each meeting."""

    scheme: Scheme
    _ids: dict[Any, int] = field(factory=dict, init=False)
    _members: Any = field(init=False)
    _numbers: dict[tuple[int, ...], int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._members = self.scheme.members()
        self._numbers = {place: number for number, place in enumerate(self.scheme.places())}

    def channel(self, *identity: Any) -> int:
        return self._ids.setdefault(identity, len(self._ids) + 1)

    def group(self, name: str, place: Any) -> list[int]:
        return [self._numbers[member] for member in self._members[name, place]]

    def with_others(self, group: list[int]) -> list[list[int]]:
        """A group, and each device outside it alone: the groups of an all-reduce name all devices."""
        return [group, *([number] for number in self._numbers.values() if number not in group)]


class _BuildingDevice(EventDevice):
    """Records the instructions of one device of one number of devices."""

    def __init__(self, scheme: Scheme, place: tuple[int, ...], name: str, channels: _Channels) -> None:
        super().__init__(scheme, place)
        self._name, self._channels = name, channels
        self._builder = Builder(name)
        self._value = ops.parameter(self._builder, number=0, shape=f32[()], name="value")
        self._token = ops.after_all((), builder=self._builder)
        self._counts: dict[Any, int] = {}
        self._posted: dict[tuple[int, int], Value] = {}

    def _record(self, kind: EventKind, key: Any, place: Any) -> None:
        super()._record(kind, key, place)
        number = self._counts[kind, key, place] = self._counts.get((kind, key, place), -1) + 1
        if kind.within == CHANNEL:
            ends = (self._place, place) if kind is SENT else (place, self._place)
            channel = self._channels.channel(*ends, key, number)
            if kind is SENT:
                context = ops.send(self._value, self._token, channel_id=channel)
                ops.send_done(context, channel_id=channel)
            elif kind is POSTED:
                self._posted[channel, 0] = ops.recv(self._token, shape=f32[()], channel_id=channel)
            else:
                ops.recv_done(self._posted[channel, 0], channel_id=channel)
        elif kind is ARRIVED:
            members = self._channels.group(key, self._place)
            channel = self._channels.channel(key, tuple(members), number)
            groups = self._channels.with_others(members)
            ops.all_reduce([self._value], to_apply=ops.add, replica_groups=groups, channel_id=channel)

    def _module(self) -> Module:
        return Module(self._name, self._builder.build(self._value), is_scheduled=True)


@frozen(eq=False)
class Repetition:
    """Steps that a device repeats; `trip` names the variable that counts the trips."""

    trip: str
    count: LinearSum
    items: tuple[Item, ...]


Item: TypeAlias = Step | Repetition


class SymbolicDevice(SchemeDevice):
    """Records what all devices on one path of an exploration do."""

    def __init__(self, scheme: Scheme, place: tuple[Size, ...], paths: Exploration) -> None:
        super().__init__(scheme, place)
        self._paths = paths
        self.items: list[Item] = []
        self._open: tuple[str, ...] = ()

    def _transfer(self, kind: EventKind, peer: Any, channel: int) -> None:
        if isinstance(channel, Size):
            if trips := self._paths.trips_in(linear_of(channel)):
                raise DependsOnTrip(trips)
            raise OutsideTheorem("a channel is a size; channels must be constants")
        if isinstance(channel, bool) or not isinstance(channel, int) or channel < 1:
            raise TypeError(f"scheme: expected a positive int as a channel, got {channel!r}")
        place = tuple(linear_of(each) for each in self._peer(peer))
        for name in {name for each in place for name in names_in(each)} & set(self._paths._trips) - set(self._open):
            raise OutsideTheorem(f"the trip {name} of a repetition is used after the repetition")
        self._record(kind, channel, place)

    def _meet(self, group: str) -> None:
        self._record(ARRIVED, group, ())
        self._record(COMPLETED, group, ())

    def _record(self, kind: EventKind, key: int | str, place: Any) -> None:
        self.items.append(Step(kind, key, place))

    def repeat(self, count: Number, body: Callable[[Any], object]) -> None:
        if writes_outside(body):
            raise OutsideTheorem("the body of a repetition assigns to a variable outside it, or is not a function")
        length = linear_of(count)
        if not self._paths.decide(length - 1):
            return
        if not length.terms and length.constant <= 2:
            for number in range(length.constant):
                body(number)
            return
        with self._paths.repetition(length) as trip:
            if trip is None:
                for number in range(length.constant):
                    body(number)
                return
            outer, self.items, self._open = (self.items, self._open), [], (*self._open, trip)
            try:
                body(Size(LinearSum(((trip, 1),)), self._paths))
                recorded = tuple(self.items)
            finally:
                (self.items, self._open) = outer
        if recorded:
            self.items.append(Repetition(trip, length, recorded))


def writes_outside(function: Callable[..., object]) -> bool:
    """Whether a function assigns to global variables or to those of an enclosing function, or is not plain Python."""
    code = getattr(function, "__code__", None)
    if code is None:
        return True
    for each in dis.get_instructions(code):
        if each.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            return True
        if each.opname in ("STORE_DEREF", "DELETE_DEREF") and each.argval in code.co_freevars:
            return True
    return False


# ----------------------------------------------------------------------------
# One number of devices, event by event.

Events: TypeAlias = dict[tuple[int, ...], list[tuple[EventKind, Any, tuple[int, ...]]]]


def events_of(scheme: Scheme) -> Events:
    """The events of all devices, for an int as the number of devices."""
    found: Events = {}
    for place in scheme.places():
        device = EventDevice(scheme, place)
        scheme.program(device)
        device._end()
        found[place] = device.events
    return found


def waits_of(events: Events, members: Mapping[Any, Sequence[tuple[int, ...]]]) -> dict[Any, list[Any]]:
    """For each event, as (place, position), the events of other devices that it waits for; None for a missing one."""
    positions: dict[Any, Any] = {}
    identities: dict[Any, Any] = {}
    for place, listed in events.items():
        counts: dict[Any, int] = {}
        for position, (kind, key, peer) in enumerate(listed):
            ends = (peer, place) if kind in (POSTED, RECEIVED) else (place, peer)
            number = counts[kind, key, peer] = counts.get((kind, key, peer), -1) + 1
            identity = (kind, key, ends, number)
            positions[identity] = (place, position)
            identities[place, position] = identity
    found: dict[Any, list[Any]] = {}
    for at, (kind, key, ends, number) in identities.items():
        if kind.awaits is None:
            continue
        if kind is COMPLETED:
            found[at] = [positions.get((ARRIVED, key, (member, ()), number)) for member in members[key, at[0]]]
        else:
            found[at] = [positions.get((kind.awaits, key, ends, number))]
    return found


def all_events_happen(events: Events, members: Mapping[Any, Sequence[tuple[int, ...]]]) -> bool:
    """Whether every event of the devices happens, by removing events that wait for nothing until none is left."""
    waits = waits_of(events, members)
    missing: dict[Any, int] = {}
    users: dict[Any, list[Any]] = {}
    ready: deque[Any] = deque()
    for place, listed in events.items():
        for position in range(len(listed)):
            at = (place, position)
            needed: Iterable[Any] = waits.get(at, ())
            sources = [*needed, (place, position - 1)] if position else list(needed)
            missing[at] = len(sources)
            for source in sources:
                users.setdefault(source, []).append(at)
            if not sources:
                ready.append(at)
    while ready:
        at = ready.popleft()
        del missing[at]
        for user in users.get(at, ()):
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    return not missing
