"""The program around an event: the instructions of its computation, with the values of those that are executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from attrs import frozen

from shape_inference import TokenShape

from ..core.graph import Computation, Instruction, Module
from ..properties.effects import communicates_itself, is_under_way
from ..text.writing.printer import instruction_text
from ..traces import Event, Trace
from ..traces.saying import said
from .face import Line, Piece

WIDE, BRIEF = 60, 44
"""The greatest number of characters of an instruction, and of the value beside it."""


def told(instruction: Instruction, value: Any, longest: int = 64) -> str:
    """A value as a part of a line; for a token, or an async value under way, a word that says so."""
    if isinstance(instruction.shape, TokenShape):
        return "a token"
    if is_under_way(instruction):
        return "under way"
    texts = [said(value, most) for most in (12, 6, 2, 1)]
    fitting = next((text for text in texts if len(text) <= longest), texts[-1])
    return fitting if len(fitting) <= 2 * longest else f"{fitting[: longest - 3]}..."


def _lines(count: int) -> str:
    return f"{count} line{'s' * (count != 1)}"


@frozen(eq=False, slots=False)
class Listing:
    """The lines of the program of a trace."""

    trace: Trace

    def around(self, event: Event, each_way: int) -> Iterator[Line]:
        """The instruction of an event, marked by an arrow, with `each_way` lines before and after it."""
        computation = self._home[event.instruction]
        row = computation.instructions.index(event.instruction)
        first = max(0, row - each_way)
        shown = computation.instructions[first : row + each_way + 1]
        known = self._values(event)
        yield [Piece(f"%{computation.name}{f' ({_lines(first)} above)' if first else ''}", "dim")]
        for instruction in shown:
            yield self._line(instruction, event.instruction, known)
        below = len(computation.instructions) - first - len(shown)
        if below:
            yield [Piece(f"   ({_lines(below)} below)", "dim")]

    def _line(self, instruction: Instruction, here: Instruction, known: Mapping[Instruction, Any]) -> Line:
        is_here = instruction is here
        meets = communicates_itself(instruction)
        style = "here" if is_here else "meets" if meets else "" if instruction in known else "dim"
        text = instruction_text(instruction)
        text = text if len(text) <= WIDE else f"{text[: WIDE - 3]}..."
        value = told(instruction, known[instruction], BRIEF) if instruction in known else ""
        return [Piece(f"{'->' if is_here else '  '} {text}", style), Piece(value, "good")]

    def _values(self, event: Event) -> dict[Instruction, Any]:
        """The values of the instructions around an event in the same turn, before it; None where not kept."""
        found: dict[Instruction, Any] = {event.instruction: self.trace.values.get(event.number)}
        lane = self.trace.of_device[event.device]
        place = int(lane.searchsorted(event.number))
        for number in lane[max(0, place - 4096) : place][::-1].tolist():
            spot = self.trace.spots[int(self.trace.spot[number])]
            if spot.path == event.spot.path and int(self.trace.count[number]) == event.count:
                found[spot.instruction] = self.trace.values.get(number)
        return found

    @cached_property
    def _home(self) -> Mapping[Instruction, Computation]:
        """The computation of each instruction."""
        program = self.trace.program
        modules = [program] if isinstance(program, Module) else dict.fromkeys(program.modules.values())
        every = (computation for module in modules for computation in module.computations)
        return {instruction: computation for computation in every for instruction in computation.instructions}
