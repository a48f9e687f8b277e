"""`memory_of`: the memory of a program from the frames of its computations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.graph import Computation, Module
from ...process.gc_pause import no_collection
from .donation import aliases_of
from .layout import Frames, Key, Layout
from .parts import bytes_of, parts_of
from .ranges import Buffer, Frame, frame_of
from .record import BufferKind, Curve, LiveArray, Memory
from .values import Callee, Role, calls_of, values_of


def memory_of(module: Module, unit: int = 1) -> Memory:
    """The memory that a program takes on each device, in the order of its instructions, without running it.

    Arrays share memory as XLA has them share: results written in place, the state of a loop, elementwise results over
    an operand that nobody reads again. Each temporary takes a whole multiple of `unit` bytes. A computation is
    looked at once for each role, so that the time is linear in the size of the program.
    Raises cycle where instructions need each other.

    Source: XLA, xla/service/buffer_assignment.cc, hlo_live_range.cc, hlo_dataflow_analysis.cc.
    """
    with no_collection():
        aliases = aliases_of(module)
        frames = _frames(module.entry, aliases, unit)
        layout = Layout(frames)
        layout.lay_out((module.entry, "entry"))
        return _memory(module, frames, layout, aliases)


def _frames(entry: Computation, aliases: dict[int, int], unit: int) -> dict[Key, Frame]:
    """The frames of all computations that take memory of their own, callees first."""
    order = entry.reachable()
    needed: dict[Computation, set[Role]] = {entry: {"entry"}}
    for computation in reversed(order):
        for instruction in computation.instructions if computation in needed else ():
            for called, role in calls_of(instruction):
                needed.setdefault(called, set()).add(role)
    frames: dict[Key, Frame] = {}
    summaries: dict[Key, Callee] = {}
    for computation in order:
        for role in sorted(needed.get(computation, ())):
            values = values_of(computation, summaries)
            frame = frame_of(computation.name, values, role, summaries, aliases if role == "entry" else {}, unit)
            frames[computation, role], summaries[computation, role] = frame, frame.summary
    return frames


def _memory(module: Module, frames: Frames, layout: Layout, aliases: dict[int, int]) -> Memory:
    entry = frames[module.entry, "entry"]
    sizes = entry.values.sizes
    given = sum(sizes[value] for value in entry.values.arguments)
    results = [sizes[value] for value in entry.values.result]
    aliased = sum(results[part] for part in aliases)
    levels = [given + each for each in layout.bytes]
    peak = max(levels, default=given)
    place = levels.index(peak) if levels else 0
    alive = sorted(_alive(layout, place, entry), key=lambda each: -each.bytes)
    return Memory(
        peak=peak,
        arguments=given,
        outputs=sum(results),
        temporaries=peak - given - sum(results) + aliased,
        aliased=aliased,
        constants=_constants(frames),
        is_scheduled=module.is_scheduled,
        peak_position=place,
        alive=tuple(alive),
        curve=Curve(np.arange(len(levels)), np.array(levels), layout.instructions),
    )


def _constants(frames: Frames) -> int:
    """Bytes of the literals of all computations, each once."""
    found = {each for frame in frames.values() for each in frame.order if each.opcode == "constant"}
    return sum(bytes_of(shape) for each in found for _, shape in parts_of(each.shape))


def _alive(layout: Layout, place: int, entry: Frame) -> Iterator[LiveArray]:
    """The arrays that are alive at a place, in its frame and in those around it and inside it."""
    for value in entry.values.arguments:
        if entry.values.sizes[value]:
            yield _array(entry, value, entry.values.sizes[value], "argument")
    for frame, position in layout.around(place):
        for buffer in frame.buffers:
            if buffer.counts and buffer.start <= position <= buffer.end:
                kind: BufferKind = "output" if buffer.is_output else "temporary"
                yield _array(frame, _held(frame, buffer, position), buffer.size, kind)


def _held(frame: Frame, buffer: Buffer, position: int) -> int:
    """The value that a buffer holds at a position."""
    return max((value for value in buffer.values if frame.values.born[value] <= position), default=buffer.values[0])


def _array(frame: Frame, value: int, size: int, kind: BufferKind) -> LiveArray:
    values = frame.values
    return LiveArray(values.makers[value], values.paths[value], values.shapes[value], size, kind, frame.name)
