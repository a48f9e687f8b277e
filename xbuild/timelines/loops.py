"""The loops of a time line: how often each runs, and how long it takes with all that it calls."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from ..core.graph import Computation, Instruction
from ..costs.analysis import trips_of_loop
from ..properties.effects import LOOPS
from ..properties.sites import reached
from .record import Timeline
from .recording import BESIDE, LINK


@frozen
class LoopTime:
    """A loop of the slowest class of devices: its trips, None where they are unknown, and its seconds in all."""

    loop: Instruction
    trips: int | None
    seconds: float


def loop_times(timeline: Timeline) -> list[LoopTime]:
    """The loops that stand in no other loop, the longest first."""
    label, devices = timeline.slowest.label, timeline.slowest.devices
    entry = timeline.context.program.class_of[devices[0]].module.entry
    loops = [*_outermost(entry, set())]
    inside = {part: loop for loop in loops for called in loop.called for part in reached(called)}
    of = {each: loop for part, loop in inside.items() for each in part.instructions} | {each: each for each in loops}
    sums = dict.fromkeys(loops, 0.0)
    spans = timeline.recorder
    for number, times in enumerate(spans.times().tolist()):
        loop = of.get(spans.instructions[number])
        if loop is not None and spans.labels[number] == label and spans.kinds[number] not in (LINK, BESIDE):
            sums[loop] += (spans.ends[number] - spans.starts[number]) * times
    found = (LoopTime(loop, trips_of_loop(loop), seconds) for loop, seconds in sums.items())
    return sorted(found, key=lambda each: -each.seconds)


def _outermost(computation: Computation, seen: set[Computation]) -> Iterator[Instruction]:
    """The loops of a computation and of its calls and branches, but not those inside of loops."""
    seen.add(computation)
    for instruction in computation.instructions:
        if instruction.opcode in LOOPS:
            yield instruction
        else:
            for called in instruction.called:
                if called not in seen:
                    yield from _outermost(called, seen)
