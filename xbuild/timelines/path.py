"""The critical path: from the end of a time line back to its beginning, over the spans that each span waited for."""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen

from ..core.graph import Instruction
from .recording import EXPOSED, KINDS, NOBODY, WAIT, Recorder, SpanKind


@frozen
class PathStep:
    """One step of the critical path: an instruction of a class of devices, at work or on the links.

    `seconds` is one execution, which counts `times` times where a loop is in a steady state.
    """

    instruction: Instruction
    label: int
    kind: SpanKind
    seconds: float
    times: int = 1

    @property
    def total(self) -> float:
        """The seconds of all executions."""
        return self.seconds * self.times

    @property
    def source(self) -> str:
        """The user's line, or empty."""
        return str(self.instruction.source or "")

    def to_dict(self) -> dict[str, Any]:
        """The step as plain data."""
        facts = {name: getattr(self, name) for name in ("label", "kind", "seconds", "times", "source")}
        return {"name": self.instruction.name, **facts}


def critical_path(spans: Recorder, last: int | None) -> tuple[PathStep, ...]:
    """The steps from the beginning to the end of the span `last`; a span that only waits is none of them."""
    times = spans.times()
    return tuple(
        PathStep(
            spans.instructions[number],
            spans.labels[number],
            KINDS[spans.kinds[number]],
            spans.ends[number] - spans.starts[number],
            int(times[number]),
        )
        for number in numbers_of_path(spans, last)
    )


def numbers_of_path(spans: Recorder, last: int | None) -> tuple[int, ...]:
    """The same steps as numbers of spans."""
    number, found = NOBODY if last is None else last, list[int]()
    while number != NOBODY:
        if spans.kinds[number] not in (WAIT, EXPOSED):
            found.append(number)
        number = spans.causes[number]
    return tuple(reversed(found))


def folded(path: tuple[PathStep, ...]) -> tuple[PathStep, ...]:
    """The path with all steps of one instruction of a class as one, in the order of the first."""
    found: dict[tuple[Instruction, int, str], PathStep] = {}
    for step in path:
        key = step.instruction, step.label, step.kind
        known = found.get(key)
        if known is None:
            found[key] = step
        else:
            times = known.times + step.times
            found[key] = evolve(known, seconds=(known.total + step.total) / times, times=times)
    return tuple(found.values())
