"""The ledger of a strict run: the first finding at each place, and values that contradict declared equalities.

Sections:

    Values that variance types declare equal along mesh axes, but that differ between devices
    The ledger
    Arguments that annotations declare equal on several devices, but that differ
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, evolve, field, frozen

from shape_inference import XbuildError
from shape_inference.trees import flatten
from xbuild.checking.dataflow.promises import read_promise
from xbuild.checking.dataflow.replication import Labels, ReplicationAnalysis, varies
from xbuild.checking.model.program import grid_of, program_of
from xbuild.core.graph import Instruction, Module, ModuleGroup
from xbuild.properties.effects import base_of
from xbuild.properties.mesh import Mesh, mesh_of
from xbuild.properties.variances import Variance, type_of

from ..compiler.lines import PATHS, Path, PlanPlace, Standing
from .findings import StrictFinding, StrictReport
from .rules import Evaluation, Spotted, strict

if TYPE_CHECKING:
    from ..compiler.requests import Request
    from ..runtime.device import Device


# ----------------------------------------------------------------------------
# Values that variance types declare equal along mesh axes, but that differ between devices.


@define(eq=False)
class ComputedValues:
    """The values that each device has computed so far at each place, each value with its digest."""

    _seen: dict[Any, dict[int, list[tuple[bytes, Any]]]] = field(factory=dict)

    def compare(self, place: Any, device: int, module: Module, instruction: Instruction, value: Any) -> list[Spotted]:
        """Record a value; return findings for leaves that differ from other devices' values although declared equal."""
        declaration = equal_along(module, instruction)
        if declaration is None:
            return []
        mesh, types = declaration
        leaves = flatten(value)
        if len(leaves) != len(types):  # the check before the run reports it
            return []
        seen = self._seen.setdefault(place, {})
        seen[device] = own = [(_digest(leaf), leaf) for leaf in leaves]
        differences = []
        for leaf, (variance, mine) in enumerate(zip(types, own, strict=True)):
            for other in _devices_declared_equal(mesh, variance, device):
                if other in seen and seen[other][leaf][0] != mine[0]:
                    differences.append(_breach(mesh, variance, leaf, device, mine[1], other, seen[other][leaf][1]))
                    break
        if len(seen) == mesh.num_devices:
            del self._seen[place]
        return differences


def _breach(mesh: Mesh, declared: Variance, leaf: int, device: int, mine: Any, other: int, theirs: Any) -> Spotted:
    a, b = mesh.coordinates(device), mesh.coordinates(other)
    axes = ", ".join(axis for axis in mesh.axes if a[axis] != b[axis])
    text = declared.text(mesh) or "invarying"
    what = f"declared {text}, which promises one value along {axes}, but device {other} holds a different value"
    values = ((f"on device {device}", mine), (f"on device {other}", theirs))
    return Spotted("variance_broken", what, values=values, part=leaf)


@functools.lru_cache(maxsize=4096)
def equal_along(module: Module, instruction: Instruction) -> tuple[Mesh, list[Variance]] | None:
    """The mesh and the variance types of the leaves of a value, if any type declares devices to hold equal values."""
    try:
        mesh, declared_type = mesh_of(module), type_of(instruction)
    except XbuildError:  # the check before the run reports it
        return None
    if mesh is None or declared_type is None or mesh.num_devices != module.num_devices:
        return None
    types = flatten(declared_type)
    return (mesh, types) if any(not _everywhere(mesh, variance) for variance in types) else None


def _everywhere(mesh: Mesh, variance: Variance) -> bool:
    return variance.varying | variance.unreduced >= {*mesh.axes}


def _devices_declared_equal(mesh: Mesh, variance: Variance, device: int) -> Iterator[int]:
    """The other devices whose value is declared equal to that of this device."""
    place = mesh.coordinates(device)
    varying_axes = [axis for axis in mesh.axes if axis in variance.varying | variance.unreduced]
    for other in range(mesh.num_devices):
        there = mesh.coordinates(other)
        if other != device and all(there[axis] == place[axis] for axis in varying_axes):
            yield other


def _digest(value: Any) -> bytes:
    array = np.asarray(value)
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).digest()


# ----------------------------------------------------------------------------
# The ledger, which keeps the first finding at each place of each device and counts repetitions.


@define
class Ledger:
    """The findings of one run."""

    _found: dict[Any, StrictFinding] = field(factory=dict)
    _again: dict[Any, int] = field(factory=dict)
    _comparison: ComputedValues = field(factory=ComputedValues)

    @property
    def findings(self) -> tuple[StrictFinding, ...]:
        return tuple(evolve(finding, further=self._again[key]) for key, finding in self._found.items())

    def report(self) -> StrictReport:
        return StrictReport(self.findings)

    def record(self, device: Device, spotted: Spotted, frame: FrameType) -> None:
        """Record a finding of a check in a plan, at the line that the frame is executing."""
        stack = _stack(frame)
        index = spotted.index if _is_of_result(stack, spotted.index) else None
        self._keep(device.number, evolve(spotted, index=index), _standing(stack))

    def record_argument(self, device: int, spotted: Spotted, standing: Standing) -> None:
        """Record a finding about an argument of a device."""
        self._keep(device, spotted, standing)

    def compare(self, device: Device, instruction: Instruction, value: Any, frame: FrameType) -> None:
        """Record a value that differs from other devices' values although declared equal on the mesh."""
        if equal_along(device.module, instruction) is not None:
            self._compare(device.number, device.module, instruction, value, _standing(_stack(frame)))

    def compare_arguments(self, device: int, module: Module, arguments: Sequence[Any]) -> None:
        """Record each argument that differs from other devices' arguments although declared equal on the mesh."""
        for parameter, value in zip(module.entry.parameters, arguments, strict=True):
            self._compare(device, module, parameter, value, Standing((PlanPlace(parameter),), (None,)))

    def _compare(self, device: int, module: Module, instruction: Instruction, value: Any, standing: Standing) -> None:
        place = tuple((id(call.instruction), call.branch) for call in standing.path), standing.trips
        for spotted in self._comparison.compare(place, device, module, instruction, value):
            self._keep(device, spotted, standing)

    def check_collective(
        self, request: Request, operands: Mapping[int, Any], results: Mapping[int, Any], device: Device
    ) -> None:
        """Check a collective of all its members; findings are recorded for `device`, the last member to arrive."""
        collective, standing = request.collective, device.position()
        assert collective is not None
        rule = strict.get(base_of(collective))
        if rule is None or standing is None:
            return
        combined = _combined_result(collective, [results[member] for member in operands])
        for spotted in rule(Evaluation(collective, tuple(operands.values()), combined, device)):
            self._keep(device.number, spotted, standing)

    def _keep(self, device: int, spotted: Spotted, standing: Standing) -> None:
        places = tuple((id(place.instruction), place.branch) for place in standing.path)
        key = device, places, spotted.kind, spotted.part
        if key in self._found:
            self._again[key] += 1 + spotted.further
            return
        values = tuple((name, np.array(value)[()]) for name, value in spotted.values)
        self._found[key] = StrictFinding(spotted.kind, spotted.what, device, standing, spotted.index, values)
        self._again[key] = spotted.further


def _combined_result(instruction: Instruction, results: Sequence[Any]) -> Any:
    """The combined result of all members: one result, or the concatenated parts of a reduce-scatter."""
    if instruction.opcode != "reduce_scatter":
        return results[0]
    axis = instruction.attributes.scatter_dimension
    if isinstance(results[0], tuple):
        return tuple(np.concatenate(parts, axis) for parts in zip(*results, strict=True))
    return np.concatenate(results, axis)


@frozen
class _Running:
    """A plan function on the Python stack: its globals, the call path inside the plan, and its local variables."""

    names: dict[str, Any]
    path: Path
    known: dict[str, Any]


def _stack(frame: FrameType | None) -> list[_Running]:
    """The plan functions on the Python stack, outermost first; each region has its own plan."""
    running: list[_Running] = []
    while frame is not None:
        paths = frame.f_globals.get(PATHS)
        if paths is not None:
            before = paths[frame.f_code.co_firstlineno - 1]
            running.append(_Running(frame.f_globals, paths[frame.f_lineno - 1][len(before) :], frame.f_locals))
        frame = frame.f_back
    return running[::-1]


def _standing(stack: Sequence[_Running]) -> Standing:
    """The call path through all plan functions on the stack, with the trip of each loop on it."""
    pairs = [(place, running.known.get(place.trip or "")) for running in stack for place in running.path]
    return Standing(tuple(place for place, _ in pairs), tuple(trip for _, trip in pairs))


def _is_of_result(stack: Sequence[_Running], index: tuple[int, ...] | None) -> bool:
    """Whether an index inside a region is an index of the calling op's result, as it is only for map."""
    callers = [a.path[-1].instruction for a, b in pairwise(stack) if a.names is not b.names]
    if not callers or index is None:
        return True
    rank = len(callers[0].shape.dims)  # type: ignore[union-attr]
    return len(index) == rank and all(instruction.opcode == "map" for instruction in callers)


# ----------------------------------------------------------------------------
# Arguments that annotations declare equal on several devices, but that differ.

_NOTES = ("parameter_replication", "sharding")


def check_promises(program: Module | ModuleGroup, arguments: Sequence[tuple[Any, ...]], ledger: Ledger) -> None:
    """Record each parameter whose arguments differ between devices although its annotations declare them equal."""
    for device_class in program_of(program).without_orders().classes:
        promising = [p for p in device_class.module.entry.parameters if any(note in p.annotations for note in _NOTES)]
        walk = ReplicationAnalysis(varies, device_class.devices, *grid_of(program)) if promising else None
        for parameter in promising:
            assert walk is not None
            reading = read_promise(walk, parameter)
            rows = [
                [*map(np.asarray, flatten(arguments[d][parameter.attributes.number]))] for d in device_class.devices
            ]
            for leaf, agreement in enumerate(() if reading is None else flatten(reading)):
                column = [row[leaf] for row in rows]
                _compare(parameter, leaf, agreement.labels, device_class.devices, column, ledger)


def _compare(
    parameter: Instruction, leaf: int, labels: Labels, devices: Sequence[int], column: Sequence[Any], ledger: Ledger
) -> None:
    first: dict[int, int] = {}
    for place, label in enumerate(labels):
        other = first.setdefault(label, place)
        if column[other] is not column[place] and column[other].tobytes() != column[place].tobytes():
            notes = ", ".join(
                f"{note}={parameter.annotations[note]}" for note in _NOTES if note in parameter.annotations
            )
            what = f"{notes}: promised to equal the value on device {devices[other]}, but the values differ"
            values = ((f"on device {devices[place]}", column[place]), (f"on device {devices[other]}", column[other]))
            spotted = Spotted("promise_broken", what, values=values, part=leaf)
            ledger.record_argument(devices[place], spotted, Standing((PlanPlace(parameter),), (None,)))
