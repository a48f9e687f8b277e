"""The tape of a device: what it does one after the other, with durations, and with keys by which devices meet."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Literal, TypeAlias

from attrs import define, field, frozen

from shape_inference import refuse

from ..checking.model.flattening import OrderOf
from ..core.graph import Computation, Instruction
from ..costs.analysis import trips_of_loop
from ..properties.async_pairs import origin
from ..properties.effects import DONE_OF, HALVES, LOOPS, START_OF, Path, Step, communicates, communicates_itself, steps
from ..properties.loops import never_ends
from .durations import Durations

Action: TypeAlias = Literal[
    "compute", "post", "send", "sent", "accept", "receive", "arrive", "complete", "begin", "end", "loop"
]
"""What a device does: works by itself; posts a recv, sends, waits until it has sent, until its send is accepted, until
it has received; arrives at a collective, waits until it is complete; begins and ends what runs beside; runs a loop."""


@frozen(eq=False)
class Entry:
    """One action of a tape.

    `inner` is the collective, send or recv that an instruction is, starts or completes.
    `seconds` is the duration of work, or of what crosses the links; `key` names the channel, collective or loop;
    `members` are the classes of devices that meet; `links` the links that are taken; `blocks` whether a send waits for
    its recv. A loop has the tapes of its condition and body, and its trips.
    """

    action: Action
    instruction: Instruction
    seconds: float = 0.0
    key: Hashable = None
    members: tuple[int, ...] = ()
    links: tuple[Hashable, ...] = ()
    blocks: bool = True
    condition: Tape = ()
    body: Tape = ()
    trips: int = 0
    inner: Instruction | None = None


Tape: TypeAlias = tuple[Entry, ...]
Meetings: TypeAlias = Callable[[Instruction, Path], Iterator[Entry]]
Decided: TypeAlias = Callable[[Instruction, Path], int | None]

MOST_ENTRIES = 4_000_000
"""At how many entries of all tapes a program is refused, where loops that communicate are written out."""


@define(eq=False)
class TapeWriter:
    """Writes the tape of a device: computations that communicate are entered, others are one entry.

    `meetings` gives the entries of an instruction that communicates, `decided` the branch or trips of a unit where they
    are known. Where it `unrolls`, loops that communicate are written out trip by trip.
    """

    durations: Durations
    order: OrderOf
    meetings: Meetings
    decided: Decided
    unrolls: bool
    most: int = MOST_ENTRIES
    size: int = field(default=0, init=False)

    def tape(self, computation: Computation, path: Path = ()) -> Tape:
        """The tape of a computation at a path of calls. Raises limit_trips where it is too long."""
        found: list[Entry] = []
        for instruction in self.order(computation):
            found += self._entries(instruction, path)
        self._count(len(found))
        return tuple(found)

    def _count(self, more: int) -> None:
        self.size += more
        if self.size > self.most:
            refuse("limit_trips", f"timeline: loops that communicate are more than {self.most:,} steps of a device",
                   "fewer trips show the same steady state")  # fmt: skip

    def _entries(self, instruction: Instruction, path: Path) -> Iterator[Entry]:
        if communicates_itself(instruction):
            yield from self.meetings(instruction, path)
        elif any(map(communicates, instruction.called)):
            yield from self._entered(instruction, path)
        elif instruction.opcode in HALVES:
            if instruction.opcode in DONE_OF:
                yield Entry("begin", instruction, self.durations.whole(instruction), key=instruction)
            elif instruction.opcode in START_OF:
                yield Entry("end", instruction, key=origin(instruction))
        elif seconds := self.durations.whole(instruction):
            yield Entry("compute", instruction, seconds)

    def _entered(self, instruction: Instruction, path: Path) -> Iterator[Entry]:
        """The entries of a call, of the branch that is taken, or of a loop."""
        every = [*steps(instruction)]
        if instruction.opcode in LOOPS:
            yield from self._loop(instruction, every, path)
        elif instruction.opcode == "conditional":
            yield from self._inside(every[self._branch(instruction, path)], path)
        else:
            for step in every:
                yield from self._inside(step, path)

    def _inside(self, step: Step, path: Path) -> Tape:
        return self.tape(step.computation, (*path, step))

    def _branch(self, instruction: Instruction, path: Path) -> int:
        """The branch that is known, else that of the most work, as in costs."""
        decided = self.decided(instruction, path)
        if decided is not None:
            return decided
        ((called, _, _),) = self.durations.analysis.calls(instruction)
        return [*instruction.called].index(called)

    def _loop(self, loop: Instruction, every: list[Step], path: Path) -> Iterator[Entry]:
        trips, is_known = self._trips(loop, path)
        *test, body = (self._inside(step, path) for step in every)
        condition: Tape = test[0] if test else ()
        if self.unrolls:
            self._count(trips * (len(condition) + len(body)))
            yield from (*(condition + body) * trips, *(condition if is_known else ()))
        else:
            key = (*((id(step.instruction), step.role) for step in path), id(loop))
            yield Entry("loop", loop, key=key, condition=condition, body=body, trips=trips, blocks=is_known)

    def _trips(self, loop: Instruction, path: Path) -> tuple[int, bool]:
        """How often a loop runs, and whether that is known; one trip where it is not."""
        found = 1 if never_ends(loop) else trips_of_loop(loop)
        if found is None:
            found = self.decided(loop, path)
        return (1, False) if found is None else (found, True)
