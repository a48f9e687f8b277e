"""From a time line to the bars of its picture: which lanes, which panels, and what is too thin for a bar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import define, field

from ...checking.model.program import devices_text
from ...timelines import ClassTimes, Timeline
from ...timelines.expansion import expanded
from ...timelines.path import numbers_of_path
from ...timelines.recording import BESIDE, COMPUTE, EXPOSED, LINK, WAIT, Repeat
from ...timelines.report import duration
from ..model.kinds import kind_of
from . import Panel, TimeBar, TimeLane, TimePicture, Track
from .columns import columns_of

WIDTH = 760.0
"""Pixels of a panel from its begin to its end."""

MOST_LANES = 16
MOST_SPANS = 300_000
_THINNEST = 3.0
_TRACKS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("work", (COMPUTE, EXPOSED, WAIT)), ("links", (LINK,)), ("beside", (BESIDE,)),
)  # fmt: skip


def time_picture(timeline: Timeline) -> TimePicture:
    """The picture of a time line: the whole of it, and one trip of the loop that takes longest."""
    laid = _Laid(timeline)
    whole = laid.panel("", 0.0, timeline.seconds)
    longest = max(timeline.recorder.repeats, key=lambda each: each.times * each.period, default=None)
    panels = [whole] if timeline.seconds else []
    if longest is not None and longest.times > 2 and longest.period < timeline.seconds / 4:
        start = min(timeline.recorder.starts[longest.first : longest.last], default=0.0)
        title = f"one of {longest.times:,} trips that are alike, {duration(longest.period)}"
        panels.append(laid.panel(title, start, start + longest.period))
    left = len(timeline.classes) - len(laid.lanes)
    notes = (f"{left:,} more classes of devices are not drawn",) if left else ()
    count = f"{timeline.num_devices:,} device{'s' * (timeline.num_devices != 1)}"
    headline = f"{timeline.name} on {timeline.machine.name}: {count}, {duration(timeline.seconds)}"
    remark = "a model that bounds and ranks; it predicts no milliseconds"
    return TimePicture(timeline.name, headline, remark, tuple(panels), notes, str(timeline))


@define(eq=False)
class _Laid:
    """The spans of a time line, written out, and the lanes that are drawn."""

    timeline: Timeline
    lanes: Sequence[ClassTimes] = field(init=False)
    number: np.ndarray = field(init=False)
    start: np.ndarray = field(init=False)
    end: np.ndarray = field(init=False)
    label: np.ndarray = field(init=False)
    kind: np.ndarray = field(init=False)
    on_path: np.ndarray = field(init=False)

    def __attrs_post_init__(self) -> None:
        spans = self.timeline.recorder
        whole = bool(spans.times().sum() <= MOST_SPANS)
        rows = np.array([(n, shift) for n, shift, _ in expanded(spans, whole=whole)], dtype=float).reshape(-1, 2)
        self.number = rows[:, 0].astype(np.int64)
        self.start = np.array(spans.starts)[self.number] + rows[:, 1]
        self.end = np.array(spans.ends)[self.number] + rows[:, 1]
        self.label = np.array(spans.labels, dtype=np.int64)[self.number]
        self.kind = np.array(spans.kinds, dtype=np.int64)[self.number]
        path = np.zeros(len(spans), dtype=bool)
        path[list(numbers_of_path(spans, self.timeline.last_span))] = True
        self.on_path = path[self.number]
        self.lanes = _chosen(self.timeline.classes)

    def panel(self, title: str, start: float, end: float) -> Panel:
        """The lanes between two moments."""
        lanes = tuple(self._lane(each, start, end) for each in self.lanes)
        return Panel(title, start, end, lanes, tuple(self._marks(start, end)))

    def _marks(self, start: float, end: float) -> Iterator[tuple[float, float, str]]:
        """Where loops are in a steady state, those that are wide enough."""
        scale = WIDTH / (end - start)
        for each in self.timeline.recorder.repeats:
            left, right = self._extent(each)
            if left >= start and right <= end * (1 + 1e-9) and (right - left) * scale > 60:
                yield (left - start) * scale, (right - start) * scale, f"{each.times:,} trips alike"

    def _extent(self, repeat: Repeat) -> tuple[float, float]:
        first = min(self.timeline.recorder.starts[repeat.first : repeat.last], default=0.0)
        return first, first + repeat.times * repeat.period

    def _lane(self, of: ClassTimes, start: float, end: float) -> TimeLane:
        mine = (self.label == of.label) & (self.end > start) & (self.start < end)
        tracks = [self._track(name, mine & np.isin(self.kind, kinds), start, end) for name, kinds in _TRACKS]
        path = self._track("critical path", mine & self.on_path, start, end)
        count = len(of.devices)
        whole = self.timeline.seconds or 1.0
        notes = (f"busy {of.busy / whole:.0%}, exposed {of.exposed / whole:.0%}",)
        title = devices_text(of.devices) if count > 1 else f"device {of.devices[0]}"
        drawn = tuple(each for each in (*tracks, path) if each.name in ("work", "critical path") or _has(each))
        return TimeLane(title, notes, drawn)

    def _track(self, name: str, mine: np.ndarray, start: float, end: float) -> Track:
        scale = WIDTH / (end - start)
        left = np.clip((self.start[mine] - start) * scale, 0, WIDTH)
        right = np.clip((self.end[mine] - start) * scale, 0, WIDTH)
        numbers, is_path = self.number[mine], name == "critical path"
        wide = (right - left >= _THINNEST) & (not is_path)
        bars = tuple(self._bar(*each) for each in zip(left[wide], right[wide], numbers[wide], strict=True))
        category = [("path" if is_path else self._category(each)) for each in numbers[~wide].tolist()]
        return Track(name, bars, columns_of(left[~wide], right[~wide], category, WIDTH))

    def _bar(self, left: float, right: float, number: int) -> TimeBar:
        span = self.timeline.recorder.span(int(number))
        source = f"\n{span.instruction.source}" if span.instruction.source else ""
        told = {"exposed": "waits for ", "wait": "waits at "}.get(span.kind, "")
        tooltip = f"{told}{span.instruction.name}: {duration(span.seconds)}{source}"
        return TimeBar(float(left), float(right), self._category(int(number)), span.instruction.name, tooltip)

    def _category(self, number: int) -> str:
        kind = self.timeline.recorder.kinds[number]
        if kind in (EXPOSED, WAIT):
            return "exposed" if kind == EXPOSED else "wait"
        instruction = self.timeline.recorder.instructions[number]
        return kind_of(self.timeline.carried.get(instruction, instruction).opcode).letter


def _has(track: Track) -> bool:
    return bool(track.bars or track.columns)


def _chosen(classes: Sequence[ClassTimes]) -> Sequence[ClassTimes]:
    """All classes, or as many as have room, at equal distances."""
    if len(classes) <= MOST_LANES:
        return classes
    places = np.unique(np.linspace(0, len(classes) - 1, MOST_LANES).round().astype(int))
    return [classes[place] for place in places]
