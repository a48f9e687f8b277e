"""The lanes of a time line as svg, in real proportions: work, links and the critical path of each class of devices."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

from attrs import define, field

from shape_inference.escaping import in_html

from ..layout.places import Rectangle
from ..layout.sizes import ADVANCE, width_of
from ..model.kinds import KINDS
from ..timelines import Panel, TimeBar, TimeLane, TimePicture, Track
from ..timelines.laying import WIDTH
from .document import document, text
from .outlines import n, rounded
from .style import kind_class
from .time_style import EXTRA

_HEIGHTS = {"work": 22.0, "links": 10.0, "beside": 8.0, "critical path": 3.0}
_GAP, _BETWEEN, _AXIS, _LEAST_LANE = 2.0, 14.0, 22.0, 36.0
_WORDS = {
    "exposed": "exposed: nothing but communication", "wait": "waits for other devices", "path": "critical path",
}  # fmt: skip


def time_svg(picture: TimePicture, theme: str = "auto") -> str:
    """The time line as svg; the same time line gives the same text."""
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

    def _panel(self, panel: Panel) -> Iterator[str]:
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

    def _marks(self, panel: Panel) -> Iterator[str]:
        """Brackets over loops in a steady state."""
        self.y += 20
        for low, high, words in panel.marks:
            a, b = self.left + low, self.left + high
            yield f'<path class="mark" d="M{n(a)} {n(self.y + 2)}V{n(self.y - 3)}H{n(b)}V{n(self.y + 2)}"/>'
            if width_of(words, 10) < b - a:
                yield text((a + b) / 2, self.y - 7, words, 10, "dim", "middle")

    def _axis(self, panel: Panel, top: float, bottom: float) -> Iterator[str]:
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
