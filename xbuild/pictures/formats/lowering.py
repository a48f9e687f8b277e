"""Dispatch from a picture and the name of a format to the writer of the format."""

from __future__ import annotations

from ..lanes import Lanes
from ..model.picture import Picture
from ..tiles import TilePicture
from ..tiles.text import tiles_text
from ..timelines import TimePicture

DPI = 110


def lower(picture: Picture, form: str, theme: str, seconds: float) -> str | bytes:
    """A picture of boxes as svg, html, dot, mermaid or txt (text), or as png or pdf (bytes)."""
    if form == "svg":
        from ..svg import svg_text

        return svg_text(picture, theme)
    if form == "html":
        from .viewer import html_text

        return html_text(picture, theme)
    if form == "mermaid":
        from .mermaid import mermaid_text

        return mermaid_text(picture, theme)
    if form == "txt":
        from .terminal import terminal_text

        return terminal_text(picture)
    if form == "dot":
        from .dot import dot_text

        return dot_text(picture, theme=theme)
    from .engine import render
    from .placed import placed_text

    return render(placed_text(picture, theme, DPI if form == "png" else None), form, seconds)


def lower_time(picture: TimePicture, form: str, theme: str) -> str:
    """A time line as svg or txt, or as a page of html."""
    if form in ("svg", "html"):
        from ..svg.time_lanes import time_svg
        from .framing import page

        svg = time_svg(picture, theme)
        return svg if form == "svg" else page(svg, picture.report, theme, picture.headline)
    if form == "txt":
        return f"{picture.report}\n"
    raise ValueError(f"a time line is drawn as svg, html or txt, not as {form}")


def lower_tiles(picture: TilePicture, form: str, theme: str) -> str:
    """A picture of tiles as svg or txt, or as a page of html."""
    if form in ("svg", "html"):
        from ..svg.tiles import tiles_svg
        from .framing import page

        svg = tiles_svg(picture, theme)
        return svg if form == "svg" else page(svg, "", theme, picture.headline)
    if form == "txt":
        return tiles_text(picture)
    raise ValueError(f"tiles are drawn as svg, html or txt, not as {form}")


def lower_lanes(lanes: Lanes, form: str, theme: str) -> str:
    """A picture of lanes as svg or txt."""
    if form == "svg":
        from ..svg.lanes import lanes_svg

        return lanes_svg(lanes, theme)
    if form == "txt":
        from ..lanes.text import lanes_text

        return lanes_text(lanes)
    raise ValueError(f"a verdict is drawn as svg or txt, not as {form}")
