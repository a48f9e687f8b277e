"""A picture and its layout as one stand-alone svg file: light and dark themes, and all facts on hover.

Sections:

    Style sheet
    Outlines of boxes
    Data over boxes
    Legend and notes
    The svg file
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from shape_inference.escaping import in_html

from .data import STEPS, BoxData, Scale, colours
from .geometry import LINE_HEIGHT as LINE
from .geometry import PADDING, PILL, STRIP, PictureLayout, Point, Rectangle, Route, lines_of, slope, width_of
from .geometry import TextLine as Line
from .layout import TITLE_SIZE, lay_out
from .picture import KINDS, LIGHT, Box, Cluster, Outline, Picture, theme_of

# ----------------------------------------------------------------------------
# Style sheet
#
# In the light or the dark theme, or in that of the reader's system.

FONT = "ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"

DASHES = {"token": "5 3", "control": "1.5 3.5", "call": "6 4"}


def style(theme: str, extra: tuple[str, str] = ("", "")) -> str:
    """The style sheet of a theme (`page` follows the root of the page); `extra` are further rules of both themes."""
    light, dark = _rules("light") + extra[0], _rules("dark") + extra[1]
    if theme == "page":
        return _common() + light + dark.replace(".xb ", ":root[data-theme=dark] .xb ")
    if theme == "auto":
        found = f"{_common()}{light}@media (prefers-color-scheme:dark){{{dark}}}"
    else:
        found = _common() + (dark if theme == "dark" else light)
    # The class of the theme is in each rule, since a notebook may show pictures in several themes.
    return found.replace(".xb ", f".xb.{theme} ")


def _common() -> str:
    rules = (
        f"text{{font-family:{FONT};white-space:pre}}",
        ".name{font-weight:700}",
        ".stub{font-style:italic}",
        ".line path{fill:none;stroke-width:1.2}",
        ".channel path{stroke-width:2}",
        ".shapes path{stroke-width:1.2}",
        ".root path:first-of-type{stroke-width:2.6}",
        *(f".{what} path{{stroke-dasharray:{dash}}}" for what, dash in DASHES.items()),
        ".line:hover path{stroke-width:2.6}",
    )
    return "".join(f".xb {rule}" for rule in rules)


def _rules(theme: str) -> str:
    return "".join(f".xb {rule}" for rule in _colours(theme))


def _colours(name: str) -> Iterator[str]:
    theme = theme_of(name)
    yield f".ground{{fill:{theme.ground}}}"
    yield f"text{{fill:{theme.ink}}}"
    yield f".dim,.xb .line text{{fill:{theme.dim}}}"
    yield f".frame{{stroke:{theme.frame}}}"
    yield from (f".f{depth}{{fill:{fill}}}" for depth, fill in enumerate(theme.frames))
    for kind in KINDS:
        fill, border, words = kind.colours(name)
        yield f".{kind_class(kind.letter)} path{{fill:{fill};stroke:{border}}}"
        yield f".{kind_class(kind.letter)} text{{fill:{words}}}"
    for what, colour in theme.lines.items():
        yield f".{what} path{{stroke:{colour}}}"
        yield f".a-{what},.xb .w-{what}{{fill:{colour}}}"
    yield f".line:hover path{{stroke:{theme.hover}}}"


def kind_class(letter: str) -> str:
    """The CSS class of boxes of the kind with this letter."""
    return "kFolded" if letter == "+" else f"k{letter}"


# ----------------------------------------------------------------------------
# Outlines of boxes
#
# One for each kind of op, so that kinds differ in more than colour.

_CUT = 8.0


def outline(kind: Outline, place: Rectangle) -> str:
    """The svg path of the outline of a box."""
    x, y, w, h = place.x, place.y, place.width, place.height
    if kind in ("plain", "double"):
        return rounded(place, 3)
    if kind == "round":
        return rounded(place, 9)
    if kind == "pill":
        return rounded(place, min(16.0, h / 2))
    return _polygon([(x + px, y + py) for px, py in _corners(kind, w, h)])


def _corners(kind: Outline, w: float, h: float) -> Sequence[Point]:
    c = _CUT
    return {
        "house": [(0, c), (c, 0), (w - c, 0), (w, c), (w, h), (0, h)],
        "octagon": [(0, c), (c, 0), (w - c, 0), (w, c), (w, h - c), (w - c, h), (c, h), (0, h - c)],
        "slanted": [(c, 0), (w, 0), (w - c, h), (0, h)],
        "funnel": [(0, 0), (w, 0), (w - c, h), (c, h)],
        "hexagon": [(0, h / 2), (c, 0), (w - c, 0), (w, h / 2), (w - c, h), (c, h)],
        "flag": [(0, 0), (w - c, 0), (w, h / 2), (w - c, h), (0, h)],
        "tab": [(0, 0), (w, 0), (w, h - c), (w - c, h), (c, h), (0, h - c)],
        "cut": [(0, 0), (w - c, 0), (w, c), (w, h), (0, h)],
    }[kind]


def rounded(place: Rectangle, r: float) -> str:
    """The svg path of a rectangle with round corners."""
    x, y, right, bottom = (n(each) for each in (place.x, place.y, place.right, place.bottom))
    inner = (n(place.x + r), n(place.right - r), n(place.y + r), n(place.bottom - r))
    left, end, top, low = inner
    return (
        f"M{left} {y}H{end}Q{right} {y} {right} {top}V{low}Q{right} {bottom} {end} {bottom}"
        f"H{left}Q{x} {bottom} {x} {low}V{top}Q{x} {y} {left} {y}Z"
    )


def _polygon(points: Sequence[Point]) -> str:
    return f"M{'L'.join(f'{n(x)} {n(y)}' for x, y in points)}Z"


def curve(points: Sequence[Point], *, sideways: bool = False) -> str:
    """The svg path of a route: straight within each pair of points, curved from pair to pair."""
    if sideways:
        start, *bends = (f"{n(x)} {n(y)}" for x, y in points)
        return f"M{start}" + "".join(f"C{' '.join(bends[at : at + 3])}" for at in range(0, len(bends), 3))
    (x, y), *rest = points
    parts = [f"M{n(x)} {n(y)}"]
    for number, (nx, ny) in enumerate(rest):
        if abs(nx - x) < 0.05:
            parts.append(f"V{n(ny)}" if abs(ny - y) > 0.05 else "")
        elif number % 2:
            middle = n((y + ny) / 2)
            parts.append(f"C{n(x)} {middle} {n(nx)} {middle} {n(nx)} {n(ny)}")
        else:
            parts.append(f"L{n(nx)} {n(ny)}")
        x, y = nx, ny
    return "".join(parts)


def n(number: float) -> str:
    """A number with at most one decimal place."""
    return (
        f"{number:.1f}".removesuffix(".0").replace("-0", "0")
        if abs(number) < 0.05
        else f"{number:.1f}".removesuffix(".0")
    )


# ----------------------------------------------------------------------------
# Data over boxes
#
# The colours of their scale, the badges with their words, the legend.

_SIZE = 10.5
_SWATCH = 22.0


def mark_class(scale: Scale | None, mark: BoxData | None) -> str:
    """The CSS class of a box under a scale of numbers: that of its step, or `plain` without a number."""
    if scale is None or scale.low is None:
        return ""
    step = scale.step(mark)
    return " plain" if step is None else f" m{step}"


def mark_rules(name: str) -> str:
    """The CSS rules of a scale in a theme; kinds lose their colours, so that a colour stands for a number alone."""
    theme = theme_of(name)
    rules = [f".plain path{{fill:{theme.ground};stroke:{theme.dim}}}", f".plain text{{fill:{theme.ink}}}"]
    for step in range(STEPS):
        fill, ink = colours(step, name)
        rules += [
            f".m{step} path{{fill:{fill};stroke:{theme.dim}}}",
            f".m{step} rect{{fill:{fill}}}",
            f".m{step} text{{fill:{ink}}}",
        ]
    rules += [
        f".shapes .mark path{{fill:{theme.ground};stroke:{theme.dim};stroke-width:1}}",
        f".shapes .mark text{{fill:{theme.ink};font-weight:700}}",
    ]
    return "".join(f".xb {rule}" for rule in rules)


def badge(x: float, y: float, line: Line) -> str:
    """The badge of a datum: its text in a pill, aligned with the other text of the box."""

    place = Rectangle(x, y - 9, width_of(line.text, line.size) + 2 * PILL, 15)
    return f'<g class="mark"><path d="{rounded(place, 7)}"/>{text(x + PILL, y + 2.4, line.text, line.size)}</g>'


def scale_legend(scale: Scale, y: float, *, folded: bool) -> tuple[list[str], float]:
    """The legend of a scale in a row, and its width; `folded` states that some boxes stand for several instructions."""
    after = f"{scale.words[1]}{scale.way}"
    after += "; a folded box shows the sum, in the colour of the highest value" if folded else ""
    return [*_parts(scale, y, after)], _start(scale) + STEPS * _SWATCH + 16 + width_of(after, _SIZE)


def _parts(scale: Scale, y: float, after: str) -> Iterator[str]:

    if scale.low is None:
        yield text(0, y + 14, f"{scale.name}: texts in the boxes", _SIZE)
        return
    x = _start(scale)
    yield text(0, y + 14, scale.name, _SIZE, "name")
    yield text(x - 8, y + 14, scale.words[0], _SIZE, "", "end")
    for step in range(STEPS):
        place = f'x="{n(x + step * _SWATCH)}" y="{n(y + 3)}" width="{n(_SWATCH)}" height="14"'
        yield f'<g class="m{step}"><rect {place} style="stroke:none"/></g>'
    yield text(x + STEPS * _SWATCH + 8, y + 14, after, _SIZE)


def _start(scale: Scale) -> float:
    return width_of(scale.name, _SIZE) + width_of(scale.words[0], _SIZE) + 24


# ----------------------------------------------------------------------------
# Legend and notes
#
# The meaning of colours and lines, and what the drawing leaves out.

SIZE = 10.5
LONGEST = 96
"""The most characters of a row of notes."""
WORDS = {
    "value": "value",
    "token": "token",
    "control": "runs after",
    "call": "result of a called computation",
    "channel": "channel",
}
_HEIGHT = 20.0


def notes(picture: Picture, width: float) -> tuple[list[str], float]:
    """The notes as lines of text above the drawing, and their height."""

    lines = [text(0, 11 + 16 * number, row, 11.5, "dim") for number, row in enumerate(_rows(picture))]
    return lines, 16.0 * len(lines) + (10 if lines else 0)


def _rows(picture: Picture) -> Iterator[str]:
    """The notes in rows of some length."""
    for note in picture.notes:
        yield from textwrap.wrap(note, LONGEST, break_long_words=False)


def legend(picture: Picture, width: float, others: Sequence[Picture] = ()) -> tuple[list[str], float, float]:
    """The legend of the kinds of boxes and lines that occur, its height below the drawing, and its least width."""
    items = [*_swatches([picture, *others]), *_strokes([picture, *others])]
    least = max((w for w, _ in items), default=0.0)
    widest = max(least, width, 420.0)
    found: list[str] = []
    plain = mark_class(picture.scale, None)
    x, y = 0.0, 20.0
    for wide, (kind, mark, words) in items:
        if x and x + wide > widest:
            x, y = 0.0, y + _HEIGHT + 5
        found += _item(kind, mark, words, x, y, wide, plain)
        x += wide + 8
    if picture.scale and items:
        folded = any(len(box.mark.values) > 1 for box in picture.all_boxes() if box.mark)
        row, wide = scale_legend(picture.scale, y + _HEIGHT + 5, folded=folded)
        found, least, y = [*found, *row], max(least, wide), y + _HEIGHT + 5
    notes_wide = max((width_of(row, 11.5) for row in _rows(picture)), default=0.0)
    return found, (y + _HEIGHT) if items else 0.0, max(least, notes_wide, min(420.0, widest) if items else 0.0)


def _swatches(pictures: Sequence[Picture]) -> Iterator[tuple[float, tuple[str, str, str]]]:
    """The kinds of boxes that occur, each with its width."""
    found = {kind for picture in pictures for kind in picture.kinds()}
    for kind in (each for each in KINDS if each in found):
        yield width_of(kind.name, SIZE) + 40, (kind.outline, kind.letter, kind.name)


def _strokes(pictures: Sequence[Picture]) -> Iterator[tuple[float, tuple[str, str, str]]]:
    """The sorts of lines that occur, each with its width."""
    occurring = {edge.what for picture in pictures for edge in picture.edges}
    for what, words in WORDS.items():
        if what in occurring and what != "value":
            yield width_of(words, SIZE) + 46, ("", what, words)


def _item(kind: str, mark: str, words: str, x: float, y: float, wide: float, plain: str) -> Iterator[str]:

    if kind:
        place = Rectangle(x, y, wide, _HEIGHT)
        yield f'<g class="shapes {kind_class(mark)}{plain}"><path d="{outline(kind, place)}"/>'  # type: ignore[arg-type]
        yield text(x + 12, y + 14, mark, SIZE, "name")
        yield f"{text(x + 27, y + 14, words, SIZE)}</g>"
    else:
        line = f'<path marker-end="url(#xb-{mark})" d="M{n(x + 4)} {n(y + 10)}H{n(x + 36)}"/>'
        yield f'<g class="line {mark}">{line}</g>{text(x + 43, y + 14, words, SIZE, f"w-{mark}")}'


# ----------------------------------------------------------------------------
# The svg file

_MARGIN = 20.0


def svg_text(
    picture: Picture, theme: str = "auto", layout: PictureLayout | None = None, others: Sequence[Picture] = ()
) -> str:
    """The picture as svg, with a legend that also covers `others`; the same picture gives the same text."""
    places = layout or lay_out(picture)
    note_lines, above = notes(picture, places.width)
    named, below, least = legend(picture, places.width, others)
    width, height = max(places.width, least) + 2 * _MARGIN, places.height + above + below + 2 * _MARGIN
    body = [
        *note_lines,
        f'<g transform="translate({n((width - 2 * _MARGIN - places.width) / 2)} {n(above)})">',
        *_drawn(picture, places),
        "</g>",
        f'<g transform="translate(0 {n(above + places.height)})">',
        *named,
        "</g>",
    ]
    extra = (mark_rules("light"), mark_rules("dark")) if picture.scale else ("", "")
    return document(body, width, height, theme, picture.name, extra)


def document(
    body: list[str], width: float, height: float, theme: str, name: str, extra: tuple[str, str] = ("", "")
) -> str:
    """An svg document of this size around elements, which are moved in by a margin."""
    w, h = n(width), n(height)
    whole = "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" class="xb {theme}" width="{w}" height="{h}" '
        f'viewBox="0 0 {w} {h}" role="img">',
        f"<title>{in_html(name)}</title>",
        f"<style>{style(theme, extra)}</style>",
        f"<defs>{''.join(map(_arrow, LIGHT.lines))}</defs>",
        f'<rect class="ground" width="{w}" height="{h}"/>',
        f'<g transform="translate({n(_MARGIN)} {n(_MARGIN)})">',
        *body,
        "</g>",
        "</svg>\n",
    ))  # fmt: skip
    return _with_heads(whole, theme).replace('<marker id="xb-', f'<marker id="xb-{theme}-')


def part_text(picture: Picture, theme: str, places: PictureLayout, depth: int) -> str:
    """The elements of a picture inside `depth` frames of another document, in its theme and without text on hover."""
    return _with_heads("".join(_drawn(picture, places, depth, hover=False)), theme)


def _with_heads(svg: str, theme: str) -> str:
    """The svg with the theme in the ids of line heads, since one page may have pictures in several themes."""
    return svg.replace('marker-end="url(#xb-', f'marker-end="url(#xb-{theme}-')


def _arrow(what: str) -> str:
    path = "M0 0L8 4L0 8L2 4Z" if what in ("token", "control") else "M0 0L8 4L0 8Z"
    return marker(what, path, 8)


def marker(what: str, path: str, size: int) -> str:
    """The marker that draws the heads of lines of one sort."""
    return (
        f'<marker id="xb-{what}" class="a-{what}" viewBox="0 0 8 8" refX="7.4" refY="4" markerUnits="userSpaceOnUse" '
        f'markerWidth="{size}" markerHeight="{size}" orient="auto">'
        f'<path style="stroke:none;stroke-dasharray:none;fill:inherit" d="{path}"/></marker>'
    )


def _drawn(picture: Picture, places: PictureLayout, depth: int = 0, *, hover: bool = True) -> Iterator[str]:
    """The elements of a picture from back to front: frames, lines, boxes, labels of lines."""
    for cluster in picture.clusters:
        yield from _frames(cluster, places.clusters, depth)
    for route in places.routes:
        yield from _line(route)
    for box in picture.all_boxes():
        yield from _box(box, places.boxes[box.id], picture.scale, hover)
    for route in places.routes:
        yield from _ends(route)


def _frames(cluster: Cluster, places: Mapping[str, Rectangle], depth: int) -> Iterator[str]:
    place = places[cluster.id]
    fill = f"f{min(depth, 3)}"
    dash = ' stroke-dasharray="4 3"' if depth else ""
    yield f'<path class="frame {fill}" id="{in_html(f"cluster_{cluster.id}")}"{dash} d="{rounded(place, 8)}"/>'
    yield text(place.x + 12, place.y + 19, cluster.title, TITLE_SIZE, "name")
    for inner in cluster.clusters:
        yield from _frames(inner, places, depth + 1)


def _line(route: Route) -> Iterator[str]:
    edge = route.edge
    title = f"<title>{in_html(edge.tooltip)}</title>" if edge.tooltip else ""
    path = curve(route.points, sideways=route.sideways)
    yield f'<g class="line {edge.what}">{title}<path marker-end="url(#xb-{edge.what})" d="{path}"/></g>'


def _ends(route: Route) -> Iterator[str]:
    """The labels at the two ends of a line: the element of a tuple, and the number of the operand."""
    (x, y), (hx, hy) = route.points[0], route.points[-1]
    if route.edge.at_tail:
        left = len(route.points) > 2 and route.points[2][0] > x
        yield text(x - 3 if left else x + 3, y + 10, route.edge.at_tail, 10, "dim", "end" if left else "")
    if route.edge.at_head:
        left = len(route.points) > 2 and route.points[-3][0] > hx
        yield text(hx - 5 if left else hx + 5, hy - 3, route.edge.at_head, 10, "dim", "end" if left else "")


def _box(box: Box, place: Rectangle, scale: Scale | None, hover: bool) -> Iterator[str]:
    kind = box.kind
    root = " root" if box.is_root else ""
    yield f'<g class="shapes {kind_class(kind.letter)}{root}{mark_class(scale, box.mark)}" id="{in_html(box.id)}">'
    if hover:
        yield f"<title>{in_html(hover_text(box, scale))}</title>"
    dash = ' stroke-dasharray="5 3"' if box.stubs else ""
    yield f'<path{dash} d="{outline(kind.outline, place)}"/>'
    if kind.outline == "double":
        inner = Rectangle(place.x + 3, place.y + 3, place.width - 6, place.height - 6)
        yield f'<path style="fill:none" d="{rounded(inner, 2)}"/>'
    inset = slope(box)
    bar = place.x + inset + STRIP - 4
    yield f'<path opacity=".55" d="M{n(bar)} {n(place.y + 5)}V{n(place.bottom - 5)}"/>'
    yield text(
        place.x + inset + (STRIP - 4) / 2 + 1, place.y + place.height / 2 + 4, kind.letter, 11.5, "name", "middle"
    )
    y = place.y + 5 + LINE * 0.74
    for line in lines_of(box):
        x = place.x + inset + STRIP + PADDING - 3
        yield badge(x, y, line) if line.role == "mark" else text(x, y, line.text, line.size, line.role)
        y += LINE
    yield "</g>"


def hover_text(box: Box, scale: Scale | None) -> str:
    """The text on hover of a box, with its datum where the picture has data."""
    description = box.tooltip or box.name
    return description if box.mark is None or scale is None else f"{description}\n{scale.name}: {box.mark.description}"


def text(x: float, y: float, words: str, size: float, role: str = "", anchor: str = "") -> str:
    """A text element; x and y are the left end (or the middle) of its baseline."""
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    named = f' class="{role}"' if role else ""
    return f'<text x="{n(x)}" y="{n(y)}" font-size="{n(size)}"{named}{anchored}>{in_html(words)}</text>'
