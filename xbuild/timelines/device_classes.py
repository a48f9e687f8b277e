"""Devices that do the same: classes whose members run one program and meet members of the same classes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from attrs import define, field

from ..checking.deadlock.level_run import Context
from ..core.graph import Instruction
from ..properties.effects import collective_in
from ..properties.sites import collectives_of, transfers_of

Meeting: TypeAlias = "np.ndarray | tuple[np.ndarray, ...]"
"""The peer of each device, or the groups of devices that meet."""


@define(eq=False)
class DeviceClasses:
    """The class of each device, by its place among the sorted devices, and the first device of each class."""

    devices: tuple[int, ...]
    label: np.ndarray
    first: dict[int, int] = field(init=False)
    of: dict[int, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.of = dict(zip(self.devices, self.label.tolist(), strict=True))
        self.first = {}
        for device, label in self.of.items():
            self.first.setdefault(label, device)

    def members(self, label: int) -> tuple[int, ...]:
        """The devices of a class."""
        return tuple(np.asarray(self.devices)[self.label == label].tolist())

    def classes(self, devices: Sequence[int]) -> tuple[int, ...]:
        """The classes of these devices, each once."""
        return tuple(sorted({self.of[device] for device in devices}))


def device_classes(context: Context, decisions: Sequence[Hashable]) -> DeviceClasses:
    """The coarsest classes in which all members meet devices of the same classes.

    `decisions` tells for each device which branches and trips it takes. Partition refinement: devices part where the
    classes of their groups or peers differ, until nothing changes.
    """
    devices = context.program.devices
    place = {device: number for number, device in enumerate(devices)}
    module = {each: number for number, each in enumerate(context.program.classes)}
    label = _numbered([(module[context.program.class_of[d]], way) for d, way in zip(devices, decisions, strict=True)])
    if len(set(label.tolist())) == len(devices):
        return DeviceClasses(devices, label)
    meetings = [*_meetings(context, place)]
    while True:
        parts = [label, *(_seen(meeting, label) for meeting in meetings)]
        finer = np.unique(np.stack(parts, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        if finer.max(initial=0) == label.max(initial=0):
            return DeviceClasses(devices, _numbered(label.tolist()))
        label = finer


def _numbered(keys: Sequence[Hashable]) -> np.ndarray:
    """A number for each key, in the order in which they come."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)


def _meetings(context: Context, place: dict[int, int]) -> Iterator[Meeting]:
    """For each distinct grouping the groups, and for each transfer the peers, by the places of devices."""
    known: set[Hashable] = set()
    for module in dict.fromkeys(each.module for each in context.program.classes):
        for site in collectives_of(module.entry):
            collective = collective_in(site.instruction)
            assert collective is not None
            groups = context.program.groups(collective)
            if id(groups) not in known:  # groups are kept, and collectives that name the same ones share them
                known.add(id(groups))
                yield tuple(np.array([place[device] for device in group if device in place]) for group in groups)
        for site in transfers_of(module.entry):
            peers = _peers(context, site.instruction, place)
            if peers.tobytes() not in known:
                known.add(peers.tobytes())
                yield peers


def _peers(context: Context, half: Instruction, place: dict[int, int]) -> np.ndarray:
    """The place of each device's peer; -1 where a device takes no part."""
    peers = (context.transfers.peer(half, device) for device in place)
    return np.array([-1 if peer is None else place[peer] for peer in peers], dtype=np.int64)


def _seen(meeting: Meeting, label: np.ndarray) -> np.ndarray:
    """For each device a number that tells the classes of those that it meets, and how many they are."""
    if isinstance(meeting, np.ndarray):
        return np.where(meeting >= 0, label[meeting], -1)
    found, numbers = np.full(len(label), -1, dtype=np.int64), dict[bytes, int]()
    for group in meeting:
        if len(group):
            found[group] = numbers.setdefault(np.sort(label[group]).tobytes(), len(numbers))
    return found
