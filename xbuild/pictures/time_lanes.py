"""A timeline as a picture in real proportions: from tracks of bars as plain data to SVG.

Sections:

    Tracks of bars as plain data
    Bars that are too thin to draw
    From a timeline to bars
    Colours
    Time lanes as SVG
    Memory of a device
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence

import numpy as np
from attrs import define, field, frozen

from shape_inference.escaping import in_html

from ..checking.model.program import devices_text
from ..costs.memory import Memory
from ..costs.report import short
from ..timelines import ClassTimes, Timeline
from ..timelines.record import expand_spans, number_path
from ..timelines.report import duration
from ..timelines.simulation import BESIDE, COMPUTE, EXPOSED, LINK, WAIT, Repeat
from .geometry import ADVANCE, Rectangle, width_of
from .picture import KINDS, kind_of
from .svg import document, kind_class, n, rounded, text

# ----------------------------------------------------------------------------
# Tracks of bars as plain data
#
# In real proportions, one or two panels of them.

CATEGORIES = ("exposed", "wait", "trips")
"""What a bar may be besides an op, whose letter names its kind."""


@frozen
class TimeBar:
    """A bar from `left` to `right`, in pixels, of a kind of op (its letter), or exposed, wait, trips."""

    left: float
    right: float
    category: str
    name: str
    tooltip: str


@frozen
class ThinColumn:
    """A narrow stretch in which bars would be too thin: for each category the part of it that it fills."""

    left: float
    width: float
    shares: tuple[tuple[str, float], ...]


@frozen
class Track:
    """Bars of one lane: its work, its links, what runs beside, or the critical path through it."""

    name: str
    bars: tuple[TimeBar, ...]
    columns: tuple[ThinColumn, ...]


@frozen
class TimeLane:
    """The lane of a class of devices, with its tracks; `notes` are its figures."""

    title: str
    notes: tuple[str, ...]
    tracks: tuple[Track, ...]


@frozen
class LanePanel:
    """Lanes from `start` to `end` seconds; `title` says of what, `marks` are stretches of loops with their trips."""

    title: str
    start: float
    end: float
    lanes: tuple[TimeLane, ...]
    marks: tuple[tuple[float, float, str], ...]


@frozen
class TimePicture:
    """A timeline to draw: its headline, what it says, its panels, and the text of its page."""

    name: str
    headline: str
    remark: str
    panels: tuple[LanePanel, ...]
    notes: tuple[str, ...]
    report: str = ""


# ----------------------------------------------------------------------------
# What is too thin for a bar
#
# Columns of a few pixels, filled by each category in proportion.

STEP = 2.0
"""Pixels of a column."""

_FILLED = 0.02
"""The part of a column below which a category is left out."""


def columns_of(left: np.ndarray, right: np.ndarray, category: Sequence[str], width: float) -> tuple[ThinColumn, ...]:
    """The columns of thin bars, of any width; equal columns that follow each other are one.

    >>> columns_of(np.array([0.0, 1.0]), np.array([1.0, 2.0]), ["D", "C"], 4.0)
    (ThinColumn(left=0.0, width=2.0, shares=(('C', 0.5), ('D', 0.5))),)
    """
    if not len(left):
        return ()
    names = sorted({*category})
    number = np.array([names.index(each) for each in category])
    covered = np.zeros((int(np.ceil(width / STEP)) + 1, len(names)))
    first = np.minimum((left / STEP).astype(int), len(covered) - 1)
    for step in range(int(np.ceil((right - left).max() / STEP)) + 1):
        low, high = (first + step) * STEP, (first + step + 1) * STEP
        part = np.clip(np.minimum(right, high) - np.maximum(left, low), 0, None)
        np.add.at(covered, (np.minimum(first + step, len(covered) - 1), number), part / STEP)
    return tuple(_merged(np.round(np.minimum(covered, 1.0), 2), names))


def _merged(covered: np.ndarray, names: Sequence[str]) -> Iterator[ThinColumn]:
    """The filled columns, each as long as it stays the same."""
    edges = np.flatnonzero((covered[1:] != covered[:-1]).any(axis=1)) + 1
    for first, last in zip([0, *edges.tolist()], [*edges.tolist(), len(covered)], strict=True):
        shares = tuple((name, float(part)) for name, part in zip(names, covered[first], strict=True) if part >= _FILLED)
        if shares:
            yield ThinColumn(first * STEP, (last - first) * STEP, shares)


# ----------------------------------------------------------------------------
# From a timeline to bars
#
# Which lanes, which panels, and what is too thin for a bar.

WIDTH = 760.0
"""Pixels of a panel from its begin to its end."""

MOST_LANES = 16
MOST_SPANS = 300_000
_THINNEST = 3.0
_TRACKS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("work", (COMPUTE, EXPOSED, WAIT)), ("links", (LINK,)), ("beside", (BESIDE,)),
)  # fmt: skip


def time_picture(timeline: Timeline) -> TimePicture:
    """The picture of a timeline: the whole of it, and one trip of the loop that takes longest."""
    laid = _Laid(timeline)
    whole = laid.panel("", 0.0, timeline.seconds)
    longest = max(timeline.recorder.repeats, key=lambda each: each.times * each.period, default=None)
    panels = [whole] if timeline.seconds else []
    if longest is not None and longest.times > 2 and longest.period < timeline.seconds / 4:
        start = min(timeline.recorder.starts[longest.first : longest.last], default=0.0)
        title = f"one of {longest.times:,} equal trips, {duration(longest.period)}"
        panels.append(laid.panel(title, start, start + longest.period))
    left = len(timeline.classes) - len(laid.lanes)
    notes = (f"{left:,} more classes of devices are not drawn",) if left else ()
    count = f"{timeline.num_devices:,} device{'s' * (timeline.num_devices != 1)}"
    headline = f"{timeline.name} on {timeline.machine.name}: {count}, {duration(timeline.seconds)}"
    remark = "a model for bounds and rankings, not a prediction of milliseconds"
    return TimePicture(timeline.name, headline, remark, tuple(panels), notes, str(timeline))


@define(eq=False)
class _Laid:
    """The spans of a timeline, written out, and the lanes that are drawn."""

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
        rows = np.array([(n, shift) for n, shift, _ in expand_spans(spans, whole=whole)], dtype=float).reshape(-1, 2)
        self.number = rows[:, 0].astype(np.int64)
        self.start = np.array(spans.starts)[self.number] + rows[:, 1]
        self.end = np.array(spans.ends)[self.number] + rows[:, 1]
        self.label = np.array(spans.labels, dtype=np.int64)[self.number]
        self.kind = np.array(spans.kinds, dtype=np.int64)[self.number]
        path = np.zeros(len(spans), dtype=bool)
        path[list(number_path(spans, self.timeline.last_span))] = True
        self.on_path = path[self.number]
        self.lanes = _chosen(self.timeline.classes)

    def panel(self, title: str, start: float, end: float) -> LanePanel:
        """The lanes between two moments."""
        lanes = tuple(self._lane(each, start, end) for each in self.lanes)
        return LanePanel(title, start, end, lanes, tuple(self._marks(start, end)))

    def _marks(self, start: float, end: float) -> Iterator[tuple[float, float, str]]:
        """Where loops are in a steady state, those that are wide enough."""
        scale = WIDTH / ((end - start) or 1.0)  # a program without work takes no time
        for each in self.timeline.recorder.repeats:
            left, right = self._extent(each)
            if left >= start and right <= end * (1 + 1e-9) and (right - left) * scale > 60:
                yield (left - start) * scale, (right - start) * scale, f"{each.times:,} equal trips"

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
        scale = WIDTH / ((end - start) or 1.0)  # a program without work takes no time
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


# ----------------------------------------------------------------------------
# Colours
#
# Bars without a border, exposed communication, waits, the critical path; light and dark.


def _rules(exposed: str, stripe: str, wait: str, path: str, dim: str) -> str:
    rules = (
        ".tb path{stroke-width:.6}",
        f".t-exposed path{{fill:{exposed};stroke:{stripe}}}",
        f".t-exposed text{{fill:{stripe}}}",
        f".t-wait path{{fill:{wait};stroke:none}}",
        f".t-wait text{{fill:{dim}}}",
        f".t-path path{{fill:{path};stroke:none}}",
        f".tick,.xb .rail{{stroke:{dim};stroke-width:1;opacity:.22;fill:none}}",
        ".tl path{stroke:none}",
        f".mark{{stroke:{dim};stroke-width:1.2;fill:none}}",
    )
    return "".join(f".xb {rule}" for rule in rules)


EXTRA = (
    _rules("#ffcf9f", "#d84f00", "#e9edf0", "#c62828", "#5f6b73"),
    _rules("#74400f", "#ff9d5c", "#262c30", "#ff6b6b", "#9aa7ae"),
)


# ----------------------------------------------------------------------------
# Time lanes as svg
#
# Work, links and the critical path of each class of devices.

_HEIGHTS = {"work": 22.0, "links": 10.0, "beside": 8.0, "critical path": 3.0}
_GAP, _BETWEEN, _AXIS, _LEAST_LANE = 2.0, 14.0, 22.0, 36.0
_WORDS = {
    "exposed": "exposed: only communication", "wait": "waits for other devices", "path": "critical path",
}  # fmt: skip


def time_svg(picture: TimePicture, theme: str = "auto") -> str:
    """The timeline as svg; the same timeline gives the same text."""
    drawing = _Drawing(picture)
    body = [*drawing.parts()]
    return document(body, drawing.width + 40, drawing.y + 40, theme, picture.name, EXTRA)


@define(eq=False)
class _Drawing:
    """The elements from above to below; `y` is how far they have come."""

    picture: TimePicture
    y: float = 0.0
    left: float = field(init=False)
    width: float = field(init=False)
    _seen: dict[str, None] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        lanes = [lane for panel in self.picture.panels for lane in panel.lanes]
        words = [*(width_of(lane.title, 12) for lane in lanes), *(width_of(w, 10.5) for x in lanes for w in x.notes)]
        self.left = max(words, default=0.0) + 18
        self.width = self.left + WIDTH + 12

    def parts(self) -> Iterator[str]:
        yield from self._head()
        for panel in self.picture.panels:
            yield from self._panel(panel)
        yield from self._legend()
        for note in self.picture.notes:
            self.y += 18
            yield text(0, self.y, note, 11, "dim")

    def _head(self) -> Iterator[str]:
        for line in textwrap.wrap(self.picture.headline, int(self.width / (13 * ADVANCE))):
            self.y += 18
            yield text(0, self.y - 4, line, 13, "name")
        self.y += 16
        yield text(0, self.y - 4, self.picture.remark, 11, "dim")
        self.y += 8

    def _panel(self, panel: LanePanel) -> Iterator[str]:
        self.y += 10
        if panel.title:
            self.y += 18
            yield text(0, self.y - 4, panel.title, 12, "name")
        if panel.marks:
            yield from self._marks(panel)
        top = self.y + 4
        lanes: list[str] = []
        self.y = top + _AXIS
        for lane in panel.lanes:
            lanes += self._lane(lane)
        yield from self._axis(panel, top, self.y)
        yield from lanes

    def _marks(self, panel: LanePanel) -> Iterator[str]:
        """Brackets over loops in a steady state."""
        self.y += 20
        for low, high, words in panel.marks:
            a, b = self.left + low, self.left + high
            yield f'<path class="mark" d="M{n(a)} {n(self.y + 2)}V{n(self.y - 3)}H{n(b)}V{n(self.y + 2)}"/>'
            if width_of(words, 10) < b - a:
                yield text((a + b) / 2, self.y - 7, words, 10, "dim", "middle")

    def _axis(self, panel: LanePanel, top: float, bottom: float) -> Iterator[str]:
        """Ticks at round moments, with lines through all lanes."""
        step, unit, size = _tick(panel.end - panel.start)
        for number in range(int((panel.end - panel.start) / step * (1 + 1e-9)) + 1):
            x = self.left + number * step / (panel.end - panel.start) * WIDTH
            yield f'<path class="tick" d="M{n(x)} {n(top + 14)}V{n(bottom - _BETWEEN + 4)}"/>'
            words = f"{number * step / size:g}{f' {unit}' if number == 0 else ''}"
            yield text(x, top + 10, words, 10, "dim", "middle" if number else "")

    def _lane(self, lane: TimeLane) -> Iterator[str]:
        top = self.y
        yield text(0, top + 13, lane.title, 12, "name")
        for number, note in enumerate(lane.notes):
            yield text(0, top + 28 + 13 * number, note, 10.5, "dim")
        for track in lane.tracks:
            yield from self._track(track)
            self.y += _HEIGHTS[track.name] + _GAP
        self.y = max(self.y, top + _LEAST_LANE) + _BETWEEN

    def _track(self, track: Track) -> Iterator[str]:
        height = _HEIGHTS[track.name]
        if track.name != "critical path":
            yield f'<path class="rail" d="M{n(self.left)} {n(self.y + height)}H{n(self.left + WIDTH)}"/>'
        paths: dict[str, list[str]] = {}
        for column in track.columns:
            bottom = self.y + height
            for category, part in column.shares:
                tall = part * height if category != "path" else height
                box = f"M{n(self.left + column.left)} {n(bottom)}h{n(column.width)}v{n(-tall)}h{n(-column.width)}z"
                paths.setdefault(category, []).append(box)
                bottom -= tall
        for category, boxes in paths.items():
            self._seen[category] = None
            yield f'<g class="tl {_class(category)}"><path d="{"".join(boxes)}"/></g>'
        for bar in track.bars:
            self._seen[bar.category] = None
            yield from self._bar(bar, height)

    def _bar(self, bar: TimeBar, height: float) -> Iterator[str]:
        place = Rectangle(self.left + bar.left, self.y, bar.right - bar.left, height)
        yield f'<g class="tb {_class(bar.category)}"><title>{in_html(bar.tooltip)}</title>'
        yield f'<path d="{rounded(place, min(2.0, place.width / 3))}"/>'
        if height > 15 and (words := _short(bar.name, place.width - 8)):
            yield text(place.x + 4, self.y + 15, words, 10.5)
        yield "</g>"

    def _legend(self) -> Iterator[str]:
        """The kinds of what is drawn."""
        kinds = [(f"tb {kind_class(kind.letter)}", kind.name) for kind in KINDS if kind.letter in self._seen]
        others = [(f"tb {_class(name)}", words) for name, words in _WORDS.items() if name in self._seen]
        x = 0.0
        self.y += 16
        for role, words in (*kinds, *others):
            wide = width_of(words, 10.5) + 30
            if x and x + wide > self.width:
                x, self.y = 0.0, self.y + 20
            yield f'<g class="{role}"><path d="{rounded(Rectangle(x, self.y - 9, 12, 10), 2)}"/></g>'
            yield text(x + 18, self.y, words, 10.5, "dim")
            x += wide + 4
        self.y += 4


def _class(category: str) -> str:
    return f"t-{category}" if len(category) > 1 else kind_class(category)


def _short(name: str, width: float) -> str:
    """A name in so much room, cut at its end; nothing where three letters have no room."""
    most = int(width / (10.5 * ADVANCE))
    return name if len(name) <= most else f"{name[: most - 1]}…" if most > 3 else ""


def _tick(seconds: float) -> tuple[float, str, float]:
    """The distance of ticks: 1, 2 or 5 of a power of ten, at most ten; the unit of their words, and its size."""
    power = 10.0 ** math.floor(math.log10(seconds / 10))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= seconds / 10 * (1 - 1e-9))
    units = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
    unit, size = next((each for each in units if seconds >= each[1]), units[-1])
    return step, unit, size


# ----------------------------------------------------------------------------
# Memory of a device
#
# The curve of what is live over the positions of a program, its peak, and the capacity of the machine.

_MEMORY_HEIGHT, _MEMORY_TOP, _MEMORY_LEFT = 120.0, 46.0, 70.0


def memory_svg(memory: Memory, limit: float | None = None, theme: str = "auto") -> str:
    """The curve of a program's memory as svg; `limit` is the bytes of the machine, drawn where it is near the peak."""
    alive = memory.curve.bytes
    shown = limit if limit is not None and limit <= 2 * memory.peak else None
    most = max(float(memory.peak), shown or 0.0, 1.0)
    body = [
        *_memory_title(memory, len(alive)),
        *_memory_axis(most),
        _memory_area(alive, most),
        *_memory_peak(memory, most),
    ]
    if shown is not None:
        body += _memory_limit(shown, most)
    return document(body, _MEMORY_LEFT + WIDTH + 52, _MEMORY_TOP + _MEMORY_HEIGHT + 64, theme, "memory", _MEMORY_STYLE)


def _memory_title(memory: Memory, count: int) -> Iterator[str]:
    order = "a compiler's order" if memory.is_scheduled else "the recorded order"
    sizes = short(memory.reserved, "B"), short(memory.peak, "B")
    yield text(0, 14, "memory per device: {} reserved, at most {} alive at once".format(*sizes), 13, "name")
    said = f"over {count:,} positions of the program, in {order}; a callee appears at its first call"
    yield text(0, 30, said, 11, "dim")


def _memory_y(size: float, most: float) -> float:
    return _MEMORY_TOP + _MEMORY_HEIGHT * (1 - size / most)


def _memory_axis(most: float) -> Iterator[str]:
    for part in (0.0, 0.5, 1.0):
        y = _memory_y(part * most, most)
        yield f'<path class="tick" d="M{n(_MEMORY_LEFT)} {n(y)}h{n(WIDTH)}"/>'
        yield text(_MEMORY_LEFT - 8, y + 4, short(part * most, "B"), 10, "dim", "end")


def _memory_area(alive: np.ndarray, most: float) -> str:
    """Steps of equal width; where positions are more than points, the most of those that share one."""
    columns = min(len(alive), int(WIDTH))
    if not columns:
        return ""
    firsts = np.arange(columns) * len(alive) // columns
    steps = "".join(
        f"V{n(_memory_y(size, most))}H{n(_MEMORY_LEFT + (place + 1) * WIDTH / columns)}"
        for place, size in enumerate(np.maximum.reduceat(alive, firsts).tolist())
    )
    bottom = n(_MEMORY_TOP + _MEMORY_HEIGHT)
    return f'<path class="alive" d="M{n(_MEMORY_LEFT)} {bottom}{steps}V{bottom}z"/>'


def _memory_peak(memory: Memory, most: float) -> Iterator[str]:
    """A dot at the peak, and below the axis the instruction that runs there."""
    count = len(memory.curve.bytes)
    if count:
        x = _MEMORY_LEFT + (memory.peak_position + 0.5) * WIDTH / count
        anchor = "end" if x > _MEMORY_LEFT + WIDTH / 2 else ""
        yield f'<circle class="peak" cx="{n(x)}" cy="{n(_memory_y(memory.peak, most))}" r="3.5"/>'
        words = f"peak at {memory.curve.instructions[memory.peak_position].name}"
        yield text(x, _MEMORY_TOP + _MEMORY_HEIGHT + 16, words, 10.5, "dim", anchor)


def _memory_limit(limit: float, most: float) -> list[str]:
    y = _memory_y(limit, most)
    line = f'<path class="limit" d="M{n(_MEMORY_LEFT)} {n(y)}h{n(WIDTH)}"/>'
    return [line, text(_MEMORY_LEFT + WIDTH, y - 5, f"the machine has {short(limit, 'B')}", 10.5, "dim", "end")]


def _memory_rules(fill: str, line: str, limit: str) -> str:
    return (
        f".xb .alive{{fill:{fill};stroke:{line};stroke-width:1}}.xb .peak{{fill:{line};stroke:none}}"
        f".xb .limit{{fill:none;stroke:{limit};stroke-width:1.4;stroke-dasharray:5 3}}"
        f".xb .tick{{stroke:{line};opacity:.25;fill:none}}"
    )


_MEMORY_STYLE = (_memory_rules("#cfe3f5", "#2a6fb0", "#c62828"), _memory_rules("#1f3d59", "#7db8ee", "#ff6b6b"))
