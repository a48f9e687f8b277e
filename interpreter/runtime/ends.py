"""Reports of stopped runs: where each device of the grid stands, which devices it waits for, and why."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from traceback import FrameSummary, extract_tb
from types import TracebackType
from typing import TYPE_CHECKING

from xbuild.checking.model.program import devices_text
from xbuild.core.graph import Instruction, short_path
from xbuild.properties.effects import spelling, start_of

from .advice import cause_text, causes_of, is_starved, let_through, repair
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
    """The report of a run that was interrupted or reached a limit: the running device, and where the others stand.

    A function of a custom call that has not returned is the cause.
    """
    calls = {call.device.number: call for call in grid.callbacks.unreturned}
    states = _standing(grid, traceback, calls)
    if not calls:
        return Report(kind, message, states)
    why = f"{calls[min(calls)].what} has not returned"
    return Report(kind, message, states, why, let_through(verdict, other_than="STARVED"))


def raised(grid: Grid, failed: CallbackFailed) -> Report:
    """The report of a run in which the function of a custom call raised an exception."""
    call, error = failed.call, failed.error
    instruction = call.request.instruction
    number = call.device.number
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    where = "".join(f" at {short_path(f.filename)}:{f.lineno} in {f.name}" for f in _own_frames(error)[:1])
    message = f"{call.what} raised {text}{where}"
    return Report("raised", message, _standing(grid, None, {number}), f"{instruction.name} on device {number}: {text}")


def unregistered(grid: Grid, error: CustomCallError) -> Report:
    """The report of a run that reached an unregistered custom call in a conditional, a loop or a scan."""
    device = grid.running
    assert device is not None
    assert device.waiting is not None
    instruction = device.waiting.instruction
    name, source = instruction.name, f" at {instruction.source}" if instruction.source else ""
    message = f"{spelling(instruction.opcode)} %{name} is to run on device {device.number}, and {error.message}{source}"
    states = _standing(grid, None, {device.number})
    why = f"{name} on device {device.number}: {error.message}"
    return Report(error.kind, message, states, why, repair="; ".join(error.hints))


def _own_frames(error: BaseException) -> list[FrameSummary]:
    """The frames of the user's function and of its callees, without the frames of the runtime."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    ours = {os.path.join(root, "interpreter", "runtime"), os.path.join(root, "xbuild", "tpu")}
    frames = extract_tb(error.__traceback__)
    return [frame for frame in frames if os.path.dirname(os.path.abspath(frame.filename)) not in ours]


def _standing(grid: Grid, traceback: TracebackType | None, causes: Collection[int]) -> tuple[DeviceState, ...]:
    """The state of each device; a device that runs, or whose request was just answered, waits for nothing."""
    going, at = {grid.running, *(device for device, _ in grid.ready)}, _parked(grid)
    states = []
    for device in grid.devices:
        standing = None if device.ended else device.stands(traceback if device is grid.running else None)
        waits, missing = ("", ()) if device in going or device.ended else _waits(grid, device, at)
        states.append(DeviceState(device.number, device.ended, standing, waits, missing, device.number in causes))
    return tuple(states)


def stuck(grid: Grid, verdict: Verdict | None) -> Report:
    """The report of a run in which no device can go on; the verdict says why the check let it run."""
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
    why = cause_text(grid, causes, absent)
    standings = (state.standing for state in states if state.standing is not None)
    mended = repair(verdict, standings)
    if kind == "infeed_starved":
        starved = [device for device in sorted(causes) if is_starved(grid.devices[device])]
        mended = f"feed {devices_text(starved)} as many items as the program asks for"
    return Report(kind, "no device can go on", tuple(states), why, let_through(verdict), parting(grid, waits), mended)


def mismatched(grid: Grid, mismatch: Mismatch) -> Report:
    """The report of a run in which two devices call one collective with different attributes or shapes."""
    cause = "what meets as one collective must be of one kind, over the same groups, of one shape and reducer"
    return Report("collective_mismatch", str(mismatch), _standing(grid, None, ()), cause, "", mismatch.sides)


def _parked(grid: Grid) -> dict[int, Rendezvous]:
    """The rendezvous in which each parked device waits."""
    return {number: rendezvous for rendezvous in grid.open_rendezvous.values() for number in rendezvous.parked}


def _waits(grid: Grid, device: Device, at: Mapping[int, Rendezvous]) -> tuple[str, tuple[int, ...]]:
    """The text of what a parked device waits for, and the devices that have not arrived."""
    request = device.waiting
    if request is None:
        return "", ()
    opcode = request.instruction.opcode
    if request.collective is not None or opcode in DONES:
        missing = at[device.number].missing if device.number in at else ()
        return f"{_where(grid, missing)} to come to {_awaited(request.instruction)}", missing
    if opcode == "custom_call":
        return f"the function of {request.instruction.attributes.custom_call_target!r} to return", ()
    for label in grid.host.awaited(device):
        return f"a result of the host function {label!r}", ()
    if opcode == "infeed":
        return "an item of its infeed, which is empty: nobody will feed it", ()
    channel = next(w for w in grid.channels.values() if device in (w.receiver, w.sender and w.sender[0]))
    peer = channel.target if opcode == "send" else channel.source
    half = "post a recv" if opcode == "send" else "send"
    return f"{_where(grid, (peer,))} to {half} on channel {channel.channel}", (peer,)


def _awaited(instruction: Instruction) -> str:
    """The text of the collective that devices wait for; for a done, the collective's start."""
    start = start_of(instruction) if instruction.opcode in DONES else None
    return instruction.name if start is None else f"{start.name}, which {instruction.name} completes"


def _where(grid: Grid, devices: tuple[int, ...]) -> str:
    """The text of these devices, each with the instruction at which it stands."""
    return " and ".join(f"device {d}, which {_is_at(grid.devices[d])}," for d in devices[:4]) + (
        " and others" if len(devices) > 4 else ""
    )


def _is_at(device: Device) -> str:
    if device.ended:
        return "has ended and will never come"
    standing = device.stands()
    return f"is at {standing}" if standing else "has not begun"
