"""A picture and its layout as one svg file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shape_inference.escaping import in_html

from ..layout import Layout, Rectangle, Route, lay_out
from ..layout.nesting import TITLE_SIZE
from ..layout.sizes import LINE, PADDING, STRIP, lines_of, slope
from ..model.data import Scale
from ..model.picture import Box, Cluster, Picture
from ..model.themes import LIGHT
from .legend import legend, notes
from .marks import badge, mark_class, mark_rules
from .outlines import curve, n, outline, rounded
from .style import kind_class, style

_MARGIN = 20.0


def svg_text(
    picture: Picture, theme: str = "auto", layout: Layout | None = None, others: Sequence[Picture] = ()
) -> str:
    """The picture as svg, with a legend that also covers `others`; the same picture gives the same text."""
    places = layout or lay_out(picture)
    told, above = notes(picture, places.width)
    named, below, least = legend(picture, places.width, others)
    width, height = max(places.width, least) + 2 * _MARGIN, places.height + above + below + 2 * _MARGIN
    body = [
        *told,
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


def part_text(picture: Picture, theme: str, places: Layout, depth: int) -> str:
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


def _drawn(picture: Picture, places: Layout, depth: int = 0, *, hover: bool = True) -> Iterator[str]:
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
