"""Commands of `xbuild step` that move forward, back, to a place, to a device, or to a value that meets a condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shape_inference import TokenShape, TupleShape

from ..properties.effects import is_under_way, spelling
from ..traces import Event
from ..traces.compare import compare_traces
from .asking import Asking
from .conditions import ConditionError, condition
from .face import Piece
from .walk import communicates

Wanted = Callable[[Event], Any]


class Moving(Asking):
    """The commands that move forward and back on a device, and between devices."""

    def do_next(self, line: str) -> None:
        """next [N] (n, j, s, step): go on by one instruction, or by N."""
        if line.startswith("to "):
            self.do_to(line[3:])
        else:
            self._by(line, 1)

    def do_back(self, line: str) -> None:
        """back [N] (b, k): go back by one instruction, or by N.

        back            one instruction back
        back 5          five instructions back
        back to add.3   to the last execution of add.3 before this place
        back until any(isnan(v)) and back comm search as `until` and `comm` do, backwards
        """
        word, _, rest = line.partition(" ")
        searches = {"to": self._to, "until": self._until, "comm": self._comm}
        if word in searches:
            searches[word](rest.strip(), -1)
        else:
            self._by(line, -1)

    def _by(self, line: str, way: int) -> None:
        count = self.number(line or "1")
        if count is not None:
            if self.walk.by(way * count) or not count:
                self.arrived()
            else:
                self.fault(self._end() if way > 0 else "the run begins here")

    def _end(self) -> str:
        """The fault of a move past the last event of a device, with the wait of the device."""
        state = self.waits.state(self.walk.device, self.trace.end)
        return f"the run has ended here{f': {state.waits}' if state.waits else ''}"

    def do_to(self, line: str) -> None:
        """to PLACE (t): go to an instruction, trip, step, device or end.

        to add.3          the next execution of add.3 on this device
        to all-reduce     the next all-reduce on this device, of any name
        to trip 3         the next instruction in the third trip of its innermost loop
        to step 12        the place of this device at step 12 of the run, before or after this one
        to device 1       the place of device 1 at this step
        to start, to end  the first and the last instruction of this device
        """
        self._to(line.strip(), 1)

    def _to(self, line: str, way: int) -> None:
        word, _, rest = line.partition(" ")
        known = {"trip": self._to_trip, "step": self._to_step, "device": self._to_device}
        if line in ("start", "end"):
            self.walk.put(0 if line == "start" else len(self.walk.lane))
            self.arrived()
        elif word in known and rest:
            known[word](rest.strip(), way)
        elif not line:
            self.fault("a place is wanted: an instruction, or trip N, step N, device N, start, end")
        elif line in self.opcodes or self.is_known(line):
            again = "does not come" if way > 0 else "has not come"
            self._go(lambda event: line in (event.instruction.name, spelling(event.instruction.opcode)), way,
                     f"device {self.walk.device} {again} to {line} {'again' if way > 0 else 'before'}")  # fmt: skip

    def _to_trip(self, text: str, way: int) -> None:
        number = self.number(text)
        if number is not None:
            trips = self.trace.trips
            wanted = lambda event: (found := trips(event.number)) and found[-1][1] == number  # noqa: E731
            self._go(wanted, way, f"no loop has a trip {number} from here {'on' if way > 0 else 'back'}")

    def _to_step(self, text: str, way: int) -> None:
        number = self.number(text)
        if number is not None:
            self.walk.at(number)
            self.arrived()

    def _to_device(self, text: str, way: int) -> None:
        number = self.number(text)
        if number is not None and self.is_device(number):
            self.walk.on(number)
            self.arrived()

    def do_trip(self, line: str) -> None:
        """trip N: go on to trip N of a loop, as `to trip N`."""
        self._to_trip(line, 1)

    def do_device(self, line: str) -> None:
        """device N (d): go to another device, at this step."""
        self._to_device(line, 1)

    def do_comm(self, line: str) -> None:
        """comm (c): go on to the next instruction that communicates.

        With other devices, or with the host."""
        self._comm(line, 1)

    def _comm(self, line: str, way: int) -> None:
        self._go(communicates, way, f"nothing on this device communicates from here {'on' if way > 0 else 'back'}")

    def do_until(self, line: str) -> None:
        """until [NAME] CONDITION (u): go on to a value v that meets it.

        until v > 3                    the next value with an element above 3
        until any(isnan(v))            the next value with a NaN
        until add.3 max(abs(v)) < 0.1  the next value of add.3 for which this holds
        A condition may use abs all any isfinite isinf isnan max mean min sum, v[0, 1:3], + - * / // %, and, or, not.
        Where only a summary of a large value was kept, the condition is decided by its range and its numbers of NaN
        and infinity, if they suffice. `back until ...` searches backwards.
        """
        self._until(line, 1)

    def _until(self, line: str, way: int) -> None:
        name, text = self.named(line)
        try:
            holds = condition(text)
        except ConditionError as error:
            word = text.partition(" ")[0]
            self.fault(self.unknown(word) if self.is_name(word) and word != "not" else str(error))
            return
        undecided: list[Event] = []

        def wanted(event: Event) -> bool:
            if name not in ("", event.instruction.name) or not _has_value(event):
                return False
            found = holds(self.trace.values.get(event.number))
            if found is None:
                undecided.append(event)
            return bool(found)

        otherwise = f"no value on this device from here {'on' if way > 0 else 'back'} has {line.strip()}"
        if self._go(wanted, way, lambda: otherwise + _left_open(undecided)) and undecided:
            self.face.prose(Piece(_left_open(undecided).removeprefix("; "), "waits"))

    def _go(self, wanted: Wanted, way: int, otherwise: str | Callable[[], str]) -> bool:
        found = self.walk.to(wanted, way)
        if found:
            self.arrived()
        else:
            self.fault(otherwise() if callable(otherwise) else otherwise)
        return found

    def do_part(self, line: str) -> None:
        """part A B: go to the first value that differs between them.

        A and B are two devices."""
        pair = self.devices(line.split())
        if pair is None:
            return
        found = compare_traces(self.trace, self.trace, pair).difference
        if found is None:
            self.face.say(f"devices {pair[0]} and {pair[1]} have the same values, as far as they were kept")
            return
        self.walk.stand(found.first)
        self.arrived()
        self.differ(self.trace[found.first].instruction.name, pair, [self.trace.values.get(n) for n in
                                                                    (found.first, found.second)])  # fmt: skip


def _has_value(event: Event) -> bool:
    """Whether the value of an event has numbers, kept or not."""
    return not isinstance(event.instruction.shape, TokenShape | TupleShape) and not is_under_way(event.instruction)


def _left_open(events: Sequence[Event]) -> str:
    """The text that counts the values on the way for which a condition could not be decided."""
    if not events:
        return ""
    first = f"the first is that of {events[0].instruction.name} at step {events[0].time}"
    which = f"{len(events):,} values" if len(events) > 1 else "1 value"
    return f"; of {which} on the way it cannot be decided, since they are not kept whole: {first}"
