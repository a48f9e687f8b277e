"""Provenance in a trace: the elements, on this and other devices, from which each element of a value came.

Sections:

    Small results: the elements of the operands from which each element came
    Collectives and transfers: elements of other devices
    Origin of a NaN or an infinity: back to the first element that is not finite
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from attrs import define, field, frozen

from shape_inference import Shape
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction, Module
from xbuild.core.op import OPS
from xbuild.properties.effects import base_of, is_in_place
from xbuild.traces import Across, Summary, Trace, TracedMeeting, Transfer
from xbuild.traces.data import bringing, remote_operands
from xbuild.traces.questions import LONGEST, Birth

from ..provenance import MOST, READS_VALUES, origins_of
from ..rules import compute

# ----------------------------------------------------------------------------
# Small results: the elements of the operands from which each element came.

SMALL = 256
"""The largest result, in elements, whose origins are recorded."""

ROOM = 1 << 20
"""The most numbers in all tables of a trace together."""


def origins_in(trace: Trace) -> Mapping[int, Sequence[Array | None]]:
    """The provenance tables by event; the events of a spot share their tables unless these depend on values."""
    tables_by_event: dict[int, Sequence[Array | None]] = {}
    known: dict[int, Sequence[Array | None] | None] = {}
    room = ROOM
    for number, spot in enumerate(trace.spot.tolist()):
        fixed = trace.spots[spot].instruction.opcode not in READS_VALUES
        if not fixed or spot not in known:
            fresh = known[spot] = _tables_of(trace, number) if room > 0 else None
            room -= sum(table.size for table in fresh or () if table is not None)
        tables = known[spot]
        if tables is not None:
            tables_by_event[number] = tables
    return tables_by_event


def _tables_of(trace: Trace, number: int) -> Sequence[Array | None] | None:
    values = [None if event is None else trace.values.get(event) for event in trace.operands(number)]
    result: Any = trace.values.get(number)
    if not _is_array(result) or result.size > SMALL or not all(map(_is_array, values)):
        return None
    return origins_of(trace.spots[int(trace.spot[number])].instruction, values)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic)


# ----------------------------------------------------------------------------
# Collectives and transfers: the elements and devices from which small results came.

_MOVES = ("all_gather", "all_to_all", "collective_broadcast", "collective_permute")
"""Collectives that only move elements: their value rule is applied to the indices of the elements."""


def across_in(trace: Trace) -> Mapping[int, Sequence[Across]]:
    """The provenance tables by event; all rounds of a collective in one group share their tables."""
    tables_by_event: dict[int, Sequence[Across]] = {}
    known: dict[tuple[Instruction, tuple[int, ...]], Sequence[Sequence[Across]]] = {}
    room = ROOM
    for meeting in trace.meetings:
        key = meeting.instruction, meeting.group
        if key not in known:
            known[key] = of_members(meeting) if room > 0 else ()
            room -= sum(table.element.size for parts in known[key] for table in parts)
        of_device = dict(zip(meeting.group, known[key], strict=False))
        for event in meeting.events:
            if trace[event].instruction.opcode == "reshape":  # of an all-to-all that text has in several instructions
                continue
            if parts := of_device.get(int(trace.device[event])):
                tables_by_event[event] = parts
    return tables_by_event | _transfer_tables(trace)


def _transfer_tables(trace: Trace) -> dict[int, Sequence[Across]]:
    """The tables of recv-dones: each element comes from the same place of the value that was sent."""
    known: dict[tuple[int, int], Sequence[Across]] = {}
    tables_by_event: dict[int, Sequence[Across]] = {}
    for transfer in trace.transfers:
        shape = trace[transfer.send].instruction.operands[0].shape
        if isinstance(shape, Shape) and 0 < shape.size <= SMALL:
            key = transfer.source, shape.size
            place = np.arange(shape.size)[:, None]
            known[key] = known.get(key) or [
                Across(0, np.full_like(place, transfer.source), np.zeros_like(place), place)
            ]
            tables_by_event[transfer.done] = known[key]
    return tables_by_event


def of_members(meeting: TracedMeeting) -> Sequence[Sequence[Across]]:
    """The provenance tables of the parts of each member's result."""
    collective, group = meeting.instruction, meeting.group
    opcode = base_of(collective)
    shapes = [operand.shape for operand in collective.operands]
    sizes = [shape.size for shape in shapes if isinstance(shape, Shape)]
    if len(sizes) != len(shapes) or not all(sizes) or max(sizes, default=0) > SMALL:
        return ()
    if is_in_place(collective) or sum(sizes) * len(group) > MOST or (opcode not in _MOVES and opcode not in _FOLDS):
        return ()
    dims = [shape.dims for shape in shapes]  # type: ignore[union-attr]
    rule = _move_tables if opcode in _MOVES else _FOLDS[opcode]
    tables: Sequence[Sequence[Across]] = rule(collective, group, dims)
    return tables


def _reduce_tables(collective: Instruction, group: Sequence[int], dims: Sequence[tuple[int, ...]]) -> Any:
    """The tables of an all-reduce: an element comes from the same place of all members."""
    places = [np.arange(prod(extents)) for extents in dims]
    return [[_column(group, part, place, len(dims)) for part, place in enumerate(places)]] * len(group)


def _scatter_tables(collective: Instruction, group: Sequence[int], dims: Sequence[tuple[int, ...]]) -> Any:
    """The tables of a reduce-scatter: those of an all-reduce, of which each member gets its share."""
    axis = collective.attributes.scatter_dimension
    shares = [np.split(np.arange(prod(extents)).reshape(extents), len(group), axis) for extents in dims]
    return [
        [_column(group, part, share[member].reshape(-1), len(dims)) for part, share in enumerate(shares)]
        for member in range(len(group))
    ]


_FOLDS: dict[str, Any] = {"all_reduce": _reduce_tables, "reduce_scatter": _scatter_tables}


def _column(group: Sequence[int], part: int, place: Array, parts: int) -> Across:
    element = np.repeat(place[:, None], len(group), axis=1)
    device = np.broadcast_to(np.array(group), element.shape)
    return Across(part if parts > 1 else None, device, np.full_like(element, part), element)


def _move_tables(collective: Instruction, group: Sequence[int], dims: Sequence[tuple[int, ...]]) -> Any:
    """The tables of a collective that moves elements: its rule is applied to indices from 1; 0 means that none came."""
    sizes = [prod(extents) for extents in dims] * len(group)
    starts = np.cumsum([1, *sizes])
    numbered = [
        np.arange(start, start + size).reshape(extents)
        for start, size, extents in zip(starts, sizes, [*dims] * len(group), strict=False)
    ]
    operands: Any = [tuple(numbered[n : n + len(dims)]) for n in range(0, len(numbered), len(dims))]
    opcode = base_of(collective)
    columns = zip(*operands, strict=True) if OPS[opcode].is_flat else (operands,)
    attributes = {key: value for key, value in collective.attribute_values().items() if key != "context_shapes"}
    return [
        [_origin(part, numbers, starts, group, len(dims)) for part, numbers in _parts(result)]
        for result in compute[opcode](*columns, **attributes)
    ]


def _parts(result: Any) -> Sequence[tuple[int | None, Array]]:
    return [*enumerate(result)] if isinstance(result, tuple) else [(None, result)]


def _origin(part: int | None, numbers: Any, starts: Array, group: Sequence[int], operands: int) -> Across:
    flat = np.reshape(numbers, (-1, 1))
    slot = np.maximum(np.searchsorted(starts, flat, side="right") - 1, 0)
    device = np.where(flat > 0, np.array(group)[slot // operands], -1)
    return Across(part, device, slot % operands, np.where(flat > 0, flat - starts[slot], -1))


# ----------------------------------------------------------------------------
# Origin of a NaN or an infinity: provenance followed back, element by element, to the first that is not finite.

MOST_FOLLOWED = 1 << 16
"""The largest number of sources of one element that are followed."""


@frozen
class ElementOf:
    """An element of an event's value; `part` is the index in a tuple. None means an unknown part or element."""

    event: int
    part: int | None = None
    element: int | None = None


@frozen
class SourceElement:
    """An element from which another was computed, with its number."""

    place: ElementOf
    number: Any


@define(eq=False)
class ProvenanceWalk:
    """Follows the provenance of elements through a trace, from an element to those from which it was computed."""

    trace: Trace
    _meetings: dict[int, TracedMeeting] = field(init=False)
    _transfers: dict[int, Transfer] = field(init=False)
    _remote: Any = field(init=False)
    _callers: dict[Instruction, list[Instruction]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._meetings = {event: meeting for meeting in self.trace.meetings for event in meeting.events}
        self._transfers = {transfer.done: transfer for transfer in self.trace.transfers}
        self._remote = remote_operands(self.trace)
        program = self.trace.program
        modules = [program] if isinstance(program, Module) else dict.fromkeys(program.modules.values())
        every = (i for module in modules for c in module.computations for i in c.instructions)
        for caller, region in ((i, region) for i in every for region in i.called):
            for parameter in region.parameters:
                self._callers.setdefault(parameter, []).append(caller)

    @staticmethod
    def place(event: int, element: int | None, part: int | None = None) -> ElementOf:
        """The element of this number of an event's value, or of a part of it."""
        return ElementOf(event, part, element)

    def chain(self, birth: Birth) -> list[ElementOf]:
        """The chain of elements that led to a birth: the earliest first, the birth last."""
        place = self._first_element(birth)
        chain = [place]
        while len(chain) < LONGEST and (sources := self.sources(chain[-1])):
            chain.append(self._main_source(chain[-1], sources).place)
        return chain[::-1]

    def _first_element(self, birth: Birth) -> ElementOf:
        """The first element of a birth's value that is NaN or infinite."""
        value = self.trace.values.get(birth.event)
        for part, array in enumerate(value) if isinstance(value, tuple) else ((None, value),):
            wrong = _first_nonfinite(array, birth.what)
            if wrong is not None:
                return ElementOf(birth.event, part, wrong)
        return ElementOf(birth.event)

    def sources(self, place: ElementOf) -> list[SourceElement]:
        """All elements from which an element was computed, as far as the trace has them."""
        return [SourceElement(source, self.number(source)) for source in self._sources(place)]

    def heaviest_sources(self, place: ElementOf, count: int) -> list[SourceElement]:
        """The `count` source elements of the largest weight, in the order of the operands."""
        sources = self.sources(place)
        order = sorted(range(len(sources)), key=lambda n: _weight(sources[n].number, False), reverse=True)
        return [sources[n] for n in sorted(order[:count])]

    def number(self, place: ElementOf) -> Any:
        """The number at an element; if the element is unknown, the value's NaN, infinity or largest number."""
        value = self.trace.values.get(place.event)
        if place.part is not None and isinstance(value, tuple):
            value = value[place.part] if place.part < len(value) else None
        if isinstance(value, Summary):
            return np.nan if value.nans else np.inf if value.infs else value.high
        if not isinstance(value, np.ndarray | np.generic) or not value.size:
            return None
        flat = np.reshape(value, -1)
        return flat[place.element] if place.element is not None and place.element < flat.size else _extreme(flat)

    def _sources(self, place: ElementOf) -> Iterator[ElementOf]:
        event = place.event
        instruction = self.trace[event].instruction
        if event in self._meetings or event in self._transfers:
            yield from self._from_others(place)
        elif instruction.opcode == "get_tuple_element":
            yield from self._operand(event, 0, instruction.attributes.index, place.element)
        elif instruction.opcode == "tuple":
            yield from self._operand(event, place.part, None, place.element)
        elif instruction.opcode == "while":
            yield from self._of_loop(place, event, instruction)
        elif instruction.opcode == "parameter":
            yield from self._of_caller(place, instruction)
        else:
            yield from self._of_operands(place, instruction)

    def _operand(self, event: int, number: int | None, part: int | None, element: int | None) -> Iterator[ElementOf]:
        operands = self.trace.operands(event)
        chosen = operands if number is None else operands[number : number + 1]
        yield from (ElementOf(source, part, element) for source in chosen if source is not None)

    def _of_operands(self, place: ElementOf, instruction: Instruction) -> Iterator[ElementOf]:
        """The source elements by provenance; if provenance is unknown, the operands without an element."""
        events = self.trace.operands(place.event)
        values = [None if event is None else self.trace.values.get(event) for event in events]
        tables = None
        if place.element is not None and all(isinstance(value, np.ndarray | np.generic) for value in values):
            tables = origins_of(instruction, values)
        for number, event in enumerate(events):
            if event is None or not _contributes(values, number):
                continue
            if tables is None:
                yield ElementOf(event)
            elif (table := tables[number]) is not None:
                row = table[place.element]
                yield from (ElementOf(event, None, int(source)) for source in row[row >= 0][:MOST_FOLLOWED])

    def _of_loop(self, place: ElementOf, before: int, loop: Instruction) -> Iterator[ElementOf]:
        """The last result of the loop's body; the initial value of a loop without a trip."""
        spot = self.trace[place.event].spot
        path = (*(spot.path if loop is spot.instruction else spot.path[:-1]), loop.name)
        entered = self._last(path[:-1], loop.operands[0], place.event)
        result = self._last(path, dict(loop.regions())["body"].root, before)
        if result is not None and (entered is None or result > entered):
            yield ElementOf(result, place.part, place.element)
        elif entered is not None:
            yield ElementOf(entered, place.part, place.element)

    def _of_caller(self, place: ElementOf, parameter: Instruction) -> Iterator[ElementOf]:
        """The operand that a caller passed for a parameter."""
        path = self.trace[place.event].spot.path
        name, _, branch = (path[-1] if path else "").partition(" branch ")
        caller = next((candidate for candidate in self._callers.get(parameter, ()) if candidate.name == name), None)
        if caller is None:
            return
        if caller.opcode == "while":
            yield from self._of_loop(place, place.event, caller)
            return
        number = 1 + int(branch) if branch else parameter.attributes.number
        if caller.opcode in ("call", "conditional", "fusion", "async_start") and number < len(caller.operands):
            operand = self._last(path[:-1], caller.operands[number], place.event)
            yield from () if operand is None else (ElementOf(operand, place.part, place.element),)

    def _last(self, path: tuple[str, ...], instruction: Instruction, before: int) -> int | None:
        """The last event of an instruction before the event `before`, on the same device."""
        return self.trace.last(int(self.trace.device[before]), path, instruction, before)

    def _from_others(self, place: ElementOf) -> Iterator[ElementOf]:
        """The source elements on the participants of a group, or on the sender."""
        transfer, meeting = self._transfers.get(place.event), self._meetings.get(place.event)
        if transfer is not None:
            yield from self._operand(transfer.send, 0, None, place.element)
            return
        assert meeting is not None
        members = of_members(meeting) if place.element is not None else ()
        parts = dict(zip(meeting.group, members, strict=False)).get(int(self.trace.device[place.event]), ())
        table = next((part for part in parts if part.part == place.part), None)
        if table is None or place.element is None or place.element >= len(table.element):
            yield from map(ElementOf, self._remote.get(place.event, ()))
            return
        starts = {int(self.trace.device[event]): bringing(self.trace, event) for event in meeting.events}
        rows = zip(
            *(column[place.element].tolist() for column in (table.device, table.operand, table.element)), strict=True
        )
        for device, operand, element in rows:
            if device in starts:
                yield from self._operand(starts[device], operand, None, element)

    def _main_source(self, place: ElementOf, sources: Sequence[SourceElement]) -> SourceElement:
        """The source to follow: a NaN, else an infinity, else the largest weight; among equals, the latest event."""
        divides = self.trace[place.event].instruction.opcode in ("divide", "remainder")
        divisor = self.trace.operands(place.event)[1] if divides else None
        return max(sources, key=lambda s: (*_weight(s.number, s.place.event == divisor), s.place.event))


def _contributes(values: Sequence[Any], number: int) -> bool:
    """Whether an operand contributes to the number: indices and predicates do not if other operands are floats."""
    kinds = [getattr(getattr(value, "dtype", None), "kind", "") for value in values]
    return kinds[number] not in ("b", "i", "u") or all(kind in ("b", "i", "u") for kind in kinds)


def _first_nonfinite(value: Any, what: str) -> int | None:
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "fcV":
        return None
    places = np.flatnonzero(np.isnan(value) if what == "NaN" else np.isinf(value))
    return int(places[0]) if places.size else None


def _extreme(flat: Any) -> Any:
    """A NaN, else an infinity, else the number that is farthest from 0."""
    with np.errstate(all="ignore"):
        size = np.abs(flat.astype(np.complex128 if flat.dtype.kind == "c" else np.float64))
    return flat[int(np.argmax(np.where(np.isnan(size), np.inf, size)))]


def _weight(number: Any, is_divisor: bool) -> tuple[int, float]:
    """The weight of a number for a result that is not finite: its magnitude, or for a divisor the inverse of it."""
    if number is None:
        return -1, 0.0
    wide = abs(complex(number))
    if np.isnan(wide) or np.isinf(wide):
        return (2 if np.isnan(wide) else 1), 0.0
    return 0, (np.inf if not wide else 1 / wide) if is_divisor else wide
