"""The tiles of an array as svg: panels of coloured rectangles in real proportions, with devices and padding."""

from __future__ import annotations

import colorsys
import textwrap
from collections.abc import Iterator

from shape_inference.escaping import in_html

from ..layout.places import Rectangle
from ..layout.sizes import ADVANCE, width_of
from ..tiles import Panel, Tile, TilePicture
from .document import document, text
from .outlines import n

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
    told = [*picture.notes, *(line for row in picture.report.splitlines() for line in _wrapped(row))]
    for number, line in enumerate(told):
        body.append(text(0, height + 22 + _LINE * number, line, 11, "dim"))
    words = [picture.headline, *picture.remarks, *told]
    width = max(width, max(width_of(line, 13 if not place else 11) for place, line in enumerate(words)))
    return document(body, width + 40, height + _LINE * len(told) + 14 * bool(told) + 40, theme, picture.name, _EXTRA)


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
    panel: Panel, picture: TilePicture, left: float, top: float, size: tuple[float, float], theme: str
) -> Iterator[str]:
    if panel.title:
        yield text(left, top - 5, panel.title, 11, "dim")
    for tile in panel.tiles:
        yield from _tile(tile, left, top, size, theme)
    rows, columns = picture.extents
    yield f'<path class="edge" d="{_box(Rectangle(left, top, columns * size[1], rows * size[0]))}"/>'


def _tile(tile: Tile, left: float, top: float, size: tuple[float, float], theme: str) -> Iterator[str]:
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
