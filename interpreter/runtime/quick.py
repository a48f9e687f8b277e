"""Direct evaluation: the plan of a computation that needs neither other devices nor the host, called without a grid."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field

from shape_inference import Shape, TupleShape
from xbuild.checking import Verdict
from xbuild.core.graph import Computation, Module

from ..compiler.facts import MOST_BYTES, communicates, depends_on_device, largest_buffer, largest_value
from ..compiler.plan import Plan
from ..kernels.values import Given, read
from ..rules.denormals import CONTROL, FLAGS, Environment, environment, fegetenv, fesetenv, with_mode
from ..rules.limits import Limits
from .driver import raise_end
from .estimates import YEAR, least_seconds
from .grid import Grid
from .replica import Device

Wanted: TypeAlias = tuple[Any, np.dtype[Any], tuple[int, ...]]


@define(eq=False)
class Quick:
    """A computation prepared for direct evaluation: its plan, and the array types that need no conversion."""

    module: Module
    verdict: Verdict
    plan: Plan
    wanted: tuple[Wanted | None, ...] = field(init=False)
    plain: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        shapes = [parameter.shape for parameter in self.module.entry.parameters]
        self.wanted = tuple(map(_wanted, shapes))
        self.plain = not any(isinstance(shape, TupleShape) for shape in shapes)

    def __call__(self, arguments: tuple[Any, ...], flush: bool) -> Any:
        given = [
            value
            if wanted and type(value) is wanted[0] and value.dtype is wanted[1] and value.shape == wanted[2]
            else self._read(number, value)
            for number, (value, wanted) in enumerate(zip(arguments, self.wanted, strict=True))
        ]
        try:
            result = self._run(given, flush)
        except BaseException as error:
            self._raise_end(error)
        return result if self._is_own(result, given) else Given(given).out(result)

    def _run(self, given: list[Any], flush: bool) -> Any:
        """The result of the plan, with denormal numbers flushed or kept, and without NumPy's warnings."""
        try:
            place = _FREE.pop()
        except IndexError:
            place = _RunEnvironment()
        own = place.own
        fegetenv(own)
        if own[CONTROL] | FLAGS != place.control or flush is not place.flush:
            place.fit(flush)
        try:
            fesetenv(place.of_run)
            return place.quiet(self.plan.function, None, *given)
        finally:
            fesetenv(own)
            _FREE.append(place)

    def _is_own(self, result: Any, given: list[Any]) -> bool:
        """Whether a quick test shows that the memory of a result is shared with no argument and no literal."""
        if type(result) is not np.ndarray or result.base is not None or not result.flags.writeable:
            return False
        return self.plain and not any(result is value for value in given)

    def _read(self, number: int, value: Any) -> Any:
        parameter = self.module.entry.parameters[number]
        return read(value, parameter.shape, f"argument {number} (%{parameter.name}) of device 0")

    def _raise_end(self, error: BaseException) -> None:
        grid = Grid([Device(0, self.module, self.plan)], {}, None, 0)
        grid.running = grid.devices[0]
        raise_end(grid, error, self.verdict)


@define(eq=False)
class _RunEnvironment:
    """The environment of a run: a context without NumPy's warnings, and the floating-point environment.

    Environments are kept and reused, since making one takes as long as a short run.
    """

    quiet: Callable[..., Any] = field(init=False)
    own: Environment = field(factory=environment)
    of_run: Environment = None
    control: int = -1
    flush: bool = True

    def __attrs_post_init__(self) -> None:
        context = Context()
        context.run(np.seterr, all="ignore")
        self.quiet = context.run

    def fit(self, flush: bool) -> None:
        """Adapt the floating-point environment of the run to that of the calling thread."""
        self.of_run, self.control, self.flush = with_mode(self.own, flush), self.own[CONTROL] | FLAGS, flush


_FREE: list[_RunEnvironment] = []
"""The environments that no run uses."""


def _wanted(shape: Any) -> Wanted | None:
    """The type, element type and extents of an argument that needs no conversion; None where `read` must check it."""
    if not isinstance(shape, Shape) or shape.dynamic:
        return None
    dtype = shape.dtype.dtype
    return np.ndarray if shape.dims else dtype.type, dtype, shape.dims


def is_quick(computation: Computation) -> bool:
    """Whether a computation can be evaluated without a grid, and its values and its time are within the limits."""
    most = Limits().bytes
    fits = most is None or largest_buffer(computation).shape.bytes <= most
    fits = fits and largest_value(computation).shape.bytes <= MOST_BYTES and least_seconds(computation) <= YEAR
    return fits and not communicates(computation) and not depends_on_device(computation)
