"""The report of a `Timeline` as text: exposed time, loops, and what would help.

Sections:

    Loops: how often each runs, and how long it takes with its callees
    What would help: the timeline on machines that are better in one respect
    The report
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from shape_inference import Shape
from shape_inference.escaping import in_line

from ..checking.model.program import devices_text
from ..core.graph import Computation, Instruction
from ..costs.report import columns, short
from ..properties.effects import LOOPS, name_in_report
from ..properties.sites import reached
from ..properties.trip_counts import known_trips
from .durations import CollectiveTime
from .machines import Link, Machine
from .record import ClassTimes, PathStep, Timeline, fold_path
from .simulation import BESIDE, EXPOSED, LINK

# ----------------------------------------------------------------------------
# Loops: how often each runs, and how long it takes with its callees


@frozen
class LoopTime:
    """A loop of the slowest class of devices: its trips, None if they are unknown, and its total seconds."""

    loop: Instruction
    trips: int | None
    seconds: float


def loop_times(timeline: Timeline) -> list[LoopTime]:
    """The outermost loops, the longest first."""
    label, devices = timeline.slowest.label, timeline.slowest.devices
    entry = timeline.context.program.class_of[devices[0]].module.entry
    loops = [*_outermost(entry, set())]
    inside = {part: loop for loop in loops for called in loop.called for part in reached(called)}
    of = {instruction: loop for part, loop in inside.items() for instruction in part.instructions} | {
        loop: loop for loop in loops
    }
    sums = dict.fromkeys(loops, 0.0)
    spans = timeline.recorder
    for number, times in enumerate(spans.times().tolist()):
        loop = of.get(spans.instructions[number])
        if loop is not None and spans.labels[number] == label and spans.kinds[number] not in (LINK, BESIDE):
            sums[loop] += (spans.ends[number] - spans.starts[number]) * times
    found = (LoopTime(loop, known_trips(loop), seconds) for loop, seconds in sums.items())
    return sorted(found, key=lambda each: -each.seconds)


def _outermost(computation: Computation, seen: set[Computation]) -> Iterator[Instruction]:
    """The loops of a computation and of its calls and branches, without those inside other loops."""
    seen.add(computation)
    for instruction in computation.instructions:
        if instruction.opcode in LOOPS:
            yield instruction
        else:
            for called in instruction.called:
                if called not in seen:
                    yield from _outermost(called, seen)


# ----------------------------------------------------------------------------
# What would help: the timeline on machines that are better in one respect

MOST_SPANS = 30_000
"""With more spans nothing is tried, since each change is a separate timeline."""

_LEAST_GAIN = 0.005
"""The fraction of the time that a change must save to be listed."""


@frozen
class TimelineChange:
    """A change of the machine or the schedule, and when the program would end with it."""

    what: str
    seconds: float


def list_changes(timeline: Timeline) -> list[TimelineChange]:
    """Changes that help, the most effective first: a part of the machine twice as fast, all communication hidden."""
    if len(timeline.recorder) > MOST_SPANS or not timeline.seconds:
        return []
    found = [TimelineChange(what, timeline.again(machine).seconds) for what, machine in _better_machines(timeline)]
    if timeline.exposed:
        found.append(TimelineChange("all communication hidden behind work (best case)", timeline.lower_bound))
    helping = (each for each in found if each.seconds < timeline.seconds * (1 - _LEAST_GAIN))
    return sorted(helping, key=lambda each: each.seconds)


def _better_machines(timeline: Timeline) -> Iterator[tuple[str, Machine]]:
    machine = timeline.machine
    faster = {name: 2 * peak for name, peak in machine.flops.items()}
    yield "peak FLOP/s twice as high", evolve(machine, flops=faster)
    yield "memory twice as fast", evolve(machine, memory_bandwidth=2 * machine.memory_bandwidth)
    if timeline.num_devices > 1:
        links = {axis: _double_bandwidth(link) for axis, link in machine.links.items()}
        network = None if machine.network is None else _double_bandwidth(machine.network)
        yield "links with twice the bandwidth", evolve(machine, links=links, network=network)
        quick = {axis: evolve(link, alpha=link.alpha / 2) for axis, link in machine.links.items()}
        network = None if machine.network is None else evolve(machine.network, alpha=machine.network.alpha / 2)
        yield "steps over links in half the time", evolve(machine, links=quick, network=network)


def _double_bandwidth(link: Link) -> Link:
    return evolve(link, bandwidth=2 * link.bandwidth)


# ----------------------------------------------------------------------------
# The report

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def duration(seconds: float) -> str:
    """Seconds with three significant digits and a unit: `12.3 ms`.

    >>> duration(0.01234), duration(0)
    ('12.3 ms', '0 s')
    """
    if not seconds:
        return "0 s"
    unit, size = next((each for each in _UNITS if seconds >= 0.9995 * each[1]), _UNITS[-1])
    return f"{seconds / size:.3g} {unit}" if seconds / size < 999.5 else f"{seconds / size:,.0f} {unit}"


def report_lines(timeline: Timeline, top: int) -> Iterator[str]:
    """The lines of the report."""
    yield from _totals(timeline)
    yield from _changes(timeline)
    if len(timeline.classes) > 1:
        yield from _classes(timeline, top)
    yield from _loops(timeline, top)
    yield from _longest_work(timeline, top)
    yield from _communication(timeline, top)
    yield from _path(timeline, top)


def _totals(timeline: Timeline) -> Iterator[str]:
    seconds, count = timeline.seconds, timeline.num_devices
    mesh = f", mesh {' x '.join(f'{name}={size}' for name, size in timeline.mesh.sizes)}" if timeline.mesh else ""
    name = f"{in_line(timeline.name)} on {in_line(timeline.machine.name)}"
    yield f"{name}: ends after {duration(seconds)}, bound by {_bound_text(timeline).partition(',')[0] or 'nothing'}"
    yield "  a model for bounds and rankings, not a prediction of milliseconds"
    yield f"  devices      {count:,}{mesh if count > 1 else ''}"
    parts = {"busy": timeline.busy, "exposed": timeline.exposed, "bubble": timeline.bubble}
    meanings = {
        "busy": "work, averaged over all devices",
        "exposed": "communication during which a device does nothing else",
        "bubble": "waiting for other devices, or already finished",
    }
    for name, part in parts.items():
        part = part if part > 1e-9 * seconds else 0.0
        yield f"  {name:12} {duration(part):9} {_percentage(part, seconds):>6}  {meanings[name]}"
    least = timeline.lower_bound
    yield f"  at least     {duration(least):9} {_percentage(least, seconds):>6}  {_LEAST_SHARE}"
    yield f"  bound by     {_bound_text(timeline)}"
    yield from _memory(timeline)


def _memory(timeline: Timeline) -> Iterator[str]:
    """The peak compared with the memory of the machine, and the largest arrays live at the peak."""
    memory, limit = timeline.cost.memory, timeline.machine.memory
    where = f" on device {timeline.cost.memory_device}" if len(timeline.cost.programs) > 1 else ""
    if limit is None:
        yield f"  memory       {short(memory.reserved, 'B')} reserved{where}; the machine states no limit"
    else:
        verdict = "fits" if memory.reserved <= limit else f"does not fit by {short(memory.reserved - limit, 'B')}"
        yield f"  memory       {short(memory.reserved, 'B')} reserved{where}, of {short(limit, 'B')}: {verdict}"
    largest = ", ".join(f"{name_in_report(each.instruction)} {short(each.bytes, 'B')}" for each in memory.alive[:3])
    if largest:
        more = len(memory.alive) - 3
        yield f"  alive there  {largest}{f' and {more:,} more' if more > 0 else ''}"


_LEAST_SHARE = "the larger of the busiest device's work and its busiest links, with any overlap"


def _percentage(some: float, whole: float) -> str:
    return f"{some / whole:.1%}" if whole else ""


def _bound_text(timeline: Timeline) -> str:
    """What the slowest devices spend their time on, the largest first."""
    slowest, sums = timeline.slowest, {"compute": 0.0, "memory": 0.0}
    for share in timeline.shares():
        sums[share.bound] += share.seconds
    sums |= {"links": slowest.exposed, "waiting": slowest.waiting + timeline.seconds - slowest.end}
    order = sorted(sums.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {_percentage(part, timeline.seconds)}" for name, part in order if part > 1e-9)


def _classes(timeline: Timeline, top: int) -> Iterator[str]:
    order = sorted(timeline.classes, key=lambda each: -each.end)
    yield ""
    yield f"devices ({min(top, len(order))} of {len(order)} classes of devices that do the same)"
    yield from columns(("devices", "end", "busy", "exposed", "waiting"), (_class(each) for each in order[:top]))


def _class(times_of_class: ClassTimes) -> tuple[str, ...]:
    times = (times_of_class.end, times_of_class.busy, times_of_class.exposed, times_of_class.waiting)
    return (
        devices_text(times_of_class.devices).removeprefix("devices ").removeprefix("device "),
        *map(duration, times),
    )


def _loops(timeline: Timeline, top: int) -> Iterator[str]:
    loops = loop_times(timeline)
    if loops:
        yield ""
        yield f"outermost loops ({min(top, len(loops))} of {len(loops)})"
        yield from columns(
            ("loop", "trips", "a trip", "in all", "", "line"), (_loop(timeline, loop) for loop in loops[:top])
        )


def _loop(timeline: Timeline, found: LoopTime) -> tuple[str, ...]:
    trips, line = found.trips, str(found.loop.source or "")
    a_trip = duration(found.seconds / trips) if trips else ""
    part = _percentage(found.seconds, timeline.seconds)
    return found.loop.name, "1?" if trips is None else f"{trips:,}", a_trip, duration(found.seconds), part, line


def _longest_work(timeline: Timeline, top: int) -> Iterator[str]:
    shares = timeline.shares()
    if shares:
        yield ""
        yield f"longest work ({min(top, len(shares))} of {len(shares)})"
        yield from columns(
            ("instruction", "times", "seconds", "", "bound by", "shape", "scope"),
            (
                (name_in_report(share.instruction), str(share.times), duration(share.seconds),
                 _percentage(share.seconds, timeline.seconds), share.bound, _shape(share.instruction),
                 _scope(share.instruction))
                for share in shares[:top]
            ),
        )  # fmt: skip


def _shape(instruction: Instruction) -> str:
    """The shape of a result without its layout."""
    shape = instruction.shape
    return f"{shape.dtype}[{','.join(map(str, shape.dims))}]" if isinstance(shape, Shape) else "(...)"


def _scope(instruction: Instruction) -> str:
    return str(instruction.annotations.get("metadata", {}).get("op_name", ""))


def _communication(timeline: Timeline, top: int) -> Iterator[str]:
    """Communication, summed by kind and axes: on the links, and exposed."""
    kinds: dict[tuple[str, str], list[float]] = {}
    for number, (times, span) in enumerate(zip(timeline.recorder.times(), timeline.spans, strict=True)):
        kind = timeline.recorder.kinds[number]
        time = timeline.collective_times.get(_carried_by(timeline, span.instruction))
        if span.label == timeline.slowest.label and kind in (EXPOSED, LINK) and time is not None:
            both = kinds.setdefault(_kind(timeline, span.instruction, time), [0.0, 0.0, 0.0])
            both[kind == EXPOSED] += span.seconds * int(times)
            both[2] += int(times) * (kind == LINK)
    order = sorted(kinds.items(), key=lambda item: -item[1][1] - 1e-9 * item[1][0])
    if order:
        yield ""
        whose = devices_text(timeline.slowest.devices)
        yield f"communication of {whose} ({min(top, len(order))} of {len(order)} kind{'s' * (len(order) != 1)})"
        yield from columns(
            ("op", "algorithm", "executed", "on links", "exposed", ""),
            (
                (op, where, str(int(times)), duration(links), duration(exposed), _percentage(exposed, timeline.seconds))
                for (op, where), (links, exposed, times) in order[:top]
            ),
        )


def _carried_by(timeline: Timeline, instruction: Instruction) -> Instruction:
    """The collective or transfer that an instruction is, starts or completes."""
    return timeline.carried.get(instruction, instruction)


def _kind(timeline: Timeline, instruction: Instruction, time: CollectiveTime) -> tuple[str, str]:
    op = _carried_by(timeline, instruction).opcode.removesuffix("_start").replace("_", "-")
    axes = f" over {'axis' if len(time.axes) == 1 else 'axes'} {', '.join(time.axes)}" if time.axes else ""
    return op, f"{time.algorithm}{axes}"


def _path(timeline: Timeline, top: int) -> Iterator[str]:
    """The critical path, with the steps of one instruction together, in order."""
    steps = fold_path(timeline.critical_path)
    longest = {id(step) for step in sorted(steps, key=lambda each: -each.total)[: 2 * top]}
    shown = [step for step in steps if id(step) in longest]
    if shown:
        yield ""
        yield f"critical path ({len(shown)} of {len(steps)} instructions, in order)"
        yield from columns(
            ("device", "instruction", "", "times", "seconds", "", "line"), (_step(timeline, step) for step in shown)
        )


def _step(timeline: Timeline, step: PathStep) -> tuple[str, ...]:
    first = next(device_class.devices[0] for device_class in timeline.classes if device_class.label == step.label)
    kind = {"compute": "", "link": "on links", "beside": "beside"}[step.kind]
    return (
        str(first), name_in_report(step.instruction), kind, str(step.times), duration(step.total),
        _percentage(step.total, timeline.seconds), step.source,
    )  # fmt: skip


def _changes(timeline: Timeline) -> Iterator[str]:
    found = list_changes(timeline)
    if found:
        yield ""
        yield "what would help"
        yield from columns(
            ("change", "ends after", ""),
            ((each.what, duration(each.seconds), f"-{1 - each.seconds / timeline.seconds:.1%}") for each in found),
        )
