"""Buffers of a strict run: which value each buffer of a device holds, and which starts still read it or write to it.

The places of values are those of the check (`xbuild.checking.races`): which results are written over which values. When
each access happens is what the run shows: the branches taken, the trips made, the dones reached.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from shape_inference.trees import Path
from xbuild.checking.model.program import program_of
from xbuild.checking.races import (
    BufferFrame,
    ProgramMemory,
    arrays_of,
    is_view,
    may_race,
    states_aliases,
    value_text,
)
from xbuild.core.graph import Computation, Instruction, Module, ModuleGroup
from xbuild.properties.effects import DONE_OF, START_OF, op_and_name
from xbuild.properties.sources import Place

from .rules import Spotted

if TYPE_CHECKING:
    from ..runtime.device import Device
    from .ledger import Ledger


@define(eq=False)
class Flight:
    """An access that lasts from a start to its done; `matters` is False if nothing reads what it writes."""

    start: Instruction
    done: str
    buffer: TrackedBuffer
    writes: bool
    matters: bool


@define(eq=False)
class TrackedBuffer:
    """Memory of a device: who wrote each version of its contents, and the accesses under way.

    `stated` is the last version written by an instruction that states that it writes over its operand.
    """

    writers: list[Instruction] = field(factory=list)
    stated: int = 0
    is_donated: bool = False
    flights: list[Flight] = field(factory=list)

    @property
    def version(self) -> int:
        return len(self.writers)


@frozen(eq=False)
class Held:
    """An array of a value: its buffer, the version of the contents that it is, and the start that is under way."""

    buffer: TrackedBuffer
    version: int
    started: tuple[Flight, ...] = ()


@define(eq=False)
class Running:
    """A computation under way on a device: its facts, the buffers of its values, and what its instructions hold."""

    frame: BufferFrame
    shared: dict[Place, TrackedBuffer] = field(factory=dict)
    held: dict[Place, Held] = field(factory=dict)
    caller: Instruction | None = None
    results: Mapping[Path, Held] = field(factory=dict)


@define(eq=False)
class BufferTracker:
    """The buffers of one device. A strict plan calls the methods at each instruction of a scheduled program."""

    entry: BufferFrame
    device: Device
    ledger: Ledger
    stack: list[Running] = field(factory=list)

    def call(self, caller: Instruction) -> None:
        """An instruction begins to run the computations that it calls."""
        running = self.stack[-1]
        running.caller = caller
        if caller.opcode == "while":
            running.results = {path: running.held[caller.operands[0], path] for path in arrays_of(caller.shape)}

    def enter(self, computation: Computation, branch: int | None) -> None:
        """A computation begins: its parameters hold what the caller passes."""
        if not self.stack:
            running = Running(self.entry)
            given = {
                (parameter, path): Held(TrackedBuffer(), 0)
                for parameter in computation.parameters
                for path in arrays_of(parameter.shape)
            }
        else:
            running, given = self._called(self.stack[-1], computation, branch)
        running.held.update(given)
        self.stack.append(running)
        for values in running.frame.buffers:
            kept = [running.held[value].buffer for value in values if value in running.held]
            running.shared.update(dict.fromkeys(values, kept[0] if kept else TrackedBuffer()))
        for _, parameter in running.frame.aliases:
            running.held[parameter].buffer.is_donated = True

    def _called(
        self, outer: Running, computation: Computation, branch: int | None
    ) -> tuple[Running, dict[Place, Held]]:
        caller = outer.caller
        assert caller is not None
        number = branch if branch is not None else [*caller.called].index(computation)
        callee = outer.frame.callees(caller)[number]
        given = {}
        for parameter in computation.parameters:
            for path in arrays_of(parameter.shape):
                is_state = caller.opcode == "while"
                held = outer.results[path] if is_state else outer.held[callee.given((parameter, path))]
                given[parameter, path] = held
        return Running(callee.frame), given

    def leave(self, computation: Computation) -> None:
        """A computation ends: its caller holds what it returns."""
        running, root = self.stack[-1], computation.root
        results = {path: running.held[root, path] for path in arrays_of(root.shape)}
        for path, held in results.items():
            self._look_for_overwritten((root, path), held)
        self.stack.pop()
        if self.stack:
            caller = self.stack[-1].caller
            assert caller is not None
            if caller.opcode != "while" or computation is caller.attributes.body:
                is_state = caller.opcode == "while"
                self.stack[-1].results = _apart(results, self.stack[-1].results) if is_state else _returned(results)

    def step(self, instruction: Instruction) -> None:
        """An instruction has read its operands and has its result; a start goes on until its done."""
        running = self.stack[-1]
        if running.caller is instruction:
            for path, held in running.results.items():
                running.held[instruction, path] = self._received(running, (instruction, path), held)
            running.caller = None
            return
        if instruction.opcode in START_OF:
            self._end(running, instruction)
        reads = self._read_operands(running, instruction)
        writes = self._write_result(running, instruction)
        if instruction.opcode in DONE_OF:
            self._begin(running, instruction, reads + writes)

    def _received(self, running: Running, place: Place, returned: Held) -> Held:
        """What a caller holds of a part of its result: an operand, what a callee returned, or a copy of that."""
        before = running.frame.behind(*place)
        if before is not None:
            return running.held[before]
        buffer = running.shared.get(place)
        if buffer is returned.buffer:
            return returned
        if not returned.started:  # a context is passed on, not read
            self._look_for_writers(place, returned)
        return self._write(running, place, buffer) if buffer is not None else Held(TrackedBuffer(), 0, returned.started)

    def _read_operands(self, running: Running, instruction: Instruction) -> list[Flight]:
        if is_view(instruction) and instruction.opcode not in DONE_OF:
            return []
        read, done = [], running.frame.done_of(instruction)
        for place in dict.fromkeys((each, path) for each in instruction.operands for path in arrays_of(each.shape)):
            held = running.held[place]
            self._look_for_writers(place, held)
            self._look_for_overwritten(place, held)
            read.append(Flight(instruction, done, held.buffer, writes=False, matters=True))
        return read

    def _look_for_writers(self, place: Place, held: Held) -> None:
        """Record a read of contents to which a start still writes."""
        for flight in held.buffer.flights:
            if flight.writes:
                value = value_text(self.stack[-1].frame.value_at(place))
                self._record(f"reads {value}, which {self._text(flight.start)} overwrites until {flight.done}")

    def _look_for_overwritten(self, place: Place, held: Held) -> None:
        """Record a read of contents that are overwritten, if the program states that the memory is shared."""
        buffer, running = held.buffer, self.stack[-1]
        is_entry = len(self.stack) == 1
        if held.version < (buffer.version if is_entry and buffer.is_donated else buffer.stated):
            value = value_text(running.frame.value_at(place))
            self._record(f"reads {value}, which {self._text(buffer.writers[held.version])} has overwritten")

    def _write_result(self, running: Running, instruction: Instruction) -> list[Flight]:
        written, done = [], running.frame.done_of(instruction)
        for path in arrays_of(instruction.shape):
            place = instruction, path
            before = running.frame.behind(instruction, path)
            if before is not None:
                running.held[place] = running.held[before]
                continue
            held = running.held[place] = self._write(running, place, running.shared.get(place) or TrackedBuffer())
            matters = bool(running.frame.uses(place))
            written.append(Flight(instruction, done, held.buffer, writes=True, matters=matters))
        return written

    def _write(self, running: Running, place: Place, buffer: TrackedBuffer) -> Held:
        """A value comes into a buffer. That is a race with a start that reads it, or writes to it."""
        instruction = place[0]
        for flight in buffer.flights:
            if not flight.writes:
                self._record(f"overwrites memory that {self._text(flight.start)} reads until {flight.done}")
            elif flight.matters or running.frame.uses(place):
                self._record(f"writes to memory to which {self._text(flight.start)} writes until {flight.done}")
        buffer.writers.append(instruction)
        if states_aliases(instruction):
            buffer.stated = buffer.version
        return Held(buffer, buffer.version)

    def _begin(self, running: Running, start: Instruction, flights: list[Flight]) -> None:
        for flight in flights:
            flight.buffer.flights.append(flight)
        for path in arrays_of(start.shape):
            running.held[start, path] = evolve(running.held[start, path], started=tuple(flights))

    def _end(self, running: Running, done: Instruction) -> None:
        for path in [*arrays_of(done.operands[0].shape)][:1]:
            for flight in running.held[done.operands[0], path].started:
                if flight in flight.buffer.flights:
                    flight.buffer.flights.remove(flight)

    def _text(self, instruction: Instruction) -> str:
        source = "" if instruction.source is None else f" ({instruction.source})"
        return f"{op_and_name(instruction)}{source}"

    def _record(self, what: str) -> None:
        self.ledger.record(self.device, Spotted("race", what), sys._getframe(1))


def _returned(results: Mapping[Path, Held]) -> dict[Path, Held]:
    """What a caller gets: what the buffers hold."""
    return {path: Held(held.buffer, held.buffer.version, held.started) for path, held in results.items()}


def _apart(after: Mapping[Path, Held], before: Mapping[Path, Held]) -> dict[Path, Held]:
    """The next state of a loop; a compiler copies each part that is in the buffer of another part."""
    found: dict[Path, Held] = {}
    taken = {id(held.buffer) for held in before.values()}
    for path, held in _returned(after).items():
        is_shared = id(held.buffer) in taken and held.buffer is not before[path].buffer
        found[path] = Held(TrackedBuffer(), 0, held.started) if is_shared else held
        taken.add(id(held.buffer))
    return found


def frames_by_device(program: Module | ModuleGroup) -> Mapping[int, BufferFrame]:
    """The facts of the entry of each device whose program is scheduled and writes values over each other."""
    found: dict[int, BufferFrame] = {}
    for device_class in program_of(program).classes:
        if may_race(device_class.module):
            memory = ProgramMemory(device_class)
            if any(frame.buffers for frame in memory.all_frames()):
                found.update(dict.fromkeys(device_class.devices, memory.entry))
    return found
