"""The replication analysis for users: which devices hold equal values, for every value of a program."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import field, frozen

from shape_inference import AnyShape, TupleShape, refuse

from ..core.builder import Value
from ..core.graph import Computation, Instruction, Module, ModuleGroup, module_in
from ..process.recursion_limit import room_for_calls
from ..properties.mesh import mesh_of
from ..properties.sites import reached
from .dataflow.agreement import Agreement, Labels, Partitions, grouped
from .dataflow.analysis import Reading
from .dataflow.promises import has_known_trips, promised
from .dataflow.recording import Labelled, Recording, recorded, recording
from .model.program import Extent, program_of

Groups: TypeAlias = tuple[tuple[int, ...], ...]
Given: TypeAlias = Mapping[int, bool | Sequence[bool]]
ACROSS = ("devices", "replicas", "partitions")


@frozen(eq=False)
class _Part:
    """The result for one module, on the devices that run it."""

    module: Module
    devices: tuple[int, ...]
    grid: Extent
    found: Labelled
    _known: dict[tuple[int, ...], Groups] = field(factory=dict, init=False)

    def values(self) -> Iterator[tuple[Computation, Instruction]]:
        """The instructions of which something is known, with their computations, the entry first."""
        for computation in reversed(reached(self.module.entry)):
            yield from ((computation, each) for each in computation.instructions if each in self.found)

    def groups(self, rows: Sequence[Labels]) -> Groups:
        """The devices that agree on all of some leaves; found once for leaves that are alike."""
        key = tuple(map(id, rows))
        if key not in self._known:
            marks = [*zip(*rows, strict=True)] or [()] * len(self.devices)
            self._known[key] = grouped(Partitions(len(self.devices)).by(marks), self.devices)
        return self._known[key]


@frozen(eq=False, repr=False)
class Replication:
    """The groups of devices that hold equal values in every run, for every value of a program; `str` is a table.

    Devices of one group execute an instruction equally often, with equal values each time. The values of devices of
    different groups may differ.
    """

    parts: tuple[_Part, ...]

    def groups(self, value: Instruction | Value | str, leaf: Sequence[int] = ()) -> Groups:
        """The groups of devices that hold equal values of an instruction, or of one leaf of its tuple.

        `leaf` is a path into the tuple, as XLA's ShapeIndex; where it leads to a tuple, all its leaves are
        compared. Each device that runs the program is in one group.
        A value may be named (`body/add.3` where several have the name).
        Raises KeyError for an instruction that is none of the program, or whose value no device has by itself (one
        that a reduction applies), IndexError for a leaf that is not there.

        >>> import xbuild as xb
        >>> total = xb.computation(xb.f32[2])(lambda x: xb.all_reduce(x, xb.add, replica_groups=[[0, 1], [2, 3]]))
        >>> xb.replication(xb.Module("total", total, num_replicas=4)).groups(total.root)
        ((0, 1), (2, 3))
        """
        instruction = self._instruction(value)
        begin, shape = 0, instruction.shape
        for number in leaf:
            begin, shape = _below(instruction, shape, leaf, number, begin)
        parts = self._parts(instruction)
        found = [part.groups(part.found[instruction][begin : begin + leaves_of(shape)]) for part in parts]
        return found[0] if len(found) == 1 else tuple(group for groups in found for group in groups)

    def is_replicated(
        self, value: Instruction | Value | str, leaf: Sequence[int] = (), *, across: str = "devices"
    ) -> bool:
        """Whether all devices hold equal values; across replicas (of each partition), or partitions (of each replica).

        >>> import xbuild as xb
        >>> total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
        >>> module = xb.Module("total", total, num_replicas=2, num_partitions=2)
        >>> values = xb.replication(module)
        >>> values.is_replicated(total.root), values.is_replicated(total.root, across="replicas")
        (False, True)
        """
        if across not in ACROSS:
            raise ValueError(f"across is {across!r}, and one of {', '.join(ACROSS)} is wanted")
        together: dict[int, set[int]] = {}
        for n, group in enumerate(self.groups(value, leaf)):
            for device in group:
                replica, partition = divmod(device, self.parts[0].grid[1])
                key = {"devices": 0, "replicas": partition, "partitions": replica}[across]
                together.setdefault(key, set()).add(n)
        return all(len(found) == 1 for found in together.values())

    def why(self, value: Instruction | Value | str, leaf: Sequence[int] = ()) -> str:
        """Whether a value is equal on all devices; where it may differ, the path back to where the difference begins.

        Raises as `groups` does.

        >>> import xbuild as xb
        >>> scaled = xb.computation(xb.f32[2])(lambda x: xb.cross_replica_sum(x) * x)
        >>> print(xb.replication(xb.Module("scaled", scaled, num_replicas=2)).why(scaled.root))
        multiply.6 may differ between devices 0 and 1
          multiply.6   multiply(all-reduce.5, parameter.1)
          parameter.1  parameter(0): each device is given its own
        """
        from .replication_reasons import reason_text

        return reason_text(self, self._instruction(value), tuple(leaf))

    def counts(self) -> dict[Instruction, int]:
        """Into how many groups of equal values the devices fall, for each value: data to lay over a picture.

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
        """The instructions of which something is known, computation by computation."""
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
        what = f"several have this name: {', '.join(several[:8])}" if found else _ABSENT
        raise KeyError(f"replication: {value!r}: {what}")

    def _parts(self, instruction: Instruction) -> list[_Part]:
        found = [part for part in self.parts if instruction in part.found]
        if not found:
            raise KeyError(f"replication: {instruction.name!r}: {_ABSENT}")
        return found

    def __str__(self) -> str:
        from .replication_text import replication_text

        return replication_text(self)

    __repr__ = __str__


_ABSENT = "no such instruction is run as a part of the program"


def leaves_of(shape: AnyShape) -> int:
    return sum(map(leaves_of, shape.elements)) if isinstance(shape, TupleShape) else 1


def _below(
    instruction: Instruction, shape: AnyShape, leaf: Sequence[int], number: int, begin: int
) -> tuple[int, AnyShape]:
    if not isinstance(shape, TupleShape) or not 0 <= number < len(shape.elements):
        place = f"{{{','.join(map(str, leaf))}}}"
        raise IndexError(f"replication: {instruction.name} is {instruction.shape}, which has no leaf {place}")
    return begin + sum(map(leaves_of, shape.elements[:number])), shape.elements[number]


def replication(
    program: Module | ModuleGroup, replicated: Given | None = None, *, annotations: bool = True
) -> Replication:
    """Which devices hold equal values in every run, for each leaf of each value of a program.

    Values are equal that are constants, that one op computes from equal values, and that a collective gives to members
    of one group, or to groups that bring equal operands. Values that follow from device ids alone are compared by
    evaluation. Inside a loop or a branch, devices are compared that execute the instruction equally often. Each module
    of a group is analysed by itself.

    `replicated` says which parameters come equal on all devices: by number, all of it or leaf by leaf. `annotations`
    takes for true what the program promises: `parameter_replication` (of each leaf, between replicas), `sharding` of
    parameters and infeeds (between partitions), types of parameters on a mesh, `known_trip_count` of loops. `xb.check`
    decides about deadlocks by no promise.
    Raises XbuildError (invalid_attribute) where `replicated` names a parameter or leaves that are not there, TypeError
    where the program is none.

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
    whole = program_of(module_in(program)).freed()
    with room_for_calls({each.module.entry for each in whole.classes}):
        parts = [
            _Part(
                each.module,
                each.devices,
                whole.grid,
                _found(each.module, each.devices, whole.grid, replicated or {}, annotations),
            )
            for each in whole.classes
        ]
    return Replication(tuple(parts))


def _found(module: Module, devices: tuple[int, ...], grid: Extent, replicated: Given, annotations: bool) -> Labelled:
    known: dict[str, Any] = {}
    if annotations:
        mesh = mesh_of(module)
        known = {"has_equal_trips": has_known_trips, "promised": functools.partial(promised, mesh=mesh)}
    walk = recording(devices, grid, **known)
    _check_given(module, replicated)
    parameters = [_parameter(walk, each, replicated) for each in module.entry.parameters]
    found = recorded(walk, module, parameters)
    return found or dict(_nothing(module.entry, walk.partitions.nowhere))


def _nothing(entry: Computation, nowhere: Labels) -> Iterator[tuple[Instruction, list[Labels]]]:
    """The result for a program that is too large: all values may differ."""
    for computation in reached(entry):
        yield from ((each, [nowhere] * leaves_of(each.shape)) for each in computation.instructions)


def _parameter(walk: Recording, parameter: Instruction, replicated: Given) -> Reading:
    number = parameter.attributes.number
    if number not in replicated:
        found = walk.promised(walk, parameter)
        return walk.spread(walk.nowhere, parameter.shape) if found is None else found
    flags = replicated[number]
    left = iter([flags] * leaves_of(parameter.shape) if isinstance(flags, bool) else flags)
    return _given(walk, parameter.shape, left)


def _given(walk: Recording, shape: AnyShape, flags: Iterator[bool]) -> Reading:
    if isinstance(shape, TupleShape):
        return tuple(_given(walk, each, flags) for each in shape.elements)
    return Agreement(walk.partitions.everywhere if next(flags) else walk.partitions.nowhere)


def _check_given(module: Module, replicated: Given) -> None:
    parameters = module.entry.parameters
    for number, flags in replicated.items():
        if number not in range(len(parameters)):
            count = f"{len(parameters)} parameter{'s' * (len(parameters) != 1)}"
            refuse(
                "invalid_attribute", f"replication: replicated names parameter {number}, and {module.name} has {count}"
            )
        leaves = leaves_of(parameters[number].shape)
        if not isinstance(flags, bool) and len(flags) != leaves:
            refuse(
                "invalid_attribute",
                f"replication: replicated says of parameter {number} ({parameters[number].name}) {len(flags)} leaves, "
                f"and {parameters[number].shape} has {leaves}",
            )
