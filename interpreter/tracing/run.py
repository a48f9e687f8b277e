"""Traced runs: a program runs as under `execute`, and returns a trace even if the run stops.

Sections:

    The signature of another function
    Findings of a strict run, attached to events
    Keep: which values are kept in full, as a summary, or not at all
    The observer
    Traced runs
"""

from __future__ import annotations

import inspect
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path as FilePath
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import numpy as np
from attrs import define, evolve, field

from shape_inference.types import PRIMITIVES
from xbuild.checking import Verdict
from xbuild.checking.model.program import as_program, grid_of
from xbuild.core.attributes import Array
from xbuild.core.graph import Module, ModuleGroup
from xbuild.core.memos import memos
from xbuild.runtimes.record import Runtime, runtime_of
from xbuild.traces import Spot, Trace, TraceError, TraceWriter
from xbuild.traces.reading import values_of
from xbuild.traces.summary import summary

from ..compiler.lines import Path, PlanPlace, Stretch
from ..rules.denormals import as_user
from ..rules.limits import Limits
from ..runtime.observers import MarkObserver, PathObserver
from ..runtime.report import Stopped
from ..runtime.run import Refused, checked, execute, modules_of
from ..strict import StrictFailure, StrictFinding, StrictReport
from .clock import Clock
from .origins import across_in, origins_in

# ----------------------------------------------------------------------------
# The signature of another function

P = ParamSpec("P")
T = TypeVar("T")


def with_signature_of(other: Callable[P, Any]) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """A decorator that gives a function the parameters of another function, for type checkers and `help`."""

    def add_signature(function: Callable[..., T]) -> Callable[P, T]:
        own_return = inspect.signature(function).return_annotation
        signature = inspect.signature(other).replace(return_annotation=own_return)
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return add_signature


# ----------------------------------------------------------------------------
# Findings of a strict run, attached to events


def findings_of(trace: Trace, report: StrictReport) -> list[dict[str, Any]]:
    """The findings as plain data, each with its `event`, which is None if the trace has none."""
    sites: dict[tuple[int, tuple[str, ...], str], list[int]] = {}
    for number, (device, spot) in enumerate(zip(trace.device.tolist(), trace.spot.tolist(), strict=True)):
        where = trace.spots[spot]
        sites.setdefault((device, where.path, where.instruction.name), []).append(number)
    texts = ["\n".join(finding.lines(chained=False)) for finding in report.findings]
    return [
        {**finding.to_dict(), "event": _event(trace, sites, finding), "text": text}
        for finding, text in zip(report.findings, texts, strict=True)
    ]


def _event(
    trace: Trace, sites: dict[tuple[int, tuple[str, ...], str], list[int]], finding: StrictFinding
) -> int | None:
    """The event of a finding; in a region without events, the event of the op that applies the region."""

    path, trips = finding.standing.path, finding.standing.trips
    for end in range(len(path), 0, -1):
        events = sites.get((finding.device, path_labels(path[: end - 1]), path[end - 1].instruction.name), [])
        known = [trip for trip in trips[:end] if trip is not None]
        for event in events:
            if not known or [trip for _, trip in trace.trips(event)][: len(known)] == known:
                return event
        if events:
            return events[0]
    return None


# ----------------------------------------------------------------------------
# Keep: which values are kept in full, as a summary, or not at all

KNOWN = {primitive.dtype for primitive in PRIMITIVES.values()}
_ARRAYS = np.ndarray, np.generic

SUMMARY = 1 << 10
"""The approximate size of a summary in bytes."""

_SCANT = 256
"""The least bytes of an array that is compared with others; keeping a smaller array twice costs less."""


@define
class Keep:
    """Arrays of up to `elements` elements are kept in full, larger ones as a summary, until `bytes` are reached.

    After that, until as many bytes again, arrays larger than a summary are summarized; then nothing is kept.
    Of the executions of an instruction on a device, each `every`-th is kept.
    Equal arrays of several devices or events are kept once.
    """

    elements: int = 4096
    bytes: int = 64 << 20
    every: int = 1
    held: int = 0
    added: int = 0
    short: int = 0
    late: int = 0
    dropped: int = 0
    passed: int = 0
    _known: dict[int, tuple[Any, Any]] = field(factory=dict)
    _equal: dict[Any, Any] = field(factory=dict)
    _summarized: dict[int, tuple[Any, Any]] = field(factory=dict)
    _turns: dict[tuple[int, int], int] = field(factory=dict)

    def __call__(self, value: Any, device: int, path: Path) -> Any:
        """The value or its summary, as it is kept; None for a value that is not kept."""
        if self.every > 1 and self._is_between(device, path):
            self.passed += 1
            return None
        return self._kept_form(value)

    def _is_between(self, device: int, path: Path) -> bool:
        turn = self._turns[device, id(path)] = self._turns.get((device, id(path)), -1) + 1
        return turn % self.every != 0

    def _kept_form(self, value: Any) -> Any:
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        if isinstance(value, tuple):
            return tuple(map(self._kept_form, value))
        if not isinstance(value, _ARRAYS) or value.dtype not in KNOWN:
            return None
        summarized = self._summarized.get(id(value))
        if summarized is not None and summarized[0]() is value:
            return summarized[1]
        kept = self._keep(value) if value.nbytes < _SCANT or value.size > self.elements else self._keep_once(value)
        if kept is value:
            self._known[id(value)] = value, kept
        elif kept is not None and isinstance(value, np.ndarray):
            self._summarized[id(value)] = weakref.ref(value, partial(self._summarized.pop, id(value))), kept
        return kept

    def forget(self) -> None:
        """Drop all references to arrays, which have been written to disk."""
        self._known.clear()
        self._equal.clear()

    def _keep_once(self, value: Any) -> Any:
        """The kept form of an equal array, or else of this array."""
        letters = value.tobytes()
        key = value.dtype, value.shape, hash(letters)
        kept = self._equal.get(key)
        if kept is None or (isinstance(kept, np.ndarray) and kept.tobytes() != letters):
            kept = self._equal[key] = self._keep(value)
        return kept

    def _keep(self, value: Any) -> Any:
        is_large = value.size > self.elements
        cost = SUMMARY if is_large else value.nbytes
        if self.held + cost <= self.bytes:
            self.held += cost
            self.short += is_large
            return _summary(value) if is_large else value
        cost = min(value.nbytes, SUMMARY)
        if self.added + cost <= self.bytes:
            self.added += cost
            self.late += 1
            return _summary(value) if value.nbytes > SUMMARY else value
        self.dropped += 1
        return None

    def left_out(self) -> str:
        """The text about values that were not kept in full."""
        parts = []
        if self.short:
            parts.append(f"the trace summarizes {self.short:,} values of more than {self.elements:,} elements")
        if self.passed:
            parts.append(
                f"the trace keeps one execution in {self.every} of each instruction and omits {self.passed:,} values"
            )
        if self.late:
            parts.append(
                f"the trace already had {self.bytes:,} bytes when {self.late:,} values came; it summarizes those of "
                f"more than {SUMMARY:,} bytes"
            )
        if self.dropped:
            parts.append(f"the trace omits {self.dropped:,} values, since it already had {2 * self.bytes:,} bytes")
        return "; ".join(parts)


def _summary(value: Any) -> Any:
    """The summary of a value, computed without flushing denormal numbers."""
    with as_user():
        return summary(value)


# ----------------------------------------------------------------------------
# The observer
#
# Records a row for each instruction that a device has executed.

CHUNK = 1 << 16
"""The number of events after which a tracer calls `hand_on`."""


@define(eq=False)
class Tracer(ABC):
    """The events of a run in order: their devices, call paths, and kept values.

    `hand_on` is called with the tracer after each chunk of events; it writes the new events and drops the values.
    """

    hand_on: Callable[[Tracer], None] | None = None
    values: dict[int, Any] = field(factory=dict)
    _spots: dict[int, int] = field(factory=dict)
    _distinct: list[Path] = field(factory=list)

    @abstractmethod
    def columns(self) -> tuple[list[Path], Array, Array]:
        """The distinct call paths in order of first use, and for each event its device and the index of its path."""

    def forget(self) -> None:
        """Drop the values, which have been written to disk."""
        self.values = {}

    def left_out(self) -> str:
        """The text about values that were not kept."""
        return "the trace holds no values"

    def _spool(self, hand_on: Callable[[Tracer], None]) -> None:
        """Call `hand_on` in the user's mode of denormal numbers, since it is not part of the run."""
        with as_user():
            hand_on(self)

    def _numbers(self, paths: Stretch) -> list[int]:
        """The indices of these call paths among the distinct ones; paths are compared by identity."""
        for path in paths:
            if id(path) not in self._spots:
                self._spots[id(path)] = len(self._distinct)
                self._distinct.append(path)
        return [self._spots[id(path)] for path in paths]


@define(eq=False)
class Marker(Tracer, MarkObserver):
    """A tracer that keeps no values: it records each stretch of instructions that a device has executed."""

    marks: list[tuple[int, Stretch]] = field(factory=list)
    _known: dict[int, tuple[Stretch, Array]] = field(factory=dict)
    _columns: tuple[Array, Array] = field(factory=lambda: (np.zeros(0, np.int32), np.zeros(0, np.int32)))
    _fresh: int = 0

    @property
    def mark(self) -> Callable[[tuple[int, Stretch]], None]:
        return self.marks.append if self.hand_on is None else self._mark

    def _mark(self, at: tuple[int, Stretch]) -> None:
        self.marks.append(at)
        self._fresh += len(at[1])
        if self._fresh >= CHUNK and self.hand_on is not None:
            self._fresh = 0
            self._spool(self.hand_on)

    def columns(self) -> tuple[list[Path], Array, Array]:
        known = self._known
        for _, stretch in self.marks:
            if id(stretch) not in known:
                known[id(stretch)] = stretch, np.array(self._numbers(stretch), np.int32)
        spots = [known[id(stretch)][1] for _, stretch in self.marks]
        devices = np.array([device for device, _ in self.marks], np.int32)
        device = np.repeat(devices, [len(column) for column in spots])
        self.marks.clear()
        self._columns = np.concatenate([self._columns[0], device]), np.concatenate([self._columns[1], *spots])
        return self._distinct, *self._columns


@define(eq=False)
class Watcher(Tracer, PathObserver):
    """A tracer that keeps the values that `keep` accepts."""

    keep: Keep = field(factory=Keep)
    devices: list[int] = field(factory=list)
    paths: list[Path] = field(factory=list)
    _column: Array = field(factory=lambda: np.zeros(0, np.int32))

    def __call__(self, device: int, path: Path, value: Any) -> None:
        kept = self.keep(value, device, path)
        if kept is not None:
            self.values[len(self.devices)] = kept
        self.devices.append(device)
        self.paths.append(path)
        if self.hand_on is not None and not len(self.devices) % CHUNK:
            self._spool(self.hand_on)

    def columns(self) -> tuple[list[Path], Array, Array]:
        done = len(self._column)
        fresh = self._numbers(tuple(self.paths[done:]))
        self._column = np.concatenate([self._column, np.array(fresh, np.int32)])
        return self._distinct, np.array(self.devices, np.int32), self._column

    def forget(self) -> None:
        super().forget()
        self.keep.forget()

    def left_out(self) -> str:
        return self.keep.left_out()


# ----------------------------------------------------------------------------
# Traced runs
#
# A program runs as under `execute`, and returns a trace even if the run stops.


def run_traced(
    program: Module | ModuleGroup,
    inputs: Iterable[Iterable[Any]] | Mapping[int, Iterable[Any]],
    *,
    elements: int = 4096,
    bytes: int = 64 << 20,
    every: int = 1,
    values: bool = True,
    origins: bool = False,
    folder: str | os.PathLike[str] | None = None,
    check: bool = True,
    send_buffers: float = 0,
    runtime: Runtime | str | None = None,
    **options: Any,
) -> tuple[Trace, Stopped | StrictFailure | None]:
    """The trace of a run, with the exception that `execute` would have raised, or None."""
    program = as_program(program)
    limits: Limits | None = options.get("limits")
    record = None if runtime is None else runtime_of(runtime)
    verdict = _verdict(program, send_buffers, check, limits.seconds if limits is not None else None, record)
    verdict_data = {**verdict.to_dict(), "text": str(verdict)}
    spool = None if folder is None else Spool(TraceWriter(FilePath(folder)), program)
    tracer = Watcher(spool, keep=Keep(elements, bytes, every)) if values else Marker(spool)
    if spool is not None:
        spool.tracer = tracer
    with spool or nullcontext():
        if spool is not None:
            spool.writer.begin(program, verdict_data)
        recorded, end = _record(
            program, inputs, tracer, verdict_data, check=check, send_buffers=send_buffers, runtime=record, **options
        )
        if spool is not None:
            recorded = spool.end(tracer, recorded)
    return (evolve(recorded, origins=origins_in(recorded), across=across_in(recorded)) if origins else recorded), end


def _record(
    program: Module | ModuleGroup, inputs: Any, tracer: Marker | Watcher, verdict: Mapping[str, Any], **options: Any
) -> tuple[Trace, Stopped | StrictFailure | None]:
    """Run a program with a tracer as its observer; returns the trace and the exception that ended the run."""
    results, end = None, None
    try:
        results = execute(program, inputs, observer=tracer, **options)
    except (Stopped, StrictFailure) as error:
        end = error
    results = end.results if isinstance(end, StrictFailure) else results
    stop = {**end.report.to_dict(), "text": str(end.report)} if isinstance(end, Stopped) else None
    recorded = _trace_of(program, tracer, verdict=verdict, stop=stop, results=results)
    if isinstance(end, StrictFailure):
        recorded = evolve(recorded, findings=findings_of(recorded, end.report))
    return recorded, end


@with_signature_of(run_traced)
def trace(*arguments: Any, **options: Any) -> Trace:
    """Run a program on all its devices as `execute` does, and return the recorded run as a `Trace`.

    A trace has an event for each instruction that a device has executed. The event records the device, the instruction
    and its call path, the logical time (a number without a unit, counted from 1) and the value.

    `inputs` and further `options` are as in `execute`. Arrays of up to `elements` elements are kept in full, and larger
    arrays as a summary. After `bytes` bytes, values are kept as summaries; after twice that number, values are not
    kept. With `every=n`, the trace keeps the value of every n-th execution of an instruction on a device. With
    `values=False`, it keeps no values. With `origins=True`, it adds, for results with few elements, the operand
    elements from which each result element was computed. The trace is written to `folder` during the run, so that an
    interrupted run leaves a readable trace; values are then read from this folder.

    If a run stops, the trace contains the events up to that point, and the report is in `stop`. A strict run has its
    findings in `findings`. With `check=False`, a program that the check would refuse runs until no device can continue.

    Raises Refused if the check refuses the program, ArgumentError if an input does not fit its parameter or infeed, and
    TraceError if the folder contains files that are not a trace.

    >>> import xbuild as xb
    >>> square = xb.Module("square", xb.computation(xb.f32[()])(lambda x: x * x))
    >>> [(event.instruction.name, event.time) for event in trace(square, [[3.0]])]
    [('parameter.1', 1), ('multiply.2', 2)]

    Source: L. Lamport, Time, Clocks, and the Ordering of Events in a Distributed System (1978), for logical time.
    """
    recorded, _ = run_traced(*arguments, **options)
    return recorded


def without_run(program: Module | ModuleGroup, verdict: Verdict) -> Trace:
    """The empty trace of a program that cannot be run."""
    none = np.zeros(0, np.int64)
    verdict_data = {**verdict.to_dict(), "text": str(verdict)}
    return Trace(program, (), none, none, none, none, none, verdict=verdict_data, left_out="this program cannot be run")


def _trace_of(program: Module | ModuleGroup, tracer: Tracer, **fields: Any) -> Trace:
    """The trace of a tracer's events, with logical times."""
    modules = modules_of(program)
    paths, device, spot = tracer.columns()
    clock = Clock(modules, grid_of(program), device, spot, paths)
    return Trace(
        program,
        spots_of(paths, program),
        device,
        spot,
        clock.count(),
        clock.time,
        clock.since,
        meetings=tuple(clock.meetings()),
        transfers=tuple(clock.transfers),
        values=tracer.values,
        left_out=tracer.left_out(),
        **fields,
    )


@define
class Spool:
    """Writes the events and values of a tracer to a folder, a chunk at a time."""

    writer: TraceWriter
    program: Module | ModuleGroup
    tracer: Tracer | None = None
    events: int = 0

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the writer; the events of an interrupted run are written before that."""
        try:
            if error is not None and not isinstance(error, OSError | TraceError) and self.tracer is not None:
                self(self.tracer)
        finally:
            self.writer.close()

    def __call__(self, tracer: Tracer) -> None:
        paths, device, spot = tracer.columns()
        new = slice(self.events, min(len(device), len(spot)))  # an interrupt may fall between the two
        self.writer.chunk(device[new], spot[new], spots_of(paths, self.program), tracer.values)
        self.events = len(spot[: len(device)])
        tracer.forget()

    def end(self, tracer: Tracer, trace: Trace) -> Trace:
        """Write the last chunk; returns the trace with its values read from the folder."""
        self(tracer)
        self.writer.end(trace)
        return evolve(trace, values=values_of(self.writer.folder, self.writer.index["chunks"]))


def _verdict(
    program: Module | ModuleGroup, send_buffers: float, check: bool, seconds: float | None, runtime: Runtime | None
) -> Verdict:
    try:
        return checked(program, send_buffers, seconds, runtime)
    except Refused as refused:
        if check:
            raise
        return refused.verdict


def spots_of(paths: Sequence[Path], program: Module | ModuleGroup) -> tuple[Spot, ...]:
    """The spots of call paths, kept with the program."""
    known: dict[int, tuple[Path, Spot]] = memos(program, "spots")
    for path in paths:
        if id(path) not in known:
            known[id(path)] = path, Spot(path[-1].instruction, path_labels(path[:-1]))
    return tuple(known[id(path)][1] for path in paths)


def path_labels(path: Path) -> tuple[str, ...]:
    return tuple(map(_label, path))


def _label(place: PlanPlace) -> str:
    return place.instruction.name if place.branch is None else f"{place.instruction.name} branch {place.branch}"
