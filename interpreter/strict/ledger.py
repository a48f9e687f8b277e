"""The ledger of a strict run, which keeps the first finding at each place of each device and counts repetitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, evolve, field, frozen

from xbuild.core.graph import Instruction, Module
from xbuild.properties.effects import base_of

from ..rules.lines import PATHS, Path, Place
from ..rules.standing import Standing
from .findings import Finding, StrictReport
from .table import Evaluation, Spotted, strict
from .variances import Comparison, equal_along

if TYPE_CHECKING:
    from ..compiler.requests import Request
    from ..runtime.replica import Device


@define
class Ledger:
    """The findings of one run."""

    _found: dict[Any, Finding] = field(factory=dict)
    _again: dict[Any, int] = field(factory=dict)
    _comparison: Comparison = field(factory=Comparison)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(evolve(finding, further=self._again[key]) for key, finding in self._found.items())

    def report(self) -> StrictReport:
        return StrictReport(self.findings)

    def note(self, device: Device, spotted: Spotted, frame: FrameType) -> None:
        """Record a finding of a check in a plan, at the line that the frame is executing."""
        stack = _stack(frame)
        index = spotted.index if _is_of_result(stack, spotted.index) else None
        self._keep(device.number, evolve(spotted, index=index), _standing(stack))

    def keep(self, device: int, spotted: Spotted, standing: Standing) -> None:
        """Record a finding about an argument of a device."""
        self._keep(device, spotted, standing)

    def compare(self, device: Device, instruction: Instruction, value: Any, frame: FrameType) -> None:
        """Record a value that differs from other devices' values although declared equal on the mesh."""
        if equal_along(device.module, instruction) is not None:
            self._compare(device.number, device.module, instruction, value, _standing(_stack(frame)))

    def given(self, device: int, module: Module, arguments: Sequence[Any]) -> None:
        """Record each argument that differs from other devices' arguments although declared equal on the mesh."""
        for parameter, value in zip(module.entry.parameters, arguments, strict=True):
            self._compare(device, module, parameter, value, Standing((Place(parameter),), (None,)))

    def _compare(self, device: int, module: Module, instruction: Instruction, value: Any, standing: Standing) -> None:
        place = tuple((id(each.instruction), each.branch) for each in standing.path), standing.trips
        for spotted in self._comparison.spotted(place, device, module, instruction, value):
            self._keep(device, spotted, standing)

    def meeting(self, request: Request, brought: Mapping[int, Any], results: Mapping[int, Any], device: Device) -> None:
        """Check a collective as a whole; findings are recorded for `device`, the last member to arrive."""
        collective, standing = request.collective, device.stands()
        assert collective is not None
        rule = strict.get(base_of(collective))
        if rule is None or standing is None:
            return
        whole = _whole(collective, [results[member] for member in brought])
        for spotted in rule(Evaluation(collective, tuple(brought.values()), whole, device)):
            self._keep(device.number, spotted, standing)

    def _keep(self, device: int, spotted: Spotted, standing: Standing) -> None:
        places = tuple((id(place.instruction), place.branch) for place in standing.path)
        key = device, places, spotted.kind, spotted.part
        if key in self._found:
            self._again[key] += 1 + spotted.further
            return
        values = tuple((name, np.array(value)[()]) for name, value in spotted.values)
        self._found[key] = Finding(spotted.kind, spotted.what, device, standing, spotted.index, values)
        self._again[key] = spotted.further


def _whole(instruction: Instruction, given: Sequence[Any]) -> Any:
    """The combined result of all members: one result, or the concatenated parts of a reduce-scatter."""
    if instruction.opcode != "reduce_scatter":
        return given[0]
    axis = instruction.attributes.scatter_dimension
    if isinstance(given[0], tuple):
        return tuple(np.concatenate(parts, axis) for parts in zip(*given, strict=True))
    return np.concatenate(given, axis)


@frozen
class _Running:
    """A plan function on the Python stack: its globals, the call path inside the plan, and its local variables."""

    names: dict[str, Any]
    path: Path
    known: dict[str, Any]


def _stack(frame: FrameType | None) -> list[_Running]:
    """The plan functions on the Python stack, outermost first; each region has its own plan."""
    found: list[_Running] = []
    while frame is not None:
        paths = frame.f_globals.get(PATHS)
        if paths is not None:
            before = paths[frame.f_code.co_firstlineno - 1]
            found.append(_Running(frame.f_globals, paths[frame.f_lineno - 1][len(before) :], frame.f_locals))
        frame = frame.f_back
    return found[::-1]


def _standing(stack: Sequence[_Running]) -> Standing:
    """The call path through all plan functions on the stack, with the trip of each loop on it."""
    pairs = [(place, running.known.get(place.trip or "")) for running in stack for place in running.path]
    return Standing(tuple(place for place, _ in pairs), tuple(trip for _, trip in pairs))


def _is_of_result(stack: Sequence[_Running], index: tuple[int, ...] | None) -> bool:
    """Whether an index inside a region is an index of the calling op's result, which is so only for map."""
    callers = [a.path[-1].instruction for a, b in pairwise(stack) if a.names is not b.names]
    if not callers or index is None:
        return True
    rank = len(callers[0].shape.dims)  # type: ignore[union-attr]
    return len(index) == rank and all(instruction.opcode == "map" for instruction in callers)
