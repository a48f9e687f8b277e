"""Spans of time as columns: what each class of devices did, from when to when, and what it had waited for."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from attrs import define, field, frozen

from ..core.graph import Instruction

SpanKind: TypeAlias = Literal["compute", "exposed", "wait", "link", "beside"]
KINDS: tuple[SpanKind, ...] = ("compute", "exposed", "wait", "link", "beside")
COMPUTE, EXPOSED, WAIT, LINK, BESIDE = range(5)
NOBODY = -1


@frozen
class Span:
    """A span of time of a class of devices.

    `kind` is compute; exposed for communication during which the devices do nothing else; wait for others that come
    later; link for communication under way; beside for copies and computations that run beside. A span of a loop in a
    steady state stands for `times` executions, `period` seconds apart.
    """

    label: int
    kind: SpanKind
    start: float
    end: float
    instruction: Instruction
    times: int = 1

    @property
    def seconds(self) -> float:
        """The duration of one execution."""
        return self.end - self.start


@frozen
class Repeat:
    """Spans `first` to `last` (exclusive), by number, which happen `times` times, `period` seconds apart."""

    first: int
    last: int
    times: int
    period: float


@define(eq=False)
class Recorder:
    """The columns; `causes` are numbers of the spans at whose end a span could begin."""

    labels: list[int] = field(factory=list)
    kinds: list[int] = field(factory=list)
    starts: list[float] = field(factory=list)
    ends: list[float] = field(factory=list)
    instructions: list[Instruction] = field(factory=list)
    causes: list[int] = field(factory=list)
    repeats: list[Repeat] = field(factory=list)

    def add(self, label: int, kind: int, start: float, end: float, instruction: Instruction, cause: int) -> int:
        """A new span; its number."""
        self.labels.append(label)
        self.kinds.append(kind)
        self.starts.append(start)
        self.ends.append(end)
        self.instructions.append(instruction)
        self.causes.append(cause)
        return len(self.labels) - 1

    def __len__(self) -> int:
        return len(self.labels)

    def times(self) -> np.ndarray:
        """How often each span happens."""
        found = np.ones(len(self), dtype=np.int64)
        for each in self.repeats:
            found[each.first : each.last] *= each.times
        return found

    def span(self, number: int, times: int = 1) -> Span:
        """A span as a record."""
        return Span(
            self.labels[number],
            KINDS[self.kinds[number]],
            self.starts[number],
            self.ends[number],
            self.instructions[number],
            times,
        )
