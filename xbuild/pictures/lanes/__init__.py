"""Lanes as plain data: a row for each device of a verdict or a stopped run, its stops, and whom it waits for."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

from ..model.kinds import Kind

State: TypeAlias = Literal["done", "cycle", "waits", "later", "asked", "open"]


@frozen
class Stop:
    """An instruction at a place of a lane.

    `state`: done; in the `cycle` (or the fault itself); waits for others because of it; comes later; is `asked` for by
    one of the cycle and not reached; is left `open` until the data are there.
    """

    lane: int
    column: int
    name: str
    fact: str
    kind: Kind
    state: State
    tooltip: str = ""


@frozen
class Bar:
    """Devices that meet at a column."""

    column: int
    lanes: tuple[int, ...]
    name: str


@frozen
class Arrow:
    """From one stop to another (by number): `what` is channel, cycle, waits, after or move."""

    tail: int
    head: int
    what: str
    words: str = ""
    tooltip: str = ""


@frozen
class Lane:
    """A device, or several that are alike; `end` says how it ends."""

    title: str
    note: str = ""
    end: str = ""


@frozen
class Lanes:
    """A verdict or a stopped run, drawn; where devices are stuck, `halt` is the column that none goes beyond.

    `remarks` are the cause, the repair and their like, each with its label; `notes` say what is not shown; `report` is
    all of it in words.
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
    """The legend of the states of stops, for lanes of this kind."""
    return {
        "cycle": {"error": "does not fit", "stopped": "root cause"}.get(kind, "in the cycle"),
        "asked": "waited for, not reached",
        "waits": "waits because of it",
        "later": "has ended, or not begun" if kind == "stopped" else "comes later",
        "open": "stands here" if kind == "stopped" else "the data decide",
    }
