"""The report of a stopped run: where each device stands, what it waits for, and which devices are the cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from shape_inference.escaping import Harmless
from shape_inference.kinds import RUN_KINDS
from xbuild.checking.model.program import devices_text
from xbuild.core.graph import Instruction
from xbuild.properties.effects import START_OF, TRANSFERS

from .replica import Standing

if TYPE_CHECKING:
    pass

MOST_MISSING = 100_000  # the most missing devices that are listed, summed over all devices
DONES = START_OF.keys() - TRANSFERS.values()


@frozen
class DeviceState:
    """The state of a device when the run stopped: ended, or the instruction where it stands and what it waits for."""

    device: int
    ended: bool
    standing: Standing | None = None
    waits_for: str = ""
    missing: tuple[int, ...] = ()
    cause: bool = False

    @property
    def instruction(self) -> Instruction | None:
        return self.standing.instruction if self.standing else None

    def lines(self) -> list[str]:
        if self.ended:
            return [f"    device {self.device}  has ended"]
        if self.standing is None:
            return [f"    device {self.device}  has not begun"]
        source = self.standing.instruction.source
        place = f"    device {self.device}  stands at {self.standing}"
        return [
            f"{place}{f'    {source}' if source else ''}",
            *([f"              waits for {self.waits_for}"] if self.waits_for else []),
        ]

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
class Report:
    """The report of a stopped run: `kind` is a kind of stop, `devices` has the state of each device."""

    kind: str = field(validator=lambda _, __, kind: _known(kind))
    message: str
    devices: tuple[DeviceState, ...] = ()
    cause: str = ""
    let_through: str = ""
    parting: tuple[str, ...] = ()
    repair: str = ""

    def __str__(self) -> str:
        return "\n".join([f"stopped: {self.message} [{self.kind}]", *self._sections()])

    def _sections(self) -> Iterator[str]:
        causes = [state for state in self.devices if state.cause]
        rest = [state for state in self.devices if not state.cause]
        titles = ("root cause", "waiting because of it") if causes else ("", "where each device stands")
        for title, states in zip(titles, (causes, rest), strict=True):
            if states:
                yield f"  {title}"
                yield from grouped(states)
        if self.parting:
            yield f"  sequences  {self.parting[0]}"
            yield from (f"  {line}" for line in self.parting[1:])
        if self.let_through:
            yield f"  the check let it through: {self.let_through} (verdict: depends)"
        if self.cause:
            yield f"  cause   {self.cause}"
        if self.repair:
            yield f"  repair  {self.repair}"

    def _repr_html_(self) -> str:
        """The lanes of the devices and the report, as a notebook shows them."""
        from xbuild.pictures import Drawing

        from .lanes import lanes_of

        return Drawing(lanes_of(self))._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data; where very many devices are missing, only some are listed."""
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
    """A run that could not go on; `report` says where each device stands and why."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def _known(kind: str) -> None:
    assert kind in RUN_KINDS, kind


def grouped(states: list[DeviceState]) -> Iterator[str]:
    """The lines of the states; consecutive devices in the same state as the device before share one line."""
    start = 0
    while start < len(states):
        end = start + 1
        while end < len(states) and _alike(states[start], states[end]):
            end += 1
        yield from states[start].lines()
        if end - start > 1:
            others = devices_text(state.device for state in states[start + 1 : end])
            yield f"    {others} like device {states[start].device}"
        start = end


def _alike(a: DeviceState, b: DeviceState) -> bool:
    if a.ended != b.ended or a.instruction is not b.instruction or a.waits_for != b.waits_for:
        return False
    return (a.missing is b.missing or a.missing == b.missing) and str(a.standing) == str(b.standing)


def too_large(instruction: Instruction, limit: int) -> Report:
    source = f" at {instruction.source}" if instruction.source else ""
    size = instruction.shape.bytes
    message = f"%{instruction.name} = {instruction.shape} would take {size:,} bytes, the limit is {limit:,}{source}"
    return Report("limit_bytes", message)
