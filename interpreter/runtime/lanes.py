"""Lanes of a stopped run: where each device stands, and for which devices it waits."""

from __future__ import annotations

from collections.abc import Iterator

from xbuild.checking.model.describe import fact
from xbuild.checking.model.program import devices_text
from xbuild.pictures.lanes import Arrow, Lanes, State, Stop
from xbuild.pictures.lanes.devices import Rows, rows
from xbuild.pictures.model.kinds import FLOW, kind_of

from .report import DeviceState, Report


def lanes_of(report: Report) -> Lanes:
    """The lanes of a report; where there are many devices, those in one state share a lane."""
    states = {state.device: state for state in report.devices}
    causes = [device for device, state in states.items() if state.cause]
    alike = {device: (state.ended, str(state.standing), state.cause) for device, state in states.items()}
    found = rows(alike, causes)
    shown = [states[device] for device in found.shown]
    stops = [_stop(lane, state) for lane, state in enumerate(shown)]
    arrows = tuple(_waits(found, shown))
    halt = 0 if arrows else None
    return Lanes(
        f"stopped: {report.kind}", "stopped", f"{report.message} [{report.kind}]", found.lanes, tuple(stops),
        arrows=arrows, halt=halt, remarks=tuple(_remarks(report)), report=str(report),
    )  # fmt: skip


def _stop(lane: int, state: DeviceState) -> Stop:
    if state.standing is None or state.instruction is None:
        words = "has ended" if state.ended else "has not begun"
        return Stop(lane, 0, words, "", FLOW, "cycle" if state.cause else "later", f"device {state.device} {words}")
    instruction = state.instruction
    place: State = "cycle" if state.cause else "waits" if state.waits_for else "open"
    waits = f"waits for {state.waits_for}" if state.waits_for else ""
    tooltip = "\n".join(str(each) for each in (instruction, instruction.source, waits) if each)
    told = fact(instruction, state.device).replace("channel ", "#")
    return Stop(lane, 0, str(state.standing), told, kind_of(instruction.opcode), place, tooltip)


def _waits(found: Rows, shown: list[DeviceState]) -> Iterator[Arrow]:
    """The arrows from each lane to the lanes of the devices that it waits for, without duplicates."""
    for tail, state in enumerate(shown):
        lanes = dict.fromkeys(found.lane_of[device] for device in state.missing if device in found.lane_of)
        heads = [head for head in lanes if head != tail]
        for number, head in enumerate(heads):
            words = "" if number else f"waits for {devices_text(state.missing)}"
            yield Arrow(tail, head, "cycle" if state.cause else "waits", words, f"waits for {state.waits_for}")


def _remarks(report: Report) -> Iterator[tuple[str, str]]:
    for label, words in (("cause", report.cause), ("passed", report.let_through), ("repair", report.repair)):
        if words:
            yield label, words
