"""`Cost`: what a program costs, row by row and in sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

from attrs import asdict, field, frozen

from shape_inference import refuse

from ..core.graph import Instruction, Module
from ..properties.mesh import Mesh
from .collectives import CollectiveCost
from .memory import Memory, memory_of
from .work import Work

By: TypeAlias = Literal["scope", "op", "axis"]
"""What rows are summed by."""


@frozen(kw_only=True)
class CostRow:
    """An instruction of a computation, which each of `devices` devices executes `times` times.

    `work` and `bytes` are those of one execution; flops, transcendentals and so on of all executions of one device.
    `is_known` is False inside a loop whose trips are unknown: such a loop counts as one trip.
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
        """The axes of its collective; of a transfer between pairs `pairs`; empty for work of one device."""
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
        """The row as plain data."""
        facts = {name: getattr(self, name) for name in ("op", "computation", "scope", "program", "times", "is_known")}
        return {"name": self.instruction.name, **facts, **_figures(self), **_collective(self.collective)}


FIGURES = ("flops", "transcendentals", "bytes", "link_bytes", "steps")


def _figures(thing: Any) -> dict[str, int]:
    return {name: getattr(thing, name) for name in FIGURES}


def _collective(found: CollectiveCost | None) -> dict[str, Any]:
    if found is None:
        return {}
    ways = [{name: getattr(way, name) for name in ("name", "steps", "link_bytes", "total_bytes")}
            for way in found.algorithms]  # fmt: skip
    facts = {name: getattr(found, name) for name in ("axes", "group_size", "num_groups", "payload", "is_bound")}
    return {"collective": {**facts, "algorithms": ways}}


@frozen
class Sum:
    """The figures of all rows of one kind, of one device; `rows` is how many instructions they are."""

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
class Cost:
    """The cost of a program, of one device: with several programs that of the device with the most FLOPs.

    The memory is that of the device with the highest peak. `rows` are of all programs; `mesh` is the mesh that was
    given, or that the device groups lie along; `first_devices` has the first device of each of the programs.
    """

    name: str
    num_devices: int
    mesh: Mesh | None
    rows: tuple[CostRow, ...] = field(repr=False)
    programs: tuple[Module, ...] = field(repr=False, default=())
    first_devices: tuple[int, ...] = (0,)

    @cached_property
    def memory(self) -> Memory:
        """The memory on one device, in the order of the instructions: its peak, what is alive there, and the curve.

        With several programs that of the program with the highest peak.
        Raises cycle, foreign_value where a computation cannot be put in order.

        >>> import xbuild as xb
        >>> twice = xb.computation(xb.f32[256])(lambda x: xb.exp(x) * 2.0)
        >>> memory = xb.cost(twice).memory
        >>> memory.peak, memory.arguments, memory.outputs, memory.curve.bytes.tolist()
        (3072, 1024, 1024, [1024, 2048, 2048, 3072, 3072])
        """
        return self._highest[1]

    @cached_property
    def _highest(self) -> tuple[int, Memory]:
        """The program with the highest peak, the first of several, and its memory."""
        return max(enumerate(map(memory_of, self.programs)), key=lambda each: each[1].peak)

    @property
    def memory_device(self) -> int:
        """The device that `memory` is of: of those with the highest peak the first."""
        return self.first_devices[self._highest[0]]

    @property
    def peak_memory(self) -> int:
        """Bytes that a device has to hold at most: `memory.peak`."""
        return self.memory.peak

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
        """The figures of that program."""
        return {figure: sum(getattr(row, figure) for row in self._program) for figure in FIGURES}

    @property
    def flops(self) -> int:
        """Additions, multiplications, comparisons and the like; a multiplication followed by an addition is two."""
        return self._sums["flops"]

    @property
    def transcendentals(self) -> int:
        """Values of exp, log, sine and the like, which `flops` does not count."""
        return self._sums["transcendentals"]

    @property
    def bytes(self) -> int:
        """Bytes that instructions read and write; a fusion counts by what crosses its border."""
        return self._sums["bytes"]

    @property
    def link_bytes(self) -> int:
        """Bytes over the busiest link of each collective, by its first algorithm."""
        return self._sums["link_bytes"]

    @property
    def steps(self) -> int:
        return self._sums["steps"]

    @property
    def total_flops(self) -> int:
        """FLOPs of all devices."""
        return sum(row.flops * row.devices for row in self.rows)

    @property
    def is_known(self) -> bool:
        """Whether the trips of all loops are known."""
        return all(row.is_known for row in self.rows)

    @property
    def collectives(self) -> tuple[CostRow, ...]:
        """The rows that send to other devices, or receive."""
        return tuple(row for row in self.rows if row.collective is not None)

    def by(self, what: By) -> list[Sum]:
        """Sums of the rows by scope, by op, or of collectives by axis; the largest first.

        >>> import xbuild as xb
        >>> square = xb.computation(xb.f32[2, 2])(lambda x: xb.dot(x, x))
        >>> [(each.name, each.flops) for each in xb.cost(square).by("op")]
        [('dot', 16), ('parameter', 0)]
        """
        if what not in get_args(By):
            refuse("invalid_attribute", f"cost: rows are summed by scope, op or axis, and not by {what!r}", "by='op'")
        found: dict[str, list[CostRow]] = {}
        for row in self._program:
            if row.collective is not None or what != "axis":
                found.setdefault(_KEYS[what](row), []).append(row)
        sums = (
            Sum(name, len(rows), *(sum(getattr(row, figure) for row in rows) for figure in FIGURES))
            for name, rows in found.items()
        )
        return sorted(sums, key=lambda each: (-each.link_bytes if what == "axis" else -each.flops, -each.bytes))

    def to_dict(self, by: By | None = None, top: int | None = None) -> dict[str, Any]:
        """All as plain data, for JSON: all rows, or the `top` with most FLOPs; with `by` also the sums by that."""
        rows = self.rows if top is None else sorted(self.rows, key=lambda row: (-row.flops, -row.bytes))[:top]
        sums = {"by": [asdict(each) for each in self.by(by)[:top]]} if by is not None else {}
        return {
            "name": self.name,
            "num_devices": self.num_devices,
            "mesh": dict(self.mesh.sizes) if self.mesh else None,
            "is_known": self.is_known,
            **_figures(self),
            "total_flops": self.total_flops,
            "peak_memory": self.peak_memory,
            "memory": self.memory.to_dict(),
            "memory_device": self.memory_device,
            **sums,
            "rows": [row.to_dict() for row in rows],
        }

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def table(self, by: By | None = None, top: int = 8) -> str:
        """The cost as a page to read: totals, the largest instructions and collectives, or `top` sums by `by`."""
        from .table import page

        return "\n".join(page(self, by, top))


def rows_of(cost: Cost) -> Iterator[CostRow]:
    """The rows of the program whose figures the totals are."""
    yield from cost._program
