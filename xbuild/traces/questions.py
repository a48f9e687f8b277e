"""Questions to a trace: where a NaN was born, the first difference of two runs, the device that differs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from attrs import astuple, frozen

from shape_inference import TokenShape, XbuildError

from ..checking import replication
from ..core.graph import Instruction, Module, ModuleGroup
from ..properties.variances import declared
from .data import Trace, remote_operands
from .summary import Summary

# ----------------------------------------------------------------------------
# Search for the events at which a NaN or an infinity is born: the value has one, and no operand has.

_FLOATS = "fcV"
LONGEST = 12
"""The greatest number of events of a chain."""


@frozen
class Birth:
    """An event whose value has a NaN, or an infinity, that no operand of it has."""

    event: int
    what: Literal["NaN", "infinity"]


def births(trace: Trace) -> list[Birth]:
    """All births of NaN and infinity, in the order of the events; an event whose value was not kept has none."""
    odd: dict[int, tuple[bool, bool]] = {}
    known: dict[int, tuple[Any, tuple[bool, bool]]] = {}
    for number, value in trace.values.items():
        same = known.get(id(value))
        flags = same[1] if same and same[0] is value else _flags(value)
        known[id(value)] = value, flags
        if len(known) > 1 << 16:
            known.clear()
        if flags != (False, False):
            odd[number] = flags
    remote = remote_operands(trace) if odd else {}
    return [birth for number in sorted(odd) for birth in _born(trace, odd, remote, number)]


def _born(
    trace: Trace, odd: Mapping[int, tuple[bool, bool]], remote: Mapping[int, Sequence[int]], number: int
) -> Iterator[Birth]:
    before = [odd.get(event, (False, False)) for event in _operand_events(trace, remote, number)]
    nan, infinity = odd[number]
    if nan and not any(each[0] for each in before):
        yield Birth(number, "NaN")
    if infinity and not any(each[1] for each in before):
        yield Birth(number, "infinity")


def _operand_events(trace: Trace, remote: Mapping[int, Sequence[int]], number: int) -> list[int]:
    """The events that gave the operands of an event, on its device and on others."""
    return [*(event for event in trace.operands(number) if event is not None), *remote.get(number, ())]


def is_stated(trace: Trace, birth: Birth) -> bool:
    """Whether a birth is a constant infinity of the program, such as the init value of a maximum, or a mask."""
    return birth.what == "infinity" and trace[birth.event].instruction.opcode == "constant"


def _flags(value: Any) -> tuple[bool, bool]:
    """Whether a value has a NaN, and whether it has an infinity."""
    if isinstance(value, tuple):
        return _any([_flags(each) for each in value])
    if isinstance(value, Summary):
        return value.nans > 0, value.infs > 0
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in _FLOATS or _finite(value):
        return False, False
    return bool(np.isnan(value).any()), bool(np.isinf(value).any())


def _finite(value: Any) -> bool:
    return bool(np.isfinite(value).all())


def _any(flags: Sequence[tuple[bool, bool]]) -> tuple[bool, bool]:
    return any(nan for nan, _ in flags), any(inf for _, inf in flags)


# ----------------------------------------------------------------------------
# Comparison of two traces, or of two devices of one trace: the first value in which they differ.


@frozen
class EventDifference:
    """Two events of the same name, path and turn whose values differ; `apart` is the greatest difference.

    `index` is the first element that differs, None for summaries and for values of unlike shapes. `cause` says whether
    the operands of both events are the same, as far as they were kept.
    """

    first: int
    second: int
    index: tuple[int, ...] | None
    apart: float | None
    cause: bool


@frozen
class TraceComparison:
    """The result of a comparison: the number of values compared, and the first difference.

    `alone` counts events of the first trace without a counterpart, `unkept` pairs of which a value was not kept.
    """

    compared: int
    alone: int
    unkept: int
    difference: EventDifference | None


def compare_traces(
    a: Trace, b: Trace, devices: tuple[int, int] | None = None, eps: float = 0.0, name: str | None = None
) -> TraceComparison:
    """Compare two traces in the logical time of the first; `devices` restricts the comparison to one device of each,
    `name` to one instruction.

    Elements that differ by at most `eps` count as equal, and so do two NaNs.
    """
    there = {key: number for number, key in _keys(b, devices and devices[1], name)}
    here = sorted(_keys(a, devices and devices[0], name), key=lambda pair: int(a.time[pair[0]]))
    compared = alone = unkept = 0
    for number, key in here:
        other = there.get(key)
        if other is None:
            alone += 1
            continue
        if number not in a.values or other not in b.values:
            unkept += not isinstance(a.spots[int(a.spot[number])].instruction.shape, TokenShape)
            continue
        compared += 1
        found = apart(a.values[number], b.values[other], eps)
        if found is not None:
            cause = _same_operands(a, b, number, other, eps)
            return TraceComparison(compared, alone, unkept, EventDifference(number, other, *found, cause))
    return TraceComparison(compared, alone, unkept, None)


def _keys(trace: Trace, device: int | None, name: str | None) -> Iterator[tuple[int, Hashable]]:
    """The events to compare, each with the key that it shares with its counterpart in another trace."""
    sites = [(spot.path, spot.instruction.name) for spot in trace.spots]
    rows = zip(trace.device.tolist(), trace.spot.tolist(), trace.count.tolist(), strict=True)
    for number, (on, spot, count) in enumerate(rows):
        if device in (None, on) and name in (None, sites[spot][1]):
            yield number, (on if device is None else None, *sites[spot], count)


def _same_operands(a: Trace, b: Trace, number: int, other: int, eps: float) -> bool:
    pairs = zip(a.operands(number), b.operands(other), strict=False)
    known = [(x, y) for x, y in pairs if x is not None and y is not None]
    return all(apart(a.values.get(x), b.values.get(y), eps) is None for x, y in known)


def apart(x: Any, y: Any, eps: float = 0.0) -> tuple[tuple[int, ...] | None, float | None] | None:
    """The first element in which two values differ, and the greatest difference; None where none is known."""
    if x is None or y is None:
        return None
    if isinstance(x, tuple) and isinstance(y, tuple):
        parts = (apart(left, right, eps) for left, right in zip(x, y, strict=False))
        return next((part for part in parts if part is not None), None)
    if isinstance(x, Summary) and isinstance(y, Summary):
        same = astuple(x)[:-1] == astuple(y)[:-1] and np.array_equal(x.cells, y.cells)
        return None if same else (None, None)
    if isinstance(x, tuple | Summary) or isinstance(y, tuple | Summary) or np.shape(x) != np.shape(y):
        return None, None
    return _elements_apart(np.asarray(x), np.asarray(y), eps)


def _elements_apart(x: Any, y: Any, eps: float) -> tuple[tuple[int, ...], float] | None:
    wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
    with np.errstate(all="ignore"):
        left, right = x.astype(wide), y.astype(wide)
        gap = np.where(x == y, 0.0, np.abs(left - right))
    gap = np.where(np.isnan(left) & np.isnan(right), 0.0, np.where(np.isnan(gap), np.inf, gap))
    off = np.argwhere(gap > eps)
    return (tuple(off[0].tolist()), float(gap.max())) if len(off) else None


# ----------------------------------------------------------------------------
# Search for the device that differs: the first value that is not equal on devices on which it is meant to be.

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
