"""A time line as trace events of Chrome, which Perfetto opens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...checking.model.program import devices_text
from ...files.results import replacing
from ..expansion import expanded
from ..record import Timeline
from ..recording import KINDS, Recorder

MOST_EVENTS = 200_000
"""Above so many spans a loop in a steady state is drawn by one trip, and a span for the others."""

_THREADS = {"compute": 0, "exposed": 0, "wait": 0, "link": 1, "beside": 2}
_NAMES = ("work", "links", "beside")
_COLOURS = {"exposed": "terrible", "wait": "grey"}


def trace_events(timeline: Timeline) -> dict[str, Any]:
    """The time line as an object of JSON: complete events in microseconds, a process for each class of devices.

    A process has a thread of work, one of links, and one of what runs beside.

    Source: Trace Event Format (N. Duca, D. Sinclair): JSON object format, complete events (X), metadata events (M).
    """
    events = [*_heads(timeline), *_events(timeline.recorder)]
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"program": timeline.name, "machine": timeline.machine.name, "what": "a model, not a measurement"},
    }


def write_trace(timeline: Timeline, path: str | Path) -> None:
    """Write the trace events to a file."""
    with replacing(Path(path)) as file:
        file.write(f"{json.dumps(trace_events(timeline))}\n".encode())


def _heads(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """The names of processes and threads."""
    for each in timeline.classes:
        name = {"name": devices_text(each.devices)}
        yield {"ph": "M", "name": "process_name", "pid": each.label, "tid": 0, "args": name}
        for number, thread in enumerate(_NAMES):
            yield {"ph": "M", "name": "thread_name", "pid": each.label, "tid": number, "args": {"name": thread}}


def _events(spans: Recorder) -> Iterator[dict[str, Any]]:
    whole = bool(spans.times().sum() <= MOST_EVENTS)
    for number, shift, more in expanded(spans, whole=whole):
        yield _event(spans, number, shift, more)


def _event(spans: Recorder, number: int, shift: float, more: int) -> dict[str, Any]:
    kind, instruction = KINDS[spans.kinds[number]], spans.instructions[number]
    found = {
        "ph": "X",
        "name": instruction.name,
        "cat": kind,
        "ts": (spans.starts[number] + shift) * 1e6,
        "dur": (spans.ends[number] - spans.starts[number]) * 1e6,
        "pid": spans.labels[number],
        "tid": _THREADS[kind],
        "args": {"op": instruction.opcode.replace("_", "-"), "line": str(instruction.source or "")},
    }
    if kind in _COLOURS:
        found["cname"] = _COLOURS[kind]
    if more:
        found["args"]["trips not drawn"] = more  # type: ignore[index]
    return found
