"""The page that a person reads of a `Timeline`."""

from __future__ import annotations

from collections.abc import Iterator

from shape_inference import Shape
from shape_inference.escaping import in_line

from ..checking.model.program import devices_text
from ..core.graph import Instruction
from ..costs.table import columns, short
from .advice import changes
from .collective_times import CollectiveTime
from .loops import LoopTime, loop_times
from .path import PathStep, folded
from .record import ClassTimes, Timeline
from .recording import EXPOSED, LINK

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def duration(seconds: float) -> str:
    """Seconds in three figures with a unit: `12.3 ms`.

    >>> duration(0.01234), duration(0)
    ('12.3 ms', '0 s')
    """
    if not seconds:
        return "0 s"
    unit, size = next((each for each in _UNITS if seconds >= 0.9995 * each[1]), _UNITS[-1])
    return f"{seconds / size:.3g} {unit}" if seconds / size < 999.5 else f"{seconds / size:,.0f} {unit}"


def page(timeline: Timeline, top: int) -> Iterator[str]:
    """The lines of the page."""
    yield from _totals(timeline)
    if len(timeline.classes) > 1:
        yield from _classes(timeline, top)
    yield from _loops(timeline, top)
    yield from _work(timeline, top)
    yield from _communication(timeline, top)
    yield from _path(timeline, top)
    yield from _changes(timeline)


def _totals(timeline: Timeline) -> Iterator[str]:
    seconds, count = timeline.seconds, timeline.num_devices
    mesh = f", mesh {' x '.join(f'{name}={size}' for name, size in timeline.mesh.sizes)}" if timeline.mesh else ""
    devices = f"{count:,} device{'s' * (count != 1)}{mesh if count > 1 else ''}"
    yield f"{in_line(timeline.name)} on {in_line(timeline.machine.name)}: {devices}"
    yield "  a model that bounds and ranks; it predicts no milliseconds"
    yield f"  ends after   {duration(seconds)}"
    parts = {"busy": timeline.busy, "exposed": timeline.exposed, "bubble": timeline.bubble}
    said = {
        "busy": "work, the average of all devices",
        "exposed": "communication during which a device does nothing else",
        "bubble": "waiting for other devices, or ended before them",
    }
    for name, part in parts.items():
        part = part if part > 1e-9 * seconds else 0.0
        yield f"  {name:12} {duration(part):9} {_part(part, seconds):>6}  {said[name]}"
    yield f"  at least     {duration(timeline.lower_bound):9} {_part(timeline.lower_bound, seconds):>6}  {_LEAST}"
    yield f"  bound by     {_bound(timeline)}"
    yield from _memory(timeline)


def _memory(timeline: Timeline) -> Iterator[str]:
    """The peak against the memory of the machine, and the largest arrays that are alive there."""
    memory, limit = timeline.cost.memory, timeline.machine.memory
    where = f" on device {timeline.cost.memory_device}" if len(timeline.cost.programs) > 1 else ""
    if limit is None:
        yield f"  memory       {short(memory.peak, 'B')} at most{where}; the machine states none"
    else:
        told = "fits" if memory.peak <= limit else f"does not fit by {short(memory.peak - limit, 'B')}"
        yield f"  memory       {short(memory.peak, 'B')} at most{where}, of {short(limit, 'B')}: {told}"
    largest = ", ".join(f"{each.instruction.name} {short(each.bytes, 'B')}" for each in memory.alive[:3])
    if largest:
        more = len(memory.alive) - 3
        yield f"  alive there  {largest}{f' and {more:,} more' if more > 0 else ''}"


_LEAST = "the busiest device's work, or its busiest links, whatever is hidden behind what"


def _part(some: float, whole: float) -> str:
    return f"{some / whole:.1%}" if whole else ""


def _bound(timeline: Timeline) -> str:
    """What the slowest devices spend their time on, the most first."""
    slowest, sums = timeline.slowest, {"compute": 0.0, "memory": 0.0}
    for share in timeline.shares():
        sums[share.bound] += share.seconds
    sums |= {"links": slowest.exposed, "waiting": slowest.waiting + timeline.seconds - slowest.end}
    order = sorted(sums.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {_part(part, timeline.seconds)}" for name, part in order if part > 1e-9)


def _classes(timeline: Timeline, top: int) -> Iterator[str]:
    order = sorted(timeline.classes, key=lambda each: -each.end)
    yield ""
    yield f"devices ({min(top, len(order))} of {len(order)} classes that do the same)"
    yield from columns(("devices", "end", "busy", "exposed", "waiting"), (_class(each) for each in order[:top]))


def _class(each: ClassTimes) -> tuple[str, ...]:
    times = (each.end, each.busy, each.exposed, each.waiting)
    return (devices_text(each.devices).removeprefix("devices ").removeprefix("device "), *map(duration, times))


def _loops(timeline: Timeline, top: int) -> Iterator[str]:
    loops = loop_times(timeline)
    if loops:
        yield ""
        yield f"loops ({min(top, len(loops))} of {len(loops)} that stand in no other)"
        yield from columns(
            ("loop", "trips", "a trip", "in all", "", "line"), (_loop(timeline, each) for each in loops[:top])
        )


def _loop(timeline: Timeline, found: LoopTime) -> tuple[str, ...]:
    trips, line = found.trips, str(found.loop.source or "")
    a_trip = duration(found.seconds / trips) if trips else ""
    part = _part(found.seconds, timeline.seconds)
    return found.loop.name, "1?" if trips is None else f"{trips:,}", a_trip, duration(found.seconds), part, line


def _work(timeline: Timeline, top: int) -> Iterator[str]:
    shares = timeline.shares()
    if shares:
        yield ""
        yield f"longest work ({min(top, len(shares))} of {len(shares)})"
        yield from columns(
            ("instruction", "times", "seconds", "", "bound by", "shape", "scope"),
            (
                (each.instruction.name, str(each.times), duration(each.seconds), _part(each.seconds, timeline.seconds),
                 each.bound, _shape(each.instruction), _scope(each.instruction))
                for each in shares[:top]
            ),
        )  # fmt: skip


def _shape(instruction: Instruction) -> str:
    """The shape of a result without its layout."""
    shape = instruction.shape
    return f"{shape.dtype}[{','.join(map(str, shape.dims))}]" if isinstance(shape, Shape) else "(...)"


def _scope(instruction: Instruction) -> str:
    return str(instruction.annotations.get("metadata", {}).get("op_name", ""))


def _communication(timeline: Timeline, top: int) -> Iterator[str]:
    """Communication of one kind, along the same axes, together: on the links, and exposed."""
    kinds: dict[tuple[str, str], list[float]] = {}
    for number, (times, span) in enumerate(zip(timeline.recorder.times(), timeline.spans, strict=True)):
        kind = timeline.recorder.kinds[number]
        time = timeline.collective_times.get(_carried(timeline, span.instruction))
        if span.label == timeline.slowest.label and kind in (EXPOSED, LINK) and time is not None:
            both = kinds.setdefault(_kind(timeline, span.instruction, time), [0.0, 0.0, 0.0])
            both[kind == EXPOSED] += span.seconds * int(times)
            both[2] += int(times) * (kind == LINK)
    order = sorted(kinds.items(), key=lambda item: -item[1][1] - 1e-9 * item[1][0])
    if order:
        yield ""
        whose = devices_text(timeline.slowest.devices)
        yield f"communication of {whose} ({min(top, len(order))} of {len(order)} kinds)"
        yield from columns(
            ("op", "algorithm", "executed", "on links", "exposed", ""),
            (
                (op, where, str(int(times)), duration(links), duration(exposed), _part(exposed, timeline.seconds))
                for (op, where), (links, exposed, times) in order[:top]
            ),
        )


def _carried(timeline: Timeline, instruction: Instruction) -> Instruction:
    """The collective or transfer that an instruction is, starts or completes."""
    return timeline.carried.get(instruction, instruction)


def _kind(timeline: Timeline, instruction: Instruction, time: CollectiveTime) -> tuple[str, str]:
    op = _carried(timeline, instruction).opcode.removesuffix("_start").replace("_", "-")
    axes = f" over {'axis' if len(time.axes) == 1 else 'axes'} {', '.join(time.axes)}" if time.axes else ""
    return op, f"{time.algorithm}{axes}"


def _path(timeline: Timeline, top: int) -> Iterator[str]:
    """The critical path, the steps of one instruction together, in the order in which they come."""
    steps = folded(timeline.critical_path)
    longest = {id(step) for step in sorted(steps, key=lambda each: -each.total)[: 2 * top]}
    shown = [step for step in steps if id(step) in longest]
    if shown:
        yield ""
        yield f"critical path ({len(shown)} of {len(steps)} instructions, in order)"
        yield from columns(
            ("device", "instruction", "", "times", "seconds", "", "line"), (_step(timeline, step) for step in shown)
        )


def _step(timeline: Timeline, step: PathStep) -> tuple[str, ...]:
    first = next(each.devices[0] for each in timeline.classes if each.label == step.label)
    kind = {"compute": "", "link": "on links", "beside": "beside"}[step.kind]
    return (
        str(first), step.instruction.name, kind, str(step.times), duration(step.total),
        _part(step.total, timeline.seconds), step.source,
    )  # fmt: skip


def _changes(timeline: Timeline) -> Iterator[str]:
    found = changes(timeline)
    if found:
        yield ""
        yield "what would help"
        yield from columns(
            ("change", "ends after", ""),
            ((each.what, duration(each.seconds), f"-{1 - each.seconds / timeline.seconds:.1%}") for each in found),
        )
