"""Programs as pictures: a plain picture first, lowered to graphviz's text, svg, png, pdf, or text for a terminal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, overload

from attrs import frozen

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..graph import Computation, Module, ModuleGroup
    from .picture import Picture

    Program: TypeAlias = Computation | Module | ModuleGroup

FORMS = ("svg", "png", "pdf", "dot", "txt")
_DPI = 110


@frozen
class Drawing:
    """A picture that notebooks show; `str()` of it is the text for a terminal."""

    picture: Picture
    seconds: float

    def render(self, form: str) -> str | bytes:
        """The picture as svg, dot or txt (text), or as png or pdf (bytes)."""
        from .dot import dot_text, steps
        from .engine import render
        from .terminal import terminal_text

        if form == "txt":
            return terminal_text(self.picture)
        if form == "dot":
            return dot_text(self.picture)
        first, over = steps(self.picture, _DPI if form == "png" else None)
        drawn = render(first, form, self.seconds, over)
        return drawn.decode() if form == "svg" else drawn

    def _repr_svg_(self) -> str | None:
        from .engine import DrawingError

        try:
            return str(self.render("svg"))
        except DrawingError:
            return None  # the notebook shows the text

    def __str__(self) -> str:
        return str(self.render("txt"))

    __repr__ = __str__


@overload
def viz(program: Program, path_or_format: None = None, *, seconds: float = 10.0) -> Drawing: ...


@overload
def viz(program: Program, path_or_format: str | os.PathLike[str], *, seconds: float = 10.0) -> str | bytes | Path: ...


def viz(
    program: Program, path_or_format: str | os.PathLike[str] | None = None, *, seconds: float = 10.0
) -> Drawing | str | bytes | Path:
    """A picture of the program: a Drawing, its text or bytes for a format, or the path of the file that was written.

    Formats: svg, png, pdf (these want graphviz, or pygraphviz 2, and stop after `seconds`), dot, txt.
    Raises: ValueError where the format is none of these; DrawingError where there is no engine, or it takes too long.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2])
    ... def double(x):
    ...     return xb.ops.add(x, x)
    >>> print(xb.viz(double, "txt"), end="")
    double
    ├─ P parameter.1  parameter 0  f32[2]
    └─ E add.2        add(parameter.1, parameter.1)  f32[2]  ◂ ROOT
    """
    from .drawing import draw

    drawing = Drawing(draw(program), seconds)
    if path_or_format is None:
        return drawing
    if path_or_format in FORMS:
        return drawing.render(str(path_or_format))
    path = Path(path_or_format)
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMS:
        raise ValueError(f"{str(path)!r} is no picture; wanted is one of {', '.join(FORMS)}, or a path that ends so")
    content = drawing.render(form)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
