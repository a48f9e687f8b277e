"""Search for the device that differs: the first value that is not equal on devices on which it is meant to be."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from shape_inference import XbuildError

from ...checking import replication
from ...core.graph import Instruction, Module, ModuleGroup
from ...properties.variances import declared
from ..compare import apart
from ..data import Trace

Groups: TypeAlias = tuple[tuple[int, ...], ...]
Meant: TypeAlias = Callable[[Instruction], Groups]


@frozen
class Odd:
    """A value that some devices have otherwise than most: an event of each side, and the devices by equal values.

    `groups` has the largest group first; `is_meant` says that the program makes these devices equal where their inputs
    are, and else it treats some otherwise than most. `index` and `gap` are the first element that differs and the
    greatest difference; `is_input` says that the value is an argument of the run.
    """

    common: int
    other: int
    groups: Groups
    is_meant: bool
    index: tuple[int, ...] | None
    gap: float | None
    is_input: bool

    @property
    def devices(self) -> tuple[int, ...]:
        """The devices that differ from most: those outside of the largest group, or those in the smallest.

        None where two groups are the largest of devices that are meant to be equal, or two are the smallest of others.
        """
        sizes = [len(group) for group in self.groups]
        if not self.is_meant:
            return self.groups[-1] if sizes[-1] < sizes[-2] else ()
        return () if sizes[0] == sizes[1] else tuple(sorted(each for group in self.groups[1:] for each in group))


@frozen
class Compared:
    """The result of the search: the first odd value, or None; the values compared; the inputs that differ by name."""

    odd: Odd | None
    values: int
    inputs: tuple[str, ...] = ()


def odd_one(trace: Trace, names: Iterable[str] = (), eps: float = 0.0) -> Compared:
    """The first value, in logical time, in which a device differs from others that should have the same.

    `names` are the parameters that are meant to differ between devices. Values that follow from them differ, too, and
    are passed over, until the program makes them equal again. A value counts where devices differ that the program
    makes equal, or where it treats one device otherwise than most.
    Raises KeyError where a name is no parameter of the program.
    """
    meant = _meant(trace.program, [*names])
    compared, found, inputs = 0, None, []
    for events in _turns(trace):
        values = [trace.values.get(number) for number in events]
        if len(events) < 2 or any(value is None for value in values):
            continue
        compared += 1
        groups = _grouped(trace, events, values, eps)
        if len(groups) == 1:
            continue
        first = trace[events[0]]
        is_input = first.instruction.opcode == "parameter" and not first.spot.path
        split = _split(groups, meant(first.instruction))
        if is_input and split:
            inputs.append(first.instruction.name)
        if found is None and (split or _is_uneven(groups, meant(first.instruction))):
            found = _odd(trace, events, split or groups, bool(split), is_input, eps)
    return Compared(found, compared, tuple(inputs))


def _meant(program: Module | ModuleGroup, names: Sequence[str]) -> Meant:
    """For an instruction the devices that hold equal values, where the inputs of these names differ and no others."""
    modules = [program] if isinstance(program, Module) else list(program.modules.values())
    numbers: set[int] = set()
    for name in names:
        found = {each.attributes.number for m in modules for each in m.entry.parameters if each.name == name}
        if not found:
            raise KeyError(name)
        numbers |= found
    most = min(len(module.entry.parameters) for module in modules)
    first = modules[0].entry.parameters
    same = {n: n not in numbers for n in range(most) if n in numbers or not _is_promised(first[n])}
    try:
        values = replication(program, same)
    except XbuildError:
        return lambda _: ()

    def groups(instruction: Instruction) -> Groups:
        try:
            return values.groups(instruction)
        except KeyError:
            return ()

    return groups


def _is_promised(parameter: Instruction) -> bool:
    """Whether the program itself says on which devices the parameter is equal."""
    return declared(parameter) is not None or not {"sharding", "parameter_replication"}.isdisjoint(
        parameter.annotations
    )


def _turns(trace: Trace) -> list[list[int]]:
    """For each instruction at one path and turn the events of devices of one program, by logical time."""
    rows: dict[Hashable, list[int]] = {}
    spots = [(spot.path, spot.instruction.name) for spot in trace.spots]
    program = trace.program
    runs = {} if isinstance(program, Module) else {device: id(each) for device, each in program.modules.items()}
    columns = zip(trace.spot.tolist(), trace.count.tolist(), trace.device.tolist(), strict=True)
    for number, (spot, count, device) in enumerate(columns):
        rows.setdefault((spots[spot], count, runs.get(device)), []).append(number)
    return sorted(rows.values(), key=lambda events: min(int(trace.time[number]) for number in events))


def _grouped(trace: Trace, events: Sequence[int], values: Sequence[Any], eps: float) -> Groups:
    """The devices by equal values, the largest group first."""
    groups: list[tuple[Any, list[int]]] = []
    for number, value in zip(events, values, strict=True):
        device = int(trace.device[number])
        home = next((members for kept, members in groups if kept is value or apart(kept, value, eps) is None), None)
        if home is None:
            groups.append((value, [device]))
        else:
            home.append(device)
    return tuple(sorted((tuple(sorted(members)) for _, members in groups), key=lambda each: (-len(each), each)))


def _split(groups: Groups, meant: Groups) -> Groups:
    """The first group of devices that are meant to be equal and differ, by equal values; empty where there is none."""
    for group in meant:
        parts = [tuple(device for device in each if device in group) for each in groups]
        parts = sorted(filter(None, parts), key=lambda each: (-len(each), each))
        if len(parts) > 1:
            return tuple(parts)
    return ()


def _is_uneven(groups: Groups, meant: Groups) -> bool:
    """Whether the program makes groups of unlike sizes equal, and one group is smaller than all others."""
    sizes = [len(group) for group in groups]
    return len({*map(len, meant)}) > 1 and len(sizes) > 1 and sizes[-1] < sizes[-2]


def _odd(trace: Trace, events: Sequence[int], groups: Groups, is_meant: bool, is_input: bool, eps: float) -> Odd:
    at = {int(trace.device[number]): number for number in events}
    common, other = at[groups[0][0]], at[groups[1][0]]
    index, gap = apart(trace.values[common], trace.values[other], eps) or (None, None)
    return Odd(common, other, groups, is_meant, index, gap, is_input)
