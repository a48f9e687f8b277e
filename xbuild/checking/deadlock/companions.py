"""Loops and conditionals of several devices that run together, because what is inside them meets."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from ...properties.effects import collective_in, steps
from ...properties.sites import Site, sites
from ..model.describe import finding, named
from ..model.verdict import Finding
from .run import Context, ItemNumber
from .skeleton import Skeleton


def companions(context: Context, skeletons: Mapping[int, Skeleton]) -> list[list[ItemNumber]]:
    """The units of a level in sets: two are in one set where anything inside meets, directly or by others."""
    leader: dict[ItemNumber, ItemNumber] = {}

    def find(place: ItemNumber) -> ItemNumber:
        while leader[place] != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    first: dict[Hashable, ItemNumber] = {}
    for device, skeleton in skeletons.items():
        for number in skeleton.units:
            place = leader[device, number] = (device, number)
            for key in _meets(context, device, skeleton.items[number]):
                leader[find(place)] = find(first.setdefault(key, place))
    found: dict[ItemNumber, list[ItemNumber]] = {}
    for place in leader:
        found.setdefault(find(place), []).append(place)
    return list(found.values())


def _meets(context: Context, device: int, item: Site) -> Iterator[Hashable]:
    """What tells whom a unit meets inside: channels with their ends, collectives with their groups."""
    program = context.program
    module = program.class_of[device].module
    for site in inside(item):
        instruction, collective = site.instruction, collective_in(site.instruction)
        if collective is not None:
            yield context.identity.of(module, site), program.group(collective, device)[0]  # groups share nobody
        elif instruction.opcode in ("send", "recv"):
            peer = context.transfers.peer(instruction, device)
            if peer is not None:
                yield site.channel, *((device, peer) if instruction.opcode == "send" else (peer, device))


def inside(unit: Site) -> Iterator[Site]:
    """The communicating places of all that a loop or conditional calls."""
    for step in steps(unit.instruction):
        yield from sites(step.computation, (*unit.path, step))


def conflict(skeletons: Mapping[int, Skeleton], places: Sequence[ItemNumber]) -> Finding | None:
    """Two units of one device that would have to run as one."""
    seen: dict[int, Site] = {}
    for device, number in places:
        item = skeletons[device].items[number]
        other = seen.setdefault(device, item)
        if other is not item:
            return finding(
                "companion_conflict",
                f"on device {device} {named(other.instruction)} and {named(item.instruction)} would have to run as one",
                ((device,), other),
                ((device,), item),
                cause_text="both meet what is inside one and the same loop or conditional of another device",
                repair_text=f"join {other.instruction.name} and {item.instruction.name}, or split the other side",
            )
    return None
