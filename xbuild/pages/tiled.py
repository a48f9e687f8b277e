"""What a step page of a partitioned program tells of each value: of which global array it is a tile, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import define, field

from shape_inference import Shape, XbuildError, refuse
from shape_inference.escaping import in_line

from ..core.graph import Module
from ..costs.table import short as amount
from ..sharding.partition import Communication, Partitioned, Tiling
from ..sharding.propagation import Origins, Propagated, short
from ..traces import Trace


@define
class Tiled:
    """The tables of a page: layouts of devices, global arrays on them, and by name what an instruction has a tile of.

    A spot has the number of its array as `g`; of an inserted collective it has the reason as `r`.
    """

    layouts: list[Any] = field(factory=list)
    arrays: list[Any] = field(factory=list)
    of_spot: dict[str, dict[str, Any]] = field(factory=dict)
    _known: dict[Any, int] = field(factory=dict)

    def layout(self, tiling: Tiling) -> int:
        """The number of the layout of an array, which arrays of equal extents and shardings share."""
        key = (tiling.shape.dims, tiling.sharding)
        if key not in self._known:
            self._known[key] = len(self.layouts)
            part = tiling.part.tolist()
            self.layouts.append({
                "n": tiling.tiles, "l": tiling.local, "d": tiling.shape.dims, "at": tiling.place.tolist(),
                "part": part if any(part) else None,
            })  # fmt: skip
        return self._known[key]

    def add(self, name: str, tiling: Tiling, origins: Origins | None) -> None:
        key = (tiling.value, tiling.shape, tiling.sharding)
        if key not in self._known:
            self._known[key] = len(self.arrays)
            self.arrays.append({
                "v": in_line(tiling.value), "t": in_line(f"{tiling.shape}  {short(tiling.sharding)}"),
                "at": self.layout(tiling), "why": [] if origins is None else [*_causes(origins, tiling)],
            })  # fmt: skip
        self.of_spot.setdefault(name, {})["g"] = self._known[key]


def tiled(trace: Trace, found: Partitioned | None) -> Tiled:
    """The tables for the program of a trace; empty where it is none that was partitioned.

    Raises invalid_operand where the trace is of another program than `found` has.
    """
    tables = Tiled()
    if found is None:
        return tables
    if not isinstance(trace.program, Module) or _names(trace.program) != _names(found.module):
        refuse("invalid_operand", f"the trace is of another program than {found.module.name}, as it was partitioned")
    origins = None if found.propagated is None else Origins(found.propagated)
    used = {spot.instruction.name for spot in trace.spots}
    for name, tiling in found.held.items():
        if name in used and tiling.shape.rank:
            tables.add(name, tiling, origins)
    for each in found.communications:
        tables.of_spot.setdefault(each.name, {})["r"] = _reason(each)
    return tables


def _names(module: Module) -> set[str]:
    return {each.name for each in module.entry.instructions}


def _reason(communication: Communication) -> list[str]:
    """The sentence of a collective, and what it costs."""
    axes = ", ".join(dict.fromkeys(axis.name for axis in communication.axes))
    cost = f"inserted by the partitioner: {amount(communication.bytes, 'B')} sent by a device over {axes}"
    return [in_line(communication.reason), in_line(cost)]


def _causes(origins: Origins, tiling: Tiling) -> Iterator[str]:
    """A sentence for each dimension that is cut: from which values its axes came."""
    causes = origins.found
    if not _is_array(causes, tiling.value):
        return
    stated = causes.sharding(tiling.value)
    if short(stated) != short(tiling.sharding):  # type: ignore[arg-type]
        yield f"the program has it as {in_line(short(stated))}, and brings it to this sharding for a use"  # type: ignore[arg-type]
    kind = causes.cause(tiling.value).kind
    if kind in _KINDS:
        yield _KINDS[kind]
        return
    for each in origins.ways(tiling.value):
        names = in_line(", ".join(axis.name for axis in each.axes))
        way = "".join(f", from %{in_line(name)}" for name in each.through) + f", from {each.more} more" * bool(
            each.more
        )
        line = "" if each.where is None else f" ({in_line(str(each.where))})"
        yield f"dimension {each.dim} by {names}{way}, from %{in_line(each.origin)}, which states it{line}"


_KINDS = {
    "stated": "the program states its sharding",
    "whole": "no sharding reached it, so that every device has the whole",
}


def _is_array(causes: Propagated, name: str) -> bool:
    try:
        return isinstance(causes.shape(name), Shape) and not isinstance(causes.sharding(name), tuple)
    except XbuildError:
        return False
