"""A picture as a page of its own: to move about in, to search, to follow lines; one file without a network."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from .layout import Layout, lay_out
from .layout.places import Rectangle
from .merging import frames
from .picture import Box, Picture
from .svg.document import escaped, svg_text


def html_text(picture: Picture, theme: str = "auto") -> str:
    """The page; the same picture gives the same text."""
    layout = lay_out(picture)
    data = {
        "boxes": {box.id: _told(box) for box in picture.all_boxes()},
        "lines": [[route.edge.tail, route.edge.head] for route in layout.routes],
        "ends": [bool(route.edge.at_tail) + 2 * bool(route.edge.at_head) for route in layout.routes],
        "places": {id: _extent(place) for id, place in layout.boxes.items()},
        "frames": _frames(picture, layout),
        "size": [layout.width, layout.height],
    }
    words = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return "\n".join((
        "<!doctype html>",
        f'<html lang="en" class="{theme}">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escaped(picture.name)}</title>",
        f"<style>\n{_asset('viewer.css')}</style></head>",
        "<body>",
        f"<header><h1>{escaped(picture.name)}</h1>",
        '<input id="search" type="search" placeholder="name, op, shape, file:line  ( / )" aria-label="search">',
        '<span id="count" role="status"></span>',
        '<button id="fit" type="button" title="all of it (f); nearer and farther: + and -, or Ctrl and the wheel">'
        "fit</button></header>",
        f'<main><div id="stage">{svg_text(picture, theme, layout)}</div>'
        '<aside id="side" aria-label="the chosen box" hidden></aside></main>',
        f'<script id="data" type="application/json">{words}</script>',
        f"<script>\n{_asset('viewer.js')}\n{_asset('frames.js')}\nreadable();\n</script>",
        "</body>",
        "</html>\n",
    ))  # fmt: skip


def _frames(picture: Picture, layout: Layout) -> list[list[Any]]:
    """For each frame, as they are drawn, its id, the number of the one around it, its place, its boxes."""
    known = [each for each, _ in frames(picture)]
    number = {each.id: place for place, each in enumerate(known)}
    around = {inner.id: number[each.id] for each in known for inner in each.clusters}
    return [
        [each.id, around.get(each.id, -1), _extent(layout.clusters[each.id]), [box.id for box in each.boxes]]
        for each in known
    ]


def _extent(place: Rectangle) -> list[float]:
    return [round(each, 1) for each in (place.x, place.y, place.width, place.height)]


def _told(box: Box) -> dict[str, str]:
    """What the page says of a box, and the words by which it is found: not the names of what it uses."""
    said, _, where = (box.tooltip or box.name).partition("\n")
    details = [each for each in (*box.details, *box.stubs) if each not in said]
    found = (box.name, box.title, box.shape, *box.details, where, box.scope, *sorted(box.folded))
    words = "\n".join(each for each in (said, *details, where) if each)
    return {"name": box.name, "shape": box.shape, "words": words, "found": " ".join(found).lower()}


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")
