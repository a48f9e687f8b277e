"""A time line as plain data for a picture: tracks of bars in real proportions, one or two panels of them."""

from __future__ import annotations

from attrs import frozen

CATEGORIES = ("exposed", "wait", "trips")
"""What a bar may be beside the kind of an op, which is told by its letter."""


@frozen
class TimeBar:
    """A bar from `left` to `right`, in pixels, of a kind of op (its letter), or exposed, wait, trips."""

    left: float
    right: float
    category: str
    name: str
    tooltip: str


@frozen
class Column:
    """A narrow stretch in which bars would be too thin: for each category the part of it that it fills."""

    left: float
    width: float
    shares: tuple[tuple[str, float], ...]


@frozen
class Track:
    """Bars of one lane: its work, its links, what runs beside, or the critical path through it."""

    name: str
    bars: tuple[TimeBar, ...]
    columns: tuple[Column, ...]


@frozen
class TimeLane:
    """The lane of a class of devices, with its tracks; `notes` are its figures."""

    title: str
    notes: tuple[str, ...]
    tracks: tuple[Track, ...]


@frozen
class Panel:
    """Lanes from `start` to `end` seconds; `title` says of what, `marks` are stretches of loops with their trips."""

    title: str
    start: float
    end: float
    lanes: tuple[TimeLane, ...]
    marks: tuple[tuple[float, float, str], ...]


@frozen
class TimePicture:
    """A time line to draw: its headline, what it says, its panels, and the text of its page."""

    name: str
    headline: str
    remark: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...]
    report: str = ""
