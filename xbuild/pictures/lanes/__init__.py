"""Lanes as plain data: a row for each device of a verdict or a stopped run, its stops, and whom it waits for."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

from ..model.kinds import Kind

State: TypeAlias = Literal["done", "cycle", "waits", "later", "asked", "open"]


@frozen
class Stop:
    """An instruction of a lane, at a column.

    The `state` is done for an executed instruction; cycle for one of the cycle of waits or of the fault; waits for one
    that is blocked because of the cycle; later for one that comes after the halt; asked for one that a member of the
    cycle waits for; open for one that the data decide, or where a device stands.
    """

    lane: int
    column: int
    name: str
    fact: str
    kind: Kind
    state: State
    tooltip: str = ""
    scope: str = ""


@frozen
class Bar:
    """A collective: the lanes of the devices that meet at a column."""

    column: int
    lanes: tuple[int, ...]
    name: str


@frozen
class Arrow:
    """An arrow from one stop to another, both by number; `what` is channel, cycle, waits, after, move or clash."""

    tail: int
    head: int
    what: str
    words: str = ""
    tooltip: str = ""


@frozen
class Lane:
    """A lane of one device, or of several devices that are alike; `end` is the text at its end."""

    title: str
    note: str = ""
    end: str = ""


@frozen
class Lanes:
    """The lanes of a verdict or a stopped run; `halt` is the column that no device passes, None where none is stuck.

    `remarks` are the cause, the repair and other labelled texts; `notes` state what is not shown; `report`
    is the whole verdict as text.
    """

    name: str
    kind: str
    headline: str
    lanes: tuple[Lane, ...] = ()
    stops: tuple[Stop, ...] = ()
    bars: tuple[Bar, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    halt: int | None = None
    remarks: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    report: str = ""


def words_of_state(kind: str) -> dict[State, str]:
    """The legend text of each state of a stop, for lanes of this kind."""
    return {
        "cycle": {"error": "does not fit", "stopped": "root cause"}.get(kind, "in the cycle"),
        "asked": "waited for, not reached",
        "waits": "waits because of it",
        "later": "has ended, or not begun" if kind == "stopped" else "comes later",
        "open": "stands here" if kind == "stopped" else "the data decide",
    }
