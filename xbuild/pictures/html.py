"""A picture as HTML: a viewer in one file, and a frame inside another page such as a notebook."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Container, Iterable
from importlib.resources import files
from typing import Any

from shape_inference.escaping import in_html, in_json, policy

from ..core.report_text import Line, html
from .data import Scale
from .folding import first_instruction, frames
from .geometry import PictureLayout, Rectangle
from .layout import lay_out
from .picture import DARK, FOLDED, Box, Picture, Theme, theme_of
from .svg import FONT, part_text, svg_text
from .views import Sheet, sheets

# ----------------------------------------------------------------------------
# HTML viewer of a picture in one file: pan, zoom, search, follow lines, unfold boxes.

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
        '<button id="fit" type="button" title="fit to the window (f); zoom with + and -, or with Ctrl and the wheel">'
        'fit</button><button id="original" type="button" title="original size (1)">1:1</button></header>',
        f'<main><div id="stage">{svg_text(picture, theme, layout, [each.picture for each in inside])}</div>'
        '<aside id="side" aria-label="the selected box" hidden></aside></main>',
        f'<script id="data" type="application/json">{in_json(_sheet_data(picture, layout, unfolds))}</script>',
        f'<script id="inside" type="application/octet-stream">{_pack_sheets(picture, inside, theme, unfolds)}</script>',
        f"<script>{script}</script>",
        "</body>",
        "</html>\n",
    ))  # fmt: skip


def _sheet_data(picture: Picture, layout: PictureLayout, unfolds: Container[str]) -> dict[str, Any]:
    """The data of a sheet. In `ends`, a line has 1 for a label at the tail, 2 at the head, 4 for a sideways line."""
    return {
        "boxes": {box.id: _box_facts(box, picture.scale, box.id in unfolds) for box in picture.all_boxes()},
        "lines": [[route.edge.tail, route.edge.head] for route in layout.routes],
        "ends": [bool(r.edge.at_tail) + 2 * bool(r.edge.at_head) + 4 * r.sideways for r in layout.routes],
        "places": {id: _rectangle_list(place) for id, place in layout.boxes.items()},
        "frames": _frames(picture, layout),
        "size": [layout.width, layout.height],
    }


def _pack_sheets(picture: Picture, inside: list[Sheet], theme: str, unfolds: Container[str]) -> str:
    """The sheets of folded boxes, compressed: a large program has many, and few of them are looked at."""
    links = _undrawn_links(picture, inside)
    if not inside and not links:
        return ""
    found = []
    for sheet in inside:
        layout = lay_out(sheet.picture)
        drawn = part_text(sheet.picture, theme, layout, sheet.depth)
        found.append({"of": sheet.box, "svg": drawn, **_sheet_data(sheet.picture, layout, unfolds)})
    return base64.b64encode(zlib.compress(in_json({"sheets": found, "links": links}).encode(), 9)).decode()


def _undrawn_links(picture: Picture, inside: list[Sheet]) -> list[list[int]]:
    """The lines of the program between boxes of the page that no sheet draws, as pairs of numbers of boxes."""
    pictures = [picture, *(sheet.picture for sheet in inside)]
    number = {id: n for n, id in enumerate(box.id for each in pictures for box in each.all_boxes())}
    drawn = {(edge.tail, edge.head) for each in pictures for edge in each.edges}
    links = dict.fromkeys((e.tail, e.head) for e in picture.lines if e.tail in number and e.head in number)
    return [[number[tail], number[head]] for tail, head in links if (tail, head) not in drawn]


def _frames(picture: Picture, layout: PictureLayout) -> list[list[Any]]:
    """For each frame, in drawing order, its id, the number of the enclosing frame, its rectangle and its boxes."""
    known = [each for each, _ in frames(picture)]
    number = {each.id: place for place, each in enumerate(known)}
    around = {inner.id: number[each.id] for each in known for inner in each.clusters}
    return [
        [each.id, around.get(each.id, -1), _rectangle_list(layout.clusters[each.id]), [box.id for box in each.boxes]]
        for each in known
    ]


def _rectangle_list(place: Rectangle) -> list[float]:
    return [round(each, 1) for each in (place.x, place.y, place.width, place.height)]


def _box_facts(box: Box, scale: Scale | None, unfolds: bool) -> dict[str, str]:
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
    facts = {"name": box.name, "shape": box.shape, "words": words, "found": " ".join(found).lower()}
    if lacking := _missing_note(box, unfolds):
        facts["lacking"] = lacking
    return facts


def _missing_note(box: Box, unfolds: bool) -> str:
    """The text that states which instructions of a box are not in the page, and the command that shows them."""
    if (not box.holds or unfolds) and not box.stubs:
        return ""
    what = ", ".join(each.replace("hidden ", "") for each in box.stubs) if box.stubs else "what the box represents"
    name = first_instruction(box).id
    return (
        f"not in this page: {what}\nto see the box: xbuild viz TARGET --around '{name}' -o near.html\nor draw more "
        "boxes with --max-nodes"
    )


def _asset(name: str) -> str:
    return (files("xbuild.pictures") / "assets" / name).read_text(encoding="utf-8")


# ----------------------------------------------------------------------------
# HTML of a picture inside another page, such as a notebook: with scroll bars, and with a report beside it.


def framed(svg: str) -> str:
    """The HTML of an svg with scroll bars, for a picture that may be larger than the page."""
    return f'<div style="overflow:auto;max-height:85vh">{svg}</div>'


def page(svg: str, report: str, theme: str, title: str) -> str:
    """A page of an svg, as wide as the window where that is narrower, with the report below it."""
    light, dark = (
        f"body{{background:{each.ground};color:{each.ink}}}" for each in (theme_of("light"), theme_of("dark"))
    )
    colours = dark if theme == "dark" else light
    colours += f"@media (prefers-color-scheme:dark){{{dark}}}" if theme == "auto" else ""
    rules = (
        f"body{{margin:0 auto;padding:8px;max-width:1100px;font:12px/1.5 {FONT}}}"
        "div,pre{overflow-x:auto}pre{padding:0 20px}svg{max-width:100%;min-width:760px;height:auto}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8">{policy()}'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{in_html(title)}</title><style>{rules}{colours}</style><div>{svg}</div><pre>{in_html(report)}</pre></html>\n"
    )


def beside(report: str, svg: str, theme: str, report_first: bool = False) -> str:
    """The HTML of a report, given as HTML, and of the picture that illustrates it, side by side if the page is wide."""
    parts = [f'<div class="xb-picture">{svg}</div>', f"<pre>{report}</pre>"]
    both = "".join(reversed(parts) if report_first else parts)
    return f'<div class="xb-report {theme}"><style>{_style(theme)}</style>{both}</div>'


def above(svg: str, lines: Iterable[Line], theme: str) -> str:
    """The HTML of a picture and of the report below it, of which both are as wide as the page."""
    parts = f'<div class="xb-picture">{svg}</div><pre>{html(lines)}</pre>'
    return f'<div class="xb-report {theme} xb-tables"><style>{_style(theme)}</style>{parts}</div>'


def report(lines: Iterable[Line], theme: str = "auto") -> str:
    """The HTML of a report without a picture; its columns stay columns on a narrow page, which scrolls."""
    return f'<div class="xb-report {theme} xb-tables"><style>{_style(theme)}</style><pre>{html(lines)}</pre></div>'


def _style(theme: str) -> str:
    name = f".xb-report.{theme}"
    rules = (
        f"{name}{{display:flex;flex-wrap:wrap;align-items:flex-start;gap:12px}}",
        f"{name} .xb-picture{{flex:2 1 480px;min-width:0;overflow:auto;max-height:85vh}}",
        f"{name} pre{{flex:1 1 560px;min-width:0;box-sizing:border-box;margin:0;padding:12px;overflow:auto;",
        f"max-height:85vh;border:1px solid;border-radius:6px;font:12px/1.5 {FONT};white-space:pre-wrap;"
        "overflow-wrap:anywhere}",
        f"{name}.xb-tables>*{{flex-basis:100%}}{name}.xb-tables pre{{white-space:pre}}",
    )
    light, dark = (_colours(name, theme_of(each)) for each in ("light", "dark"))
    if theme == "auto":
        return f"{''.join(rules)}{light}@media (prefers-color-scheme:dark){{{dark}}}"
    return "".join(rules) + (dark if theme == "dark" else light)


def _colours(name: str, theme: Theme) -> str:
    bad, good, waits = ("#ff8a80", "#7dc982", "#ffca6b") if theme is DARK else ("#b3261e", "#1b6e2a", "#8a5a00")
    styles = {"bad": bad, "good": good, "waits": waits, "dim": theme.dim, "name": theme.hover}
    rules = "".join(f"{name} .r-{style}{{color:{colour}}}" for style, colour in styles.items())
    rules += f"{name} .xb-picture{{background:{theme.ground}}}"
    bold = f"{name} .r-bad,{name} .r-title,{name} .r-waits{{font-weight:bold}}"
    return f"{name} pre{{background:{theme.frames[0]};color:{theme.ink};border-color:{theme.frame}}}{rules}{bold}"
