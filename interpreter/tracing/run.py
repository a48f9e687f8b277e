"""Traced runs: a program is run as by `execute`, and gives a trace even where the run stops."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path as FilePath
from types import TracebackType
from typing import Any

import numpy as np
from attrs import define, evolve

from xbuild.checking import Verdict
from xbuild.checking.model.program import grid_of
from xbuild.core.graph import Module, ModuleGroup, module_in
from xbuild.core.memos import memos
from xbuild.traces import Spot, Trace, TraceError, Writer
from xbuild.traces.reading import values_of

from ..rules.lines import Path, Place
from ..runtime.report import Stopped
from ..runtime.run import Refused, checked, execute, modules_of
from ..strict import StrictFailure
from .clock import Clock
from .elsewhere import across_in
from .keep import Keep
from .likeness import like
from .marks import found_in
from .sources import origins_in
from .tracer import Marker, Tracer, Watcher


def traced(
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
    **options: Any,
) -> tuple[Trace, Stopped | StrictFailure | None]:
    """The trace of a run, with the exception that `execute` would have raised, or None."""
    program = module_in(program)
    verdict = _verdict(program, send_buffers, check)
    told = {**verdict.to_dict(), "text": str(verdict)}
    spool = None if folder is None else Spool(Writer(FilePath(folder)), program)
    tracer = Watcher(spool, keep=Keep(elements, bytes, every)) if values else Marker(spool)
    if spool is not None:
        spool.tracer = tracer
    with spool or nullcontext():
        if spool is not None:
            spool.writer.begin(program, told)
        found, end = _seen(program, inputs, tracer, told, check=check, send_buffers=send_buffers, **options)
        if spool is not None:
            found = spool.end(tracer, found)
    return (evolve(found, origins=origins_in(found), across=across_in(found)) if origins else found), end


def _seen(
    program: Module | ModuleGroup, inputs: Any, tracer: Marker | Watcher, told: Mapping[str, Any], **options: Any
) -> tuple[Trace, Stopped | StrictFailure | None]:
    """Run a program with a tracer as its observer; gives the trace and the exception that ended the run."""
    results, end = None, None
    try:
        results = execute(program, inputs, observer=tracer, **options)
    except (Stopped, StrictFailure) as error:
        end = error
    results = end.results if isinstance(end, StrictFailure) else results
    stop = {**end.report.to_dict(), "text": str(end.report)} if isinstance(end, Stopped) else None
    found = _timed(program, tracer, verdict=told, stop=stop, results=results)
    if isinstance(end, StrictFailure):
        found = evolve(found, findings=found_in(found, end.report))
    return found, end


@like(traced)
def trace(*given: Any, **options: Any) -> Trace:
    """Run a program on all its devices as `execute` does, and return the run as data, a `Trace`.

    A trace has an event for each instruction that a device has executed: its device, its instruction and call path, its
    logical time (a number without a unit, from 1) and its value.

    `inputs` and further `options` are those of `execute`. `elements`: arrays of up to so many elements are kept whole,
    larger ones as a summary. `bytes`: after so many bytes of values all are kept as summaries, and after as many again
    none. `every`: of the executions of an instruction on a device, each `every`-th has its value kept. `values=False`
    keeps no value. `origins=True` adds, for results of few elements, which elements of the operands each was computed
    from. `folder`: the trace is written there during the run, so that an interrupted run leaves what it had, and values
    are read from there.

    A run that stops gives the trace up to there, with the report in `stop`; a strict run gives its findings in
    `findings`. With `check=False` a program that the check refuses is run until no device can go on.

    Raises Refused where the check refuses the program, ArgumentError where an input does not fit, and TraceError where
    the folder holds other files than a trace.

    >>> import xbuild as xb
    >>> square = xb.Module("square", xb.computation(xb.f32[()])(lambda x: x * x))
    >>> [(event.instruction.name, event.time) for event in trace(square, [[3.0]])]
    [('parameter.1', 1), ('multiply.2', 2)]

    Source: L. Lamport, Time, Clocks, and the Ordering of Events in a Distributed System (1978), for logical time.
    """
    found, _ = traced(*given, **options)
    return found


def without_run(program: Module | ModuleGroup, verdict: Verdict) -> Trace:
    """The empty trace of a program that cannot be run."""
    none = np.zeros(0, np.int64)
    told = {**verdict.to_dict(), "text": str(verdict)}
    return Trace(program, (), none, none, none, none, none, verdict=told, left_out="nothing of this program can be run")


def _timed(program: Module | ModuleGroup, tracer: Tracer, **told: Any) -> Trace:
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
        **told,
    )


@define
class Spool:
    """Writes the events and values of a tracer to a folder, a chunk at a time."""

    writer: Writer
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

    def end(self, tracer: Tracer, found: Trace) -> Trace:
        """Write the last chunk; gives the trace with its values read from the folder."""
        self(tracer)
        self.writer.end(found)
        return evolve(found, values=values_of(self.writer.folder, self.writer.index["chunks"]))


def _verdict(program: Module | ModuleGroup, send_buffers: float, check: bool) -> Verdict:
    try:
        return checked(program, send_buffers)
    except Refused as refused:
        if check:
            raise
        return refused.verdict


def spots_of(paths: Sequence[Path], program: Module | ModuleGroup) -> tuple[Spot, ...]:
    """The spots of call paths, kept with the program."""
    known: dict[int, tuple[Path, Spot]] = memos(program, "spots")
    for path in paths:
        if id(path) not in known:
            known[id(path)] = path, Spot(path[-1].instruction, labels(path[:-1]))
    return tuple(known[id(path)][1] for path in paths)


def labels(path: Path) -> tuple[str, ...]:
    return tuple(map(_label, path))


def _label(place: Place) -> str:
    return place.instruction.name if place.branch is None else f"{place.instruction.name} branch {place.branch}"
