"""Commands of `xbuild step` that show the place, the program, devices, values, tiles and differences.

Sections:

    Values drawn in a terminal
    Commands that show the place, the program, devices and values
    Commands for a partitioned program
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from shape_inference import Shape
from shape_inference.escaping import in_line

from ..core.attributes import Array
from ..core.report_text import Line, StyledText
from ..sharding.partition import Partitioned, Tiling, join_parts
from ..sharding.propagation import short
from ..traces import Event, Summary, summary
from ..traces.questions import apart
from ..traces.summary import numbers, said
from .conditions import ConditionError, expression
from .console import HEATS
from .place import CommandBase, value_text

# ----------------------------------------------------------------------------
# Values drawn in a terminal
#
# A small table of numbers, or bars of block means, coloured by magnitude.

ROWS, COLUMNS = 16, 12
"""The extents of the largest table of numbers; larger values are shown by bars."""


def value_lines(value: Any, blocks: str) -> Iterator[Line]:
    """The lines that show a value: a table of numbers, or bars of `blocks` if there are too many numbers."""
    if isinstance(value, tuple):
        for number, part in enumerate(value):
            lines = [*value_lines(part, blocks)]
            yield [f"({number}) ", *lines[0]] if lines else [f"({number})"]
            yield from (["    ", *line] for line in lines[1:])
        return
    if isinstance(value, np.ndarray) and _is_small(value):
        yield from _table_lines(value)
        return
    yield [said(value)]
    summarized = summary(value) if isinstance(value, np.ndarray) and value.ndim else value
    if isinstance(summarized, Summary) and summarized.cells.size:
        yield from _bar_lines(summarized.cells, blocks)


def _is_small(value: Array) -> bool:
    if value.ndim == 1:
        return 0 < value.size <= 64
    return value.ndim == 2 and 0 < value.size <= ROWS * COLUMNS and value.shape[-1] <= COLUMNS


def _table_lines(value: Array) -> Iterator[Line]:
    """The rows of a table of numbers, right-aligned; a vector has eight numbers in a row."""
    per_row = 8 if value.ndim == 1 else value.shape[-1]
    texts, warmth = [_number_text(number) for number in value.flat], _heat(numbers(value)).ravel().tolist()
    width = max(map(len, texts))
    for start in range(0, value.size, per_row):
        row, heats = texts[start : start + per_row], warmth[start : start + per_row]
        yield [StyledText(text.rjust(width + 2 * (n > 0)), f"heat{heat}") for n, (text, heat) in
               enumerate(zip(row, heats, strict=True))]  # fmt: skip


def _bar_lines(cells: Array, blocks: str) -> Iterator[Line]:
    for row in _heat(cells).tolist():
        yield ["  ", *(StyledText(blocks[heat] * 2, f"heat{heat}") for heat in row)]


def inline_bars(value: Any, blocks: str) -> list[StyledText]:
    """The bars of a short vector, within one line; empty for other values."""
    if not isinstance(value, np.ndarray) or value.ndim != 1 or not 1 < value.size <= 64:
        return []
    return [StyledText(blocks[heat], f"heat{heat}") for heat in _heat(numbers(value)).tolist()]


def _heat(array: Array) -> Array:
    """The step of each element on a scale from the smallest to the largest; 0 for an element that is not finite."""
    finite = np.where(np.isfinite(array), array, np.nan)
    if np.isnan(finite).all():
        return np.zeros(array.shape, np.int64)
    low, high = float(np.nanmin(finite)), float(np.nanmax(finite))
    with np.errstate(all="ignore"):
        share = np.nan_to_num((finite / 2 - low / 2) / (high / 2 - low / 2 or 1.0))
    return np.clip((share * HEATS).astype(np.int64), 0, HEATS - 1)


def _number_text(value: Any) -> str:
    if value.dtype.kind == "b":
        return str(bool(value)).lower()
    if value.dtype.kind in "iu":
        return str(value)
    if value.dtype.kind == "c":
        return f"{complex(value):.4g}"
    try:
        return f"{float(value):.5g}"
    except (TypeError, ValueError):
        return str(value)


# ----------------------------------------------------------------------------
# Commands that show the place, the program, devices and values

MOST = 16
"""The maximum number of devices, and of different elements, to show."""


class ShowCommands(CommandBase):
    """The commands that show the place, the program, the devices, values and their differences."""

    views = ("line", "full")
    view = "line"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.watched: list[str] = []

    def show_place(self) -> None:
        self._show_event()
        if self.view == "full" and self.place.event is not None:
            self.console.say()
            self._show_program(self.place.event, 3)
            if self.trace.num_devices > 1:
                self.console.say()
                self._show_devices()
        for line in self.watched:
            if fault := self._show_value(line):
                self.console.say(StyledText(f"{line}: {fault}", "dim"))

    def do_where(self, line: str) -> None:
        """where (w): show the program here, the value, the devices."""
        before, self.view = self.view, "full"
        self.show_place()
        self.view = before

    def do_view(self, line: str) -> None:
        """view full|line: choose what to show after a move.

        The default is full at a terminal, and line in a script.
        """
        if line.strip() not in self.views:
            self.fault(f"unknown view {line.strip()!r}; expected {' or '.join(self.views)}")
            return
        self.view = line.strip()

    def _show_event(self) -> None:
        event = self.place.event
        if event is None:
            self.console.say(f"device {self.place.device} has not started")
            return
        self.console.say(*self._row(event, "here"))
        if event.instruction.source:
            self.console.say(StyledText(f"    {event.instruction.source}", "dim"))
        if waits := self.waits.state(self.place.device, self.place.time).waits:
            self.console.say(StyledText(f"    {waits}", "waits"))

    def _row(self, event: Event, style: str = "") -> list[str | StyledText]:
        value = self.trace.values.get(event.number)
        waited = [StyledText(f"  (waited {event.waited})", "waits")] if event.waited else []
        bars = inline_bars(value, self.console.blocks)
        after: list[str | StyledText] = ["  ", *bars] if bars else []
        return [
            f"device {event.device}  step {event.time}  ",
            StyledText(self.trace.standing(event.number), style or "name"),
            *waited, " = ", value_text(event.instruction, value), *after,
        ]  # fmt: skip

    def do_program(self, line: str) -> None:
        """program [N] (pr): show the program around here, with values.

        N lines before and after, 8 by default. In a loop the values are those of this trip.
        """
        count = self.number(line or "8")
        if count is not None and self.place.event is not None:
            self._show_program(self.place.event, count)

    def _show_program(self, event: Event, each_way: int) -> None:
        title, *lines = self.listing.around(event, each_way)
        self.console.say(*title)
        self.console.rows(lines)

    def do_list(self, line: str) -> None:
        """list [N] (l): list what this device runs before and after.

        N instructions before and after, 4 by default."""
        count = self.number(line or "4")
        if count is None:
            return
        here = self.place.index
        for index in range(max(0, here - count), min(len(self.place.lane), here + count + 1)):
            row = self._row(self.trace[int(self.place.lane[index])], "here" if index == here else "")
            self.console.say("-> " if index == here else "   ", *row)

    def do_devices(self, line: str) -> None:
        """devices (ds): list where each device is, and what it waits for."""
        self._show_devices(self.trace.num_devices)

    def _show_devices(self, most: int = MOST) -> None:
        count = self.trace.num_devices
        self.console.rows(self._device_row(device, self.place.time) for device in range(min(count, most)))
        if count > most:
            self.console.say(StyledText(f"   ... and {count - most} more; `devices` lists all devices", "dim"))

    def _device_row(self, device: int, time: int) -> Line:
        state = self.waits.state(device, time)
        is_here = device == self.place.device
        name = StyledText(f"{'->' if is_here else '  '} device {device}", "here" if is_here else "")
        if state.number is None:
            return [name, "has not started", StyledText(state.waits, "waits")]
        event = self.trace[state.number]
        standing = StyledText(f"{self.trace.standing(state.number)}", "dim" if state.ended else "name")
        waits = StyledText("has ended", "dim") if state.ended else StyledText(state.waits, "waits")
        return [name, f"step {event.time}", standing, waits]

    def do_print(self, line: str) -> None:
        """print [NAME] [EXPRESSION] (p): print a value, or an expression.

        print                 the value of this instruction
        print add.3           the last value of add.3: its numbers, or bars if there are many
        print add.3 v[0:2]    a part of that value
        print max(abs(v))     an expression of the value v here; `help until` lists the functions
        """
        if fault := self._show_value(line):
            self.fault(fault)

    def _show_value(self, line: str) -> str:
        """Print the value that a line names; returns a message if there is none, else an empty text."""
        event = self.place.event
        name, text = self.split_name(line)
        if event is None:
            return "this device has not computed a value yet"
        if self.is_name(text):
            return self.unknown(text)
        name = name or event.instruction.name
        try:
            value = self.place.value_of(name, self.place.device)
            value = expression(text)(value) if text and value is not None else value
        except KeyError:
            return f"device {self.place.device} has not reached {name} by this step"
        except ConditionError as error:
            return str(error)
        self._draw_value(f"{name} {text}".strip(), value)
        return ""

    def _draw_value(self, title: str, value: Any) -> None:
        first, *others = [*value_lines(value, self.console.blocks)] or [[said(value)]]
        is_beside_title = not others or (isinstance(first[0], str) and not isinstance(value, tuple))
        shape = f" {_shape(value)}" if isinstance(value, np.ndarray) and value.ndim and first[0] != said(value) else ""
        beside = first if is_beside_title else ()
        self.console.say(StyledText(title, "name"), StyledText(shape, "dim"), " = ", *beside)
        for line in others if is_beside_title else (first, *others):
            self.console.say("  ", *line)

    def do_watch(self, line: str) -> None:
        """watch [NAME] [EXPRESSION]: print it after each move.

        NAME and EXPRESSION are as for `print`. Without them, list the watches.
        """
        if line.strip():
            self.watched.append(line.strip())
            if fault := self._show_value(line):
                self.console.say(StyledText(f"{line}: {fault}", "dim"))
        else:
            for number, watch in enumerate(self.watched):
                self.console.say(f"{number}  {watch}")

    def do_unwatch(self, line: str) -> None:
        """unwatch [N]: remove watch N, or all of them."""
        number = self.number(line) if line.strip() else None
        if not line.strip():
            self.watched.clear()
        elif number is not None and number < len(self.watched):
            del self.watched[number]
        elif number is not None:
            self.fault(f"watch {number} does not exist; the number of watches is {len(self.watched)}")

    def do_diff(self, line: str) -> None:
        """diff [NAME] A B: compare a value on two devices.

        diff 0 1        the value of this instruction
        diff add.3 0 1  the last value of add.3 by this step
        """
        name, rest = self.split_name(line)
        pair = self.devices(rest.split())
        event = self.place.event
        if pair is None or event is None:
            return
        name = name or event.instruction.name
        values = []
        for device in pair:
            values.append(self.value(name, device))
            if self.missing(values[-1]):
                return
        self.show_difference(name, pair, values)

    def show_difference(self, name: str, devices: tuple[int, int], values: Sequence[Any]) -> None:
        for device, value in zip(devices, values, strict=True):
            self.console.say(f"{name} on device {device} = {said(value)}")
        if any(value is None for value in values):
            self.console.say("not compared: a value was not recorded")
            return
        difference = apart(*values)
        if difference is None:
            self.console.say(StyledText("the values are the same", "good"))
            return
        index, gap = difference
        self.console.say(StyledText(f"the values differ{f' at {list(index)}' if index else ''}{_gap(gap)}", "bad"))
        if index and all(isinstance(value, np.ndarray) for value in values):
            self._show_different_elements(devices, *values)

    def _show_different_elements(self, devices: tuple[int, int], a: Any, b: Any) -> None:
        """Print a table of the elements that differ."""
        off = np.argwhere((a != b) & ~((a != a) & (b != b)))
        heads = ["element", *(f"device {device}" for device in devices)]
        rows = [[str(place.tolist()), *(said(each[tuple(place)]) for each in (a, b))] for place in off[:MOST]]
        self.console.rows([[StyledText(head, "dim") for head in heads], *rows], "  ")
        self.console.say(StyledText(f"  {len(off):,} of {a.size:,} elements differ", "dim"))


def _gap(gap: float | None) -> str:
    return "" if gap is None else f", by at most {gap:.6g}"


def _shape(value: Any) -> str:
    from shape_inference import primitive_type

    return f"{primitive_type(value.dtype)}[{','.join(map(str, value.shape))}]"


# ----------------------------------------------------------------------------
# Commands for a partitioned program
#
# The tile that a value is, and the global array of all tiles.

_WIDE = 96


class TileCommands(ShowCommands):
    """The commands that show which global array a value is a tile of, and why a collective was inserted."""

    partitioned: Partitioned | None = None

    def _show_event(self) -> None:
        super()._show_event()
        event = self.place.event
        if self.partitioned is None or event is None:
            return
        name = event.instruction.name
        if tiling := self.partitioned.held.get(name):
            self.console.say(StyledText(f"    {_tile_text(tiling, self.place.device)}", "dim"))
        for communication in self.partitioned.communications:
            if communication.name == name:
                for line in textwrap.wrap(f"inserted: {in_line(communication.reason)}", _WIDE):
                    self.console.say(StyledText(f"    {line}", "meets"))

    def do_whole(self, line: str) -> None:
        """whole [NAME] (g): print the global array that a value is a tile of.

        It joins the tiles that all devices hold at this step, in a run with --partition.
        """
        event = self.place.event
        name = line.strip().lstrip("%") or (event.instruction.name if event is not None else "")
        tiling = None if self.partitioned is None else self.partitioned.held.get(name)
        if self.partitioned is None:
            self.fault("this command did not partition the program: use `xbuild step TARGET --partition`")
        elif tiling is None:
            self.fault(f"{name} is not a tile of a global array" if name in self.names else self.unknown(name))
        elif tiling.sharding.unreduced:
            self.fault(
                f"{name} is a partial sum of %{tiling.value} on each device; the next collective adds the partial sums"
            )
        else:
            self._show_global_array(name, tiling)

    def _show_global_array(self, name: str, tiling: Tiling) -> None:
        try:
            parts = [self.place.value_of(name, device) for device in range(self.trace.num_devices)]
        except KeyError:
            self.fault(f"not all devices have reached {name} by this step")
            return
        assert isinstance(tiling.shape, Shape)
        if any(getattr(part, "shape", None) != tiling.local for part in parts):
            self.fault(f"the values of {name} were not fully recorded")
            return
        title = f"%{tiling.value} {short(tiling.sharding)}"
        self._draw_value(title, join_parts(parts, tiling.shape, tiling.sharding))


def _tile_text(tiling: Tiling, device: int) -> str:
    """The position of a device's tile in its global array."""
    spans = tiling.ranges(tuple(tiling.place[device].tolist()))
    ranges = (":" if parts == 1 else f"{low}:{high}" for parts, (low, high) in zip(tiling.tiles, spans, strict=True))
    note = ", a partial sum" if tiling.sharding.unreduced else ""
    sharding = in_line(short(tiling.sharding))
    return f"tile [{', '.join(ranges)}] of %{in_line(tiling.value)} {tiling.shape} {sharding}{note}"
