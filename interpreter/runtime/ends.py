"""The end of a run: `drive` runs the grid, and reports an end at which not every device has finished.

Sections:

    The drive: a run to completion, and the report of any other end
    Histories of collectives
    Explanations in a report
    Reports: where each device is, for which devices it waits, and why
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from traceback import FrameSummary, extract_tb
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from shape_inference import AnyShape
from xbuild.checking import Verdict
from xbuild.checking.model.describe import fact, payload
from xbuild.checking.model.program import devices_text
from xbuild.checking.model.verdict import Finding
from xbuild.checking.structure.collective_matching import same_reducer
from xbuild.core.graph import Instruction
from xbuild.core.identifiers import short_path
from xbuild.properties.device_groups import group_of, groups_of, pairs_of
from xbuild.properties.effects import (
    TRANSFERS,
    base_of,
    branch_name,
    collective_in,
    communicates_itself,
    spelling,
    start_of,
)

from ..compiler.requests import Request
from ..custom_calls import CustomCallError
from ..rules import limits as limit
from ..rules.denormals import environment, fesetenv, of_user, with_mode
from ..rules.limits import LimitReached, Limits
from .device import Device, Standing
from .host import CallbackFailed
from .report import DONES, DeviceState, Report, Stopped

if TYPE_CHECKING:
    from .grid import Grid
    from .host import CallbackFailed
    from .meetings import Rendezvous


# ----------------------------------------------------------------------------
# The drive: a run to completion, and the report of any other end.


def drive(
    grid: Grid, arguments: Sequence[tuple[Any, ...]], limits: Limits, verdict: Verdict | None, flush: bool
) -> None:
    """Run the grid to its end; raise Stopped if no device can continue, a limit is reached or the user interrupts.

    NumPy's warnings about floating point and integers, which XLA does not have, are off for the whole run. With `flush`
    denormal numbers are flushed to zeros.
    """
    try:
        with np.errstate(all="ignore"), limit.running(limits):
            _run_in_mode(grid, arguments, flush)
    except BaseException as error:
        raise_end(grid, error, verdict)
    finally:
        grid.callbacks.close()
    if not all(device.ended for device in grid.devices):
        raise Stopped(grid.stuck_report(verdict))


def _run_in_mode(grid: Grid, arguments: Sequence[tuple[Any, ...]], flush: bool) -> None:
    user_environment = environment()
    reset = of_user.set(user_environment)
    try:
        fesetenv(with_mode(user_environment, flush))
        grid.run(arguments)
    finally:
        fesetenv(user_environment)
        of_user.reset(reset)


def raise_end(grid: Grid, error: BaseException, verdict: Verdict | None) -> NoReturn:
    """Raise the error of a run that an exception ended, after marking what its device had executed."""
    if grid.running is not None:
        grid.running.mark_begun(error.__traceback__)
    if isinstance(error, CallbackFailed):
        raise Stopped(raised(grid, error)) from error.error
    report = _report_of(grid, error, verdict)
    if report is not None:
        raise Stopped(report) from None
    if isinstance(error, Exception):
        _add_position(grid, error, error.__traceback__)
    raise error


def _report_of(grid: Grid, error: BaseException, verdict: Verdict | None) -> Report | None:
    """The report of a run that an exception ended; None for an exception of a rule or a feed, which is raised."""
    if isinstance(error, LimitReached):
        return interrupted(grid, error.kind, error.message, error.__traceback__, verdict)
    if isinstance(error, Mismatch):
        return mismatched(grid, error)
    if isinstance(error, TransferMismatch):
        cause = "a send and its recv must have the same shape; messages on one channel arrive in the order of the sends"
        return Report("transfer_mismatch", str(error), device_states(grid, None, ()), cause, "", error.sides)
    if isinstance(error, CustomCallError):
        return unregistered(grid, error)
    if (report := grid.mismatch_report(error)) is not None:
        return report
    if isinstance(error, KeyboardInterrupt):
        return interrupted(grid, "interrupted", "interrupted", error.__traceback__, verdict)
    if isinstance(error, MemoryError):
        return interrupted(grid, "limit_bytes", f"out of memory: {error}", error.__traceback__)
    return None


def _add_position(grid: Grid, error: Exception, traceback: TracebackType | None) -> None:
    """Add the device and the instruction to an exception that a rule, a feed or an observer raised."""
    device = grid.running
    standing = device and device.position(traceback)
    if device and standing:
        source = standing.instruction.source
        error.add_note(f"raised on device {device.number} at {standing}{f' ({source})' if source else ''}")


# ----------------------------------------------------------------------------
# Histories of collectives
#
# With the first collective at which the histories of two devices differ.

LONGEST = 100_000


def log() -> deque[Request]:
    """An empty log of a device's collectives, in order; in a long run the log keeps only the last requests."""
    return deque(maxlen=LONGEST)


def first_divergence(grid: Grid, waits: Mapping[int, tuple[str, tuple[int, ...]]]) -> tuple[str, ...]:
    """The lines on where a device that waits in a collective and a missing member diverge; empty if none is missing."""
    for device, (_, missing) in waits.items():
        request = grid.devices[device].waiting
        instruction = None if request is None else request.instruction
        if missing and instruction is not None and communicates_itself(instruction) and not _is_transfer(instruction):
            return _divergence(grid, device, missing[0])
    return ()


def _is_transfer(instruction: Instruction) -> bool:
    return instruction.opcode in TRANSFERS or instruction.opcode in TRANSFERS.values()


def _divergence(grid: Grid, device: int, other: int) -> tuple[str, ...]:
    """The lines on where two devices diverge: the collective that each reaches after the last one that both share."""
    if max(len(grid.logs[device]), len(grid.logs[other])) == LONGEST:
        return ()
    mine, theirs = [*_collectives_with(grid, device, other)], [*_collectives_with(grid, other, device)]
    pairs = enumerate(zip(mine, theirs, strict=False))
    count = next((n for n, (a, b) in pairs if _differ(grid, device, a, other, b)), min(len(mine), len(theirs)))
    if count == len(mine) == len(theirs):
        return ()
    after = f"after {_name(mine[count - 1])} (collective {count} of both)" if count else "at their first collective"
    sides = ((device, mine), (other, theirs))
    return f"devices {device} and {other} diverge {after}", *(
        next_collective(d, requests, count) for d, requests in sides
    )


def _collectives_with(grid: Grid, device: int, other: int) -> Iterator[Request]:
    """The logged collectives of a device whose groups contain the other device."""
    for request in grid.logs[device]:
        assert request.collective is not None
        if other in group_of(request.collective, device, *grid.extent):
            yield request


def _differ(grid: Grid, device: int, a: Request, other: int, b: Request) -> bool:
    keys = (grid.rendezvous_keys.key_of(grid.devices[d].module, request) for d, request in ((device, a), (other, b)))
    return len({*keys}) > 1 or difference(grid, a.instruction, b.instruction) is not None


def _name(request: Request) -> str:
    return request.path[-1].instruction.name


def next_collective(device: int, requests: Sequence[Request], count: int) -> str:
    if count == len(requests):
        return f"  device {device}  reaches no further collective in this group"
    instruction = requests[count].instruction
    source = f"   {instruction.source}" if instruction.source else ""
    return f"  device {device}  reaches {instruction.name} ({collective_text(instruction)}){source}"


def collective_text(instruction: Instruction) -> str:
    """The text of a collective: `all-reduce of add, f32[4], groups {0,1}, channel 1`."""
    collective = collective_in(instruction)
    assert collective is not None
    reducer = getattr(collective.attributes, "to_apply", None)
    by = "" if reducer is None else f" of {spelling(reducer.root.opcode)}"
    return f"{spelling(base_of(collective))}{by}, {fact(collective)}"


def difference(grid: Grid, a: Instruction, b: Instruction) -> str | None:
    """The property in which two sides of one collective differ (kinds, groups, shapes, reducers), or None."""
    if a is b:
        return None
    first, second = collective_in(a), collective_in(b)
    assert first is not None
    assert second is not None
    facts: dict[str, tuple[Any, Any]] = {
        "kinds": (base_of(first), base_of(second)),
        "groups": (_participants(grid, first), _participants(grid, second)),
        "shapes": ([payload(first).plain()], [payload(second).plain()]),
    }
    for name, (one, two) in facts.items():
        if one != two:
            return name
    reducers = (getattr(collective.attributes, "to_apply", None) for collective in (first, second))
    return None if same_reducer(*reducers) else "reducers"


def _participants(grid: Grid, collective: Instruction) -> Any:
    if hasattr(collective.attributes, "source_target_pairs"):
        return frozenset(pairs_of(collective, *grid.extent))
    return frozenset(groups_of(collective, *grid.extent))


class TransferMismatch(Exception):
    """A device sent a value of one shape to a device that receives another."""

    def __init__(self, sent: tuple[int, Instruction], received: tuple[int, Instruction]) -> None:
        (source, send), (target, recv) = sent, received
        super().__init__(
            f"{send.name} of device {source} sends {send.operands[0].shape.plain()}, but {recv.name} of device "
            f"{target} receives {first_element(recv).plain()} on channel {recv.attributes.channel_id}"
        )
        self.sides = (
            "two sides of one transfer",
            *(
                f"  device {device}  reaches {half.name}{f'   {half.source}' if half.source else ''}"
                for device, half in (sent, received)
            ),
        )


def first_element(recv: Instruction) -> AnyShape:
    """The shape of the value that a recv, or its recv-done, receives."""
    return recv.shape.elements[0]  # type: ignore[union-attr]


def check_transfer(source: int, sent: Request, target: int, done: Request) -> None:
    """Raise TransferMismatch if a value does not have the shape that the recv-done states."""
    send, recv = sent.instruction, done.instruction
    shape, expected = send.operands[0].shape, first_element(recv)
    if shape is not expected and shape.plain() != expected.plain():
        raise TransferMismatch((source, send), (target, recv))


class Mismatch(Exception):
    """Two devices reached one collective with different kinds, groups, shapes or reducers."""

    def __init__(self, what: str, first: tuple[int, Request], second: tuple[int, Request]) -> None:
        sides = [f"{request.path[-1].instruction.name} of device {d}" for d, request in (first, second)]
        super().__init__(f"{' and '.join(sides)} form one collective, but their {what} differ")
        self.sides = (
            "two sides of one collective",
            *(next_collective(d, [request], 0) for d, request in (first, second)),
        )


def check_match(grid: Grid, device: int, request: Request, other: int, first: Request) -> None:
    """Raise Mismatch if two sides of a collective differ."""
    what = difference(grid, first.instruction, request.instruction)
    if what is not None:
        raise Mismatch(what, (other, first), (device, request))


# ----------------------------------------------------------------------------
# Explanations in a report
#
# Open findings of the check, why a device is missing, the repair.


def let_through(verdict: Verdict | None, *, other_than: str = "") -> str:
    """The messages of the findings that the check left to the run, without those of one cause."""
    if verdict is None or verdict.kind != "depends":
        return ""
    return "; ".join(f.message for f in verdict.findings if not other_than or f.cause != other_than)


def repair(verdict: Verdict | None, stuck: Iterable[Standing]) -> str:
    """The fix that the check suggests for the loop or conditional that devices are in."""
    around = {id(place.instruction) for standing in stuck for place in standing.path}
    findings: tuple[Finding, ...] = () if verdict is None else verdict.findings
    texts = (f.repair_text for f in findings if f.repair_text and around & {*map(id, f.instructions)})
    return next(texts, "")


def skipped_text(device: int, waiting: Standing) -> str:
    """The sentence that names the branches and trips that a device skipped before it ended."""
    units = [
        (f"took a branch of {place.instruction.name} other than {branch_name(place.instruction, place.branch)}")
        if place.branch is not None
        else f"ran {place.instruction.name} fewer than {trip} times"
        for place, trip in zip(waiting.path, waiting.trips, strict=True)
        if place.branch is not None or trip is not None
    ]
    name = waiting.instruction.name
    if not units:
        return f"device {device} has finished without reaching {name}, where others wait"
    return f"device {device} has finished without reaching {name}, where others wait: it {', or '.join(units)}"


def is_starved(device: Device) -> bool:
    return device.waiting is not None and device.waiting.instruction.opcode == "infeed"


def causes_of(grid: Grid, missing: dict[int, tuple[int, ...]]) -> set[int]:
    """The devices at the end of all chains of waits: finished, starved, or waiting for each other in a cycle."""
    import networkx as nx

    waits: nx.DiGraph[Hashable] = nx.DiGraph()
    waits.add_nodes_from(missing)
    for device, others in missing.items():
        if others:
            waits.add_edge(device, ("all", id(others)))  # one node for all that wait for the same devices
    for others in {id(devices): devices for devices in missing.values()}.values():
        waits.add_edges_from((("all", id(others)), other) for other in others)
    rounds = nx.condensation(waits)
    last = [node for node in rounds if not rounds.out_degree(node)]
    return {device for node in last for device in rounds.nodes[node]["members"] if isinstance(device, int)}


def cause_text(grid: Grid, causes: set[int], missing: dict[int, tuple[int, ...]]) -> str:
    """The sentence that names the cause: an empty infeed, a device that has finished, or a cycle of waits."""
    starved = sorted(d for d in causes if is_starved(grid.devices[d]))
    if starved:
        request = grid.devices[starved[0]].waiting
        assert request is not None
        return f"the infeed {request.instruction.name} of device {starved[0]} has no more items"
    ended = sorted(d for d in causes if grid.devices[d].ended)
    if ended:
        waiting = next(d.position() for d in grid.devices if not d.ended and ended[0] in missing.get(d.number, ()))
        assert waiting is not None
        return skipped_text(ended[0], waiting)
    return f"devices {', '.join(map(str, sorted(causes)))} wait for each other"


# ----------------------------------------------------------------------------
# Reports of stopped runs
#
# Where each device is, for which devices it waits, and why.


def interrupted(
    grid: Grid, kind: str, message: str, traceback: TracebackType | None, verdict: Verdict | None = None
) -> Report:
    """The report of a run that was interrupted or reached a limit: the running device, and where the others are.

    A function of a custom call that has not returned is the cause.
    """
    calls = {call.device.number: call for call in grid.callbacks.unreturned}
    states = device_states(grid, traceback, calls)
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
    return Report(
        "raised", message, device_states(grid, None, {number}), f"{instruction.name} on device {number}: {text}"
    )


def unregistered(grid: Grid, error: CustomCallError) -> Report:
    """The report of a run that reached an unregistered custom call in a conditional, a loop or a scan."""
    device = grid.running
    assert device is not None
    assert device.waiting is not None
    instruction = device.waiting.instruction
    name, source = instruction.name, f" at {instruction.source}" if instruction.source else ""
    message = f"{spelling(instruction.opcode)} %{name} cannot run on device {device.number}: {error.message}{source}"
    states = device_states(grid, None, {device.number})
    why = f"{name} on device {device.number}: {error.message}"
    return Report(error.kind, message, states, why, repair="; ".join(error.hints))


def _own_frames(error: BaseException) -> list[FrameSummary]:
    """The frames of the user's function and of its callees, without the frames of the runtime."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    ours = {os.path.join(root, "interpreter", "runtime"), os.path.join(root, "xbuild", "tpu")}
    frames = extract_tb(error.__traceback__)
    return [frame for frame in frames if os.path.dirname(os.path.abspath(frame.filename)) not in ours]


def device_states(grid: Grid, traceback: TracebackType | None, causes: Collection[int]) -> tuple[DeviceState, ...]:
    """The state of each device; a device that runs, or whose request was just answered, waits for nothing."""
    ready, at = {grid.running, *(device for device, _ in grid.ready)}, _parked(grid)
    states = []
    for device in grid.devices:
        standing = None if device.ended else device.position(traceback if device is grid.running else None)
        waits, missing = ("", ()) if device in ready or device.ended else _waits(grid, device, at)
        states.append(DeviceState(device.number, device.ended, standing, waits, missing, device.number in causes))
    return tuple(states)


def stuck(grid: Grid, verdict: Verdict | None) -> Report:
    """The report of a run in which no device can continue; the verdict says why the check allowed the run."""
    at = _parked(grid)
    waits = {device.number: _waits(grid, device, at) for device in grid.devices if not device.ended}
    absent = {device: missing for device, (_, missing) in waits.items()}
    causes = causes_of(grid, absent)
    states = []
    for device in grid.devices:
        text, missing = waits.get(device.number, ("", ()))
        standing = None if device.ended else device.position()
        states.append(DeviceState(device.number, device.ended, standing, text, missing, device.number in causes))
    kind = "infeed_starved" if any(is_starved(grid.devices[d]) for d in causes) else "deadlock"
    why = cause_text(grid, causes, absent)
    standings = (state.standing for state in states if state.standing is not None)
    fix = repair(verdict, standings)
    if kind == "infeed_starved":
        starved = [device for device in sorted(causes) if is_starved(grid.devices[device])]
        fix = f"feed the number of items that the program reads to {devices_text(starved)}"
    return Report(
        kind, "no device can continue", tuple(states), why, let_through(verdict), first_divergence(grid, waits), fix
    )


def mismatched(grid: Grid, mismatch: Mismatch) -> Report:
    """The report of a run in which two devices call one collective with different attributes or shapes."""
    cause = "all devices of a collective must use the same opcode, groups, shape and reducer"
    return Report("collective_mismatch", str(mismatch), device_states(grid, None, ()), cause, "", mismatch.sides)


def _parked(grid: Grid) -> dict[int, Rendezvous]:
    """The rendezvous in which each parked device waits."""
    return {number: rendezvous for rendezvous in grid.open_rendezvous.values() for number in rendezvous.parked}


def _waits(grid: Grid, device: Device, at: Mapping[int, Rendezvous]) -> tuple[str, tuple[int, ...]]:
    """The text of what a parked device waits for, and the devices that have not arrived."""
    request = device.waiting
    if request is None:
        return "", ()
    if (known := grid.waits_of(device)) is not None:
        return known
    opcode = request.instruction.opcode
    if request.collective is not None or opcode in DONES:
        missing = at[device.number].missing if device.number in at else ()
        return f"{_positions_text(grid, missing)} to reach {_awaited(request.instruction)}", missing
    if opcode == "custom_call":
        return f"the function of {request.instruction.attributes.custom_call_target!r} to return", ()
    for label in grid.host.awaited(device):
        return f"a result of the host function {label!r}", ()
    if opcode == "infeed":
        return "an item of its infeed, which is empty and has no more items", ()
    channel = next(
        w for w in grid.channels.values() if device in [waiting[0] for waiting in (w.receiver, w.sender) if waiting]
    )
    peer = channel.target if opcode == "send" else channel.source
    half = "post a recv" if opcode == "send" else "send"
    return f"{_positions_text(grid, (peer,))} to {half} on channel {channel.channel}", (peer,)


def _awaited(instruction: Instruction) -> str:
    """The text of the collective that devices wait for; for a done, the collective's start."""
    start = start_of(instruction) if instruction.opcode in DONES else None
    return instruction.name if start is None else f"{start.name}, which {instruction.name} completes"


def _positions_text(grid: Grid, devices: tuple[int, ...]) -> str:
    """The text of these devices, each with the instruction that it is at."""
    return " and ".join(f"device {d}, which {_is_at(grid.devices[d])}," for d in devices[:4]) + (
        " and others" if len(devices) > 4 else ""
    )


def _is_at(device: Device) -> str:
    if device.ended:
        return "has finished and will never arrive"
    standing = device.position()
    return f"is at {standing}" if standing else "has not started"
