"""Commands of `xbuild step` that show the place, the program, the devices, values and their differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..traces import Event
from ..traces.compare import apart
from ..traces.saying import said
from .asking import Asking
from .conditions import ConditionError, expression
from .face import Line, Piece
from .listing import told
from .picture import picture, spark

MOST = 16
"""The greatest number of devices, and of differing elements, that are shown."""


class Looking(Asking):
    """The commands that show the place, the program, the devices, values and their differences."""

    views = ("line", "full")
    view = "line"

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.watched: list[str] = []

    def arrived(self) -> None:
        self._place()
        if self.view == "full" and self.walk.event is not None:
            self.face.say()
            self._program(self.walk.event, 3)
            if self.trace.num_devices > 1:
                self.face.say()
                self._devices()
        for line in self.watched:
            if wrong := self._show(line):
                self.face.say(Piece(f"{line}: {wrong}", "dim"))

    def do_where(self, line: str) -> None:
        """where (w): show the program around, the value, the devices."""
        before, self.view = self.view, "full"
        self.arrived()
        self.view = before

    def do_view(self, line: str) -> None:
        """view full|line: set how much is shown after a move.

        The default is full at a terminal, and a line in a script.
        """
        if line.strip() not in self.views:
            self.fault(f"{line.strip()!r} is no view: there are {' and '.join(self.views)}")
            return
        self.view = line.strip()

    def _place(self) -> None:
        event = self.walk.event
        if event is None:
            self.face.say(f"device {self.walk.device} has not begun")
            return
        self.face.say(*self._row(event, "here"))
        if event.instruction.source:
            self.face.say(Piece(f"    {event.instruction.source}", "dim"))
        if waits := self.waits.state(self.walk.device, self.walk.time).waits:
            self.face.say(Piece(f"    {waits}", "waits"))

    def _row(self, event: Event, style: str = "") -> list[str | Piece]:
        value = self.trace.values.get(event.number)
        waited = [Piece(f"  (waited {event.waited})", "waits")] if event.waited else []
        bars = spark(value, self.face.blocks)
        drawn: list[str | Piece] = ["  ", *bars] if bars else []
        return [
            f"device {event.device}  step {event.time}  ", Piece(self.trace.standing(event.number), style or "name"),
            *waited, " = ", told(event.instruction, value), *drawn,
        ]  # fmt: skip

    def do_program(self, line: str) -> None:
        """program [N] (pr): show the program around here, with values.

        N lines each way, 8 where N is not given. In a loop the values are those of this trip.
        """
        count = self.number(line or "8")
        if count is not None and self.walk.event is not None:
            self._program(self.walk.event, count)

    def _program(self, event: Event, each_way: int) -> None:
        title, *lines = self.listing.around(event, each_way)
        self.face.say(*title)
        self.face.rows(lines)

    def do_list(self, line: str) -> None:
        """list [N] (l): list what this device runs before and after.

        N instructions each way, 4 where N is not given."""
        count = self.number(line or "4")
        if count is None:
            return
        here = self.walk.place
        for place in range(max(0, here - count), min(len(self.walk.lane), here + count + 1)):
            row = self._row(self.trace[int(self.walk.lane[place])], "here" if place == here else "")
            self.face.say("-> " if place == here else "   ", *row)

    def do_devices(self, line: str) -> None:
        """devices (ds): list where each device is, and which it waits for."""
        self._devices(self.trace.num_devices)

    def _devices(self, most: int = MOST) -> None:
        count = self.trace.num_devices
        self.face.rows(self._device(device, self.walk.time) for device in range(min(count, most)))
        if count > most:
            self.face.say(Piece(f"   ... and {count - most} more: `devices` has all", "dim"))

    def _device(self, device: int, time: int) -> Line:
        state = self.waits.state(device, time)
        is_here = device == self.walk.device
        name = Piece(f"{'->' if is_here else '  '} device {device}", "here" if is_here else "")
        if state.number is None:
            return [name, "has not begun", Piece(state.waits, "waits")]
        event = self.trace[state.number]
        standing = Piece(f"{self.trace.standing(state.number)}", "dim" if state.ended else "name")
        waits = Piece("has ended", "dim") if state.ended else Piece(state.waits, "waits")
        return [name, f"step {event.time}", standing, waits]

    def do_print(self, line: str) -> None:
        """print [NAME] [EXPRESSION] (p): print a value, or an expression.

        print                 the value of this instruction
        print add.3           the last value of add.3: its numbers, or bars where there are many
        print add.3 v[0:2]    a part of that value
        print max(abs(v))     an expression of the value v here; `help until` lists the functions
        """
        if wrong := self._show(line):
            self.fault(wrong)

    def _show(self, line: str) -> str:
        """Print the value that a line names; the text of the fault where there is none, else empty."""
        event = self.walk.event
        name, text = self.named(line)
        if event is None:
            return "this device has no value yet"
        if self.is_name(text):
            return self.unknown(text)
        name = name or event.instruction.name
        try:
            value = self.walk.value_of(name, self.walk.device)
            value = expression(text)(value) if text and value is not None else value
        except KeyError:
            return f"device {self.walk.device} has not come to {name} by now"
        except ConditionError as error:
            return str(error)
        self._picture(f"{name} {text}".strip(), value)
        return ""

    def _picture(self, title: str, value: Any) -> None:
        first, *others = [*picture(value, self.face.blocks)] or [[said(value)]]
        stands_alone = not others or (isinstance(first[0], str) and not isinstance(value, tuple))
        shape = f" {_shape(value)}" if isinstance(value, np.ndarray) and value.ndim and first[0] != said(value) else ""
        self.face.say(Piece(title, "name"), Piece(shape, "dim"), " = ", *(first if stands_alone else ()))
        for each in others if stands_alone else (first, *others):
            self.face.say("  ", *each)

    def do_watch(self, line: str) -> None:
        """watch [NAME] [EXPRESSION]: print it after each move.

        NAME and EXPRESSION are as for `print`. Without them, the list of what is watched.
        """
        if line.strip():
            self.watched.append(line.strip())
            if wrong := self._show(line):
                self.face.say(Piece(f"{line}: {wrong}", "dim"))
        else:
            for number, each in enumerate(self.watched):
                self.face.say(f"{number}  {each}")

    def do_unwatch(self, line: str) -> None:
        """unwatch [N]: end watch N, or all of them."""
        number = self.number(line) if line.strip() else None
        if not line.strip():
            self.watched.clear()
        elif number is not None and number < len(self.watched):
            del self.watched[number]
        elif number is not None:
            self.fault(f"{number} is none of the {len(self.watched)} that are watched")

    def do_diff(self, line: str) -> None:
        """diff [NAME] A B: compare a value on two devices.

        diff 0 1        the value of this instruction
        diff add.3 0 1  the last value of add.3 by this step
        """
        name, rest = self.named(line)
        pair = self.devices(rest.split())
        event = self.walk.event
        if pair is None or event is None:
            return
        name = name or event.instruction.name
        values = []
        for device in pair:
            values.append(self.value(name, device))
            if self.missing(values[-1]):
                return
        self.differ(name, pair, values)

    def differ(self, name: str, devices: tuple[int, int], values: Sequence[Any]) -> None:
        for device, value in zip(devices, values, strict=True):
            self.face.say(f"{name} on device {device} = {said(value)}")
        if any(value is None for value in values):
            self.face.say("what was not kept is not compared")
            return
        found = apart(*values)
        if found is None:
            self.face.say(Piece("the same", "good"))
            return
        index, gap = found
        self.face.say(Piece(f"they differ{f' at {list(index)}' if index else ''}{_gap(gap)}", "bad"))
        if index and all(isinstance(value, np.ndarray) for value in values):
            self._elements(devices, *values)

    def _elements(self, devices: tuple[int, int], a: Any, b: Any) -> None:
        """Print a table of the elements that differ."""
        off = np.argwhere((a != b) & ~((a != a) & (b != b)))
        heads = ["element", *(f"device {device}" for device in devices)]
        rows = [[str(place.tolist()), *(said(each[tuple(place)]) for each in (a, b))] for place in off[:MOST]]
        self.face.rows([[Piece(head, "dim") for head in heads], *rows], "  ")
        self.face.say(Piece(f"  {len(off):,} of {a.size:,} elements differ", "dim"))


def _gap(gap: float | None) -> str:
    return "" if gap is None else f", by {gap:.6g} at most"


def _shape(value: Any) -> str:
    from shape_inference import primitive_type

    return f"{primitive_type(value.dtype)}[{','.join(map(str, value.shape))}]"
