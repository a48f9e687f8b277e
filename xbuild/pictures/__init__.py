"""Pictures of programs: `viz` builds a picture as plain data and converts it to svg, html, dot, png, pdf or text.

Sections:

    `viz` and its Drawing
    Conversion to a format
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack, overload

from attrs import frozen

from .picture import MOST as MOST
from .picture import ViewError as ViewError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from ..checking import Verdict
    from ..core.builder import Value
    from ..core.graph import Computation, Instruction, Module, ModuleGroup
    from ..sharding.partition import Partitioned, Tiling
    from ..timelines import Timeline
    from .lanes import Lanes
    from .picture import Picture
    from .tiles import TilePicture
    from .time_lanes import TimePicture

    Program: TypeAlias = Computation | Module | ModuleGroup | Value | Verdict | Timeline | Partitioned | Tiling
    Data: TypeAlias = Mapping[Instruction, float | str] | Mapping[str, float | str] | Mapping[Value, float | str]

# ----------------------------------------------------------------------------
# `viz` and its Drawing

FORMS = ("svg", "html", "png", "pdf", "dot", "mermaid", "txt")
THEMES = ("auto", "light", "dark")
_ENDINGS = {"mmd": "mermaid", "gv": "dot"}
_MERMAID = 120  # boxes of a Mermaid text, since programs that draw Mermaid refuse long texts


@frozen
class Drawing:
    """A picture that notebooks show; `str()` of it is the text for a terminal."""

    picture: Picture | Lanes | TimePicture | TilePicture
    seconds: float = 5.0
    theme: str = "auto"

    def render(self, form: str) -> str | bytes:
        """The picture as svg, html, dot, mermaid or txt (text), or as png or pdf (bytes)."""
        from ..process.limits import no_collection
        from ..process.progress import during
        from .lanes import Lanes
        from .tiles import TilePicture
        from .time_lanes import TimePicture

        if isinstance(self.picture, TilePicture):
            return _convert_tiles(self.picture, form, self.theme)
        if isinstance(self.picture, TimePicture):
            return _convert_time_line(self.picture, form, self.theme)
        if isinstance(self.picture, Lanes):
            return _convert_lanes(self.picture, form, self.theme)
        with no_collection(), during(f"laying out the picture as {form}"):
            return _convert_picture(self.picture, form, self.theme, self.seconds)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the picture omits of the program, and why."""
        return self.picture.notes

    def _repr_svg_(self) -> str:
        return str(self.render("svg"))

    def _repr_html_(self) -> str:
        from shape_inference.escaping import in_html

        from ..core.report_text import headed, html
        from .html import above, beside, framed
        from .lanes import Lanes
        from .time_lanes import TimePicture

        svg, report = self._repr_svg_(), getattr(self.picture, "report", "")
        if isinstance(self.picture, Lanes) and self.picture.report:
            return beside(html(self.picture.report), svg, self.theme, report_first=True)
        if isinstance(self.picture, TimePicture) and report:  # its tables are as wide as its lanes
            return above(svg, headed(report.split("\n")), self.theme)
        return beside(in_html(report), svg, self.theme) if report else framed(svg)

    def __str__(self) -> str:
        return str(self.render("txt"))

    __repr__ = __str__


class VizOptions(TypedDict, total=False):
    """The keyword arguments of `viz`."""

    theme: str
    seconds: float
    around: str | None
    radius: int
    paths: tuple[str, str] | None
    only: str | None
    fold: tuple[str, ...]
    max_nodes: int | None
    data: Data | None
    data_name: str


@overload
def viz(program: Program, path_or_format: None = None, **options: Unpack[VizOptions]) -> Drawing: ...


@overload
def viz(
    program: Program, path_or_format: str | os.PathLike[str], **options: Unpack[VizOptions]
) -> str | bytes | Path: ...


def viz(
    program: Program,
    path_or_format: str | os.PathLike[str] | None = None,
    *,
    theme: str = "auto",
    seconds: float = 5.0,
    around: str | None = None,
    radius: int = 2,
    paths: tuple[str, str] | None = None,
    only: str | None = None,
    fold: tuple[str, ...] = (),
    max_nodes: int | None = None,
    data: Data | None = None,
    data_name: str = "data",
) -> Drawing | str | bytes | Path:
    """Draw a program, value, verdict or timeline. Return a Drawing, its content in a format, or the path of a file.

    The result of `xb.shard.partition` is drawn as the global program beside the program of each device, with the
    reasons for its collectives. The result of `xb.shard.tiling` is drawn as the tiles of an array.

    The formats are svg, html (a page to search and navigate), dot, mermaid and txt; also png and pdf, which are drawn
    within `seconds` by graphviz (installed by the extra `viz`). The theme of svg is auto, light or dark; auto follows
    the reader's system. The picture shows the full program, the instructions `around` one instruction up to a radius,
    all `paths` from one instruction to another, or `only` the collectives. Each computation or scope named in `fold` is
    one box. A program with more than `max_nodes` boxes (default: 300) is folded, and a note in the picture says so.
    `data` maps instructions, or their names (`body/add.3` if several share a name), to numbers or strings. Each box
    shows its number or string as a badge. The colour of a number shows where it lies between the lowest and the
    highest. `data_name` names the scale in the legend. A folded box shows the sum of the numbers of its instructions,
    in the colour of the highest.
    Raises: ValueError if a format, theme or name is unknown; DrawingError if graphviz is missing or takes too long.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2])
    ... def double(x):
    ...     return xb.ops.add(x, x)
    >>> print(xb.viz(double, "txt"), end="")
    double
    ├─ P parameter.1  parameter 0  f32[2]
    └─ E add.2        add(parameter.1, parameter.1)  f32[2]  ◂ ROOT

    In this example the data are the bytes of each result; `Counter(event.instruction for event in trace)` would give
    how often each instruction ran.

    >>> sizes = {each: 4 * each.shape.size for each in double.instructions}
    >>> print(xb.viz(double, "txt", data=sizes, data_name="bytes"), end="")
    bytes: 8 to 8
    double
    ├─ P parameter.1  parameter 0  f32[2]  [8]
    └─ E add.2        add(parameter.1, parameter.1)  f32[2]  [8]  ◂ ROOT
    """
    from .showing import picture_of
    from .views import View

    form = None if path_or_format is None else form_of(path_or_format)
    if theme not in THEMES:
        raise ValueError(f"theme={theme!r}: expected one of {', '.join(THEMES)}")
    most = most_boxes(form) if max_nodes is None else max_nodes
    view = View(around, radius, paths, only, tuple(fold), most, unfolds=form == "html")
    drawing = Drawing(picture_of(program, view, data, data_name), seconds, theme)
    if path_or_format is None or form is None:
        return drawing
    content = drawing.render(form)
    if path_or_format in FORMS:
        return content
    from ..files.arrays import replacing

    path = Path(path_or_format)
    with replacing(path) as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return path


def most_boxes(form: str | None) -> int:
    """The default limit of the number of boxes of a picture in this format."""
    return _MERMAID if form == "mermaid" else MOST


def form_of(path_or_format: str | os.PathLike[str]) -> str:
    """The format of this name, or of the suffix of this path; raises ValueError if the format is unknown."""
    if path_or_format in FORMS:
        return str(path_or_format)
    path = Path(path_or_format)
    ending = path.suffix.removeprefix(".").lower()
    form = _ENDINGS.get(ending, ending)
    if form not in FORMS:
        raise ValueError(f"{str(path)!r}: expected one of {', '.join(FORMS)}, or a path with one of these endings")
    return form


# ----------------------------------------------------------------------------
# Conversion to a format

_DPI = 110


def _convert_picture(picture: Picture, form: str, theme: str, seconds: float) -> str | bytes:
    """A picture of boxes as svg, html, dot, mermaid or txt (text), or as png or pdf (bytes)."""
    if form == "svg":
        from .svg import svg_text

        return svg_text(picture, theme)
    if form == "html":
        from .html import html_text

        return html_text(picture, theme)
    if form == "mermaid":
        from .mermaid import mermaid_text

        return mermaid_text(picture, theme)
    if form == "txt":
        from .terminal import terminal_text

        return terminal_text(picture)
    if form == "dot":
        from .graphviz import dot_text

        return dot_text(picture, theme=theme)
    from .graphviz import placed_text, render

    return render(placed_text(picture, theme, _DPI if form == "png" else None), form, seconds)


def _convert_time_line(picture: TimePicture, form: str, theme: str) -> str:
    """A timeline as svg or txt, or as a page of html."""
    if form in ("svg", "html"):
        from .html import page
        from .time_lanes import time_svg

        svg = time_svg(picture, theme)
        return svg if form == "svg" else page(svg, picture.report, theme, picture.headline)
    if form == "txt":
        return f"{picture.report}\n"
    raise ValueError(f"a timeline can be drawn as svg, html or txt, not as {form}")


def _convert_tiles(picture: TilePicture, form: str, theme: str) -> str:
    """A picture of tiles as svg or txt, or as a page of html."""
    if form in ("svg", "html"):
        from .html import page
        from .tiles import tiles_svg

        svg = tiles_svg(picture, theme)
        return svg if form == "svg" else page(svg, "", theme, picture.headline)
    if form == "txt":
        from .tiles import tiles_text

        return tiles_text(picture)
    raise ValueError(f"tiles can be drawn as svg, html or txt, not as {form}")


def _convert_lanes(lanes: Lanes, form: str, theme: str) -> str:
    """A picture of lanes as svg or txt."""
    if form == "svg":
        from .lanes_svg import lanes_svg

        return lanes_svg(lanes, theme)
    if form == "txt":
        from .lanes import lanes_text

        return lanes_text(lanes)
    raise ValueError(f"a verdict can be drawn as svg or txt, not as {form}")
