"""The reports of how runs end before their end: where each device of the grid stands, whom it waits for, and why."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from traceback import FrameSummary, extract_tb
from types import TracebackType
from typing import TYPE_CHECKING

from xbuild.checking.model.program import devices_text
from xbuild.core.graph import Instruction, short_path
from xbuild.properties.effects import start_of

from .advice import causes_of, is_starved, let_through, repair, why_of
from .history import Mismatch, parting
from .replica import Device

if TYPE_CHECKING:
    from xbuild.checking import Verdict

    from ..custom_calls import CustomCallError
    from .callbacks import CallbackFailed
    from .grid import Grid
    from .rendezvous import Rendezvous

from .report import DONES, DeviceState, Report


def interrupted(
    grid: Grid, kind: str, message: str, traceback: TracebackType | None, verdict: Verdict | None = None
) -> Report:
    """A run that was ended from outside or by a limit: the running device, and where the others stand.

    Functions of custom calls that have not returned are the cause.
    """
    calls = {call.device.number: call.request.instruction for call in grid.callbacks.pending}
    asked = grid.running.waiting if grid.running else None
    if grid.running and asked and asked.instruction.opcode == "custom_call":
        calls[grid.running.number] = asked.instruction
    states = _standing(grid, traceback, calls)
    if not calls:
        return Report(kind, message, states)
    first, instruction = min(calls.items())
    target = instruction.attributes.custom_call_target
    why = f"the function of {target!r}, which {instruction.name} calls on device {first}, has not returned"
    return Report(kind, message, states, why, let_through(verdict))


def raised(grid: Grid, failed: CallbackFailed) -> Report:
    """A run in which the function of a custom call raised an exception."""
    call, error = failed.call, failed.error
    instruction = call.request.instruction
    number, target = call.device.number, instruction.attributes.custom_call_target
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    where = "".join(f" at {short_path(f.filename)}:{f.lineno} in {f.name}" for f in _own_frames(error)[:1])
    message = f"the function of {target!r}, which {instruction.name} calls on device {number}, raised {text}{where}"
    return Report("raised", message, _standing(grid, None, {number}), f"{instruction.name} on device {number}: {text}")


def unregistered(grid: Grid, error: CustomCallError) -> Report:
    """A run that came to a custom call without a function, under a conditional, a loop or a scan."""
    device = grid.running
    assert device is not None
    assert device.waiting is not None
    instruction = device.waiting.instruction
    name, source = instruction.name, f" at {instruction.source}" if instruction.source else ""
    message = f"custom-call %{name} is to run on device {device.number}, and {error.message}{source}"
    states = _standing(grid, None, {device.number})
    why = f"{name} on device {device.number}: {error.message}"
    return Report(error.kind, message, states, why, repair="; ".join(error.hints))


def _own_frames(error: BaseException) -> list[FrameSummary]:
    """The frames of the function itself, and of what it called."""
    ours = os.path.dirname(os.path.abspath(__file__))
    return [
        frame for frame in extract_tb(error.__traceback__) if os.path.dirname(os.path.abspath(frame.filename)) != ours
    ]


def _standing(grid: Grid, traceback: TracebackType | None, causes: Collection[int]) -> tuple[DeviceState, ...]:
    """Each device where it stands; one that was just answered, or that runs, waits for nothing."""
    going, at = {grid.running, *(device for device, _ in grid.ready)}, _parked(grid)
    states = []
    for device in grid.devices:
        standing = None if device.ended else device.stands(traceback if device is grid.running else None)
        waits, missing = ("", ()) if device in going or device.ended else _waits(grid, device, at)
        states.append(DeviceState(device.number, device.ended, standing, waits, missing, device.number in causes))
    return tuple(states)


def stuck(grid: Grid, verdict: Verdict | None) -> Report:
    """A run in which nobody can go on; the verdict says why it was let through."""
    at = _parked(grid)
    waits = {device.number: _waits(grid, device, at) for device in grid.devices if not device.ended}
    absent = {device: missing for device, (_, missing) in waits.items()}
    causes = causes_of(grid, absent)
    states = []
    for device in grid.devices:
        text, missing = waits.get(device.number, ("", ()))
        standing = None if device.ended else device.stands()
        states.append(DeviceState(device.number, device.ended, standing, text, missing, device.number in causes))
    kind = "infeed_starved" if any(is_starved(grid.devices[d]) for d in causes) else "deadlock"
    why = why_of(grid, causes, absent)
    standings = (state.standing for state in states if state.standing is not None)
    mended = repair(verdict, standings)
    if kind == "infeed_starved":
        starved = [device for device in sorted(causes) if is_starved(grid.devices[device])]
        mended = f"feed {devices_text(starved)} as many items as the program asks for"
    return Report(kind, "no device can go on", tuple(states), why, let_through(verdict), parting(grid, waits), mended)


def mismatched(grid: Grid, mismatch: Mismatch) -> Report:
    """A run in which two devices say different things of one collective."""
    cause = "what meets as one collective must be of one kind, over the same groups, of one shape and reducer"
    return Report("collective_mismatch", str(mismatch), _standing(grid, None, ()), cause, "", mismatch.sides)


def _parked(grid: Grid) -> dict[int, Rendezvous]:
    """For each device that waits in a meeting, that one."""
    return {number: meeting for meeting in grid.meetings.values() for number in meeting.parked}


def _waits(grid: Grid, device: Device, at: Mapping[int, Rendezvous]) -> tuple[str, tuple[int, ...]]:
    """What a parked device waits for in words, and the devices that have not come."""
    request = device.waiting
    if request is None:
        return "", ()
    opcode = request.instruction.opcode
    if request.collective is not None or opcode in DONES:
        missing = at[device.number].missing if device.number in at else ()
        return f"{_where(grid, missing)} to come to {_awaited(request.instruction)}", missing
    if opcode == "custom_call":
        return f"the function of {request.instruction.attributes.custom_call_target!r} to return", ()
    if opcode == "infeed":
        return "an item of its infeed, which is empty: nobody will feed it", ()
    channel = next(w for w in grid.channels.values() if device in (w.receiver, w.sender and w.sender[0]))
    peer = channel.target if opcode == "send" else channel.source
    half = "post a recv" if opcode == "send" else "send"
    return f"{_where(grid, (peer,))} to {half} on channel {channel.channel}", (peer,)


def _awaited(instruction: Instruction) -> str:
    """The collective that devices come to: of a done, its start."""
    start = start_of(instruction) if instruction.opcode in DONES else None
    return instruction.name if start is None else f"{start.name}, which {instruction.name} completes"


def _where(grid: Grid, devices: tuple[int, ...]) -> str:
    """The devices, each with where it is."""
    return " and ".join(f"device {d}, which {_is_at(grid.devices[d])}," for d in devices[:4]) + (
        " and others" if len(devices) > 4 else ""
    )


def _is_at(device: Device) -> str:
    if device.ended:
        return "has ended and will never come"
    standing = device.stands()
    return f"is at {standing}" if standing else "has not begun"
