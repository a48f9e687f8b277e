"""`Timeline`: what each class of devices does when, its critical path, and what bounds it.

Sections:

    The critical path: from the end back to the beginning, over the spans that each span waited for
    Spans written out: loops in a steady state trip by trip, or one trip and the number of the others
    Timeline
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from ..checking.deadlock.level_run import LevelContext
from ..core.graph import Instruction
from ..core.hooks import Showable
from ..core.report_text import MOST_ROWS
from ..costs import Cost
from ..properties.effects import TRANSFERS
from ..properties.mesh import Mesh
from .durations import CollectiveTime, Durations
from .machines import Machine
from .simulation import BESIDE, COMPUTE, EXPOSED, KINDS, LINK, NOBODY, WAIT, Repeat, Span, SpanKind, SpanRecorder
from .tape import Tape

# ----------------------------------------------------------------------------
# The critical path: from the end back to the beginning, over the spans that each span waited for


@frozen
class PathStep:
    """One step of the critical path: an instruction of a class of devices, at work or on the links.

    `seconds` is one execution, which counts `times` times if a loop is in a steady state.
    """

    instruction: Instruction
    label: int
    kind: SpanKind
    seconds: float
    times: int = 1

    @property
    def total(self) -> float:
        """The seconds of all executions."""
        return self.seconds * self.times

    @property
    def source(self) -> str:
        """The user's line, or empty."""
        return str(self.instruction.source or "")

    def to_dict(self) -> dict[str, Any]:
        """The step as plain data."""
        facts = {name: getattr(self, name) for name in ("label", "kind", "seconds", "times", "source")}
        return {"name": self.instruction.name, **facts}


def critical_path(spans: SpanRecorder, last: int | None) -> tuple[PathStep, ...]:
    """The steps from the beginning to the end of the span `last`, without spans that only wait."""
    times = spans.times()
    return tuple(
        PathStep(
            spans.instructions[number],
            spans.labels[number],
            KINDS[spans.kinds[number]],
            spans.ends[number] - spans.starts[number],
            int(times[number]),
        )
        for number in number_path(spans, last)
    )


def number_path(spans: SpanRecorder, last: int | None) -> tuple[int, ...]:
    """The same steps as numbers of spans."""
    number, found = NOBODY if last is None else last, list[int]()
    while number != NOBODY:
        if spans.kinds[number] not in (WAIT, EXPOSED):
            found.append(number)
        number = spans.causes[number]
    return tuple(reversed(found))


def fold_path(path: tuple[PathStep, ...]) -> tuple[PathStep, ...]:
    """The path with all steps of one instruction of a class as one, in the order of their first steps."""
    found: dict[tuple[Instruction, int, str], PathStep] = {}
    for step in path:
        key = step.instruction, step.label, step.kind
        known = found.get(key)
        if known is None:
            found[key] = step
        else:
            times = known.times + step.times
            found[key] = evolve(known, seconds=(known.total + step.total) / times, times=times)
    return tuple(found.values())


# ----------------------------------------------------------------------------
# Spans written out: loops in a steady state trip by trip, or one trip and the number of the others


def expand_spans(spans: SpanRecorder, *, whole: bool) -> Iterator[tuple[int, float, int]]:
    """Each span by number with its shift in seconds, loops in a steady state trip by trip.

    If not `whole`, such a loop has one trip; the third number says how many more there are.
    """
    inner: dict[int, list[Repeat]] = {}
    for repeat in spans.repeats:
        inner.setdefault(repeat.first, []).append(repeat)
    yield from _expand_between(
        0, len(spans), 0.0, 0, {key: sorted(v, key=lambda r: -r.last) for key, v in inner.items()}, whole
    )


def _expand_between(
    first: int, last: int, shift: float, other_trips: int, repeats: dict[int, list[Repeat]], whole: bool
) -> Iterator[tuple[int, float, int]]:
    number = first
    while number < last:
        here = [each for each in repeats.get(number, ()) if each.last <= last]
        if not here:
            yield number, shift, other_trips
            number += 1
            continue
        outer = here[0]
        rest = {**repeats, number: here[1:]}
        for trip in range(outer.times if whole else 1):
            left = other_trips if whole else other_trips + outer.times - 1
            yield from _expand_between(outer.first, outer.last, shift + trip * outer.period, left, rest, whole)
        number = outer.last


# ----------------------------------------------------------------------------
# Timeline


@frozen
class ClassTimes:
    """The times of devices that do the same, in seconds on one device.

    `busy` is work; `exposed` is communication or a parallel copy during which the device does nothing else; `waiting`
    is waiting for other devices; `end` is when the device ends. `links` is how long its links carry data.
    """

    label: int
    devices: tuple[int, ...]
    busy: float
    exposed: float
    waiting: float
    links: float
    end: float

    @classmethod
    def of(cls, spans: SpanRecorder, label: int, devices: tuple[int, ...], end: float) -> ClassTimes:
        """The sums of the spans of a class."""
        sums = _sum_by_kind(spans, label)
        return cls(label, devices, sums[COMPUTE], sums[EXPOSED], sums[WAIT], sums[LINK], end)

    def to_dict(self) -> dict[str, Any]:
        """The times as plain data."""
        names = ("busy", "exposed", "waiting", "links", "end")
        return {"devices": list(self.devices), **{name: getattr(self, name) for name in names}}


def _sum_by_kind(spans: SpanRecorder, label: int) -> dict[int, float]:
    mine = np.array(spans.labels) == label
    kinds = np.array(spans.kinds)
    durations = (np.array(spans.ends) - np.array(spans.starts)) * spans.times()
    return {kind: float(durations[mine & (kinds == kind)].sum()) for kind in (COMPUTE, EXPOSED, WAIT, LINK, BESIDE)}


@frozen
class Share:
    """An instruction, its seconds in all executions of one device, and what bounds it."""

    instruction: Instruction
    seconds: float
    times: int
    bound: str


@frozen(eq=False, repr=False, slots=False)
class Timeline(Showable):
    """The timeline of a program on a machine. str() returns a report.

    `seconds` is the time at which the last device finishes. `classes` has the times for each class of devices that do
    the same work, and `cost` has the cost of each instruction. All times are estimates from a model; use them for
    bounds and rankings, not as predictions of actual times.
    """

    cost: Cost
    machine: Machine
    classes: tuple[ClassTimes, ...]
    context: LevelContext = field(repr=False)
    tapes: Mapping[int, Tape] = field(repr=False)
    recorder: SpanRecorder = field(repr=False)
    _last: Mapping[int, int]
    collective_times: Mapping[Instruction, CollectiveTime]
    _durations: tuple[Durations, ...]
    _again: Callable[[Machine], Timeline]

    def again(self, machine: Machine) -> Timeline:
        """Return the timeline of the same program on another machine."""
        return self._again(machine)

    @cached_property
    def carried(self) -> Mapping[Instruction, Instruction]:
        """For each communicating instruction the collective, send or recv that it is, starts or completes."""
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
        """Return the actions of a device in order, with the peers of the first device of its class."""
        return self.tapes[self._labels[device]]

    @cached_property
    def _labels(self) -> Mapping[int, int]:
        return {device: device_class.label for device_class in self.classes for device in device_class.devices}

    @property
    def num_devices(self) -> int:
        return sum(len(device_class.devices) for device_class in self.classes)

    @property
    def mesh(self) -> Mesh | None:
        return self.cost.mesh

    @property
    def seconds(self) -> float:
        """The time in seconds at which the last device ends."""
        return max((device_class.end for device_class in self.classes), default=0.0)

    @property
    def slowest(self) -> ClassTimes:
        """The class of devices that ends last."""
        return max(self.classes, key=lambda each: each.end)

    def _average(self, name: str) -> float:
        whole: float = sum(getattr(device_class, name) * len(device_class.devices) for device_class in self.classes)
        return whole / max(self.num_devices, 1)

    @property
    def busy(self) -> float:
        """The seconds of work, averaged over all devices."""
        return self._average("busy")

    @property
    def exposed(self) -> float:
        """The seconds of communication during which a device does nothing else, averaged over all devices."""
        return self._average("exposed")

    @property
    def bubble(self) -> float:
        """The seconds during which a device waits for others or has already ended, averaged over all devices."""
        return self.seconds - self.busy - self.exposed

    @property
    def lower_bound(self) -> float:
        """The seconds of work of the busiest device or of the busiest links, whichever is longer. No amount of
        overlap can make the run shorter than this."""
        return max((*(device_class.busy for device_class in self.classes), *self._on_links.values()), default=0.0)

    @cached_property
    def _on_links(self) -> Mapping[tuple[int, Hashable], float]:
        """The seconds for which each class uses the links of each axis, or sends by one instruction."""
        found: dict[tuple[int, Hashable], float] = {}
        spans, times = self.recorder, self.recorder.times().tolist()
        for number, kind in enumerate(spans.kinds):
            if kind == LINK:
                carried = self.carried.get(spans.instructions[number], spans.instructions[number])
                time = self.collective_times.get(carried)
                durations = (spans.ends[number] - spans.starts[number]) * times[number]
                rest = carried if carried.opcode in TRANSFERS else ""
                for link in (time.axes if time is not None else ()) or (rest,):
                    place = spans.labels[number], link
                    found[place] = found.get(place, 0.0) + durations
        return found

    @cached_property
    def critical_path(self) -> tuple[PathStep, ...]:
        """The steps that determine the end, from the beginning: each step ends when the next one can begin.

        The seconds of all steps add up to the timeline. A step of a loop in a steady state counts `times` times.
        """
        return critical_path(self.recorder, self.last_span)

    @property
    def last_span(self) -> int | None:
        """The number of the span that ends last, or None if the timeline is empty."""
        return self._last.get(self.slowest.label) if self.classes else None

    @property
    def spans(self) -> Iterator[Span]:
        """All spans, in the order in which they were simulated."""
        times = self.recorder.times()
        return (self.recorder.span(number, int(times[number])) for number in range(len(self.recorder)))

    def bound_of(self, instruction: Instruction) -> str:
        """Return `compute` or `memory`, whichever term of the roofline takes longer; for a call, return `memory`."""
        return self._durations[0].roofline(instruction).bound

    def shares(self, label: int | None = None) -> list[Share]:
        """Return the work of each instruction in the slowest class, or a given class, in decreasing order of time."""
        label = self.slowest.label if label is None else label
        times, found = self.recorder.times(), dict[Instruction, list[float]]()
        for number, (of, kind) in enumerate(zip(self.recorder.labels, self.recorder.kinds, strict=True)):
            if of == label and kind == COMPUTE:
                durations = self.recorder.ends[number] - self.recorder.starts[number]
                both = found.setdefault(self.recorder.instructions[number], [0.0, 0])
                both[0] += durations * int(times[number])
                both[1] += int(times[number])
        shares = (Share(each, both[0], int(both[1]), self.bound_of(each)) for each, both in found.items())
        return sorted(shares, key=lambda each: -each.seconds)

    def to_dict(self) -> dict[str, Any]:
        """Return the timeline as plain data, for JSON."""
        return {
            "name": self.name,
            "machine": self.machine.to_dict(),
            "mesh": dict(self.mesh.sizes) if self.mesh else None,
            "num_devices": self.num_devices,
            **{name: getattr(self, name) for name in ("seconds", "busy", "exposed", "bubble", "lower_bound")},
            "classes": [device_class.to_dict() for device_class in self.classes],
            "critical_path": [each.to_dict() for each in self.critical_path],
        }

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def table(self, top: int = MOST_ROWS) -> str:
        """Return the timeline as text, with `top` rows in each of its tables."""
        from .report import report_lines

        return "\n".join(report_lines(self, top))
