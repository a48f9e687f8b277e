"""Base of the commands of `xbuild step`: the current place in a trace, parsing of arguments, reporting of faults."""

from __future__ import annotations

import cmd
import difflib
import re
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import IO, Any

from ..properties.effects import spelling
from ..traces import Trace
from .face import Face, Piece
from .listing import Listing
from .waits import Waits
from .walk import Walk

_NONE = object()


class Asking(cmd.Cmd):
    """Parses names, numbers and devices of a command, and reports a missing one."""

    def __init__(self, trace: Trace, face: Face, stdin: IO[str] | None = None) -> None:
        super().__init__(stdin=stdin, stdout=face.out)
        self.trace, self.face, self.walk = trace, face, Walk(trace)
        self.listing, self.waits = Listing(trace), Waits(trace)
        self.failed = False

    @abstractmethod
    def arrived(self) -> None:
        """Show the current place, after a move."""

    @abstractmethod
    def differ(self, name: str, devices: tuple[int, int], values: Sequence[Any]) -> None:
        """Say how two values differ."""

    def fault(self, text: str) -> None:
        """Report a command that cannot be done; a script then ends with exit code 1."""
        self.failed = True
        self.face.prose(Piece(f"! {text}", "bad"))

    def number(self, text: str) -> int | None:
        if not text.strip().isdecimal():
            self.fault(f"{text.strip()!r} is no count" if text.strip() else "a number is wanted")
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
        return f"the run never came to {name!r}{f'; did you mean {close[0]!r}?' if close else ''}"

    @staticmethod
    def is_name(text: str) -> bool:
        """Whether a word has the form of an instruction's name, and is neither `v`, a number nor an expression."""
        return re.fullmatch(r"(?!v\b)[A-Za-z_][\w.-]*", text) is not None

    def named(self, line: str) -> tuple[str, str]:
        """The name of an instruction at the beginning of the line, or empty, and the rest of the line."""
        word, _, rest = line.strip().partition(" ")
        return (word, rest.strip()) if word in self.names else ("", line.strip())

    def is_device(self, number: int) -> bool:
        if number >= self.trace.num_devices:
            self.fault(f"device {number} is none of 0..{self.trace.num_devices - 1}")
        return number < self.trace.num_devices

    def devices(self, words: Sequence[str]) -> tuple[int, int] | None:
        """The two devices that the words name; None, after a fault, where they name none."""
        if len(words) != 2 or not all(word.isdecimal() for word in words):
            self.fault("two devices are wanted, as in `0 1`")
            return None
        a, b = map(int, words)
        return (a, b) if self.is_device(a) and self.is_device(b) else None

    def value(self, name: str, device: int) -> Any:
        """The last value of an instruction up to the current time; after a fault, `_NONE` where there is none."""
        if not self.is_known(name):
            return _NONE
        try:
            return self.walk.value_of(name, device)
        except KeyError:
            self.fault(f"device {device} has not come to {name} by now")
            return _NONE

    @staticmethod
    def missing(value: Any) -> bool:
        return value is _NONE
