"""The current place in a trace: a device and one of its events, what the device waits for, and moves from there.

Sections:

    What a device waits for
    The current place
    The program around an event
    What all commands share
"""

from __future__ import annotations

import cmd
import difflib
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import IO, Any

import numpy as np
from attrs import define, field, frozen

from shape_inference import TokenShape

from ..core.attributes import Array
from ..core.graph import Computation, Instruction, Module
from ..core.report_text import Line, StyledText
from ..properties.effects import communicates_itself, is_under_way, spelling
from ..text.printer import instruction_text
from ..traces import Event, Trace, TracedMeeting, Transfer
from ..traces.data import bringing
from ..traces.summary import said
from .console import TextConsole

# ----------------------------------------------------------------------------
# What a device waits for


@frozen
class ShownState:
    """A device at a logical time: the number of its last event, None before the first, and what it waits for."""

    device: int
    number: int | None
    waits: str = ""
    ended: bool = False


@frozen(eq=False, slots=False)
class Waits:
    """The states of the devices of a trace."""

    trace: Trace

    def state(self, device: int, time: int) -> ShownState:
        lane = self.trace.of_device[device]
        place = int(self.trace.time[lane].searchsorted(time, side="right"))
        number = int(lane[place - 1]) if place else None
        if place < len(lane):
            following = int(lane[place])
            is_waiting = int(self.trace.since[following]) <= time
            return ShownState(device, number, self._wait_text(following, time) if is_waiting else "")
        stop = self._stopped.get(device)
        if stop is None or stop["ended"]:
            return ShownState(device, number, ended=True)
        waits_for = f", waits for {stop['waits_for']}" if stop["waits_for"] else ""
        waits = f"stuck at {stop['stands_at']}{waits_for}" if stop["stands_at"] else "not started"
        return ShownState(device, number, waits)

    def _wait_text(self, number: int, time: int) -> str:
        """What a device waits for before the event that it runs next."""
        name, until = self.trace[number].instruction.name, int(self.trace.time[number])
        return f"waits at {name}{self._missing_devices(number, time)}, until step {until}"

    def _missing_devices(self, number: int, time: int) -> str:
        meeting, transfer = self._meetings.get(number), self._transfers.get(number)
        if transfer is not None:
            does = "send" if number == transfer.done else "post its recv"
            return f" for device {transfer.source if number == transfer.done else transfer.target} to {does}"
        if meeting is None:
            return ""
        starts = {int(self.trace.device[event]): bringing(self.trace, event) for event in meeting.events}
        missing = [str(device) for device, event in sorted(starts.items()) if int(self.trace.since[event]) > time]
        return f" for device{'s' * (len(missing) > 1)} {', '.join(missing)}" if missing else ""

    @cached_property
    def _meetings(self) -> Mapping[int, TracedMeeting]:
        return {event: meeting for meeting in self.trace.meetings for event in meeting.events}

    @cached_property
    def _transfers(self) -> Mapping[int, Transfer]:
        return {event: each for each in self.trace.transfers for event in (each.send, each.done)}

    @cached_property
    def _stopped(self) -> Mapping[int, Any]:
        return {stop["device"]: stop for stop in (self.trace.stop or {}).get("devices", ())}


# ----------------------------------------------------------------------------
# The current place


@define(eq=False)
class TracePlace:
    """A place in a trace: an event of a device, at the event's time or while the device waits after it.

    `lane` holds the numbers of the device's events, and `index` is the place in it.
    """

    trace: Trace
    device: int = 0
    index: int = 0
    time: int = 1
    lane: Array = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.lane = self.trace.of_device[self.device]

    @property
    def event(self) -> Event | None:
        """The event at this place; None where the device has no events."""
        return self.trace[int(self.lane[self.index])] if len(self.lane) else None

    def go_to_index(self, index: int) -> None:
        """Go to an event of this device by its index in the lane, or to the nearest one."""
        self.index = max(0, min(len(self.lane) - 1, index))
        self.time = self.event.time if self.event else self.time

    def move_by(self, count: int) -> bool:
        """Move `count` events forward or back, or as far as possible; returns whether the place changed."""
        before = self.index
        self.go_to_index(self.index + count)
        return self.index != before

    def search(self, test: Callable[[Event], Any], way: int = 1) -> bool:
        """Go to the next event on this device that passes a test; returns False if there is none."""
        for index in range(self.index + way, len(self.lane) if way > 0 else -1, way):
            if test(self.trace[int(self.lane[index])]):
                self.go_to_index(index)
                return True
        return False

    def go_to_device(self, device: int) -> None:
        """Go to a device, to its last event at the same time or before."""
        self.device, self.lane = device, self.trace.of_device[device]
        self.go_to_time(self.time)

    def go_to_time(self, time: int) -> None:
        """Go to a time, and to the last event of this device by then."""
        self.time = max(1, min(self.trace.end, time))
        self.index = max(0, int((self.trace.time[self.lane] <= self.time).sum()) - 1)

    def go_to_event(self, number: int) -> None:
        """Go to an event of any device."""
        self.device = int(self.trace.device[number])
        self.lane = self.trace.of_device[self.device]
        self.go_to_index(int(self.lane.searchsorted(number)))

    def value_of(self, name: str, device: int) -> Any:
        """The last value of an instruction on a device up to the current time; raises KeyError if there is none."""
        lane = self.trace.of_device[device]
        spots = [number for number, spot in enumerate(self.trace.spots) if spot.instruction.name == name]
        events = lane[np.isin(self.trace.spot[lane], spots) & (self.trace.time[lane] <= self.time)]
        if not len(events):
            raise KeyError(name)
        return self.trace.values.get(int(events[-1]))


def communicates(event: Event) -> bool:
    """Whether the instruction of an event communicates with other devices or the host."""
    return communicates_itself(event.instruction)


# ----------------------------------------------------------------------------
# The program around an event
#
# The instructions of its computation, with the values of those that have run.

WIDE, BRIEF = 60, 44
"""The maximum number of characters of an instruction, and of the value beside it."""


def value_text(instruction: Instruction, value: Any, longest: int = 64) -> str:
    """A value as a part of a line; a word for a token, or for an async value that is not complete."""
    if isinstance(instruction.shape, TokenShape):
        return "a token"
    if is_under_way(instruction):
        return "in progress"
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
        yield [StyledText(f"%{computation.name}{f' ({_lines(first)} above)' if first else ''}", "dim")]
        for instruction in shown:
            yield self._line(instruction, event.instruction, known)
        below = len(computation.instructions) - first - len(shown)
        if below:
            yield [StyledText(f"   ({_lines(below)} below)", "dim")]

    def _line(self, instruction: Instruction, here: Instruction, known: Mapping[Instruction, Any]) -> Line:
        is_here = instruction is here
        meets = communicates_itself(instruction)
        style = "here" if is_here else "meets" if meets else "" if instruction in known else "dim"
        text = instruction_text(instruction)
        text = text if len(text) <= WIDE else f"{text[: WIDE - 3]}..."
        value = value_text(instruction, known[instruction], BRIEF) if instruction in known else ""
        return [StyledText(f"{'->' if is_here else '  '} {text}", style), StyledText(value, "good")]

    def _values(self, event: Event) -> dict[Instruction, Any]:
        """The values of the instructions before an event in the same execution; None if a value was not recorded."""
        values: dict[Instruction, Any] = {event.instruction: self.trace.values.get(event.number)}
        lane = self.trace.of_device[event.device]
        place = int(lane.searchsorted(event.number))
        for number in lane[max(0, place - 4096) : place][::-1].tolist():
            spot = self.trace.spots[int(self.trace.spot[number])]
            if spot.path == event.spot.path and int(self.trace.count[number]) == event.count:
                values[spot.instruction] = self.trace.values.get(number)
        return values

    @cached_property
    def _home(self) -> Mapping[Instruction, Computation]:
        """The computation of each instruction."""
        program = self.trace.program
        modules = [program] if isinstance(program, Module) else dict.fromkeys(program.modules.values())
        every = (computation for module in modules for computation in module.computations)
        return {instruction: computation for computation in every for instruction in computation.instructions}


# ----------------------------------------------------------------------------
# What all commands share: the current place, parsing of arguments, reporting of faults

_NONE = object()


class CommandBase(cmd.Cmd):
    """Parses the names, numbers and devices of a command, and reports those that are missing or wrong."""

    def __init__(self, trace: Trace, console: TextConsole, stdin: IO[str] | None = None) -> None:
        super().__init__(stdin=stdin, stdout=console.out)
        self.trace, self.console, self.place = trace, console, TracePlace(trace)
        self.listing, self.waits = Listing(trace), Waits(trace)
        self.failed = False

    @abstractmethod
    def show_place(self) -> None:
        """Show the current place, after a move."""

    @abstractmethod
    def show_difference(self, name: str, devices: tuple[int, int], values: Sequence[Any]) -> None:
        """Show how two values differ."""

    def fault(self, text: str) -> None:
        """Report that a command fails; a script then ends with exit code 1."""
        self.failed = True
        self.console.prose(StyledText(f"! {text}", "bad"))

    def number(self, text: str) -> int | None:
        if not text.strip().isdecimal():
            self.fault(f"expected a number{f', got {text.strip()!r}' if text.strip() else ''}")
            return None
        return int(text)

    @cached_property
    def names(self) -> list[str]:
        """The names of the instructions that the run has executed."""
        return list(dict.fromkeys(spot.instruction.name for spot in self.trace.spots))

    @cached_property
    def opcodes(self) -> set[str]:
        return {spelling(spot.instruction.opcode) for spot in self.trace.spots}

    def is_known(self, name: str) -> bool:
        if name not in self.names:
            self.fault(self.unknown(name))
        return name in self.names

    def unknown(self, name: str) -> str:
        close = difflib.get_close_matches(name, self.names, 1)
        return f"the run never reached {name!r}{f'; did you mean {close[0]!r}?' if close else ''}"

    @staticmethod
    def is_name(text: str) -> bool:
        """Whether a word has the form of an instruction's name, and is not `v`, a number or an expression."""
        return re.fullmatch(r"(?!v\b)[A-Za-z_][\w.-]*", text) is not None

    def split_name(self, line: str) -> tuple[str, str]:
        """The name of an instruction at the start of the line, or an empty text, and the rest of the line."""
        word, _, rest = line.strip().partition(" ")
        return (word, rest.strip()) if word in self.names else ("", line.strip())

    def is_device(self, number: int) -> bool:
        if number >= self.trace.num_devices:
            self.fault(f"device {number} does not exist; the devices are 0..{self.trace.num_devices - 1}")
        return number < self.trace.num_devices

    def devices(self, words: Sequence[str]) -> tuple[int, int] | None:
        """The two devices that the words name; None, after a fault, if they do not."""
        if len(words) != 2 or not all(word.isdecimal() for word in words):
            self.fault("expected two devices, such as `0 1`")
            return None
        a, b = map(int, words)
        return (a, b) if self.is_device(a) and self.is_device(b) else None

    def value(self, name: str, device: int) -> Any:
        """The last value of an instruction up to the current time; `_NONE`, after a fault, if there is none."""
        if not self.is_known(name):
            return _NONE
        try:
            return self.place.value_of(name, device)
        except KeyError:
            self.fault(f"device {device} has not reached {name} by this step")
            return _NONE

    @staticmethod
    def missing(value: Any) -> bool:
        return value is _NONE
