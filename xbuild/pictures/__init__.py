"""Pictures of programs: a picture as plain data, lowered to svg, html, dot, png, pdf, Mermaid, or text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack, overload

from attrs import frozen

from .model.errors import MOST as MOST
from .model.errors import ViewError as ViewError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from ..checking import Verdict
    from ..core.builder import Value
    from ..core.graph import Computation, Instruction, Module, ModuleGroup
    from ..sharding.partition import Partitioned, Tiling
    from ..timelines import Timeline
    from .lanes import Lanes
    from .model.picture import Picture
    from .tiles import TilePicture
    from .timelines import TimePicture

    Program: TypeAlias = Computation | Module | ModuleGroup | Value | Verdict | Timeline | Partitioned | Tiling
    Data: TypeAlias = Mapping[Instruction, float | str] | Mapping[str, float | str] | Mapping[Value, float | str]

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
        from ..process.gc_pause import no_collection
        from .formats.lowering import lower, lower_lanes, lower_tiles, lower_time
        from .lanes import Lanes
        from .tiles import TilePicture
        from .timelines import TimePicture

        if isinstance(self.picture, TilePicture):
            return lower_tiles(self.picture, form, self.theme)
        if isinstance(self.picture, TimePicture):
            return lower_time(self.picture, form, self.theme)
        if isinstance(self.picture, Lanes):
            return lower_lanes(self.picture, form, self.theme)
        with no_collection():
            return lower(self.picture, form, self.theme, self.seconds)

    @property
    def notes(self) -> tuple[str, ...]:
        """The parts of the program that the picture leaves out, each with the reason."""
        return self.picture.notes

    def _repr_svg_(self) -> str:
        return str(self.render("svg"))

    def _repr_html_(self) -> str:
        from .formats.framing import beside, framed

        report = getattr(self.picture, "report", "")
        return beside(self._repr_svg_(), report, self.theme) if report else framed(self._repr_svg_())

    def __str__(self) -> str:
        return str(self.render("txt"))

    __repr__ = __str__


class Options(TypedDict, total=False):
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
def viz(program: Program, path_or_format: None = None, **options: Unpack[Options]) -> Drawing: ...


@overload
def viz(program: Program, path_or_format: str | os.PathLike[str], **options: Unpack[Options]) -> str | bytes | Path: ...


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
    """A picture of a program, value, verdict or time line: a Drawing, its content in a format, or the path of a file.

    What `xb.shard.partition` gives is drawn as the global program beside what each device runs, with the reasons of its
    collectives; what `xb.shard.tiling` gives as the tiles of an array.

    Formats: svg (theme auto, light or dark; auto is as the reader's system has it), html (a page to search and to move
    about in), png and pdf (by graphviz, which the extra `viz` brings, stopped after `seconds`), dot, mermaid, txt.
    The picture shows the whole program, or the instructions `around` one instruction up to a radius, or all `paths`
    from one instruction to another, or `only` the collectives. Each computation or scope named in `fold` is one box. A
    program of more than `max_nodes` boxes (300) is folded, and a note in the picture states that.
    `data` maps instructions, or their names (`body/add.3` where several share a name), to numbers or texts: each box
    shows its datum as a badge, and a colour between the lowest and the highest number; the legend names the scale
    `data_name`. A folded box shows the sum of the numbers of its instructions, in the colour of the highest.
    Raises: ValueError where a format, theme or name is unknown; DrawingError where the engine for png or pdf is missing
    or takes too long.

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
    from .showing import shown
    from .views.views import View

    form = None if path_or_format is None else form_of(path_or_format)
    if theme not in THEMES:
        raise ValueError(f"theme={theme!r}: {', '.join(THEMES)} are what there is")
    most = most_boxes(form) if max_nodes is None else max_nodes
    view = View(around, radius, paths, only, tuple(fold), most, unfolds=form == "html")
    drawing = Drawing(shown(program, view, data, data_name), seconds, theme)
    if path_or_format is None or form is None:
        return drawing
    content = drawing.render(form)
    if path_or_format in FORMS:
        return content
    path = Path(path_or_format)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def most_boxes(form: str | None) -> int:
    """The default limit of the number of boxes of a picture in this format."""
    return _MERMAID if form == "mermaid" else MOST


def form_of(path_or_format: str | os.PathLike[str]) -> str:
    """The format of this name, or of the suffix of this path; raises ValueError where the format is unknown."""
    if path_or_format in FORMS:
        return str(path_or_format)
    path = Path(path_or_format)
    ending = path.suffix.removeprefix(".").lower()
    form = _ENDINGS.get(ending, ending)
    if form not in FORMS:
        raise ValueError(f"{str(path)!r} is no picture; wanted is one of {', '.join(FORMS)}, or a path that ends so")
    return form
