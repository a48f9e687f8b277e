"""Faults of HLO text, each with its line and column, and the error that reports all of them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from shape_inference import XbuildError

MOST_FAULTS = 20
COUNTED_FAULTS = 1000
_LINE = 110
_ROWS = 40
_MESSAGE = 400


class Fault(Exception):
    """A fault at a place of HLO text; the reader catches and reports faults."""

    def __init__(
        self, kind: str, message: str, place: int, hints: Sequence[str] = (), rows: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.kind, self.message, self.place, self.hints, self.rows = kind, message, place, tuple(hints), tuple(rows)


class Poisoned(Exception):
    """The text uses an instruction or computation whose own fault is already reported."""


@frozen
class TextFault:
    """One fault of a text: its kind, its message, and its line and column, counted from 1."""

    kind: str
    message: str
    line: int
    column: int
    hints: tuple[str, ...] = ()


class HloParseError(XbuildError):
    """The error for HLO text with wrong syntax or shapes; `faults` has the first twenty faults in order."""

    def __init__(self, faults: Sequence[TextFault], report: str) -> None:
        super().__init__(faults[0].kind, faults[0].message, faults[0].hints)
        self.faults = tuple(faults)
        self.args = (report,)
        self.explained = True


def parse_error(text: str, file: str | None, faults: Sequence[Fault], count: int) -> HloParseError:
    """The error that reports faults, of `count` in all, each with its line of the text and a caret at its column."""
    located: list[TextFault] = []
    parts: list[str] = []
    for fault in sorted(faults, key=lambda each: each.place):
        line = text.count("\n", 0, fault.place) + 1
        begin = text.rfind("\n", 0, fault.place) + 1
        located.append(TextFault(fault.kind, fault.message, line, fault.place - begin + 1, fault.hints))
        head = f"{file or '<hlo>'}:{line}:{fault.place - begin + 1}: {_clipped(fault.message)} [{fault.kind}]"
        rows = [_clipped(row) for row in fault.rows[:_ROWS]] + ["  ..."] * (len(fault.rows) > _ROWS)
        hints = [f"  hint: {_clipped(hint)}" for hint in fault.hints]
        parts.append("\n".join((head, *_shown(text, begin, fault.place), *rows, *hints)))
    if count > len(faults):
        stopped = f"; reading stopped after {count} faults" if count >= COUNTED_FAULTS else ""
        parts.append(f"and {count - len(faults)} more{stopped}")
    return HloParseError(located, "\n\n".join(parts))


def _clipped(message: str) -> str:
    return message if len(message) <= _MESSAGE else f"{message[: _MESSAGE - 3]}..."


def _shown(text: str, begin: int, place: int) -> tuple[str, str]:
    """The line of a fault, or the part of a long line around the fault, and a line with a caret."""
    start = max(begin, place - _LINE * 2 // 3)
    end = text.find("\n", place, start + _LINE)
    line = text[start : end if end >= 0 else start + _LINE]
    before = "..." * (start > begin)
    after = "..." * (end < 0 and start + _LINE < len(text))
    printable = "".join(each if each.isprintable() else " " for each in line)
    return f"    {before}{printable}{after}", f"    {' ' * (len(before) + place - start)}^"
