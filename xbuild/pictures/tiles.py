"""An array as tiles of devices: the position, holders and padding of each tile, as plain data, text and svg."""

from __future__ import annotations

import colorsys
import itertools
import math
import textwrap
from collections.abc import Iterator, Sequence

from attrs import field, frozen

from shape_inference.escaping import in_html, in_line, printable

from ..sharding.partition import Tiling
from ..sharding.propagation import short
from .geometry import ADVANCE, Rectangle, width_of
from .svg import document, n, text

# ----------------------------------------------------------------------------
# The picture of an array as tiles of devices: where each tile stands, who has it, and what is padding.

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
class TilePanel:
    """The tiles that stand at one place of all dimensions but the last two."""

    title: str
    tiles: tuple[Tile, ...]


@frozen
class TilePicture:
    """An array as panels of tiles; `extents` are rows and columns of a panel, `around` those with padding."""

    headline: str
    name: str
    panels: tuple[TilePanel, ...]
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
    each = "one device holds each" if holders == 1 else f"all {devices} devices hold it"
    each = each if count in (1, devices) else f"{holders} devices hold each"
    mesh = in_line(" x ".join(f"{axis}={size}" for axis, size in tiling.sharding.mesh.sizes))
    yield f"mesh {mesh}: {own}, {each}; the numbers are device numbers"
    if tiling.sharding.unreduced:
        axes = in_line(", ".join(axis.name for axis in tiling.sharding.unreduced))
        yield f"along {axes}, the devices hold partial sums"
    if any(
        count * size > extent for count, size, extent in zip(tiling.tiles, tiling.local, tiling.shape.dims, strict=True)
    ):
        yield "hatched: padding that gives all tiles the same size"


def _panels(tiling: Tiling, rows: int, columns: int) -> Iterator[TilePanel]:
    """The panels, each with so many rows and columns of tiles."""
    holders, rank = tiling.holders, tiling.shape.rank
    for place in itertools.product(*map(range, tiling.tiles[:-2])):
        pairs = itertools.product(range(rows), range(columns))
        tiles = tuple(_tile(tiling, (*place, *pair)[-rank:] if rank else (), holders, pair) for pair in pairs)
        yield TilePanel(_title(tiling, place), tiles)


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
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(texts if len(texts) <= 6 else [*texts[:5], f"… {len(numbers)} in all"])


# ----------------------------------------------------------------------------
# The tiles of an array as text: a table for each panel, a cell for each tile, with its devices.


def tiles_text(picture: TilePicture) -> str:
    """The picture as text."""
    lines = [picture.headline, *(f"  {each}" for each in picture.remarks)]
    for panel in picture.panels:
        lines += [f"  {panel.title}"] if panel.title else []
        lines += _table(panel)
    return printable("".join(f"{line}\n" for line in (*lines, *picture.notes, *picture.report.splitlines())))


def _table(panel: TilePanel) -> Iterator[str]:
    columns = list(dict.fromkeys(tile.columns[0] for tile in panel.tiles))
    rows = list(dict.fromkeys(tile.rows for tile in panel.tiles))
    cells = {(tile.rows, tile.columns[0]): f" {tile.label} " for tile in panel.tiles}
    wide = [max(len(cells[row, column]) for row in rows) for column in columns]
    rule = "  +" + "+".join("-" * each for each in wide) + "+"
    yield rule
    for row in rows:
        yield "  |" + "|".join(cells[row, c].center(w) for c, w in zip(columns, wide, strict=True)) + "|"
        yield rule


# ----------------------------------------------------------------------------
# The tiles of an array as svg: panels of coloured rectangles in real proportions, with devices and padding.

_HUES = (210, 32, 140, 325, 268, 178, 4, 52)
_WIDE, _TALL, _MOST, _GRID = 520.0, 300.0, 30.0, 7.0
_BETWEEN, _LINE = 26.0, 16.0


def tiles_svg(picture: TilePicture, theme: str = "auto") -> str:
    """The picture as svg; the same picture gives the same text."""
    size = _element(picture)
    wide, tall = picture.around[1] * size[1], picture.around[0] * size[0]
    across = max(1, min(len(picture.panels), int((2 * _WIDE + _BETWEEN) // (wide + _BETWEEN))))
    body, y = [_hatching(theme), *_head(picture)], 26.0 + _LINE * len(picture.remarks)
    for number, panel in enumerate(picture.panels):
        column, row = number % across, number // across
        left, top = column * (wide + _BETWEEN), y + row * (tall + 2 * _BETWEEN)
        body += _panel(panel, picture, left, top + 18, size, theme)
    rows = -(-len(picture.panels) // across)
    height, width = y + 18 + rows * (tall + 2 * _BETWEEN) - 2 * _BETWEEN, across * (wide + _BETWEEN)
    report_lines = [*picture.notes, *(line for row in picture.report.splitlines() for line in _wrapped(row))]
    for number, line in enumerate(report_lines):
        body.append(text(0, height + 22 + _LINE * number, line, 11, "dim"))
    words = [picture.headline, *picture.remarks, *report_lines]
    width = max(width, max(width_of(line, 13 if not place else 11) for place, line in enumerate(words)))
    return document(
        body, width + 40, height + _LINE * len(report_lines) + 14 * bool(report_lines) + 40, theme, picture.name, _EXTRA
    )


def _hatching(theme: str) -> str:
    path = '<path class="hatch" d="M-2 2L2 -2M0 8L8 0M6 10L10 6"/>'
    return f'<pattern id="xb-{theme}-hatch" width="8" height="8" patternUnits="userSpaceOnUse">{path}</pattern>'


def _wrapped(line: str) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, 116, initial_indent="", subsequent_indent=indent) or [""]


def _element(picture: TilePicture) -> tuple[float, float]:
    """The height and the width of an element: square where both extents allow it."""
    rows, columns = (max(1, each) for each in picture.around)
    part = 0.5 if len(picture.panels) > 1 else 1.0
    size = min(_MOST, part * _WIDE / columns, part * _TALL / rows)
    widest = max(len(tile.label) for panel in picture.panels for tile in panel.tiles) * ADVANCE * 12 + 14
    tile = picture.panels[0].tiles[0]
    least = widest / max(1, tile.columns[1] - tile.columns[0])
    tallest = 20 / max(1, tile.rows[1] - tile.rows[0])
    return max(size, min(tallest, 2 * _MOST)), max(size, least)


def _head(picture: TilePicture) -> Iterator[str]:
    yield text(0, 14, picture.headline, 13, "name")
    for number, line in enumerate(picture.remarks):
        yield text(0, 14 + _LINE * (number + 1), line, 11, "dim")


def _panel(
    panel: TilePanel, picture: TilePicture, left: float, top: float, size: tuple[float, float], theme: str
) -> Iterator[str]:
    if panel.title:
        yield text(left, top - 5, panel.title, 11, "dim")
    for tile in panel.tiles:
        yield from _draw_tile(tile, left, top, size, theme)
    rows, columns = picture.extents
    yield f'<path class="edge" d="{_box(Rectangle(left, top, columns * size[1], rows * size[0]))}"/>'


def _draw_tile(tile: Tile, left: float, top: float, size: tuple[float, float], theme: str) -> Iterator[str]:
    x, y = left + tile.columns[0] * size[1], top + tile.rows[0] * size[0]
    place = Rectangle(x, y, (tile.columns[1] - tile.columns[0]) * size[1], (tile.rows[1] - tile.rows[0]) * size[0])
    inner = Rectangle(x, y, place.width - tile.padded[1] * size[1], place.height - tile.padded[0] * size[0])
    yield f'<g class="tile t{tile.number % len(_HUES)}"><title>{in_html(f"devices {tile.label}")}</title>'
    if any(tile.padded):
        yield f'<path class="pad" fill="url(#xb-{theme}-hatch)" d="{_box(place)}"/>'
    if inner.width > 0 and inner.height > 0:
        yield f'<path class="own" d="{_box(inner)}"/>'
        yield from _lines(tile, inner, size)
    yield "</g>"
    shown = inner if inner.width > width_of(tile.label, 12) and inner.height > 12 else place
    yield text(*_below(shown.middle), tile.label, 12, "who", "middle")


def _below(middle: tuple[float, float]) -> tuple[float, float]:
    return middle[0], middle[1] + 4


def _box(place: Rectangle) -> str:
    return f"M{n(place.x)} {n(place.y)}h{n(place.width)}v{n(place.height)}h{n(-place.width)}z"


def _lines(tile: Tile, place: Rectangle, size: tuple[float, float]) -> Iterator[str]:
    """Lines between elements, where they are large enough to be seen."""
    (tall, wide), x, y = size, place.x, place.y
    across = range(1, round(place.width / wide)) if wide >= _GRID else ()
    down = range(1, round(place.height / tall)) if tall >= _GRID else ()
    found = [*(f"M{n(x + k * wide)} {n(y)}v{n(place.height)}" for k in across),
             *(f"M{n(x)} {n(y + k * tall)}h{n(place.width)}" for k in down)]  # fmt: skip
    if found:
        yield f'<path class="lines" d="{"".join(found)}"/>'


def _colour(hue: int, light: float, full: float) -> str:
    red, green, blue = colorsys.hls_to_rgb(hue / 360, light, full)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def _rules(fill: float, full: float, border: float, ink: str, ground: str) -> str:
    rules = []
    for number, hue in enumerate(_HUES):
        rules.append(f".t{number} .own{{fill:{_colour(hue, fill, full)};stroke:{_colour(hue, border, 0.45)}}}")
        rules.append(f".t{number} .lines{{stroke:{_colour(hue, border, 0.45)}}}")
        rules.append(f".t{number} .pad{{stroke:{_colour(hue, border, 0.45)}}}")
    rules += [
        ".own{stroke-width:1.4}", ".lines{fill:none;stroke-width:1;opacity:.28}",
        ".pad{stroke-width:1;stroke-dasharray:3 3}", f".hatch{{fill:none;stroke:{ink};stroke-width:1;opacity:.35}}",
        f".edge{{fill:none;stroke:{ink};stroke-width:1.6}}",
        f".who{{fill:{ink};font-weight:700;paint-order:stroke;stroke:{ground};stroke-width:0}}",
    ]  # fmt: skip
    return "".join(f".xb {rule}" for rule in rules)


_EXTRA = (_rules(0.87, 0.62, 0.42, "#1d2327", "#ffffff"), _rules(0.22, 0.42, 0.62, "#e6e9ea", "#15181a"))
