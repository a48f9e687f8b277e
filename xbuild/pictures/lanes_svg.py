"""The lanes of a verdict as svg: logical time runs to the right, one lane below the other, scopes as blocks.

Sections:

    Colours of stops
    Scopes as blocks
    Lanes as svg
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Sequence

from attrs import define, field

from shape_inference.escaping import in_html

from .geometry import ADVANCE, Point, Rectangle, width_of
from .lanes import Arrow, Bar, Lane, Lanes, Stop, words_of_state
from .picture import KINDS
from .svg import curve, document, kind_class, marker, n, outline, rounded, text

# ----------------------------------------------------------------------------
# Colours of stops
#
# Stuck, waiting, later; in the light and the dark theme.


def _rules(ok: str, bad: str, open_: str, pale: str, grey: str, ground: str, dim: str) -> str:
    rules = (
        ".v-ok{fill:#2e7d32}",
        ".v-deadlock,.xb .v-error,.xb .v-stopped{fill:#c62828}",
        ".v-depends{fill:#9a5b00}",
        ".v-word{fill:#ffffff}",
        f".s-bad{{fill:{bad}}}",
        f".s-cycle path{{fill:{pale};stroke:{bad};stroke-width:3}}",
        f".s-asked path{{fill:{ground};stroke:{bad};stroke-width:2;stroke-dasharray:5 3}}",
        f".s-waits path{{fill:{grey};stroke:{dim};stroke-dasharray:2 2}}",
        f".s-later path{{fill:{ground};stroke:{dim};stroke-dasharray:3 3}}",
        f".s-later text{{fill:{dim}}}",
        f".s-open path{{stroke:{open_};stroke-width:3.5}}",
        f".legend path{{fill:{ground}}}",
        f".lane{{stroke:{dim};stroke-width:1.2;opacity:.6}}",
        ".beyond{stroke-dasharray:2 5}",
        f".block{{fill:{dim};fill-opacity:.13;stroke:{dim};stroke-opacity:.6;stroke-width:1}}",
        f".halt{{stroke:{bad};stroke-width:1.5;stroke-dasharray:7 4}}",
        f".cycle path,.xb .after path,.xb .clash path{{stroke:{bad};stroke-width:2.4}}",
        ".clash path{stroke-dasharray:6 4}",
        f".waits path{{stroke:{dim};stroke-dasharray:4 4}}",
        f".move path{{stroke:{ok};stroke-width:2.2;stroke-dasharray:8 3}}",
        f".a-cycle,.xb .a-after,.xb .w-cycle,.xb .w-after{{fill:{bad}}}",
        f".a-waits{{fill:{dim}}}",
        f".a-move,.xb .w-move{{fill:{ok}}}",
        ".bar{fill:#d81b60;opacity:.32}",
        # A halo keeps text readable above the lines behind it.
        f".w-cycle,.xb .w-after,.xb .w-move{{paint-order:stroke;stroke:{ground};stroke-width:4;stroke-linejoin:round}}",
    )
    return "".join(f".xb {rule}" for rule in rules)


EXTRA = (
    _rules("#2e7d32", "#c62828", "#b26a00", "#ffebee", "#eceff1", "#ffffff", "#78868e"),
    _rules("#81c784", "#ff6b6b", "#ffb74d", "#4a1c1f", "#2b3237", "#15181a", "#8b989f"),
)


# ----------------------------------------------------------------------------
# Scopes as blocks
#
# Frames around successive stops of one scope, such as F0 and B0.

_SIZE = 10.0
_SIDE, _ABOVE, _BELOW = 9.0, 18.0, 7.0


def scope_blocks(lanes: Lanes, places: Sequence[Rectangle]) -> Iterator[str]:
    """The frames of all lanes, each with the name of its scope; those of one row of a lane stand beside each other."""
    from .svg import text

    for scope, place in _blocks(lanes, places):
        yield f'<g><title>{in_html(scope)}</title><path class="block" d="{rounded(place, 6)}"/></g>'
        if words := _shorten_scope(scope, place.width - 10):
            # Waits are written above the left of a stop.
            x, anchor = (place.x + 6, "") if lanes.halt is None else (place.right - 6, "end")
            yield text(x, place.y + 12, words, _SIZE, "dim", anchor)


def _blocks(lanes: Lanes, places: Sequence[Rectangle]) -> Iterator[tuple[str, Rectangle]]:
    numbers = sorted(range(len(places)), key=lambda n: (lanes.stops[n].lane, lanes.stops[n].column))
    for (_, scope, _), found in itertools.groupby(numbers, lambda n: _key(lanes, places, n)):
        if scope:
            first, *rest = found
            place, last = places[first], places[rest[-1] if rest else first]
            wide = last.right - place.x + 2 * _SIDE
            yield scope, Rectangle(place.x - _SIDE, place.y - _ABOVE, wide, place.height + _ABOVE + _BELOW)


def _key(lanes: Lanes, places: Sequence[Rectangle], number: int) -> tuple[int, str, float]:
    stop = lanes.stops[number]
    return stop.lane, stop.scope, places[number].y


def _shorten_scope(scope: str, width: float) -> str:
    """A scope in so much room: whole, its last part, or nothing."""
    most = int(width / (_SIZE * ADVANCE))
    return next((words for words in (scope, scope.rpartition("/")[2]) if len(words) <= most), "")


# ----------------------------------------------------------------------------
# Lanes as svg
#
# Logical time runs to the right, one lane below the other.

_PITCH, _HEIGHT, _GAP = 104.0, 40.0, 42.0
_WIDEST = 780.0  # pixels of a row of lanes where no device is stuck; longer lanes continue in a row below
_BETWEEN = 30.0  # pixels between rows
_LONGEST = 40  # letters of the second line of a stop
_WORDS = {
    "ok": "ok", "deadlock": "deadlock", "depends": "depends on data", "error": "error", "stopped": "stopped",
}  # fmt: skip


def lanes_svg(lanes: Lanes, theme: str = "auto") -> str:
    """The lanes as svg; the same verdict gives the same text."""
    drawing = LanesDrawing(lanes)
    body = [*_markers(), *drawing.parts()]
    return document(body, drawing.width + 40, drawing.height + 40, theme, lanes.name, EXTRA)


def _markers() -> Iterator[str]:
    heads = "".join(marker(what, "M0 0L8 4L0 8Z", 10) for what in ("cycle", "after", "waits", "move"))
    yield f"<defs>{heads}</defs>"


@define
class LanesDrawing:
    """The svg of lanes: the rectangles of stops are computed first, the elements then written from back to front."""

    lanes: Lanes
    places: list[Rectangle] = field(init=False)
    width: float = field(init=False)
    height: float = field(init=False)
    _left: float = field(init=False)
    _columns: list[float] = field(init=False)
    _rows: list[int] = field(init=False)
    _top: float = field(init=False)
    _head: list[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        lanes = self.lanes
        words = [width_of(each, 12) for lane in lanes.lanes for each in (lane.title, lane.note)]
        self._left = max(words, default=0.0) + 36
        widths = [0.0] * (max((stop.column for stop in lanes.stops), default=-1) + 1)
        for stop in lanes.stops:
            widths[stop.column] = max(widths[stop.column], _width(stop))
        self._columns, self._rows, x, right = [], [], self._left, 0.0
        wraps = lanes.halt is None and all(arrow.what == "channel" for arrow in lanes.arrows)
        for width in widths:
            is_over = wraps and x > self._left and x + width > _WIDEST
            self._rows.append((self._rows[-1] if self._rows else 0) + is_over)
            x = self._left if is_over else x
            self._columns.append(x + width / 2)
            x += width + _GAP
            right = max(right, x)
        self.width = max(right + 10, _WIDEST)
        self._head = textwrap.wrap(lanes.headline, int((self.width - 130) / (13 * ADVANCE)))
        self._top = 20.0 * len(self._head) + 34
        self.places = [self._placed(stop) for stop in lanes.stops]
        self.height = self._start(max(self._rows, default=0)) + _PITCH * len(lanes.lanes) + (18 if lanes.lanes else -20)
        last = len(lanes.lanes) - 1
        moves = [arrow for arrow in lanes.arrows if arrow.what == "move" and self._lane(arrow.tail) == last]
        self.height += 14 * any(self._side(arrow) > 0 for arrow in moves)  # their words are below the lane

    def _lane(self, stop: int) -> int:
        return self.lanes.stops[stop].lane

    def _start(self, row: int) -> float:
        return self._top + (_PITCH * len(self.lanes.lanes) + _BETWEEN) * row

    def _middle(self, lane: int, row: int) -> float:
        return self._start(row) + _PITCH * (lane + 0.5)

    def _row(self, stop: int) -> int:
        return self._rows[self.lanes.stops[stop].column]

    def _placed(self, stop: Stop) -> Rectangle:
        width = _width(stop)
        middle = self._middle(stop.lane, self._rows[stop.column])
        return Rectangle(self._columns[stop.column] - width / 2, middle - _HEIGHT / 2, width, _HEIGHT)

    def parts(self) -> list[str]:
        """All elements: the title, the lanes, and below them the remarks and the legend; sets the height."""
        drawn = [*self._title(), *self._halt()]
        rows = range(max(self._rows, default=0) + 1)
        lanes = [*enumerate(self.lanes.lanes)]
        drawn += (part for row in rows for number, lane in lanes for part in self._rail(number, lane, row))
        drawn += scope_blocks(self.lanes, self.places)
        drawn += (part for bar in self._bars() for part in bar)
        drawn += (part for arrow in self.lanes.arrows for part in self._arrow(arrow))
        for stop, place in zip(self.lanes.stops, self.places, strict=True):
            drawn += _stop(stop, place)
        drawn += (self._words(arrow) for arrow in self.lanes.arrows)
        return [*drawn, *self._remarks(), *self._legend()]

    def _title(self) -> Iterator[str]:
        word = _WORDS[self.lanes.kind]
        wide = width_of(word, 13) + 20
        yield f'<path class="v-{self.lanes.kind}" d="{rounded(Rectangle(0, 0, wide, 24), 8)}"/>'
        yield text(wide / 2, 17, word, 13, "name v-word", "middle")
        for number, line in enumerate(self._head):
            yield text(wide + 12, 17 + 20 * number, line, 13, "name")

    def _rail(self, number: int, lane: Lane, row: int) -> Iterator[str]:
        y, halt = self._middle(number, row), self._halt_at()
        yield text(0, y + (0 if lane.note else 4), lane.title, 12, "name")
        if lane.note:
            yield text(0, y + 16, lane.note, 11, "dim")
        end = self.width - 10
        if lane.end:
            places = [
                place.right for stop, place in zip(self.lanes.stops, self.places, strict=True) if stop.lane == number
            ]
            end = max(places, default=self._left) + 26
            yield f'<path class="lane" d="M{n(end)} {n(y - 9)}V{n(y + 9)}"/>{text(end + 8, y + 4, lane.end, 11, "dim")}'
        middle = min(halt, end) if halt else end
        yield f'<path class="lane" d="M{n(self._left - 14)} {n(y)}H{n(middle)}"/>'
        if middle < end:
            yield f'<path class="lane beyond" d="M{n(middle)} {n(y)}H{n(end)}"/>'

    def _halt_at(self) -> float | None:
        if self.lanes.halt is None:
            return None
        column = [p.x for s, p in zip(self.lanes.stops, self.places, strict=True) if s.column == self.lanes.halt]
        return min(column) - 16

    def _halt(self) -> Iterator[str]:
        x = self._halt_at()
        if x is not None:
            yield f'<path class="halt" d="M{n(x)} {n(self._top - 2)}V{n(self.height - 6)}"/>'
            # Left of the line, where no arrow goes.
            for number, words in enumerate(("no device", "can go on")):
                yield text(x - 6, self._top + 6 + 13 * number, words, 11, "s-bad", "end")

    def _bars(self) -> Iterator[list[str]]:
        """The bars of collectives; overlapping bars of one column stand beside each other."""
        taken: dict[int, list[Bar]] = {}
        for bar in self.lanes.bars:
            beside = taken.setdefault(bar.column, [])
            overlapping = sum(b.lanes[0] < bar.lanes[-1] and bar.lanes[0] < b.lanes[-1] for b in beside)
            beside.append(bar)
            x = self._columns[bar.column] - 7 + overlapping * 18
            top, low = (self._middle(lane, self._rows[bar.column]) for lane in (bar.lanes[0], bar.lanes[-1]))
            top, low = top - 26, low + 26
            yield [
                f'<g><title>{in_html(bar.name)}</title><path class="bar" '
                f'd="{rounded(Rectangle(x, top, 14, low - top), 7)}"/></g>'
            ]

    def _way(self, arrow: Arrow) -> tuple[Point, ...]:
        """The four control points of the curve of an arrow."""
        a, b = self.places[arrow.tail], self.places[arrow.head]
        (ax, ay), (bx, by) = a.middle, b.middle
        lanes = self._lane(arrow.head) - self._lane(arrow.tail)
        if arrow.what == "channel" and self._row(arrow.tail) != self._row(arrow.head):
            end, to = self.width - 10, self._middle(self._lane(arrow.head), self._row(arrow.tail))
            return (a.right, ay), (a.right + 20, ay), (end - 20, to), (end, to)
        if arrow.what == "channel":
            reach = max(30.0, (b.x - a.right) / 2)
            return (a.right, ay), (a.right + reach, ay), (b.x - reach, by), (b.x, by)
        if lanes and self.lanes.kind == "stopped":
            # All stops stand in one column, so the arrow goes around the stops between its ends.
            bow = max(a.right, b.right) + 16 + 22 * abs(lanes)
            return (a.right, ay + 6), (bow, ay + 6), (bow, by - 6), (b.right, by - 6)
        if not lanes:
            up, far = self._side(arrow), 32 if arrow.what == "after" else 60
            y = a.y if up < 0 else a.bottom
            end = bx + 20 if arrow.what == "after" else b.x + 4
            start = ax + 16 if arrow.what == "after" else ax + 34
            return (start, y), (start, y + up * far), (end, y + up * far), (end, y)
        y, to = (a.bottom, b.y) if lanes > 0 else (a.y, b.bottom)
        middle = (y + to) / 2
        start, end = ax + 12, bx - 12
        return (start, y), (start, middle), (end, middle), (end, to)

    def _side(self, arrow: Arrow) -> int:
        """The side of a curve in one lane, 1 below and -1 above: the side without arrows of the cycle."""
        lane = self._lane(arrow.tail)
        ends = (self._lane(a.head) for a in self.lanes.arrows if a.what == "cycle" and self._lane(a.tail) == lane)
        return 1 if any(end < lane for end in ends) else -1

    def _arrow(self, arrow: Arrow) -> Iterator[str]:
        path = curve(self._way(arrow), sideways=True)
        marker = "" if arrow.what == "clash" else f' marker-end="url(#xb-{arrow.what})"'
        title = f"<title>{in_html(arrow.tooltip)}</title>" if arrow.tooltip else ""
        if arrow.what == "channel" and self._row(arrow.tail) != self._row(arrow.head):
            # The line goes to the end of its row, and continues at the beginning of the other row.
            head = self.places[arrow.head]
            yield f'<g class="line {arrow.what}">{title}<path d="{path}"/></g>'
            path = f"M{n(self._left - 14)} {n(head.middle[1])}H{n(head.x)}"
        yield f'<g class="line {arrow.what}">{title}<path{marker} d="{path}"/></g>'

    def _words(self, arrow: Arrow) -> str:
        if not arrow.words:
            return ""
        points = self._way(arrow)
        (x, y), (_, first), (end, _), (_, to) = points
        if arrow.what == "channel":
            return text(x + 3, y + (-5 if to >= y else 13), f"#{arrow.words}", 10.5, "w-channel")
        if arrow.what in ("after", "move"):
            below = arrow.what == "move" and first > y
            at = y + 0.62 * (first - y) + (15 if below else -5)
            return text(end + 0.27 * (x - end), at, arrow.words, 10.5, f"w-{arrow.what}", "middle")
        if self.lanes.kind == "stopped":
            aside = max(place.right for place in self.places) + 22 * len(self.lanes.lanes)
            return text(aside, y - 11, _shorten_fact(arrow.words), 10.5, "w-cycle" if arrow.what == "cycle" else "dim")
        left = end > x
        return text(
            x + (-6 if left else 6), y + (14 if first > y else -7), arrow.words, 10.5, "w-cycle", "end" if left else ""
        )

    def _remarks(self) -> Iterator[str]:
        y = self.height + 12
        for label, words in (*self.lanes.remarks, *(("", note) for note in self.lanes.notes)):
            role = "w-move" if label == "fix" else "" if label else "dim"
            yield text(0, y, label, 12, "name")
            for line in textwrap.wrap(words, int((self.width - 90) / (12 * ADVANCE))):
                yield text(84, y, line, 12, role)
                y += 17
            y += 3
        self.height = y

    def _legend(self) -> Iterator[str]:
        """The legend of the states of stops and the kinds of ops that occur."""
        states = {stop.state for stop in self.lanes.stops}
        known = {id(stop.kind) for stop in self.lanes.stops if stop.state in ("done", "open")}
        x, y = 0.0, self.height + 2
        items = [(f"shapes {kind_class(kind.letter)}", kind.name, kind.outline) for kind in KINDS if id(kind) in known]
        items += [
            (f"s-{state}{' legend' * (state == 'open')}", words, "plain")
            for state, words in words_of_state(self.lanes.kind).items() if state in states
        ]  # fmt: skip
        for role, words, form in items:
            wide = width_of(words, 10.5) + 22
            if x + wide > self.width:
                x, y = 0.0, y + 27
            yield f'<g class="{role}"><path d="{outline(form, Rectangle(x, y, wide, 20))}"/>'
            yield f"{text(x + 11, y + 14, words, 10.5)}</g>"
            x += wide + 8
        self.height = y + (22 if items else 0)


def _width(stop: Stop) -> float:
    return max(width_of(stop.name, 12), width_of(_shorten_fact(stop.fact), 10), 86.0) + 26


def _shorten_fact(fact: str) -> str:
    return fact if len(fact) <= _LONGEST else f"{fact[: _LONGEST - 1]}…"


def _stop(stop: Stop, place: Rectangle) -> Iterator[str]:
    kind = f"shapes {kind_class(stop.kind.letter)}" if stop.state in ("done", "open") else ""
    yield f'<g class="{kind} s-{stop.state}"><title>{in_html(stop.tooltip or stop.name)}</title>'
    form = stop.kind.outline if stop.state in ("done", "open") else "plain"
    yield f'<path d="{outline(form, place)}"/>'
    x, y = place.middle
    yield text(x, y + (-3 if stop.fact else 4), stop.name, 12, "name", "middle")
    if stop.fact:
        yield text(x, y + 12, _shorten_fact(stop.fact), 10, "", "middle")
    yield "</g>"
