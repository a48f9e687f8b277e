"""The events on other devices that gave the operands of a collective, or the value of a recv-done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .data import Trace

_LATER = ("_done", "_update")


def bringing(trace: Trace, number: int) -> int:
    """The event at which a device gave its operands to a collective: this event, or the start that a done completes."""
    event: int | None = number
    while event is not None and trace.spots[int(trace.spot[event])].instruction.opcode.endswith(_LATER):
        number, event = event, next(iter(trace.operands(event)), None)
    return number if event is None else event


def remote_operands(trace: Trace) -> Mapping[int, Sequence[int]]:
    """For each event that received data from other devices, the events of the operands there."""
    found: dict[int, Sequence[int]] = {}
    for meeting in trace.meetings:
        starts = (bringing(trace, event) for event in meeting.events)
        brought = [event for start in starts for event in trace.operands(start) if event is not None]
        found |= dict.fromkeys(meeting.events, brought)
    for transfer in trace.transfers:
        found[transfer.done] = [event for event in trace.operands(transfer.send)[:1] if event is not None]
    return found
