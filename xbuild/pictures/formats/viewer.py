"""HTML viewer of a picture in one file: pan, zoom, search, follow lines, unfold boxes."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Container
from importlib.resources import files
from typing import Any

from shape_inference.escaping import in_html, in_json, policy

from ..layout import Layout, lay_out
from ..layout.places import Rectangle
from ..model.data import Scale
from ..model.kinds import FOLDED
from ..model.picture import Box, Picture
from ..svg.document import part_text, svg_text
from ..views.merging import frames
from ..views.sheets import Sheet, sheets
from ..views.unfolding import first_inside

_SCRIPTS = ("viewer.js", "axis.js", "lines.js", "frames.js", "unfolding.js", "culling.js")


def html_text(picture: Picture, theme: str = "auto") -> str:
    """The HTML page of a picture; the same picture gives the same text."""
    layout = lay_out(picture)
    inside = [*sheets(picture)]
    unfolds = {sheet.box for sheet in inside}
    script = "\n".join((*map(_asset, _SCRIPTS), "begin();\n"))
    return "\n".join((
        "<!doctype html>",
        f'<html lang="en" class="{theme}">',
        f'<head><meta charset="utf-8">{policy(script)}',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{in_html(picture.name)}</title>",
        f"<style>\n{_asset('viewer.css')}</style></head>",
        "<body>",
        f"<header><h1>{in_html(picture.name)}</h1>",
        '<input id="search" type="search" placeholder="name, op, shape, file:line  ( / )" aria-label="search">',
        '<span id="count" role="status"></span>',
        '<button id="fit" type="button" title="all of it (f); nearer and farther: + and -, or Ctrl and the wheel">'
        "fit</button></header>",
        f'<main><div id="stage">{svg_text(picture, theme, layout, [each.picture for each in inside])}</div>'
        '<aside id="side" aria-label="the chosen box" hidden></aside></main>',
        f'<script id="data" type="application/json">{in_json(_data(picture, layout, unfolds))}</script>',
        f'<script id="inside" type="application/octet-stream">{_packed(picture, inside, theme, unfolds)}</script>',
        f"<script>{script}</script>",
        "</body>",
        "</html>\n",
    ))  # fmt: skip


def _data(picture: Picture, layout: Layout, unfolds: Container[str]) -> dict[str, Any]:
    """The data of a sheet. In `ends`, a line has 1 for a label at the tail, 2 at the head, 4 for a sideways line."""
    return {
        "boxes": {box.id: _told(box, picture.scale, box.id in unfolds) for box in picture.all_boxes()},
        "lines": [[route.edge.tail, route.edge.head] for route in layout.routes],
        "ends": [bool(r.edge.at_tail) + 2 * bool(r.edge.at_head) + 4 * r.sideways for r in layout.routes],
        "places": {id: _extent(place) for id, place in layout.boxes.items()},
        "frames": _frames(picture, layout),
        "size": [layout.width, layout.height],
    }


def _packed(picture: Picture, inside: list[Sheet], theme: str, unfolds: Container[str]) -> str:
    """The sheets of folded boxes, compressed: a large program has many, and few of them are looked at."""
    links = _links(picture, inside)
    if not inside and not links:
        return ""
    found = []
    for sheet in inside:
        layout = lay_out(sheet.picture)
        drawn = part_text(sheet.picture, theme, layout, sheet.depth)
        found.append({"of": sheet.box, "svg": drawn, **_data(sheet.picture, layout, unfolds)})
    return base64.b64encode(zlib.compress(in_json({"sheets": found, "links": links}).encode(), 9)).decode()


def _links(picture: Picture, inside: list[Sheet]) -> list[list[int]]:
    """The lines of the program between boxes of the page that no sheet draws, as pairs of numbers of boxes."""
    pictures = [picture, *(sheet.picture for sheet in inside)]
    number = {id: n for n, id in enumerate(box.id for each in pictures for box in each.all_boxes())}
    drawn = {(edge.tail, edge.head) for each in pictures for edge in each.edges}
    links = dict.fromkeys((e.tail, e.head) for e in picture.lines if e.tail in number and e.head in number)
    return [[number[tail], number[head]] for tail, head in links if (tail, head) not in drawn]


def _frames(picture: Picture, layout: Layout) -> list[list[Any]]:
    """For each frame, in drawing order, its id, the number of the enclosing frame, its rectangle and its boxes."""
    known = [each for each, _ in frames(picture)]
    number = {each.id: place for place, each in enumerate(known)}
    around = {inner.id: number[each.id] for each in known for inner in each.clusters}
    return [
        [each.id, around.get(each.id, -1), _extent(layout.clusters[each.id]), [box.id for box in each.boxes]]
        for each in known
    ]


def _extent(place: Rectangle) -> list[float]:
    return [round(each, 1) for each in (place.x, place.y, place.width, place.height)]


def _told(box: Box, scale: Scale | None, unfolds: bool) -> dict[str, str]:
    """The text of a box in the panel, and the words of the search, without the names of its operands."""
    description, _, where = (
        (box.tooltip or box.name).partition("\n") if box.kind is not FOLDED else (box.name, "", box.tooltip)
    )
    mark = [f"{scale.name}: {box.mark.description}"] if scale and box.mark else []
    details = [each for each in (*box.details, *box.stubs) if each not in description]
    own = [each for each in box.details if "← " not in each and not each.startswith("→ ")]
    inside = () if unfolds else (where if box.kind is FOLDED else "", *sorted(box.folded))
    found = (box.name, box.title, box.shape, *own, "" if box.kind is FOLDED else where, box.scope, *inside, *mark)
    words = "\n".join(each for each in (description, *mark, *details, where) if each)
    told = {"name": box.name, "shape": box.shape, "words": words, "found": " ".join(found).lower()}
    if lacking := _lacking(box, unfolds):
        told["lacking"] = lacking
    return told


def _lacking(box: Box, unfolds: bool) -> str:
    """The text that states which instructions of a box are not in the page, and the command that shows them."""
    if (not box.holds or unfolds) and not box.stubs:
        return ""
    what = ", ".join(each.replace("hidden ", "") for each in box.stubs) if box.stubs else "what it stands for"
    name = first_inside(box).id
    return (
        f"not in this page: {what}\nxbuild viz TARGET --around '{name}' -o near.html\nshows it; --max-nodes shows more"
    )


def _asset(name: str) -> str:
    return (files("xbuild.pictures") / "assets" / name).read_text(encoding="utf-8")
