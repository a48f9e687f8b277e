"""`Timeline`: what each class of devices does when, what is exposed, and what bounds it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from attrs import field, frozen

from ..checking.deadlock.level_run import Context
from ..core.graph import Instruction
from ..costs import Cost
from ..properties.effects import TRANSFERS
from ..properties.mesh import Mesh
from .collective_times import CollectiveTime
from .durations import Durations
from .machines import Machine
from .path import PathStep, critical_path
from .recording import BESIDE, COMPUTE, EXPOSED, LINK, WAIT, Recorder, Span
from .tape import Tape


@frozen
class ClassTimes:
    """The times of devices that do the same, of one device in seconds.

    `busy` is work; `exposed` communication, or what runs beside, during which nothing else is done; `waiting` waits for
    other devices; `end` is when the device has ended. `links` is how long its links carry something.
    """

    label: int
    devices: tuple[int, ...]
    busy: float
    exposed: float
    waiting: float
    links: float
    end: float

    @classmethod
    def of(cls, spans: Recorder, label: int, devices: tuple[int, ...], end: float) -> ClassTimes:
        """The sums of the spans of a class."""
        sums = _sums(spans, label)
        return cls(label, devices, sums[COMPUTE], sums[EXPOSED], sums[WAIT], sums[LINK], end)

    def to_dict(self) -> dict[str, Any]:
        """The times as plain data."""
        names = ("busy", "exposed", "waiting", "links", "end")
        return {"devices": list(self.devices), **{name: getattr(self, name) for name in names}}


def _sums(spans: Recorder, label: int) -> dict[int, float]:
    mine = np.array(spans.labels) == label
    kinds = np.array(spans.kinds)
    taken = (np.array(spans.ends) - np.array(spans.starts)) * spans.times()
    return {kind: float(taken[mine & (kinds == kind)].sum()) for kind in (COMPUTE, EXPOSED, WAIT, LINK, BESIDE)}


@frozen
class Share:
    """An instruction, its seconds in all executions of one device, and what bounds it."""

    instruction: Instruction
    seconds: float
    times: int
    bound: str


@frozen(eq=False, repr=False, slots=False)
class Timeline:
    """The time line of a program on a machine; str() of it is a page to read.

    `seconds` is when the last device ends. `classes` has the times of devices that do the same, `cost` what each
    instruction costs. All is a model: it bounds and ranks, and predicts no milliseconds.
    """

    cost: Cost
    machine: Machine
    classes: tuple[ClassTimes, ...]
    context: Context = field(repr=False)
    tapes: Mapping[int, Tape] = field(repr=False)
    recorder: Recorder = field(repr=False)
    _last: Mapping[int, int]
    collective_times: Mapping[Instruction, CollectiveTime]
    _durations: tuple[Durations, ...]
    _again: Callable[[Machine], Timeline]

    def again(self, machine: Machine) -> Timeline:
        """The time line of the same program on another machine."""
        return self._again(machine)

    @cached_property
    def carried(self) -> Mapping[Instruction, Instruction]:
        """For each instruction that communicates the collective, send or recv that it is, starts or completes."""
        found: dict[Instruction, Instruction] = {}
        stack = [entry for tape in self.tapes.values() for entry in tape]
        while stack:
            entry = stack.pop()
            stack += (*entry.condition, *entry.body)
            if entry.inner is not None:
                found[entry.instruction] = entry.inner
        return found

    @property
    def name(self) -> str:
        return self.cost.name

    @property
    def devices(self) -> tuple[int, ...]:
        """All devices, in order."""
        return self.context.program.devices

    def tape_of(self, device: int) -> Tape:
        """What a device does, one after the other, told of the first device of its class."""
        return self.tapes[self._labels[device]]

    @cached_property
    def _labels(self) -> Mapping[int, int]:
        return {device: each.label for each in self.classes for device in each.devices}

    @property
    def num_devices(self) -> int:
        return sum(len(each.devices) for each in self.classes)

    @property
    def mesh(self) -> Mesh | None:
        return self.cost.mesh

    @property
    def seconds(self) -> float:
        """When the last device ends."""
        return max((each.end for each in self.classes), default=0.0)

    @property
    def slowest(self) -> ClassTimes:
        """The class of devices that ends last."""
        return max(self.classes, key=lambda each: each.end)

    def _average(self, figure: str) -> float:
        whole: float = sum(getattr(each, figure) * len(each.devices) for each in self.classes)
        return whole / max(self.num_devices, 1)

    @property
    def busy(self) -> float:
        """Seconds of work, the average of all devices."""
        return self._average("busy")

    @property
    def exposed(self) -> float:
        """Seconds of communication during which a device does nothing else, the average of all devices."""
        return self._average("exposed")

    @property
    def bubble(self) -> float:
        """Seconds in which a device waits for others or has ended before them, the average of all devices."""
        return self.seconds - self.busy - self.exposed

    @property
    def lower_bound(self) -> float:
        """Seconds below which no overlap helps: the busiest device's work, or the busiest links."""
        return max((*(each.busy for each in self.classes), *self._on_links.values()), default=0.0)

    @cached_property
    def _on_links(self) -> Mapping[tuple[int, Hashable], float]:
        """The seconds for which each class has something on the links of each axis, or sends by one instruction."""
        found: dict[tuple[int, Hashable], float] = {}
        spans, times = self.recorder, self.recorder.times().tolist()
        for number, kind in enumerate(spans.kinds):
            if kind == LINK:
                carried = self.carried.get(spans.instructions[number], spans.instructions[number])
                time = self.collective_times.get(carried)
                taken = (spans.ends[number] - spans.starts[number]) * times[number]
                rest = carried if carried.opcode in TRANSFERS else ""
                for link in (time.axes if time is not None else ()) or (rest,):
                    place = spans.labels[number], link
                    found[place] = found.get(place, 0.0) + taken
        return found

    @cached_property
    def critical_path(self) -> tuple[PathStep, ...]:
        """What the end waits for, from the beginning: each step ends when the next can begin.

        The seconds of all steps are those of the time line; a step of a loop in a steady state counts `times` times.
        """
        return critical_path(self.recorder, self.last_span)

    @property
    def last_span(self) -> int | None:
        """The number of the span that ends last; None where there is none."""
        return self._last.get(self.slowest.label) if self.classes else None

    @property
    def spans(self) -> Iterator[Span]:
        """All spans, in the order in which they were found."""
        times = self.recorder.times()
        return (self.recorder.span(number, int(times[number])) for number in range(len(self.recorder)))

    def bound_of(self, instruction: Instruction) -> str:
        """`compute` or `memory`: which term of the roofline is the longer; a call is `memory`."""
        return self._durations[0].roofline(instruction).bound

    def shares(self, label: int | None = None) -> list[Share]:
        """The work of the slowest class, or of another, by instruction, the longest first."""
        label = self.slowest.label if label is None else label
        times, found = self.recorder.times(), dict[Instruction, list[float]]()
        for number, (of, kind) in enumerate(zip(self.recorder.labels, self.recorder.kinds, strict=True)):
            if of == label and kind == COMPUTE:
                taken = self.recorder.ends[number] - self.recorder.starts[number]
                both = found.setdefault(self.recorder.instructions[number], [0.0, 0])
                both[0] += taken * int(times[number])
                both[1] += int(times[number])
        shares = (Share(each, both[0], int(both[1]), self.bound_of(each)) for each, both in found.items())
        return sorted(shares, key=lambda each: -each.seconds)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data, for JSON."""
        return {
            "name": self.name,
            "machine": self.machine.to_dict(),
            "mesh": dict(self.mesh.sizes) if self.mesh else None,
            "num_devices": self.num_devices,
            **{name: getattr(self, name) for name in ("seconds", "busy", "exposed", "bubble", "lower_bound")},
            "classes": [each.to_dict() for each in self.classes],
            "critical_path": [each.to_dict() for each in self.critical_path],
        }

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def table(self, top: int = 8) -> str:
        """The time line as a page to read, with `top` rows in each of its tables."""
        from .report import page

        return "\n".join(page(self, top))
