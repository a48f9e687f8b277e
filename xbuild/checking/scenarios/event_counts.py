"""What each device does in all, where all that decides is known: counted, and not gone through trip by trip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

from attrs import define, field

from ...core.graph import Computation, Instruction
from ...properties.effects import LOOPS, Path, Step, acts, steps
from ..dataflow.control import Control
from ..deadlock.run import Context
from ..model.flattening import UNITS
from .simulate import SimulatedEvent, Tracer, order_of


class UnknownError(Exception):
    """Only the run can tell how often a place is come to."""


def lacks(context: Context, control: Control) -> bool:
    """Whether, in whatever order, a device needs what another does too seldom; not where only the run can tell."""
    try:
        found = {device: _Count(context, control, device) for device in context.program.devices}
    except UnknownError:
        return False
    return any(found[other].done[key] < need for each in found.values() for other, key, need in each.needs())


@define(eq=False)
class _Count:
    """One device: how often it does what, and of each one event."""

    context: Context
    control: Control
    device: int
    done: Counter[Hashable] = field(factory=Counter)
    _events: dict[Hashable, SimulatedEvent] = field(factory=dict)
    _tracer: Tracer = field(init=False)

    def __attrs_post_init__(self) -> None:
        each = self.context.program.class_of[self.device]
        self._tracer = Tracer(self.context, self.device, order_of(each), lambda *_: 0)
        self._run(each.module.entry, (), 1)

    def needs(self) -> Iterator[tuple[int, Hashable, int]]:
        """How often another has to do what, for all of this device to be done."""
        for (key, event), count in ((item, self.done[item[0]]) for item in self._events.items()):
            word, *rest = key if isinstance(key, tuple) else (key,)
            if word == "met":
                yield from ((member, ("came", *rest), count) for member in event.members)
            elif word == "recv_done":
                yield from ((peer, ("send", *rest), count) for peer in event.members)
            elif word == "send":
                buffers = self.context.send_buffers
                yield from ((peer, ("recv", *rest), count - int(min(buffers, count))) for peer in event.members)

    def _run(self, computation: Computation, path: Path, times: int) -> None:
        for instruction in self._tracer.walk(computation):
            assert isinstance(instruction, Instruction)
            if acts(instruction):
                for event in self._tracer.at(instruction, path):
                    self.done[event.does] += times
                    if event.members:
                        self._events[event.does] = event
            else:
                for step, count in self._entered(instruction, path, times):
                    if count:
                        self._run(step.computation, (*path, step), count)

    def _entered(self, instruction: Instruction, path: Path, times: int) -> Iterator[tuple[Step, int]]:
        """What it calls, and how often in all."""
        every = [*steps(instruction)]
        decided = self._decided(instruction, path, times) if instruction.opcode in UNITS else {1: times}
        trips = sum(number * count for number, count in decided.items())
        for number, step in enumerate(every):
            if instruction.opcode == "conditional":
                yield step, decided.get(number, 0)
            elif instruction.opcode in LOOPS:
                yield step, trips if number == len(every) - 1 else trips + times
            else:
                yield step, times

    def _decided(self, instruction: Instruction, path: Path, times: int) -> dict[int, int]:
        """How often it is decided in which way."""
        number = self.control.decided(self.device, instruction, path)
        if number is not None:
            return {number: times}
        turns = self.control.turns(self.device, instruction, path)
        if turns is None or len(turns) != times:
            raise UnknownError
        return Counter(turns)
