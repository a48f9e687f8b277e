"""`Cost`: what a program costs, row by row and in sums, and the report of it as text.

Sections:

    Cost: what a program costs, row by row and in sums
    The report as text
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Literal, TypeAlias, get_args

from attrs import asdict, field, frozen

from shape_inference import AnyShape, Shape, TupleShape, refuse
from shape_inference.escaping import in_line

from ..core.graph import Instruction, Module
from ..core.hooks import Reported
from ..core.issues import Issue, place_facts
from ..core.op import OPS
from ..core.report_text import MOST_ROWS, Line, headed
from ..process.progress import over
from ..properties.effects import name_in_report
from ..properties.mesh import Mesh
from ..properties.trip_counts import known_trips
from .collectives import CollectiveCost, LinesOfCollectives
from .memory import Memory, memory_of
from .work import Work

# ----------------------------------------------------------------------------
# Cost: what a program costs, row by row and in sums

By: TypeAlias = Literal["scope", "op", "axis"]
"""What rows are summed by."""


@frozen(kw_only=True)
class CostRow:
    """One instruction in a computation; each of `devices` devices executes it `times` times.

    `work` and `bytes` count one execution. `flops`, `transcendentals` and all other numbers count all executions on one
    device. `is_known` is False inside a loop with an unknown trip count, which counts as one trip.
    """

    instruction: Instruction
    computation: str
    scope: str
    program: int
    devices: int
    times: int
    is_known: bool
    work: Work
    bytes_read: int
    bytes_written: int
    collective: CollectiveCost | None = None

    @property
    def op(self) -> str:
        return self.instruction.opcode.replace("_", "-")

    @property
    def axis(self) -> str:
        """The mesh axes of the collective; `pairs` for a transfer between pairs of devices; empty for work on a single
        device."""
        return (self.collective.axes or "pairs") if self.collective else ""

    @property
    def flops(self) -> int:
        return self.work.flops * self.times

    @property
    def transcendentals(self) -> int:
        return self.work.transcendentals * self.times

    @property
    def bytes(self) -> int:
        return (self.bytes_read + self.bytes_written) * self.times

    @property
    def link_bytes(self) -> int:
        return self.collective.link_bytes * self.times if self.collective else 0

    @property
    def steps(self) -> int:
        return self.collective.steps * self.times if self.collective else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data."""
        facts = {name: getattr(self, name) for name in ("op", "computation", "scope", "program", "times", "is_known")}
        place = place_facts(self.instruction.source)
        return {"name": self.instruction.name, **facts, **place, **_cost_fields(self), **_collective(self.collective)}


COST_FIELDS = ("flops", "transcendentals", "bytes", "link_bytes", "steps")


def _cost_fields(thing: Any) -> dict[str, int]:
    return {name: getattr(thing, name) for name in COST_FIELDS}


def _collective(found: CollectiveCost | None) -> dict[str, Any]:
    if found is None:
        return {}
    ways = [{name: getattr(way, name) for name in ("name", "steps", "link_bytes", "total_bytes")}
            for way in found.algorithms]  # fmt: skip
    facts = {name: getattr(found, name) for name in ("axes", "group_size", "num_groups", "payload", "is_bound")}
    return {"collective": {**facts, "algorithms": ways}}


@frozen
class Sum:
    """The sums over all rows of one kind, for one device; `rows` is the number of instructions."""

    name: str
    rows: int
    flops: int
    transcendentals: int
    bytes: int
    link_bytes: int
    steps: int


_KEYS: dict[str, Callable[[CostRow], str]] = {
    "scope": lambda row: row.scope or "(no scope)",
    "op": lambda row: row.op,
    "axis": lambda row: row.axis,
}


@frozen(repr=False)
class Cost(Reported):
    """The cost of a program on one device; for several programs, the cost on the device with the most FLOPs.

    The memory is that of the device with the highest peak. `rows` contains the rows of all programs. `mesh` is the
    given mesh, or the mesh inferred from the device groups. `first_devices` lists the first device of each program.
    """

    name: str
    num_devices: int
    mesh: Mesh | None
    rows: tuple[CostRow, ...] = field(repr=False)
    programs: tuple[Module, ...] = field(repr=False, default=())
    first_devices: tuple[int, ...] = (0,)

    @cached_property
    def memory(self) -> Memory:
        """The memory on one device, in the order of the instructions: its peak, the arrays live there, and the curve.

        With several programs, that of the program with the highest peak.
        Raises cycle, foreign_value if a computation cannot be put in order.

        >>> import xbuild as xb
        >>> twice = xb.computation(xb.f32[256])(lambda x: xb.exp(x) * 2.0)
        >>> memory = xb.cost(twice).memory
        >>> memory.peak, memory.arguments, memory.outputs, memory.curve.bytes.tolist()
        (3072, 1024, 1024, [1024, 2048, 2048, 3072, 3072])
        """
        return self._highest[1]

    @cached_property
    def _highest(self) -> tuple[int, Memory]:
        """The first program with the highest peak, and its memory."""
        return max(
            enumerate(map(memory_of, over(self.programs, "laying out memory", "programs"))),
            key=lambda each: each[1].peak,
        )

    @property
    def memory_device(self) -> int:
        """The device that `memory` describes: the first device with the highest peak."""
        return self.first_devices[self._highest[0]]

    @property
    def peak_memory(self) -> int:
        """The most bytes of arrays that are live at once on a device: `memory.peak`."""
        return self.memory.peak

    @property
    def reserved_memory(self) -> int:
        """The bytes that XLA reserves on a device for a run: `memory.reserved`."""
        return self.memory.reserved

    @cached_property
    def _program(self) -> list[CostRow]:
        """The rows of the program with the most FLOPs."""
        sums: dict[int, int] = {}
        for row in self.rows:
            sums[row.program] = sums.get(row.program, 0) + row.flops
        most = max(sums, key=sums.__getitem__, default=0)
        return [row for row in self.rows if row.program == most]

    @cached_property
    def _sums(self) -> dict[str, int]:
        """The sums of that program."""
        return {name: sum(getattr(row, name) for row in self._program) for name in COST_FIELDS}

    @property
    def flops(self) -> int:
        """The number of additions, multiplications, comparisons and so on; a multiply-add counts as two."""
        return self._sums["flops"]

    @property
    def transcendentals(self) -> int:
        """The number of evaluations of exp, log, sine and similar functions, which `flops` does not count."""
        return self._sums["transcendentals"]

    @property
    def bytes(self) -> int:
        """The bytes that instructions read and write. For a fusion, only the bytes that cross its boundary are
        counted."""
        return self._sums["bytes"]

    @property
    def link_bytes(self) -> int:
        """The bytes sent over the busiest link of each collective if its first algorithm is used."""
        return self._sums["link_bytes"]

    @property
    def steps(self) -> int:
        return self._sums["steps"]

    @property
    def total_flops(self) -> int:
        """The FLOPs of all devices."""
        return sum(row.flops * row.devices for row in self.rows)

    @property
    def is_known(self) -> bool:
        """Whether the trip counts of all loops are known."""
        return all(row.is_known for row in self.rows)

    @property
    def collectives(self) -> tuple[CostRow, ...]:
        """The rows of instructions that send to or receive from other devices."""
        return tuple(row for row in self.rows if row.collective is not None)

    @property
    def issues(self) -> tuple[Issue, ...]:
        """A note for each loop with an unknown trip count, which counts as one trip."""
        loops = (row.instruction for row in self.rows if OPS[row.instruction.opcode].properties.calls == "loop")
        return tuple(
            Issue(
                rule="trip_count",
                level="note",
                message=f"the trip count of {name_in_report(loop)} is unknown: the loop counts as one trip",
                source=loop.source,
                instructions=(loop.name,),
            )
            for loop in dict.fromkeys(loops)
            if known_trips(loop) is None
        )

    def by(self, what: By) -> list[Sum]:
        """Return the totals of the rows for each scope or op, or of the collectives for each axis, largest first.

        >>> import xbuild as xb
        >>> square = xb.computation(xb.f32[2, 2])(lambda x: xb.dot(x, x))
        >>> [(each.name, each.flops) for each in xb.cost(square).by("op")]
        [('dot', 16), ('parameter', 0)]
        """
        if what not in get_args(By):
            refuse("invalid_attribute", f"cost: expected a sum by scope, op or axis, got {what!r}", "by='op'")
        found: dict[str, list[CostRow]] = {}
        for row in self._program:
            if row.collective is not None or what != "axis":
                found.setdefault(_KEYS[what](row), []).append(row)
        sums = (
            Sum(name, len(rows), *(sum(getattr(row, name) for row in rows) for name in COST_FIELDS))
            for name, rows in found.items()
        )
        return sorted(sums, key=lambda each: (-each.link_bytes if what == "axis" else -each.flops, -each.bytes))

    def to_dict(self, by: By | None = None, top: int | None = None) -> dict[str, Any]:
        """Return the cost as plain data, for JSON.

        The data contain all rows, or only the `top` rows with the most FLOPs. If `by` is given, they also contain the
        totals grouped by it.
        """
        rows = self.rows if top is None else sorted(self.rows, key=lambda row: (-row.flops, -row.bytes))[:top]
        sums = {"by": [asdict(each) for each in self.by(by)[:top]]} if by is not None else {}
        return {
            "name": self.name,
            "num_devices": self.num_devices,
            "mesh": dict(self.mesh.sizes) if self.mesh else None,
            "is_known": self.is_known,
            **_cost_fields(self),
            "total_flops": self.total_flops,
            "peak_memory": self.peak_memory,
            "reserved_memory": self.reserved_memory,
            "memory": self.memory.to_dict(),
            "memory_device": self.memory_device,
            **sums,
            "rows": [row.to_dict() for row in rows],
        }

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def _styled_lines(self) -> Iterable[Line]:
        return headed(report_lines(self, None, MOST_ROWS))

    def table(self, by: By | None = None, top: int = MOST_ROWS) -> str:
        """Return the cost as text: the totals, then the largest instructions and collectives or, if `by` is given, the
        `top` totals grouped by it."""
        return "\n".join(report_lines(self, by, top))


def rows_of(cost: Cost) -> Iterator[CostRow]:
    """The rows of the program that the totals describe."""
    yield from cost._program


# ----------------------------------------------------------------------------
# The report as text

_UNITS = ("", "k", "M", "G", "T", "P", "E")
_WIDEST = 48


def short(number: float, unit: str = "") -> str:
    """A number with three significant digits and an SI prefix: `1.23 G`.

    >>> short(1234567, "FLOP")
    '1.23 MFLOP'
    """
    place = 0
    while number >= 999.5 and place < len(_UNITS) - 1:
        number, place = number / 1000, place + 1
    return f"{number:.3g} {_UNITS[place]}{unit}".rstrip()


def report_lines(cost: Cost, by: By | None, top: int) -> Iterator[str]:
    """The lines of the report."""
    yield from _totals(cost)
    if by is not None:
        yield from _sums(cost, by, top)
        return
    yield from _largest(cost, top)
    if cost.collectives:
        yield from _largest_collectives(cost, top)
        yield from _collectives(cost, top)
    yield from _alive(cost.memory, top)


def _totals(cost: Cost) -> Iterator[str]:
    mesh = f", mesh {' x '.join(f'{name}={size}' for name, size in cost.mesh.sizes)}" if cost.mesh else ""
    sent = f", sends {short(cost.link_bytes, 'B')}" if cost.collectives else ""
    answer = f"{short(cost.flops, 'FLOP')}, reads and writes {short(cost.bytes, 'B')}{sent}"
    needs = f"needs {short(cost.memory.reserved, 'B')} of memory"
    yield f"{in_line(cost.name)}: a device computes {answer}, {needs}"
    yield f"  devices      {cost.num_devices:,}{mesh if cost.num_devices > 1 else ''}"
    yield f"  each device  {short(cost.flops, 'FLOP')}, {short(cost.transcendentals)} transcendentals"
    yield f"  traffic      {short(cost.bytes, 'B')} read and written{_intensity(cost)}"
    memory = cost.memory
    order = "a compiler's order" if memory.is_scheduled else "the recorded order"
    where = f" on device {cost.memory_device}" if len(cost.programs) > 1 else ""
    yield f"  memory       {short(memory.reserved, 'B')} reserved for a run{where}: {_reserved_parts(memory)}"
    yield f"  live         {short(memory.peak, 'B')} at most at once, in {order}: {_memory_parts(memory)}"
    if cost.collectives:
        steps = f"{short(cost.steps)} step{'s' * (cost.steps != 1)}"
        collectives = _counted_noun(len(cost.collectives), "collective")
        yield f"  links        {short(cost.link_bytes, 'B')} of {collectives}, {steps}"
    if not cost.is_known:
        yield "  a loop whose trip count is unknown counts as one trip"
    if not memory.is_scheduled:
        yield "  XLA has not scheduled this program: compiled, it may need more or less memory"


def _reserved_parts(memory: Memory) -> str:
    """What is reserved: `1.02 kB arguments + 1.02 kB outputs + 1.02 kB temporaries`"""
    parts = {"arguments": memory.arguments, "outputs": memory.outputs, "temporaries": memory.apart}
    aliased = f" - {short(memory.aliased, 'B')} of outputs that reuse arguments" if memory.aliased else ""
    return " + ".join(f"{short(size, 'B')} {name}" for name, size in parts.items() if size) + aliased or "nothing"


def _memory_parts(memory: Memory) -> str:
    """What is alive at the peak, by kind: `1.02 kB arguments, 1.02 kB outputs, 1.02 kB temporaries`"""
    held = Counter[str]()
    for each in memory.alive:
        held[each.kind] += each.bytes
    names = {"argument": "arguments", "output": "outputs", "temporary": "temporaries"}
    return ", ".join(f"{short(held[kind], 'B')} {name}" for kind, name in names.items() if held[kind]) or "nothing"


def _alive(memory: Memory, top: int) -> Iterator[str]:
    """The largest arrays that are live at the peak."""
    place = memory.curve.instructions[memory.peak_position] if memory.alive else None
    if place is not None:
        yield ""
        yield f"alive at {place.name} ({min(top, len(memory.alive))} of {len(memory.alive)})"
        yield from columns(
            ("instruction", "part", "bytes", "kind", "shape", "source"),
            (
                (name_in_report(each.instruction), ",".join(map(str, each.index)), short(each.bytes, "B"), each.kind,
                 shape_text(each.shape), str(each.source or ""))
                for each in memory.alive[:top]
            ),
        )  # fmt: skip


def _intensity(cost: Cost) -> str:
    return f", {cost.flops / cost.bytes:.3g} FLOP per byte" if cost.bytes else ""


def _largest(cost: Cost, top: int) -> Iterator[str]:
    rows = sorted((row for row in rows_of(cost) if row.flops), key=lambda row: -row.flops)
    if rows:
        yield ""
        yield f"largest by FLOPs ({min(top, len(rows))} of {len(rows)})"
        yield from columns(
            ("instruction", "times", "FLOPs", "", "shape", "scope"),
            (
                (
                    *_name_and_times(row),
                    short(row.flops, "FLOP"),
                    _percentage(row.flops, cost.flops),
                    _shape(row),
                    row.scope,
                )
                for row in rows[:top]
            ),
        )


def _counted_noun(number: int, word: str) -> str:
    return f"{number} {word}" + "s" * (number != 1)


def _shape(row: CostRow) -> str:
    """The shape of the result without its layout."""
    return shape_text(row.instruction.shape)


def shape_text(shape: AnyShape) -> str:
    """A shape without its layout."""
    return f"{shape.dtype}[{','.join(map(str, shape.dims))}]" if isinstance(shape, Shape) else "(...)"


def _name_and_times(row: CostRow) -> tuple[str, str]:
    return name_in_report(row.instruction), f"{row.times}" + "?" * (not row.is_known)


def _percentage(some: int, whole: int) -> str:
    return f"{some / whole:.1%}" if whole else ""


def _largest_collectives(cost: Cost, top: int) -> Iterator[str]:
    """Single collectives, each with all lines whose values it moves, one below the other."""
    rows = sorted((row for row in rows_of(cost) if row.collective is not None), key=lambda row: -row.link_bytes)
    if not rows:
        return
    lines = LinesOfCollectives.of_program(cost.programs[rows[0].program])
    yield ""
    yield f"largest collectives ({min(top, len(rows))} of {len(rows)})"
    yield from columns(
        ("instruction", "op", "shape", "times", "on a link", "groups", "source"),
        chain.from_iterable(_single_rows(row, lines, top) for row in rows[:top]),
    )


def _single_rows(row: CostRow, lines: LinesOfCollectives, top: int) -> Iterator[tuple[str, ...]]:
    """The row of a collective, and below it a row for each further line."""
    places = lines.of(row.instruction)
    shown = places if len(places) <= top else [*places[: top - 1], f"and {len(places) - top + 1} more lines"]
    name, times = _name_and_times(row)
    groups = str(row.collective).partition(" ")[2]
    yield name, row.op, _shapes(row), times, short(row.link_bytes, "B"), groups, *(shown[:1] or [""])
    for place in shown[1:]:
        yield *[""] * 6, place


def _shapes(row: CostRow) -> str:
    """The shape of the result, or the first two of several."""
    shape = row.instruction.shape
    if not isinstance(shape, TupleShape):
        return _shape(row)
    shapes = [shape_text(each) for each in shape.elements]
    return ", ".join(shapes[:2]) + (f" and {len(shapes) - 2} more" if len(shapes) > 2 else "")


def _collectives(cost: Cost, top: int) -> Iterator[str]:
    """Collectives, summed by kind and axes, if some kind has several."""
    kinds: dict[tuple[str, str], list[CostRow]] = {}
    for row in rows_of(cost):
        if row.collective is not None:
            kinds.setdefault((row.op, str(row.collective).partition(" ")[2]), []).append(row)
    order = sorted(kinds.items(), key=lambda item: -sum(row.link_bytes for row in item[1]))
    if len(order) < sum(map(len, kinds.values())):
        yield ""
        yield f"collectives ({min(top, len(order))} of {_counted_noun(len(order), 'kind')})"
        yield from columns(
            ("op", "groups", "executed", "on a link", "steps", "source"),
            (_collective_row(*key, rows) for key, rows in order[:top]),
        )


def _collective_row(op: str, groups: str, rows: Sequence[CostRow]) -> tuple[str, ...]:
    sent, steps = sum(row.link_bytes for row in rows), sum(row.steps for row in rows)
    places = [*dict.fromkeys(str(row.instruction.source) for row in rows if row.instruction.source is not None)]
    place = " and ".join([*places[:1], *([f"{len(places) - 1} more"] if len(places) > 1 else [])])
    return op, groups, str(sum(row.times for row in rows)), short(sent, "B"), short(steps), place


def _sums(cost: Cost, by: By, top: int) -> Iterator[str]:
    sums = cost.by(by)
    yield ""
    yield f"by {by} ({min(top, len(sums))} of {len(sums)})"
    yield from columns(
        (by, "instructions", "FLOPs", "transcendentals", "memory", "on a link"),
        (
            (each.name, str(each.rows), short(each.flops, "FLOP"), short(each.transcendentals),
             short(each.bytes, "B"), short(each.link_bytes, "B"))
            for each in sums[:top]
        ),
    )  # fmt: skip


def columns(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Rows of cells under their headings, each column as wide as its widest cell; a long cell keeps its end, and an
    empty column is left out."""
    cells = [tuple(_shorten(in_line(word)) for word in row) for row in rows]
    used = [place for place in range(len(heads)) if any(row[place] for row in cells)]
    table = [tuple(row[place] for place in used) for row in (heads, *cells)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  " + "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()


def _shorten(word: str) -> str:
    return word if len(word) <= _WIDEST else f"…{word[1 - _WIDEST :]}"
