"""`replication`: which devices hold equal values, as data and as text, and why a value may differ.

Sections:

    Reasons: why a value may differ between two devices
    The table: beside each value the devices that hold equal ones
    replication: the analysis for users
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field, frozen

from shape_inference import AnyShape, TupleShape, refuse
from shape_inference.escaping import in_line
from shape_inference.trees import flatten, paths, unflatten

from ..core.builder import Value
from ..core.graph import Computation, Instruction, Module, ModuleGroup, module_in
from ..core.hooks import Reported
from ..core.report_text import Line, headed
from ..process.limits import room_for_calls
from ..properties.effects import FOLLOWED, collective_in, spelling
from ..properties.mesh import mesh_of
from ..properties.sites import reached
from ..properties.sources import Callers, Place, deciders, operands_behind, results_behind
from ..properties.trip_counts import split_carries
from .dataflow.analysis import Reading
from .dataflow.promises import has_known_trips, read_promise
from .dataflow.replication import (
    Agreement,
    Labelled,
    Labels,
    Partitions,
    Recording,
    group_devices,
    make_recording,
    record_labels,
)
from .model.program import Extent, device_ranges, devices_text, program_of

# ----------------------------------------------------------------------------
# Reasons: why a value may differ between two devices, as the path back to an instruction that differs by itself

MOST_SEEN = 10_000  # values of the search

_SOURCES = {
    "parameter": "each device gets its own",
    "replica_id": "the replica of the device",
    "partition_id": "the partition of the device",
    "infeed": "each device is fed its own items",
    "rng": "each device draws its own",
    "rng_get_and_update_state": "each device has its own state",
    "recv": "each device receives its own",
    "recv_done": "each device receives its own",
    "custom_call": "the value comes from outside the program",
}


@define(eq=False)
class Reasons:
    """Paths back from values of one program, along values that may differ between two devices."""

    values: Replication
    entry: Computation
    a: int
    b: int
    _callers: Callers = field(factory=Callers, init=False)
    _homes: dict[Instruction, Computation] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._callers.enter(reached(self.entry))
        for computation in reached(self.entry):
            for instruction in computation.instructions:
                self._homes.setdefault(instruction, computation)

    def path_back(self, place: Place) -> list[Place]:
        """The shortest path back to a value that differs by itself; otherwise to one whose operands do not differ."""
        predecessor: dict[Place, Place | None] = {place: None}
        waiting = deque([place])
        end = place
        while waiting and len(predecessor) < MOST_SEEN:
            here = waiting.popleft()
            behind = [each for each in dict.fromkeys(self._sources(*here)) if self.differs(*each)]
            if self._is_source(here[0]):
                return _trace_path(predecessor, here)
            if not behind and end == place:
                end = here
            for each in behind:
                if each not in predecessor:
                    predecessor[each] = here
                    waiting.append(each)
        return _trace_path(predecessor, end)

    def _is_source(self, value: Instruction) -> bool:
        return value.opcode in _SOURCES and (value.opcode != "parameter" or self._homes[value] is self.entry)

    def differs(self, instruction: Instruction, leaf: tuple[int, ...]) -> bool:
        """Whether the two devices may hold different values of an instruction or a leaf of it."""
        try:
            groups = self.values.groups(instruction, leaf)
        except KeyError:
            return False
        return not any(self.a in group and self.b in group for group in groups)

    def _sources(self, value: Instruction, leaf: tuple[int, ...]) -> Iterator[Place]:
        """The values that a value or leaf is computed from; then those that decide the loops and branches around it."""
        if value.opcode == "parameter":
            yield from self._callers.given(value, leaf)
        elif value.opcode in FOLLOWED:
            yield from _decision_sources(value)
            yield from results_behind(value, leaf)
        elif value.opcode not in _SOURCES:
            yield from operands_behind(value, leaf)
        yield from self._deciders(value)

    def _deciders(self, value: Instruction) -> Iterator[Place]:
        """The predicates, indices and scan inputs of the loops and branches around a value."""
        seen: set[Instruction] = set()
        stack = [value]
        while stack:
            for caller, _ in self._callers.sites.get(self._homes[stack.pop()], ()):
                if caller not in seen:
                    seen.add(caller)
                    stack.append(caller)
                    yield from _decision_sources(caller)


def _trace_path(predecessor: Mapping[Place, Place | None], end: Place) -> list[Place]:
    found: list[Place] = []
    place: Place | None = end
    while place is not None:
        found.append(place)
        place = predecessor[place]
    return found[::-1]


def _decision_sources(unit: Instruction) -> Iterator[Place]:
    yield from deciders(unit)
    if unit.opcode == "scan":
        yield from ((operand, ()) for operand in split_carries(unit, unit.operands)[0])


def reason_text(values: Replication, value: Instruction, leaf: tuple[int, ...]) -> str:
    """The text of `Replication.why`."""
    groups = values.groups(value, leaf)
    name = f"{in_line(value.name)}{''.join(f'{{{n}}}' for n in leaf)}"
    if len(groups) == 1:
        return f"{name} is equal on all devices, in every run"
    a, b = groups[0][0], groups[1][0]
    path_back = path_of_difference(values, value, leaf)
    if path_back is None:
        return f"{name} belongs to several programs, and values of different programs are not compared"
    width = max(len(_place_name(place)) for place in path_back)
    lines = [f"  {_place_name(place):{width}}  {_operation_text(place[0])}" for place in path_back[:-1]]
    lines.append(
        f"  {_place_name(path_back[-1]):{width}}  {_operation_text(path_back[-1][0])}: {_cause_text(path_back[-1][0])}"
    )
    return "\n".join([f"{name} may differ between devices {a} and {b}", *lines])


def path_of_difference(values: Replication, value: Instruction, leaf: tuple[int, ...] = ()) -> list[Place] | None:
    """The path back to the origin of the difference between the first two groups; None if other programs have it."""
    groups = values.groups(value, leaf)
    a, b = groups[0][0], groups[1][0]
    part = next(each for each in values.parts if value in each.labels)
    if b not in part.devices:
        return None
    reasons = Reasons(values, part.module.entry, a, b)
    return reasons.path_back((value, _leaf_that_differs(values, value, leaf, a, b)))


def origin_text(values: Replication, value: Instruction) -> str:
    """Why a value differs, in one phrase: the value at which the difference begins, and how it does."""
    path_back = path_of_difference(values, value)
    if path_back is None:
        return "values of different programs are not compared"
    origin = path_back[-1]
    cause = _cause_text(origin[0])
    return cause if origin[0] is value else f"from {_place_name(origin)}: {cause}"


def _leaf_that_differs(
    values: Replication, value: Instruction, leaf: tuple[int, ...], a: int, b: int
) -> tuple[int, ...]:
    shape = value.shape
    for number in leaf:
        shape = shape.elements[number]  # type: ignore[union-attr]
    while isinstance(shape, TupleShape):
        for number, each in enumerate(shape.elements):
            if not any(a in group and b in group for group in values.groups(value, (*leaf, number))):
                leaf, shape = (*leaf, number), each
                break
        else:
            return leaf
    return leaf


def _place_name(place: Place) -> str:
    leaf = "{" + ",".join(map(str, place[1])) + "}" if place[1] else ""
    return f"{in_line(place[0].name)}{leaf}"


def _operation_text(value: Instruction) -> str:
    operands = ", ".join(in_line(operand.name) for operand in value.operands[:4])
    more = ", ..." if len(value.operands) > 4 else ""
    inside = str(value.attributes.number) if value.opcode == "parameter" else operands + more
    return f"{spelling(value.opcode)}({inside})"


def _cause_text(source: Instruction) -> str:
    if source.opcode in _SOURCES:
        return _SOURCES[source.opcode]
    if collective_in(source) is not None:
        return "these devices receive different parts of the result, or belong to groups whose operands may differ"
    return "no rule proves the value equal"


# ----------------------------------------------------------------------------
# The table: beside each value the devices that hold equal ones

MOST_LINES = 200  # of a report in a notebook
MOST_GROUPS = 8  # groups that are written out
DeviceGroups = tuple[tuple[int, ...], ...]


def replication_text(values: Replication) -> str:
    """A table for each computation, the entry first."""
    return "\n\n".join("\n".join(_lines(values, number)) for number in range(len(values.parts)))


def _lines(values: Replication, number: int) -> Iterator[str]:
    part = values.parts[number]
    yield f"replication of {part.module.name}, on {devices_text(part.devices)}"
    for computation in reversed(reached(part.module.entry)):
        known = [instruction for instruction in computation.instructions if instruction in part.labels]
        if known:
            yield f"\n{'ENTRY ' * (computation is part.module.entry)}{in_line(computation.name)}"
            yield from _value_rows(values, known)


def _value_rows(values: Replication, known: Sequence[Instruction]) -> Iterator[str]:
    names, shapes = ([in_line(str(getattr(i, key))) for i in known] for key in ("name", "shape"))
    first, second = (min(max(map(len, column)), 40) for column in (names, shapes))
    for instruction, name, shape in zip(known, names, shapes, strict=True):
        yield f"  {name:{first}}  {shape:{second}}  {value_text(values, instruction)}"


def value_text(values: Replication, instruction: Instruction) -> str:
    """`equal on all`, or leaf by leaf if the leaves differ."""
    leaves = [path for path, _ in paths(instruction.shape)]
    found = [groups_text(values.groups(instruction, leaf)) for leaf in leaves]
    if len({*found}) <= 1:
        return found[0] if found else "empty"
    return ", ".join(f"{{{','.join(map(str, leaf))}}} {text}" for leaf, text in zip(leaves, found, strict=True))


@functools.lru_cache(maxsize=256)
def groups_text(groups: DeviceGroups) -> str:
    """`equal on all`, `equal within {0,1} {2,3}`, `may differ`."""
    if len(groups) == 1:
        return "equal on all"
    several = [group for group in groups if len(group) > 1]
    if not several:
        return "may differ"
    shown = " ".join(f"{{{','.join(device_ranges(group))}}}" for group in several[:MOST_GROUPS])
    more = f" and {len(several) - MOST_GROUPS} more groups" if len(several) > MOST_GROUPS else ""
    return f"equal within {shown}{more}"


# ----------------------------------------------------------------------------
# replication: the analysis for users

Groups: TypeAlias = tuple[tuple[int, ...], ...]
ReplicatedParameters: TypeAlias = Mapping[int, bool | Sequence[bool]]
ACROSS = ("devices", "replicas", "partitions")


@frozen(eq=False)
class _Part:
    """The result for one module, on the devices that run it."""

    module: Module
    devices: tuple[int, ...]
    grid: Extent
    labels: Labelled
    _known: dict[tuple[int, ...], Groups] = field(factory=dict, init=False)

    def values(self) -> Iterator[tuple[Computation, Instruction]]:
        """The instructions with known facts, with their computations, the entry first."""
        for computation in reversed(reached(self.module.entry)):
            yield from (
                (computation, instruction) for instruction in computation.instructions if instruction in self.labels
            )

    def groups(self, rows: Sequence[Labels]) -> Groups:
        """The devices that agree on all of some leaves; computed once for leaves with equal labels."""
        key = tuple(map(id, rows))
        if key not in self._known:
            marks = [*zip(*rows, strict=True)] or [()] * len(self.devices)
            self._known[key] = group_devices(Partitions(len(self.devices)).group_by(marks), self.devices)
        return self._known[key]


@frozen(eq=False, repr=False)
class Replication(Reported):
    """For every value of a program, the groups of devices that hold equal values in every run. `str` returns a table.

    Devices of one group execute an instruction the same number of times, with equal values each time. Devices of
    different groups may have different values.
    """

    parts: tuple[_Part, ...]

    def groups(self, value: Instruction | Value | str, leaf: Sequence[int] = ()) -> Groups:
        """Return the groups of devices that hold equal values of an instruction, or of one leaf of its tuple.

        `leaf` is a path into the tuple, like XLA's ShapeIndex. If it leads to a tuple, all leaves of this tuple are
        compared. Each device that runs the program belongs to one group. A value may be given by name (`body/add.3` if
        several have the name `add.3`). Raises KeyError for an instruction that is not in the program or whose value is
        not held by any single device (such as an instruction of a computation that a reduction applies), and IndexError
        for a leaf that does not exist.

        >>> import xbuild as xb
        >>> total = xb.computation(xb.f32[2])(lambda x: xb.all_reduce(x, xb.add, replica_groups=[[0, 1], [2, 3]]))
        >>> xb.replication(xb.Module("total", total, num_replicas=4)).groups(total.root)
        ((0, 1), (2, 3))
        """
        instruction = self._instruction(value)
        begin, shape = 0, instruction.shape
        for number in leaf:
            begin, shape = _descend(instruction, shape, leaf, number, begin)
        parts = self._parts(instruction)
        found = [part.groups(part.labels[instruction][begin : begin + len(flatten(shape))]) for part in parts]
        return found[0] if len(found) == 1 else tuple(group for groups in found for group in groups)

    def is_replicated(
        self, value: Instruction | Value | str, leaf: Sequence[int] = (), *, across: str = "devices"
    ) -> bool:
        """Return whether all devices hold equal values.

        With `across="replicas"`, return whether all replicas of each partition do; with `across="partitions"`, whether
        all partitions of each replica do.

        >>> import xbuild as xb
        >>> total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
        >>> module = xb.Module("total", total, num_replicas=2, num_partitions=2)
        >>> values = xb.replication(module)
        >>> values.is_replicated(total.root), values.is_replicated(total.root, across="replicas")
        (False, True)
        """
        if across not in ACROSS:
            raise ValueError(f"across is {across!r}; expected one of {', '.join(ACROSS)}")
        together: dict[int, set[int]] = {}
        for n, group in enumerate(self.groups(value, leaf)):
            for device in group:
                replica, partition = divmod(device, self.parts[0].grid[1])
                key = {"devices": 0, "replicas": partition, "partitions": replica}[across]
                together.setdefault(key, set()).add(n)
        return all(len(found) == 1 for found in together.values())

    def why(self, value: Instruction | Value | str, leaf: Sequence[int] = ()) -> str:
        """Explain whether a value is equal on all devices.

        If the value may differ, the text shows the path back to the origin of the difference.
        Raises the same errors as `groups`.

        >>> import xbuild as xb
        >>> scaled = xb.computation(xb.f32[2])(lambda x: xb.cross_replica_sum(x) * x)
        >>> print(xb.replication(xb.Module("scaled", scaled, num_replicas=2)).why(scaled.root))
        multiply.6 may differ between devices 0 and 1
          multiply.6   multiply(all-reduce.5, parameter.1)
          parameter.1  parameter(0): each device gets its own
        """

        return reason_text(self, self._instruction(value), tuple(leaf))

    def counts(self) -> dict[Instruction, int]:
        """Return, for each value, the number of groups of devices that hold equal values.

        `xb.viz` can show these numbers in a picture.

        >>> import xbuild as xb
        >>> total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
        >>> module = xb.Module("total", total, num_replicas=4)
        >>> counts = xb.replication(module).counts()
        >>> print(xb.viz(module, "txt", data=counts, data_name="groups of equal devices"), end="")
        groups of equal devices: 1 to 4
        total
        ├─ P parameter.1   parameter 0  f32[2]  [4]
        └─ C all-reduce.5  all-reduce(parameter.1)  by add  f32[2]  [1]  ◂ ROOT
        """
        return {each: len(self.groups(each)) for each in self.values()}

    def values(self) -> Iterator[Instruction]:
        """Return the instructions for which groups are known, computation by computation."""
        for part in self.parts:
            for _, each in part.values():
                yield each

    def _instruction(self, value: Instruction | Value | str) -> Instruction:
        if isinstance(value, Value):
            return value.instruction
        if isinstance(value, Instruction):
            return value
        places = [pair for part in self.parts for pair in part.values()]
        found = {each for home, each in places if value in (each.name, f"{home.name}/{each.name}")}
        if len(found) == 1:
            return found.pop()
        several = [f"{home.name}/{each.name}" for home, each in places if each in found]
        what = f"several instructions have this name: {', '.join(several[:8])}" if found else _ABSENT
        raise KeyError(f"replication: {value!r}: {what}")

    def _parts(self, instruction: Instruction) -> list[_Part]:
        found = [part for part in self.parts if instruction in part.labels]
        if not found:
            raise KeyError(f"replication: {instruction.name!r}: {_ABSENT}")
        return found

    def __str__(self) -> str:

        return replication_text(self)

    __repr__ = __str__

    def _styled_lines(self) -> Iterable[Line]:
        return headed(replication_text(self).split("\n"), MOST_LINES, "print(replication) shows them")


_ABSENT = "no such instruction runs in the program"


def _descend(
    instruction: Instruction, shape: AnyShape, leaf: Sequence[int], number: int, begin: int
) -> tuple[int, AnyShape]:
    if not isinstance(shape, TupleShape) or not 0 <= number < len(shape.elements):
        place = f"{{{','.join(map(str, leaf))}}}"
        raise IndexError(f"replication: {instruction.name} is {instruction.shape}, which has no leaf {place}")
    return begin + len(flatten(shape.elements[:number])), shape.elements[number]


def replication(
    program: Module | ModuleGroup, replicated: ReplicatedParameters | None = None, *, annotations: bool = True
) -> Replication:
    """Return which devices hold equal values in every run, for each leaf of each value of a program.

    Values known to be equal are constants, results that one op computes from equal values, and results that a
    collective returns to members of one group, or to groups with equal operands. Values that depend only on device ids
    are evaluated and compared. Inside a loop or a branch, only devices that execute the instruction the same number of
    times are compared. Each module of a group is analysed separately.

    `replicated` says which parameters are equal on all devices: by number, completely or leaf by leaf. With
    `annotations`, the analysis relies on promises that the program makes: `parameter_replication` (of each leaf,
    between replicas), `sharding` of parameters and infeeds (between partitions), types of parameters on a mesh, and
    `known_trip_count` of loops. `xb.check` relies on no promises. Raises XbuildError (invalid_attribute) if
    `replicated` names a parameter or leaf that does not exist, and TypeError if the argument is not a program.

    >>> import xbuild as xb
    >>> f = xb.computation(xb.f32[2], xb.f32[2])(lambda x, w: xb.cross_replica_sum(x) * w)
    >>> print(xb.replication(xb.Module("f", f, num_replicas=2), replicated={1: True}))
    replication of f, on devices 0 and 1
    <BLANKLINE>
    ENTRY lambda
      parameter.1   f32[2]  may differ
      parameter.2   f32[2]  equal on all
      all-reduce.6  f32[2]  equal on all
      multiply.7    f32[2]  equal on all

    Source: XLA, HloReplicationAnalysis.
    """
    program_of_devices = program_of(module_in(program)).without_orders()
    with room_for_calls({device_class.module.entry for device_class in program_of_devices.classes}):
        parts = [
            _Part(
                device_class.module,
                device_class.devices,
                program_of_devices.grid,
                _analyse_module(
                    device_class.module, device_class.devices, program_of_devices.grid, replicated or {}, annotations
                ),
            )
            for device_class in program_of_devices.classes
        ]
    return Replication(tuple(parts))


def _analyse_module(
    module: Module, devices: tuple[int, ...], grid: Extent, replicated: ReplicatedParameters, annotations: bool
) -> Labelled:
    known: dict[str, Any] = {}
    if annotations:
        mesh = mesh_of(module)
        known = {"has_equal_trips": has_known_trips, "promised": functools.partial(read_promise, mesh=mesh)}
    walk = make_recording(devices, grid, **known)
    _check_replicated(module, replicated)
    parameters = [_parameter(walk, parameter, replicated) for parameter in module.entry.parameters]
    found = record_labels(walk, module, parameters)
    return found or dict(_no_facts(module.entry, walk.partitions.nowhere))


def _no_facts(entry: Computation, nowhere: Labels) -> Iterator[tuple[Instruction, list[Labels]]]:
    """The result for a program that is too large: all values may differ."""
    for computation in reached(entry):
        yield from (
            (instruction, [nowhere] * len(flatten(instruction.shape))) for instruction in computation.instructions
        )


def _parameter(walk: Recording, parameter: Instruction, replicated: ReplicatedParameters) -> Reading:
    number = parameter.attributes.number
    if number not in replicated:
        found = walk.promised(walk, parameter)
        return walk.fill_shape(walk.nowhere, parameter.shape) if found is None else found
    flags = replicated[number]
    leaves = [flags] * len(flatten(parameter.shape)) if isinstance(flags, bool) else flags
    labels = [walk.partitions.everywhere if flag else walk.partitions.nowhere for flag in leaves]
    return unflatten(parameter.shape, map(Agreement, labels))


def _check_replicated(module: Module, replicated: ReplicatedParameters) -> None:
    parameters = module.entry.parameters
    for number, flags in replicated.items():
        if number not in range(len(parameters)):
            count = f"{len(parameters)} parameter{'s' * (len(parameters) != 1)}"
            refuse(
                "invalid_attribute",
                f"replication: replicated= has an entry for parameter {number}, but {module.name} has {count}",
            )
        leaves = len(flatten(parameters[number].shape))
        if not isinstance(flags, bool) and len(flags) != leaves:
            refuse(
                "invalid_attribute",
                f"replication: replicated= lists {len(flags)} leaves for parameter {number} "
                f"({parameters[number].name}), but {parameters[number].shape} has {leaves}",
            )
