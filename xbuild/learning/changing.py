"""Other numbers for the program of a question: a line of arguments, and the value of each instruction of its run."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import Shape

from .. import running
from ..core.graph import Module
from .answers import answer_text

_MOST_TEXT = 60
_WORDS = re.compile(r"[-+]?\b(?:nan|inf)\b", re.IGNORECASE)
_MOST_SECONDS = 5.0


class UnusableNumbers(Exception):
    """Raised with a sentence if a line does not hold the arguments of a program."""


@frozen
class Changeable:
    """The program of a question with its arguments, a row for each device, and its runs with other arguments."""

    module: Module
    rows: tuple[tuple[Any, ...], ...]

    @property
    def usage(self) -> str:
        """What to type, such as `try s32[3]`."""
        return f"try {' '.join(str(shape) for _, shape in self._places())}"

    def run_line(self, line: str) -> list[str]:
        """Run the program with the arguments in a line, and return a line for each instruction: its name and values.

        A program of several devices takes the arguments of the first device, then those of the second, and so on.
        Raises UnusableNumbers if the line does not hold these arguments, or if the run with them does not end.
        """
        words, places = _split(line), self._places()
        if len(words) != len(places):
            raise UnusableNumbers(f"expected {len(places)} arguments, got {len(words)}: {self.usage}")
        rows: list[list[Any]] = [[] for _ in range(self.module.num_devices)]
        for word, (device, shape) in zip(words, places, strict=True):
            rows[device].append(_read_array(word, shape))
        return self.run(rows)

    def run(self, rows: Sequence[Sequence[Any]]) -> list[str]:
        """Run the program, and return a line for each instruction: its name and its value on each device."""
        trace = running.trace(self.module, rows, limits=running.Limits(seconds=_MOST_SECONDS))
        if trace.stop:
            raise UnusableNumbers(f"with these numbers, the run does not end within {_MOST_SECONDS:.0f} s")
        instructions = self.module.entry.instructions
        width = max(len(instruction.name) for instruction in instructions)
        lines = []
        for instruction in instructions:
            events = [next(trace.where(instruction.name, device), None) for device in range(self.module.num_devices)]
            values = [
                _short(trace.value(event.number)) if event and event.number in trace.values else "" for event in events
            ]
            shown = values[0] if len(values) == 1 else "   ".join(f"{n}: {text}" for n, text in enumerate(values))
            lines.append(f"{instruction.name:<{width}}  {shown}".rstrip())
        return lines

    def variants(self) -> list[str]:
        """The values of each instruction for the arguments of the question, and for three changes of them."""
        return ["\n".join(self.run(self._changed(change))) for change in range(4)]

    def _changed(self, change: int) -> list[list[Any]]:
        """The arguments with their elements moved along by `change`; a scalar grows by it."""
        shapes = [parameter.shape for parameter in self.module.entry.parameters]
        return [[_moved(value, shape, change) for value, shape in zip(row, shapes, strict=True)] for row in self.rows]

    def _places(self) -> list[tuple[int, Shape]]:
        """The device and the shape of each argument, in the order of a line."""
        parameters = self.module.entry.parameters
        return [
            (device, parameter.shape)
            for device in range(self.module.num_devices)
            for parameter in parameters
            if isinstance(parameter.shape, Shape)
        ]


def _moved(value: Any, shape: Any, change: int) -> Any:
    array = np.asarray(value).astype(shape.dtype.dtype)
    if array.ndim:
        return np.roll(array.ravel(), change).reshape(array.shape)
    return array if not change else ~array if array.dtype.kind == "b" else array + array.dtype.type(change)


def _split(line: str) -> list[str]:
    """The arguments of a line; spaces inside brackets do not separate them."""
    words, depth = [""], 0
    for character in line.strip():
        depth += (character in "[(") - (character in "])")
        if character.isspace() and depth <= 0:
            words.append("")
        else:
            words[-1] += character
    return [word for word in words if word]


def _read_array(word: str, shape: Shape) -> Any:
    """An argument as an array of this shape; raises UnusableNumbers if it has different extents, or is no array."""
    shown = word[:_MOST_TEXT]
    try:
        written = np.asarray(ast.literal_eval(_WORDS.sub(r"'\g<0>'", word)))
        array = written.astype(np.float64)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise UnusableNumbers(f"{shown} is not a number or a list of numbers") from None
    if array.shape != shape.dims:
        raise UnusableNumbers(f"{shown} has the extents {[*array.shape]}; expected {[*shape.dims]} for {shape}")
    with np.errstate(invalid="ignore", over="ignore"):
        converted = array.astype(shape.dtype.dtype)
    if converted.dtype.kind in "biu" and not np.array_equal(converted.astype(np.float64), array):
        raise UnusableNumbers(f"{shown} does not fit in {shape}")
    return converted


def _short(value: Any) -> str:
    text = answer_text(value)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} ..."
