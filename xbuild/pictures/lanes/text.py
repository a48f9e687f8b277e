"""A verdict's lanes as text: a line for each device, in columns of logical time."""

from __future__ import annotations

from collections.abc import Iterator

from shape_inference.escaping import printable

from . import Lanes, State, Stop, words_of_state

_MARKS: dict[State, str] = {"done": "", "cycle": "✗ ", "waits": "… ", "later": "· ", "asked": "? ", "open": "~ "}


def lanes_text(lanes: Lanes) -> str:
    """The lanes as text; each state of a stop is told by a mark before its name."""
    return printable("".join(f"{line}\n" for line in _lines(lanes)))


def _lines(lanes: Lanes) -> Iterator[str]:
    yield f"{lanes.kind}: {lanes.headline}"
    yield ""
    titles = [f"{lane.title}  {lane.note}".rstrip() for lane in lanes.lanes]
    wide = max(map(len, titles), default=0)
    columns = _widths(lanes.stops)
    for number, title in enumerate(titles):
        words = {stop.column: _word(stop) for stop in lanes.stops if stop.lane == number}
        cells = [
            f"{'| ' if column == lanes.halt else ''}{words.get(column, ''):<{width}}"
            for column, width in enumerate(columns)
        ]
        end = f"  {lanes.lanes[number].end}" if lanes.lanes[number].end else ""
        yield f"{title:<{wide}}  {'  '.join(cells)}".rstrip() + end
    yield from _said(lanes)


def _said(lanes: Lanes) -> Iterator[str]:
    states = {stop.state for stop in lanes.stops}
    marks = [f"{_MARKS[state]}{words}" for state, words in words_of_state(lanes.kind).items() if state in states]
    if marks:
        yield ""
        yield "   ".join(marks)
    if lanes.remarks or lanes.notes:
        yield ""
    for label, words in lanes.remarks:
        yield f"{label:<9} {words}"
    yield from lanes.notes


def _widths(stops: tuple[Stop, ...]) -> list[int]:
    found = [0] * (max((stop.column for stop in stops), default=-1) + 1)
    for stop in stops:
        found[stop.column] = max(found[stop.column], len(_word(stop)))
    return found


def _word(stop: Stop) -> str:
    return f"{_MARKS[stop.state]}{stop.name}"
