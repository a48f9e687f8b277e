"""Roles of instructions for the logical clock: the group or channel over which a device communicates there."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property

from attrs import define, field, frozen

from xbuild.checking.model.program import Extent
from xbuild.core.graph import Instruction, Module
from xbuild.core.memos import memo
from xbuild.properties.device_groups import group_of
from xbuild.properties.effects import START_OF, collective_in, start_of
from xbuild.properties.waiting import CHANNEL, EVENTS, FEED, KINDS, EventKind

from ..compiler.requests import Request
from ..rules.lines import Path, Place
from ..runtime.rendezvous_keys import RendezvousKeys


@frozen(eq=False, slots=False)
class Role:
    """The part of a device in a communication at a spot; `event` is the event that completes the instruction.

    `key` is the number of the collective in its group.
    """

    event: EventKind
    request: Request
    collective: Instruction | None = None
    key: int = -1
    group: tuple[int, ...] = ()

    @cached_property
    def channel(self) -> int:
        channel: int = self.request.attributes["channel_id"]
        return channel


@define(eq=False, slots=False)
class Roles:
    """The roles of all spots of programs that run together, kept with the first of them."""

    modules: Sequence[Module]
    extent: Extent
    _known: dict[tuple[int, int], tuple[Path, Role]] = field(factory=dict)
    _talking: dict[int, tuple[Path, bool]] = field(factory=dict)
    _keys: dict[Hashable, int] = field(factory=dict)

    @staticmethod
    def of(modules: Sequence[Module], extent: Extent) -> Roles:
        return memo(modules[0], "roles", (*extent, *modules), lambda: Roles(modules, extent))

    def talks(self, path: Path) -> bool:
        """Whether the time of a spot may depend on other devices."""
        known = self._talking.get(id(path))
        if known is None:
            known = self._talking[id(path)] = path, _talks(path[-1].instruction)
        return known[1]

    def role(self, device: int, path: Path) -> Role:
        known = self._known.get((device, id(path)))
        if known is None:
            known = self._known[device, id(path)] = path, self._role(device, path)
        return known[1]

    def _role(self, device: int, path: Path) -> Role:
        instruction = path[-1].instruction
        start = start_of(instruction) if instruction.opcode in START_OF else None
        asked = start or instruction
        collective, event = collective_in(asked), _last_event(instruction)
        assert event is not None
        if collective is None:
            return Role(event, _request(path, asked, asked))
        request = _request(path, asked, collective)
        group = group_of(collective, device, *self.extent)
        key = self._rendezvous_keys.of(self.modules[device], request), group
        return Role(event, request, collective, self._keys.setdefault(key, len(self._keys)), group)

    @cached_property
    def _rendezvous_keys(self) -> RendezvousKeys:
        return RendezvousKeys(self.modules)


def _last_event(instruction: Instruction) -> EventKind | None:
    """The event that completes an instruction that communicates with devices; None for other instructions."""
    events = EVENTS.get(KINDS.get(instruction.opcode, ""), ())
    return events[-1] if events and events[-1].within != FEED else None


def _talks(instruction: Instruction) -> bool:
    event = _last_event(instruction)
    if event is None or event.within == CHANNEL:
        return event is not None
    start = start_of(instruction) if instruction.opcode in START_OF else instruction
    return start is not None and collective_in(start) is not None


def _request(path: Path, asked: Instruction, collective: Instruction) -> Request:
    return Request(asked, (*path[:-1], Place(asked)), collective.attribute_values())
