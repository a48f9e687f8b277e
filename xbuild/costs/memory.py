"""Memory of a program without running it: live ranges, what shares memory, the peak and the curve.

Sections:

    Memory: the bytes that a program takes over its run, and what is live at the peak
    Results in the memory of arguments, as a header states
    MemoryLayout: the positions of a program
    Temporaries apart from results
    memory_of: the memory of a program from the frames of its computations
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Literal, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import AnyShape, Dims

from ..core.graph import Computation, Instruction, Module, Source
from ..process.limits import no_collection
from ..process.progress import during
from ..text.header import Donor, stated_aliases, stated_donors
from .buffers import Callee, Role, bytes_of, calls_of, memory_key, parts_of, place_of, values_of
from .live_ranges import Buffer, MemoryFrame, frame_of

# ----------------------------------------------------------------------------
# Memory: the bytes that a program takes over its run, and what is live at the peak

BufferKind: TypeAlias = Literal["argument", "output", "temporary"]
"""The role of an array in the program: passed in, returned, or needed in between."""


@frozen
class LiveArray:
    """A live array: part `index` of the result of `instruction`, with its size in `bytes`."""

    instruction: Instruction
    index: Dims
    shape: AnyShape
    bytes: int
    kind: BufferKind
    computation: str

    @property
    def source(self) -> Source | None:
        """The line in the user's code that recorded the instruction, if it is known."""
        return self.instruction.source

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.instruction.name,
            "index": list(self.index),
            "shape": str(self.shape),
            "bytes": self.bytes,
            "kind": self.kind,
            "computation": self.computation,
            "source": str(self.source) if self.source is not None else None,
        }


@frozen(eq=False)
class Curve:
    """Bytes live at each position: `bytes[n]` while `instructions[n]` runs, and `positions` counts from 0.

    Callees precede the instruction that calls them, each at its first call; at a later call the instruction itself has
    the bytes of the callee's peak. A loop body appears once, since each trip takes the same memory.
    """

    positions: np.ndarray
    bytes: np.ndarray
    instructions: tuple[Instruction, ...] = field(repr=False)


@frozen(eq=False)
class Memory:
    """The bytes that one device holds during a run.

    `arguments` are live throughout the run. `outputs` and `temporaries` are live from the instruction that computes
    them to the last instruction that reads them. `outputs` is the total size of the results in bytes, and `arguments`
    that of the parameters. `aliased` is the part of the results that uses the memory of an argument. `temporaries` is
    the rest of the peak: `peak = arguments + outputs - aliased + temporaries`. `apart` is the most bytes of temporaries
    live at once that fit into no result before it is written. `constants` is the size of the literals, which are part
    of the program and do not count toward the peak. `alive` lists the arrays that make up `peak`, the largest first, at
    `peak_position` on the curve. `is_scheduled` means that the order is a compiler's schedule, not the recorded order.
    """

    peak: int
    arguments: int
    outputs: int
    temporaries: int
    apart: int
    aliased: int
    constants: int
    is_scheduled: bool
    peak_position: int
    alive: tuple[LiveArray, ...] = field(repr=False)
    curve: Curve = field(repr=False)

    @property
    def reserved(self) -> int:
        """The bytes that XLA reserves for a run: `arguments + outputs - aliased + apart`, which is at least `peak`."""
        return self.arguments + self.outputs - self.aliased + self.apart

    def to_dict(self) -> dict[str, Any]:
        """Return the memory as plain data, for JSON."""
        names = ("reserved", "peak", "arguments", "outputs", "temporaries", "apart", "aliased", "constants",
                 "is_scheduled", "peak_position")  # fmt: skip
        return {
            **{name: getattr(self, name) for name in names},
            "alive": [each.to_dict() for each in self.alive],
            "curve": {"positions": self.curve.positions.tolist(), "bytes": self.curve.bytes.tolist()},
        }


# ----------------------------------------------------------------------------
# Results in the memory of arguments, as a header states


def aliases_of(module: Module) -> dict[int, int]:
    """For parts of the result the part of the arguments, counted over all parameters, whose memory each takes.

    First those of `input_output_alias`; then each argument of `buffer_donor` with the first result that fits it.
    """
    shapes = [parameter.shape for parameter in module.entry.parameters]
    ends = [0, *accumulate(len(parts_of(shape)) for shape in shapes)]

    def argument(given: Donor) -> int | None:
        place = place_of(shapes[given.number], given.index) if given.number < len(shapes) else None
        return None if place is None else place + ends[given.number]

    found: dict[int, int] = {}
    for alias in stated_aliases(module.annotations):
        result, given = place_of(module.entry.root.shape, alias.output), argument(alias)
        if result is not None and given is not None:
            found[result] = given
    donors = map(argument, stated_donors(module.annotations))
    parts = [shape for each in shapes for _, shape in parts_of(each)]
    return {
        **found,
        **dict(_match_donors(module, found, {donor: parts[donor] for donor in donors if donor is not None})),
    }


def _match_donors(module: Module, found: dict[int, int], donors: dict[int, AnyShape]) -> Iterator[tuple[int, int]]:
    """Donors without an alias, matched with results without one that fit their memory."""
    free: dict[Hashable, deque[int]] = {}
    for output, (_, shape) in enumerate(parts_of(module.entry.root.shape)):
        if output not in found:
            free.setdefault(memory_key(shape), deque()).append(output)
    taken = set(found.values())
    for donor, shape in donors.items():
        outputs = free.get(memory_key(shape))
        if outputs and donor not in taken:
            yield outputs.popleft(), donor


# ----------------------------------------------------------------------------
# MemoryLayout: the positions of a program, with each frame laid out at its first call

Key: TypeAlias = tuple[Computation, Role]
Frames: TypeAlias = Mapping[Key, MemoryFrame]


@frozen
class Opened:
    """A frame at its call: the bytes live outside of it, and the calling position in the frame around it."""

    frame: MemoryFrame
    outside: int
    parent: Opened | None
    position: int


@define
class MemoryLayout:
    """All positions of a program in order: the bytes of each, and its frame."""

    frames: Frames
    bytes: list[int] = field(factory=list)
    places: list[tuple[Opened, int]] = field(factory=list)
    _seen: set[Key] = field(factory=set)
    _ends: dict[int, int] = field(factory=dict)

    def lay_out(self, entry: Key) -> None:
        """Lay out a frame, with the frames that it opens after the instruction that opens them."""
        stack = [self._open(Opened(self.frames[entry], 0, None, 0))]
        while stack:
            opened, positions = stack[-1]
            for position in positions:
                if inner := self._step(opened, position):
                    stack.extend(reversed(inner))
                    break
            else:
                stack.pop()
                self._ends[id(opened)] = len(self.places)

    def _open(self, opened: Opened) -> tuple[Opened, Iterator[int]]:
        return opened, iter(range(len(opened.frame.order)))

    def _step(self, opened: Opened, position: int) -> list[tuple[Opened, Iterator[int]]]:
        """Enter a position, and open the frames that are called there for the first time."""
        frame = opened.frame
        here = opened.outside + frame.levels[position]
        self.places.append((opened, position))
        if not (calls := calls_of(frame.order[position])):
            self.bytes.append(here)
            return []
        new = [key for key in dict.fromkeys(calls) if key not in self._seen]
        known = (self.frames[key].summary.peak for key in calls if key not in new)
        self.bytes.append(here + max(known, default=0))
        self._seen.update(new)
        return [self._open(Opened(self.frames[key], here, opened, position)) for key in new]

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        return tuple(opened.frame.order[position] for opened, position in self.places)

    def buffers(self) -> Iterator[tuple[Buffer, int, int]]:
        """The buffers of all frames, each with its first and last position; those of the caller are counted there."""
        at: dict[int, tuple[MemoryFrame, list[int]]] = {}
        for place, (opened, _) in enumerate(self.places):
            at.setdefault(id(opened), (opened.frame, []))[1].append(place)
        for key, (frame, places) in at.items():
            after = [*places[1:], self._ends[key]]
            for buffer in frame.buffers:
                if buffer.counts and buffer.size:
                    yield buffer, places[buffer.start], after[buffer.end] - 1

    def around(self, place: int) -> Iterator[tuple[MemoryFrame, int]]:
        """The frames that are open at a place, each with its position, and inner ones that are laid out elsewhere."""
        opened, position = self.places[place]
        inside, missing = (opened.frame, position), self.bytes[place] - opened.outside - opened.frame.levels[position]
        current: tuple[Opened, int] | None = opened, position
        while current is not None:
            yield current[0].frame, current[1]
            parent = current[0].parent
            current = (parent, current[0].position) if parent is not None else None
        while missing:
            frame = next(f for f in self._called(*inside) if f.summary.peak == missing)
            totals = [level + extra for level, extra in zip(frame.levels, frame.extra, strict=True)]
            inside = frame, totals.index(missing)
            missing = frame.extra[inside[1]]
            yield inside

    def _called(self, frame: MemoryFrame, position: int) -> Iterator[MemoryFrame]:
        return (self.frames[key] for key in calls_of(frame.order[position]))


# ----------------------------------------------------------------------------
# Temporaries apart from results


def temporaries_apart(layout: MemoryLayout) -> int:
    """The most bytes of temporaries at one position, without those that lie in a result before it is written.

    From the largest temporary to the smallest, each goes into the smallest result that is as large, if nothing else is
    there while the temporary is live.

    Source: XLA, xla/service/buffer_assignment.cc, AssignBuffersForComputations and MaybeAssignBuffer.
    """
    levels = np.array(layout.bytes, dtype=np.int64 if max(layout.bytes, default=0) < 1 << 63 else object)
    results: list[tuple[int, int]] = []
    temporaries: list[tuple[int, int, int]] = []
    for buffer, start, end in layout.buffers():
        if buffer.is_output:
            levels[start : end + 1] -= buffer.size
            results.append((buffer.size, start))
        else:
            temporaries.append((buffer.size, start, end))
    results.sort()
    sizes, starts = ([each[n] for each in results] for n in (0, 1))
    first_write, held = np.array(starts, dtype=np.int64), [_Ranges() for _ in results]
    for size, start, end in sorted(temporaries, key=lambda each: (-each[0], each[1])):
        smallest = bisect_left(sizes, size)
        for place in np.flatnonzero(first_write[smallest:] > end) + smallest:
            if held[place].add(start, end):
                levels[start : end + 1] -= size
                break
    return int(levels.max(initial=0))


@define
class _Ranges:
    """Ranges of positions that do not overlap, in order."""

    starts: list[int] = field(factory=list)
    ends: list[int] = field(factory=list)

    def add(self, start: int, end: int) -> bool:
        """Add a range if it overlaps no other; whether it was added."""
        place = bisect_left(self.ends, start)
        if place < len(self.starts) and self.starts[place] <= end:
            return False
        self.starts.insert(place, start)
        self.ends.insert(place, end)
        return True


# ----------------------------------------------------------------------------
# memory_of: the memory of a program from the frames of its computations


def memory_of(module: Module, unit: int = 1) -> Memory:
    """The memory that a program takes on each device, in the order of its instructions, without running it.

    Arrays share memory as in XLA: results written in place, the state of a loop, elementwise results over an operand
    that nothing reads afterwards. Each temporary takes a whole multiple of `unit` bytes. A computation is analysed once
    for each role, so that the time is linear in the size of the program.
    Raises cycle if instructions depend on each other in a cycle.

    Source: XLA, xla/service/buffer_assignment.cc, hlo_live_range.cc, hlo_dataflow_analysis.cc.
    """
    with no_collection(), during("laying out memory"):
        aliases = aliases_of(module)
        frames = _frames(module.entry, aliases, unit)
        layout = MemoryLayout(frames)
        layout.lay_out((module.entry, "entry"))
        return _memory(module, frames, layout, aliases)


def _frames(entry: Computation, aliases: dict[int, int], unit: int) -> dict[Key, MemoryFrame]:
    """The frames of all computations that take memory of their own, callees first."""
    order = entry.reachable()
    needed: dict[Computation, set[Role]] = {entry: {"entry"}}
    for computation in reversed(order):
        for instruction in computation.instructions if computation in needed else ():
            for called, role in calls_of(instruction):
                needed.setdefault(called, set()).add(role)
    frames: dict[Key, MemoryFrame] = {}
    summaries: dict[Key, Callee] = {}
    for computation in order:
        for role in sorted(needed.get(computation, ())):
            values = values_of(computation, summaries)
            frame = frame_of(computation.name, values, role, summaries, aliases if role == "entry" else {}, unit)
            frames[computation, role], summaries[computation, role] = frame, frame.summary
    return frames


def _memory(module: Module, frames: Frames, layout: MemoryLayout, aliases: dict[int, int]) -> Memory:
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
        apart=temporaries_apart(layout),
        aliased=aliased,
        constants=_constants(frames),
        is_scheduled=module.is_scheduled,
        peak_position=place,
        alive=tuple(alive),
        curve=Curve(np.arange(len(levels)), np.array(levels), layout.instructions),
    )


def _constants(frames: Frames) -> int:
    """Bytes of the literals of all computations, without repetitions."""
    found = {each for frame in frames.values() for each in frame.order if each.opcode == "constant"}
    return sum(bytes_of(shape) for each in found for _, shape in parts_of(each.shape))


def _alive(layout: MemoryLayout, place: int, entry: MemoryFrame) -> Iterator[LiveArray]:
    """The arrays that are live at a place, in its frame and in those around it and inside it."""
    for value in entry.values.arguments:
        if entry.values.sizes[value]:
            yield _live_array(entry, value, entry.values.sizes[value], "argument")
    for frame, position in layout.around(place):
        for buffer in frame.buffers:
            if buffer.counts and buffer.start <= position <= buffer.end:
                kind: BufferKind = "output" if buffer.is_output else "temporary"
                yield _live_array(frame, _value_held(frame, buffer, position), buffer.size, kind)


def _value_held(frame: MemoryFrame, buffer: Buffer, position: int) -> int:
    """The value that a buffer holds at a position."""
    return max((value for value in buffer.values if frame.values.born[value] <= position), default=buffer.values[0])


def _live_array(frame: MemoryFrame, value: int, size: int, kind: BufferKind) -> LiveArray:
    values = frame.values
    return LiveArray(values.makers[value], values.paths[value], values.shapes[value], size, kind, frame.name)
