"""Devices that do the same: classes whose members run one program and meet members of the same classes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from attrs import define, field

from ..checking.deadlock.level_run import Context
from ..core.graph import Instruction
from ..properties.effects import TRANSFERS, collective_in
from ..properties.sites import collectives_of, transfers_of


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


def _meetings(context: Context, place: dict[int, int]) -> Iterator[np.ndarray]:
    """Rows of devices that meet: for each distinct grouping a table with a row for each device, padded with -1."""
    known: set[Hashable] = set()
    for module in dict.fromkeys(each.module for each in context.program.classes):
        for site in collectives_of(module.entry):
            collective = collective_in(site.instruction)
            assert collective is not None
            groups = context.program.groups(collective)
            if groups not in known:
                known.add(groups)
                yield _table(groups, place)
        for site in transfers_of(module.entry):
            peers = _peers(context, site.instruction, place)
            if peers.tobytes() not in known:
                known.add(peers.tobytes())
                yield peers


def _table(groups: Sequence[Sequence[int]], place: dict[int, int]) -> np.ndarray:
    found = np.full((len(place), max(map(len, groups), default=1)), -1, dtype=np.int64)
    for group in groups:
        rows = [place[device] for device in group if device in place]
        found[rows, : len(rows)] = rows
    return found


def _peers(context: Context, half: Instruction, place: dict[int, int]) -> np.ndarray:
    assert half.opcode in TRANSFERS
    peers = (context.transfers.peer(half, device) for device in place)
    return np.array([[-1 if peer is None else place[peer]] for peer in peers], dtype=np.int64)


def _seen(meeting: np.ndarray, label: np.ndarray) -> np.ndarray:
    """For each device a number that tells the classes of those that it meets, and how many they are."""
    met = np.sort(np.where(meeting >= 0, label[meeting], -1), axis=1)
    return np.unique(met, axis=0, return_inverse=True)[1].reshape(-1)
