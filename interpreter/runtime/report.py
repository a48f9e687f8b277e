"""The report of a stopped run: where each device is, what it waits for, and which devices are the cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import field, frozen

from shape_inference.escaping import Harmless
from shape_inference.kinds import RUN_KINDS
from xbuild.checking.model.describe import fact
from xbuild.checking.model.program import devices_text
from xbuild.core.graph import Instruction
from xbuild.core.issues import Issue, related_places
from xbuild.core.report_text import (
    BESIDE_PICTURE,
    MORE,
    WIDTH,
    Line,
    LineReport,
    PlaceRow,
    StyledText,
    folded,
    labelled,
    more_line,
    place_rows,
)
from xbuild.pictures.lanes import Arrow, Lanes, Rows, State, Stop, rows
from xbuild.pictures.picture import FLOW, kind_of
from xbuild.properties.effects import START_OF, TRANSFERS, name_in_report

from .device import Standing

# ----------------------------------------------------------------------------
# The report: where each device is, what it waits for, and which devices are the cause.

MOST_MISSING = 100_000  # the most missing devices that are listed, summed over all devices
DONES = START_OF.keys() - TRANSFERS.values()


@frozen
class DeviceState:
    """The state of a device when the run stopped: finished, or at an instruction, with what it waits for."""

    device: int
    ended: bool
    standing: Standing | None = None
    waits_for: str = ""
    missing: tuple[int, ...] = ()
    cause: bool = False

    @property
    def instruction(self) -> Instruction | None:
        return self.standing.instruction if self.standing else None

    def row(self, alike: str = "") -> PlaceRow:
        """The row of a report; `alike` names the devices that are in the same state."""
        label = f"device {self.device}"
        if self.standing is None:
            return PlaceRow(label, "has finished" if self.ended else "has not started", alike=alike, style="name")
        source = str(self.standing.instruction.source or "")
        waits = (f"waits for {self.waits_for}",) if self.waits_for else ()
        return PlaceRow(label, f"is at {self.standing}", "", source, waits, alike, "name")

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
        """The state as plain data, with at most `most` missing devices."""
        return {
            "device": self.device,
            "ended": self.ended,
            "stands_at": str(self.standing) if self.standing else None,
            "instruction": self.standing.instruction.name if self.standing else None,
            "trips": [trip for trip in self.standing.trips if trip is not None] if self.standing else [],
            "source": str(self.standing.instruction.source)
            if self.standing and self.standing.instruction.source
            else None,
            "waits_for": self.waits_for or None,
            "missing": list(self.missing[:most]),
            "cause": self.cause,
        }


@frozen
class Report(LineReport):
    """The report of a stopped run. `kind` says why the run stopped, and `devices` has the state of each device."""

    kind: str = field(validator=lambda _, __, kind: _check_kind(kind))
    message: str
    devices: tuple[DeviceState, ...] = ()
    cause: str = ""
    let_through: str = ""
    parting: tuple[str, ...] = ()
    repair: str = ""

    def lines(self, all: bool = False, width: int = WIDTH, more: str = MORE) -> Iterator[Line]:
        """Return the lines of the report.

        They contain the summary, the devices at fault, the cause and the fix, followed by all other devices.
        """
        yield (StyledText(f"stopped: {self.message} [{self.kind}]", "bad"),)
        causes = [state for state in self.devices if state.cause]
        rest = [state for state in self.devices if not state.cause]
        if causes:
            yield from _devices("root cause", causes, all, width, more)
        yield from self._why(width)
        if rest:
            yield from _devices("waiting as a result" if causes else "where each device is", rest, all, width, more)
        if self.parting:
            yield from ((), ("  ", StyledText("sequences", "title"), f"  {self.parting[0]}"))
            yield from ((f"  {line}",) for line in self.parting[1:])

    def _why(self, width: int) -> Iterator[Line]:
        if self.cause or self.repair or self.let_through:
            yield ()
        if self.cause:
            yield from labelled("cause", self.cause, width)
        if self.repair:
            yield from labelled("fix", self.repair, width, style="good")
        if self.let_through:
            allowed = f"the check left this to the run: {self.let_through} (verdict: depends)"
            yield from labelled("note", allowed, width, title="dim")

    def _repr_html_(self) -> str:
        """The report and the lanes of the devices, as a notebook shows them."""
        from xbuild.pictures import Drawing

        return Drawing(lanes_of(self))._repr_html_()

    @property
    def issues(self) -> tuple[Issue, ...]:
        """The stop as an issue, at the line where a device at fault stopped. The lines of the other devices are its
        related places."""
        causes = [state for state in self.devices if state.cause] or [s for s in self.devices if not s.ended]
        at = [state.instruction for state in causes if state.instruction is not None]
        source = next((i.source for i in at if i.source is not None), None)
        places = [
            (f"device {state.device} is at {state.standing}", state.instruction.source)
            for state in (*causes, *self.devices)
            if state.instruction is not None
        ]
        issue = Issue(
            rule=self.kind,
            level="error",
            message=self.message,
            source=source,
            instructions=tuple(dict.fromkeys(i.name for i in at)),
            devices=tuple(state.device for state in causes),
            fix=self.repair,
            facts={"explanation": self.cause or None},
            related=related_places(places, source),
        )
        return (issue,)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data; if very many devices are missing, only some are listed."""
        most = max(4, MOST_MISSING // max(len(self.devices), 1))
        devices = [state.to_dict(most) for state in self.devices]
        return {
            "kind": self.kind,
            "message": self.message,
            "cause": self.cause or None,
            "let_through": self.let_through or None,
            "parting": list(self.parting),
            "repair": self.repair or None,
            "devices": devices,
        }


class Stopped(Harmless):
    """Raised if a run cannot continue; `report` says where each device stopped, and why."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report

    def lines(self, all: bool = False, width: int = WIDTH, more: str = MORE) -> Iterator[Line]:
        """Return the lines of the report."""
        yield from self.report.lines(all, width, more)

    def raise_interrupt(self) -> None:
        """Raise the user's interrupt again if it stopped the run, so that the caller of the run stops too."""
        if self.report.kind == "interrupted":
            raise KeyboardInterrupt from self

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def _check_kind(kind: str) -> None:
    assert kind in RUN_KINDS, kind


def _devices(title: str, states: list[DeviceState], all: bool, width: int, more: str) -> Iterator[Line]:
    """The rows of the states below a title, folded."""
    rows, hidden = folded([*_grouped(states)], all)
    yield from ((), ("  ", StyledText(title, "title")))
    for block in place_rows(rows, width):
        yield from block
    if hidden:
        yield more_line(hidden, more, noun="place")


def _grouped(states: list[DeviceState]) -> Iterator[PlaceRow]:
    """The rows of the states; a device in the same state as the one before it shares its row."""
    start = 0
    while start < len(states):
        end = start + 1
        while end < len(states) and _is_same_state(states[start], states[end]):
            end += 1
        others = [state.device for state in states[start + 1 : end]]
        yield states[start].row(devices_text(others) if others else "")
        start = end


def _is_same_state(a: DeviceState, b: DeviceState) -> bool:
    if a.ended != b.ended or a.instruction is not b.instruction or a.waits_for != b.waits_for:
        return False
    return (a.missing is b.missing or a.missing == b.missing) and str(a.standing) == str(b.standing)


def too_large(instruction: Instruction, limit: int) -> Report:
    source = f" at {instruction.source}" if instruction.source else ""
    size = instruction.shape.bytes
    name = name_in_report(instruction)
    mark = "%" * (name == instruction.name)
    message = f"{mark}{name} = {instruction.shape} would take {size:,} bytes; the limit is {limit:,}{source}"
    return Report("limit_bytes", message)


# ----------------------------------------------------------------------------
# Lanes of a stopped run: where each device is, and for which devices it waits.


def lanes_of(report: Report) -> Lanes:
    """The lanes of a report; if there are many devices, those in one state share a lane."""
    states = {state.device: state for state in report.devices}
    causes = [device for device, state in states.items() if state.cause]
    alike = {device: (state.ended, str(state.standing), state.cause) for device, state in states.items()}
    lane_rows = rows(alike, causes)
    shown = [states[device] for device in lane_rows.shown]
    stops = [_stop(lane, state) for lane, state in enumerate(shown)]
    arrows = tuple(_wait_arrows(lane_rows, shown))
    halt = 0 if arrows else None
    return Lanes(
        f"stopped: {report.kind}", "stopped", f"{report.message} [{report.kind}]", lane_rows.lanes, tuple(stops),
        arrows=arrows, halt=halt, remarks=tuple(_remarks(report)), report=tuple(report.lines(width=BESIDE_PICTURE)),
    )  # fmt: skip


def _stop(lane: int, state: DeviceState) -> Stop:
    if state.standing is None or state.instruction is None:
        text = "has finished" if state.ended else "has not started"
        return Stop(lane, 0, text, "", FLOW, "cycle" if state.cause else "later", f"device {state.device} {text}")
    instruction = state.instruction
    place: State = "cycle" if state.cause else "waits" if state.waits_for else "open"
    waits = f"waits for {state.waits_for}" if state.waits_for else ""
    tooltip = "\n".join(str(line) for line in (instruction, instruction.source, waits) if line)
    detail = fact(instruction, state.device).replace("channel ", "#")
    return Stop(lane, 0, str(state.standing), detail, kind_of(instruction.opcode), place, tooltip)


def _wait_arrows(lane_rows: Rows, shown: list[DeviceState]) -> Iterator[Arrow]:
    """The arrows from each lane to the lanes of the devices that it waits for, without duplicates."""
    for tail, state in enumerate(shown):
        lanes = dict.fromkeys(lane_rows.lane_of[device] for device in state.missing if device in lane_rows.lane_of)
        heads = [head for head in lanes if head != tail]
        for number, head in enumerate(heads):
            label = "" if number else f"waits for {devices_text(state.missing)}"
            yield Arrow(tail, head, "cycle" if state.cause else "waits", label, f"waits for {state.waits_for}")


def _remarks(report: Report) -> Iterator[tuple[str, str]]:
    for label, text in (("cause", report.cause), ("fix", report.repair), ("passed", report.let_through)):
        if text:
            yield label, text
