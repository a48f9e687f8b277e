"""Totals of events where all decisions are known: multiplied out, not simulated trip by trip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from attrs import define, field

from ...core.graph import Computation, Instruction
from ...properties.effects import LOOPS, UNITS, Path, Step, communicates_itself, steps
from ..dataflow.decisions import Decisions
from ..deadlock.level_run import Context
from .simulate import EventKey, Need, SimulatedEvent, Tracer, communicating_order


class UnknownError(Exception):
    """The number of times that a site is reached depends on data."""


def is_short_by_counts(context: Context, decisions: Decisions) -> bool:
    """Whether in every order a device waits for more events than another has; False where counts depend on data."""
    try:
        found = {device: _Count(context, decisions, device) for device in context.program.devices}
    except UnknownError:
        return False
    return any(found[other].done[key] < need for each in found.values() for other, key, need in each.needs())


@define(eq=False)
class _Count:
    """The totals of one device by kind of event, and one event of each kind."""

    context: Context
    decisions: Decisions
    device: int
    done: Counter[EventKey] = field(factory=Counter)
    _events: dict[EventKey, SimulatedEvent] = field(factory=dict)
    _tracer: Tracer = field(init=False)

    def __attrs_post_init__(self) -> None:
        each = self.context.program.class_of[self.device]
        self._tracer = Tracer(self.context, self.device, communicating_order(each), lambda *_: 0)
        self._run(each.module.entry, (), 1)

    def needs(self) -> Iterator[Need]:
        """How often another device has to have which event, for all events of this device to happen."""
        for (kind, *rest), event in self._events.items():
            count = kind.needed(self.done[event.does], self.context.send_buffers)
            yield from ((member, (kind.awaits, *rest), count) for member in event.members)

    def _run(self, computation: Computation, path: Path, times: int) -> None:
        for instruction in self._tracer.walk(computation):
            assert isinstance(instruction, Instruction)
            if communicates_itself(instruction):
                for event in self._tracer.at(instruction, path):
                    self.done[event.does] += times
                    if event.members:
                        self._events[event.does] = event
            else:
                for step, count in self._entered(instruction, path, times):
                    if count:
                        self._run(step.computation, (*path, step), count)

    def _entered(self, instruction: Instruction, path: Path, times: int) -> Iterator[tuple[Step, int]]:
        """The callees of an instruction, and how often each runs in all."""
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
        """How often each decision is made at a unit."""
        number = self.decisions.decided(self.device, instruction, path)
        if number is not None:
            return {number: times}
        turns = self.decisions.turns(self.device, instruction, path)
        if turns is None or len(turns) != times:
            raise UnknownError
        return Counter(turns)
