"""The prompt of `xbuild step`: the commands that move through a run, then help, short names and completion."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any

from shape_inference import TokenShape, TupleShape

from ..core.report_text import StyledText
from ..properties.effects import is_under_way, spelling
from ..sharding.partition import Partitioned
from ..traces import Event, Trace
from ..traces.questions import compare_traces
from .conditions import ConditionError, condition
from .console import TextConsole, console_of
from .looking import ShowCommands, TileCommands
from .place import CommandBase, communicates

# ----------------------------------------------------------------------------
# Commands that move
#
# Forward, back, to a place, to another device, or to a value that meets a condition.

EventTest = Callable[[Event], Any]


class MoveCommands(CommandBase):
    """The commands that move forward and back on a device, and between devices."""

    def do_next(self, line: str) -> None:
        """next [N] (n, j, s, step): go forward by one instruction, or by N."""
        if line.startswith("to "):
            self.do_to(line[3:])
        else:
            self._move_by(line, 1)

    def do_back(self, line: str) -> None:
        """back [N] (b, k): go back by one instruction, or by N.

        back            one instruction back
        back 5          five instructions back
        back to add.3   to the previous execution of add.3
        back until any(isnan(v)) and back comm search backwards, as `until` and `comm` do
        """
        word, _, rest = line.partition(" ")
        searches = {"to": self._go_to, "until": self._go_until, "comm": self._go_to_communication}
        if word in searches:
            searches[word](rest.strip(), -1)
        else:
            self._move_by(line, -1)

    def _move_by(self, line: str, way: int) -> None:
        count = self.number(line or "1")
        if count is not None:
            if self.place.move_by(way * count) or not count:
                self.show_place()
            else:
                self.fault(self._end_message() if way > 0 else "the run starts here")

    def _end_message(self) -> str:
        """The message for a move past the last event of a device, with what the device waits for."""
        state = self.waits.state(self.place.device, self.trace.end)
        return f"the run ends here{f': {state.waits}' if state.waits else ''}"

    def do_to(self, line: str) -> None:
        """to PLACE (t): go to an instruction, trip, step, device or end.

        to add.3          the next execution of add.3 on this device
        to all-reduce     the next all-reduce on this device, of any name
        to trip 3         the next instruction in the third trip of its innermost loop
        to step 12        where this device is at step 12 of the run, earlier or later
        to device 1       where device 1 is at this step
        to start, to end  the first and the last instruction of this device
        """
        self._go_to(line.strip(), 1)

    def _go_to(self, line: str, way: int) -> None:
        word, _, rest = line.partition(" ")
        kinds = {"trip": self._go_to_trip, "step": self._go_to_step, "device": self._go_to_device}
        if line in ("start", "end"):
            self.place.go_to_index(0 if line == "start" else len(self.place.lane))
            self.show_place()
        elif word in kinds and rest:
            kinds[word](rest.strip(), way)
        elif not line:
            self.fault("expected a place: an instruction, trip N, step N, device N, start or end")
        elif line in self.opcodes or self.is_known(line):
            does = "does not reach" if way > 0 else "has not reached"
            self._search(lambda event: line in (event.instruction.name, spelling(event.instruction.opcode)), way,
                         f"device {self.place.device} {does} {line} {'again' if way > 0 else 'before'}")  # fmt: skip

    def _go_to_trip(self, text: str, way: int) -> None:
        number = self.number(text)
        if number is not None:
            trips_of = self.trace.trips
            is_in_trip = lambda event: (trips := trips_of(event.number)) and trips[-1][1] == number  # noqa: E731
            self._search(is_in_trip, way, f"no loop has a trip {number} {'after' if way > 0 else 'before'} this place")

    def _go_to_step(self, text: str, way: int) -> None:
        number = self.number(text)
        if number is not None:
            self.place.go_to_time(number)
            self.show_place()

    def _go_to_device(self, text: str, way: int) -> None:
        number = self.number(text)
        if number is not None and self.is_device(number):
            self.place.go_to_device(number)
            self.show_place()

    def do_trip(self, line: str) -> None:
        """trip N: go to trip N of a loop; short for `to trip N`."""
        self._go_to_trip(line, 1)

    def do_device(self, line: str) -> None:
        """device N (d): go to another device, at this step."""
        self._go_to_device(line, 1)

    def do_comm(self, line: str) -> None:
        """comm (c): go to the next instruction that communicates.

        It communicates with other devices, or with the host."""
        self._go_to_communication(line, 1)

    def _go_to_communication(self, line: str, way: int) -> None:
        where = "after" if way > 0 else "before"
        self._search(communicates, way, f"nothing on this device communicates {where} this place")

    def do_until(self, line: str) -> None:
        """until [NAME] CONDITION (u): go to the next value v that meets it.

        until v > 3                    the next value with an element above 3
        until any(isnan(v))            the next value with a NaN
        until add.3 max(abs(v)) < 0.1  the next value of add.3 for which this is true
        A condition may use abs all any isfinite isinf isnan max mean min sum, v[0, 1:3], + - * / // %, and, or, not.
        If only a summary of a large value was recorded, its range and its counts of NaN and infinity decide the
        condition, if they can. `back until ...` searches backwards.
        """
        self._go_until(line, 1)

    def _go_until(self, line: str, way: int) -> None:
        name, text = self.split_name(line)
        try:
            holds = condition(text)
        except ConditionError as error:
            word = text.partition(" ")[0]
            self.fault(self.unknown(word) if self.is_name(word) and word != "not" else str(error))
            return
        undecided: list[Event] = []

        def meets_condition(event: Event) -> bool:
            if name not in ("", event.instruction.name) or not _has_value(event):
                return False
            answer = holds(self.trace.values.get(event.number))
            if answer is None:
                undecided.append(event)
            return bool(answer)

        message = f"no value on this device {'after' if way > 0 else 'before'} this place satisfies {line.strip()}"
        if self._search(meets_condition, way, lambda: message + _undecided_text(undecided)) and undecided:
            self.console.prose(StyledText(_undecided_text(undecided).removeprefix("; "), "waits"))

    def _search(self, test: EventTest, way: int, message: str | Callable[[], str]) -> bool:
        """Go to the next event that passes a test; report a message if there is none."""
        is_found = self.place.search(test, way)
        if is_found:
            self.show_place()
        else:
            self.fault(message() if callable(message) else message)
        return is_found

    def do_part(self, line: str) -> None:
        """part A B: go to the first value that differs between them.

        A and B are two devices."""
        pair = self.devices(line.split())
        if pair is None:
            return
        difference = compare_traces(self.trace, self.trace, pair).difference
        if difference is None:
            self.console.say(f"devices {pair[0]} and {pair[1]} have the same recorded values")
            return
        self.place.go_to_event(difference.first)
        self.show_place()
        name = self.trace[difference.first].instruction.name
        self.show_difference(name, pair, [self.trace.values.get(n) for n in (difference.first, difference.second)])


def _has_value(event: Event) -> bool:
    """Whether the value of an event has numbers, recorded or not."""
    return not isinstance(event.instruction.shape, TokenShape | TupleShape) and not is_under_way(event.instruction)


def _undecided_text(events: Sequence[Event]) -> str:
    """The text about the values on the way for which the condition is undecided."""
    if not events:
        return ""
    first = f"the first is {events[0].instruction.name} at step {events[0].time}"
    count = f"{len(events):,} values" if len(events) > 1 else "1 value"
    return f"; undecided for {count} in between that {'are' if len(events) > 1 else 'is'} not fully recorded: {first}"


# ----------------------------------------------------------------------------
# The prompt

ALIASES = {
    "n": "next", "j": "next", "s": "next", "step": "next", "b": "back", "k": "back", "t": "to", "c": "comm",
    "u": "until", "d": "device", "w": "where", "l": "list", "pr": "program", "ds": "devices", "p": "print",
    "g": "whole", "q": "quit", "exit": "quit", "EOF": "quit", "h": "help", "?": "help",
}  # fmt: skip
GROUPS = {
    "Go": ("next", "back", "to", "comm", "until", "device", "trip", "part"),
    "Look": ("where", "program", "list", "devices", "print", "whole", "diff", "watch", "unwatch"),
    "Else": ("view", "help", "quit"),
}
_WELCOME = "n: next, b: back, w: where, help: all commands; Tab completes a word, and Enter repeats a move"
_MORE = "`help COMMAND` explains a command. NAME is an instruction, such as add.3. Devices are numbered from 0."
_COMPLETED = {
    "to": ("trip", "step", "device", "start", "end"), "back": ("to", "until", "comm"), "view": ShowCommands.views,
    "help": tuple(each for group in GROUPS.values() for each in group),
}  # fmt: skip


class Shell(MoveCommands, TileCommands):
    """The prompt that steps through a trace, forward and back."""

    def __init__(self, trace: Trace, stdin: IO[str] | None = None, stdout: IO[str] | None = None,
                 console: TextConsole | None = None, partitioned: Partitioned | None = None) -> None:  # fmt: skip
        self.partitioned = partitioned
        super().__init__(trace, console or console_of(stdout or sys.stdout), stdin)
        self.use_rawinput = stdin is None and sys.stdin.isatty()
        self.view = "full" if self.use_rawinput else "line"
        self._last_move = "next"
        self._set_prompt()

    def _set_prompt(self) -> None:
        self.prompt = f"(device {self.place.device}, step {self.place.time}) " if self.use_rawinput else ""

    def preloop(self) -> None:
        self.console.say(StyledText(repr(self.trace), "title"))
        if self.trace.stop:
            self.console.prose(self.trace.stop["text"])
        elif self.trace.verdict and self.trace.verdict["refused"]:
            self.console.prose(self.trace.verdict["text"])
        if self.use_rawinput:
            _complete_names_as_words()
            self.console.prose(StyledText(_WELCOME, "dim"))
        self.show_place()
        self._set_prompt()

    def onecmd(self, line: str) -> bool:
        word, _, rest = line.partition("#")[0].strip().partition(" ")
        try:
            return bool(super().onecmd(f"{ALIASES.get(word, word)} {rest}".strip()))
        except KeyboardInterrupt:  # an interrupt ends a long search and does not change the place
            self.fault("interrupted")
            return False

    def postcmd(self, stop: bool, line: str) -> bool:
        word = line.strip().partition(" ")[0]
        if ALIASES.get(word, word) in GROUPS["Go"]:
            self._last_move = line
        self._set_prompt()
        return stop

    def emptyline(self) -> bool:
        return self.onecmd(self._last_move) if self.use_rawinput else False

    def default(self, line: str) -> None:
        word = line.split()[0]
        close = difflib.get_close_matches(word, [*_COMPLETED["help"], *ALIASES], 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        self.fault(f"unknown command {word!r}; {hint}`help` lists the commands")

    def do_quit(self, line: str) -> bool:
        """quit (q, Ctrl-D): end the session."""
        return True

    def do_help(self, arg: str) -> None:
        """help [COMMAND] (h, ?): list the commands, or explain one."""
        name = ALIASES.get(arg.strip(), arg.strip())
        if name:
            method = getattr(self, f"do_{name}", None)
            if method is None:
                self.fault(f"unknown command {name!r}; `help` lists the commands")
            else:
                for text in _help_lines(method):
                    self.console.prose(text)
            return
        for group, names in GROUPS.items():
            self.console.say(StyledText(group, "title"))
            self.console.rows((self._summary(name) for name in names), "  ")
        self.console.prose(StyledText(_MORE, "dim"))

    def _summary(self, name: str) -> Sequence[str | StyledText]:
        head, _, tail = _help_lines(getattr(self, f"do_{name}"))[0].partition(": ")
        return [StyledText(head, "name"), tail.rstrip(".")]

    def complete_names(self, text: str, line: str) -> list[str]:
        """The completions of a word: words of the command and names of instructions, or devices."""
        word = line.split()[0]
        command = ALIASES.get(word, word)
        if command in ("device", "part"):
            candidates: Sequence[str] = [*map(str, range(self.trace.num_devices))]
        elif command in ("help", "view"):
            candidates = _COMPLETED[command]
        else:
            candidates = [*_COMPLETED.get(command, ()), *self.names]
        return [candidate for candidate in candidates if candidate.startswith(text)]

    def completedefault(self, *ignored: Any) -> list[str]:
        text, line, *_ = ignored
        return self.complete_names(text, line)

    def complete_help(self, *args: Any) -> list[str]:
        return self.complete_names(args[0], args[1])

    def completenames(self, text: str, *ignored: Any) -> list[str]:
        return [name for name in _COMPLETED["help"] if name.startswith(text)]


def _help_lines(method: Any) -> list[str]:
    import inspect

    return (inspect.getdoc(method) or "").splitlines()


def _complete_names_as_words() -> None:
    """Make readline treat a name such as all-reduce.5 as one word."""
    try:
        import readline
    except ImportError:  # without readline there is no completion
        return
    readline.set_completer_delims(" \t\n")
