"""The picture of an array as tiles of devices: where each tile stands, who has it, and what is padding."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from attrs import field, frozen

from shape_inference.escaping import in_line

from ...sharding.partition import Tiling
from ...sharding.propagation import short

Span = tuple[int, int]

_PANELS, _ACROSS = 12, 16
"""The most panels, and the most rows and columns of tiles in each, that are drawn."""


@frozen
class Tile:
    """A tile in its panel: rows and columns of elements that it has, those of them that are padding, who has it."""

    rows: Span
    columns: Span
    padded: tuple[int, int]
    devices: tuple[int, ...]
    number: int

    @property
    def label(self) -> str:
        """The devices in words: ranges where they follow each other."""
        return spans(self.devices)


@frozen
class Panel:
    """The tiles that stand at one place of all dimensions but the last two."""

    title: str
    tiles: tuple[Tile, ...]


@frozen
class TilePicture:
    """An array as panels of tiles; `extents` are rows and columns of a panel, `around` those with padding."""

    headline: str
    name: str
    panels: tuple[Panel, ...]
    extents: tuple[int, int]
    around: tuple[int, int]
    remarks: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    report: str = ""


def tile_picture(tiling: Tiling, report: str = "") -> TilePicture:
    """The picture of a value's tiles; `report` says why it is cut so."""
    head = in_line(f"{tiling.value}  {tiling.shape}  {short(tiling.sharding)}")
    dims, local, counts = _plane(tiling.shape.dims), _plane(tiling.local), _plane(tiling.tiles)
    rows, columns = (min(count, _ACROSS) for count in counts)
    panels = tuple(itertools.islice(_panels(tiling, rows, columns), _PANELS))
    around = rows * local[0], columns * local[1]
    extents = min(dims[0], around[0]), min(dims[1], around[1])
    notes = tuple(_left(math.prod(tiling.tiles[:-2]) - len(panels), counts, (rows, columns)))
    return TilePicture(head, tiling.value, panels, extents, around, tuple(_remarks(tiling)), notes, report)


def _left(panels: int, counts: Span, drawn: Span) -> Iterator[str]:
    """What is not drawn."""
    if counts != drawn:
        yield f"the first {drawn[0]} x {drawn[1]} of {counts[0]:,} x {counts[1]:,} tiles are drawn"
    if panels > 0:
        yield f"{panels:,} more panels are not drawn"


def _plane(extents: Sequence[int]) -> tuple[int, int]:
    """The last two of some extents, with 1 for those that there are not."""
    rows, columns = ((1, 1, *extents))[-2:]
    return rows, columns


def _remarks(tiling: Tiling) -> Iterator[str]:
    count, devices = math.prod(tiling.tiles), tiling.sharding.mesh.num_devices
    own = f"{count} tile{'s' * (count != 1)} of {tiling.shape.dtype}[{','.join(map(str, tiling.local))}]"
    holders = devices // count
    each = "a device for each" if holders == 1 else f"all {devices} devices have it"
    each = each if count in (1, devices) else f"{holders} devices have each"
    mesh = in_line(" x ".join(f"{axis}={size}" for axis, size in tiling.sharding.mesh.sizes))
    yield f"mesh {mesh}: {own}, {each}; numbers are those of devices"
    if tiling.sharding.unreduced:
        axes = in_line(", ".join(axis.name for axis in tiling.sharding.unreduced))
        yield f"along {axes} the devices have parts of a sum"
    if any(
        count * size > extent for count, size, extent in zip(tiling.tiles, tiling.local, tiling.shape.dims, strict=True)
    ):
        yield "hatched: padding, so that all tiles are of one size"


def _panels(tiling: Tiling, rows: int, columns: int) -> Iterator[Panel]:
    """The panels, each with so many rows and columns of tiles."""
    holders, rank = tiling.holders, tiling.shape.rank
    for place in itertools.product(*map(range, tiling.tiles[:-2])):
        pairs = itertools.product(range(rows), range(columns))
        tiles = tuple(_tile(tiling, (*place, *pair)[-rank:] if rank else (), holders, pair) for pair in pairs)
        yield Panel(_title(tiling, place), tiles)


def _title(tiling: Tiling, place: tuple[int, ...]) -> str:
    if not place:
        return ""
    spans = tiling.ranges((*place, *(0,) * (tiling.shape.rank - len(place))))[: len(place)]
    return f"[{', '.join(f'{low}:{high}' for low, high in spans)}, :, :]"


def _tile(tiling: Tiling, tile: tuple[int, ...], holders: dict[tuple[int, ...], list[int]], pair: Span) -> Tile:
    ranges = _plane_of_spans(tiling.ranges(tile))
    local = _plane(tiling.local)
    inside = [high - low for low, high in ranges]
    rows, columns = ((n * size, (n + 1) * size) for n, size in zip(pair, local, strict=True))
    number = sum(n * math.prod(tiling.tiles[place + 1 :]) for place, n in enumerate(tile))
    return Tile(rows, columns, (local[0] - inside[0], local[1] - inside[1]), tuple(holders[tile]), number)


def _plane_of_spans(ranges: Sequence[Span]) -> tuple[Span, Span]:
    rows, columns = ((0, 1), (0, 1), *ranges)[-2:]
    return rows, columns


def spans(numbers: Sequence[int]) -> str:
    """Numbers in words: 0-3, 8; at most six pieces.

    >>> spans([0, 1, 2, 5])
    '0-2, 5'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    told = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(told if len(told) <= 6 else [*told[:5], f"… {len(numbers)} in all"])
