"""Plans: a computation is compiled once into a Python function, or into a generator if it communicates."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from types import FrameType
from typing import Any

from attrs import frozen

from xbuild.core.graph import Computation
from xbuild.core.memos import memo
from xbuild.process.limits import room_for_calls
from xbuild.properties.sites import reached

from ..kernels.memory import keep_freed_memory
from ..rules import region
from .emit import MOST_WRITTEN, Emitter, PlanOptions
from .lines import PATHS, Path, PlanLine, Stretch, merge_marks


@frozen(eq=False, slots=False)
class Plan:
    """The source of a computation, the function that the source defines, and the call path of each line."""

    computation: Computation
    source: str
    function: Callable[..., Any]
    paths: tuple[Path, ...]
    begun: tuple[tuple[Sequence[Path], int] | None, ...]

    @cached_property
    def communicates(self) -> bool:
        return inspect.isgeneratorfunction(self.function)

    def path(self, frame: FrameType) -> Path | None:
        """The call path that a frame of this plan has reached; None for a frame of other code."""
        if frame.f_globals is not self.function.__globals__:
            return None
        return self.paths[frame.f_lineno - 1]

    def unmarked(self, frame: FrameType) -> Stretch:
        """The instructions that a frame of this plan has executed since its last mark."""
        begun = None if self.path(frame) is None else self.begun[frame.f_lineno - 1]
        return () if begun is None else tuple(begun[0][: begun[1]])


def plan_of(computation: Computation, options: PlanOptions | None = None) -> Plan:
    """The plan of a computation, compiled at the first call and kept with the computation."""
    options = options or PlanOptions()
    return memo(computation, "plans", options, lambda: _compile(computation, options))


@region.compiled.supply
def _region_function(computation: Computation, **options: Any) -> Callable[..., Any]:
    return plan_of(computation, PlanOptions(**options)).function


def plan_source(computation: Computation) -> str:
    """Return the Python source that runs a computation. Its variables are numbered; they do not have the names used in
    the program.

    >>> import xbuild as xb
    >>> print(plan_source(xb.computation(xb.f32[3])(lambda x: x * x + x)))
    def plan(device, p0):
        v0 = p0
        v1 = v0 * v0
        v2 = v1 + v0
        return v2
    <BLANKLINE>
    """
    with room_for_calls([computation]):
        return plan_of(computation).source


def _compile(computation: Computation, options: PlanOptions) -> Plan:
    keep_freed_memory()
    count = sum(len(callee.instructions) for callee in reached(computation))
    emitter = Emitter(options, most=MOST_WRITTEN + 4 * count)
    emitter.define_function("plan", computation, ())
    lines = list(_finish_lines(emitter))
    source = "".join(f"{'    ' * line.indent}{line.text}\n" for line in lines)
    paths = tuple(line.path for line in lines)
    if options.strict:
        emitter.names[PATHS] = paths
    exec(compile(source, f"<plan of {computation.name!r}>", "exec"), emitter.names)
    return Plan(computation, source, emitter.names["plan"], paths, tuple(line.begun for line in lines))


def _finish_lines(emitter: Emitter) -> Iterator[PlanLine]:
    for lines in emitter.functions:
        released = lines.with_releases()
        yield from merge_marks(released, emitter.bind) if emitter.options.marked else released
