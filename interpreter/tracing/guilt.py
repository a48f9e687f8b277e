"""Origin of a NaN or an infinity: follows provenance back, element by element, to the first that is not finite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from xbuild.core.graph import Instruction, Module
from xbuild.traces import Meeting, Summary, Trace, Transfer
from xbuild.traces.births import LONGEST, Birth
from xbuild.traces.partners import bringing, remote_operands

from ..provenance.elements import origins_of
from .elsewhere import of_members

_MOVED = 1 << 16
"""The most source elements of one element that are followed."""


@frozen
class ElementOf:
    """An element of an event's value; `part` is the index in a tuple. None stands for an unknown part or element."""

    event: int
    part: int | None = None
    element: int | None = None


@frozen
class Made:
    """An element from which another was computed, and its number."""

    place: ElementOf
    number: Any


@define(eq=False)
class Guilt:
    """Follows the provenance of elements through a trace."""

    trace: Trace
    _meetings: dict[int, Meeting] = field(init=False)
    _transfers: dict[int, Transfer] = field(init=False)
    _remote: Any = field(init=False)
    _callers: dict[Instruction, list[Instruction]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._meetings = {event: meeting for meeting in self.trace.meetings for event in meeting.events}
        self._transfers = {each.done: each for each in self.trace.transfers}
        self._remote = remote_operands(self.trace)
        program = self.trace.program
        modules = [program] if isinstance(program, Module) else dict.fromkeys(program.modules.values())
        every = (i for module in modules for c in module.computations for i in c.instructions)
        for caller, region in ((each, region) for each in every for region in each.called):
            for parameter in region.parameters:
                self._callers.setdefault(parameter, []).append(caller)

    def way(self, birth: Birth) -> list[ElementOf]:
        """The chain of elements that led to a birth: the earliest first, the birth last."""
        place = self._first(birth)
        found = [place]
        while len(found) < LONGEST and (made := self.made(found[-1])):
            found.append(self._guilty(found[-1], made).place)
        return found[::-1]

    def _first(self, birth: Birth) -> ElementOf:
        """The first element of a birth's value that is NaN or infinite."""
        value = self.trace.values.get(birth.event)
        for part, array in enumerate(value) if isinstance(value, tuple) else ((None, value),):
            wrong = _wrong(array, birth.what)
            if wrong is not None:
                return ElementOf(birth.event, part, wrong)
        return ElementOf(birth.event)

    def made(self, place: ElementOf) -> list[Made]:
        """All elements from which an element was computed, as far as the trace has them."""
        return [Made(each, self.number(each)) for each in self._sources(place)]

    def heaviest(self, place: ElementOf, count: int) -> list[Made]:
        """The `count` source elements of the largest weight, in the order of the operands."""
        made = self.made(place)
        order = sorted(range(len(made)), key=lambda n: _weight(made[n].number, False), reverse=True)
        return [made[n] for n in sorted(order[:count])]

    def number(self, place: ElementOf) -> Any:
        """The number at an element; where the element is unknown, the value's NaN, infinity or largest number."""
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
        yield from (ElementOf(each, part, element) for each in chosen if each is not None)

    def _of_operands(self, place: ElementOf, instruction: Instruction) -> Iterator[ElementOf]:
        """The source elements by provenance; where provenance is unknown, the operands as a whole."""
        events = self.trace.operands(place.event)
        values = [None if event is None else self.trace.values.get(event) for event in events]
        tables = None
        if place.element is not None and all(isinstance(each, np.ndarray | np.generic) for each in values):
            tables = origins_of(instruction, values)
        for number, event in enumerate(events):
            if event is None or not _counts(values, number):
                continue
            if tables is None:
                yield ElementOf(event)
            elif (table := tables[number]) is not None:
                row = table[place.element]
                yield from (ElementOf(event, None, int(each)) for each in row[row >= 0][:_MOVED])

    def _of_loop(self, place: ElementOf, before: int, loop: Instruction) -> Iterator[ElementOf]:
        """The last result of the loop's body; the initial value of a loop without a trip."""
        spot = self.trace[place.event].spot
        path = (*(spot.path if loop is spot.instruction else spot.path[:-1]), loop.name)
        entered = self._last(path[:-1], loop.operands[0], place.event)
        given = self._last(path, dict(loop.regions())["body"].root, before)
        if given is not None and (entered is None or given > entered):
            yield ElementOf(given, place.part, place.element)
        elif entered is not None:
            yield ElementOf(entered, place.part, place.element)

    def _of_caller(self, place: ElementOf, parameter: Instruction) -> Iterator[ElementOf]:
        """The operand that a caller passed for a parameter."""
        path = self.trace[place.event].spot.path
        name, _, branch = (path[-1] if path else "").partition(" branch ")
        caller = next((each for each in self._callers.get(parameter, ()) if each.name == name), None)
        if caller is None:
            return
        if caller.opcode == "while":
            yield from self._of_loop(place, place.event, caller)
            return
        number = 1 + int(branch) if branch else parameter.attributes.number
        if caller.opcode in ("call", "conditional", "fusion", "async_start") and number < len(caller.operands):
            given = self._last(path[:-1], caller.operands[number], place.event)
            yield from () if given is None else (ElementOf(given, place.part, place.element),)

    def _last(self, path: tuple[str, ...], instruction: Instruction, before: int) -> int | None:
        """The last event of an instruction before the event `before`, on the same device."""
        return self.trace.last(int(self.trace.device[before]), path, instruction, before)

    def _from_others(self, place: ElementOf) -> Iterator[ElementOf]:
        """The source elements on the members of a group, or on the sender."""
        transfer, meeting = self._transfers.get(place.event), self._meetings.get(place.event)
        if transfer is not None:
            yield from self._operand(transfer.send, 0, None, place.element)
            return
        assert meeting is not None
        members = of_members(meeting) if place.element is not None else ()
        parts = dict(zip(meeting.group, members, strict=False)).get(int(self.trace.device[place.event]), ())
        table = next((each for each in parts if each.part == place.part), None)
        if table is None or place.element is None or place.element >= len(table.element):
            yield from map(ElementOf, self._remote.get(place.event, ()))
            return
        starts = {int(self.trace.device[event]): bringing(self.trace, event) for event in meeting.events}
        rows = zip(
            *(each[place.element].tolist() for each in (table.device, table.operand, table.element)), strict=True
        )
        for device, operand, element in rows:
            if device in starts:
                yield from self._operand(starts[device], operand, None, element)

    def _guilty(self, place: ElementOf, made: Sequence[Made]) -> Made:
        """The source to follow: a NaN, else an infinity, else the largest weight; of equal ones the latest event."""
        divides = self.trace[place.event].instruction.opcode in ("divide", "remainder")
        divisor = self.trace.operands(place.event)[1] if divides else None
        return max(made, key=lambda each: (*_weight(each.number, each.place.event == divisor), each.place.event))


def _counts(values: Sequence[Any], number: int) -> bool:
    """Whether an operand contributes to the number: indices and predicates do not, where other operands are floats."""
    kinds = [getattr(getattr(each, "dtype", None), "kind", "") for each in values]
    return kinds[number] not in ("b", "i", "u") or all(kind in ("b", "i", "u") for kind in kinds)


def _wrong(value: Any, what: str) -> int | None:
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "fcV":
        return None
    found = np.flatnonzero(np.isnan(value) if what == "NaN" else np.isinf(value))
    return int(found[0]) if found.size else None


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
