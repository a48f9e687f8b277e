"""A picture as text for graphviz, and its drawing by graphviz in a child process under a time limit."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import frozen

from shape_inference.bounds import MOST_PAINTED
from shape_inference.escaping import Harmless, in_dot, in_html

from ..process.child import TooMuchOutputError, run_bounded
from .data import STEPS, Scale, colours
from .geometry import PictureLayout, Point, Rectangle, Route, size_of
from .layout import lay_out
from .picture import Box, Cluster, Edge, Kind, Outline, Picture, theme_of

# ----------------------------------------------------------------------------
# A picture as text for graphviz.

FONT = "Helvetica,Arial,sans-serif"
SCALE = 0.9  # points of graphviz for each pixel of the layout
_LARGE = 150  # boxes, above which graphviz takes fewer steps and straight lines

_EDGES = {
    "token": "style=dashed arrowhead=vee",
    "control": "style=dotted arrowhead=vee penwidth=1.4",
    "call": "style=dashed arrowhead=onormal",
    "channel": "style=bold penwidth=2.2 constraint=false",
}
_WORDS = {
    "token": "╌▸ token",
    "control": "┈▸ runs after",
    "call": "╌▹ result of a called computation",
    "channel": "━▸ channel",
}
_SHAPES: dict[Outline, str] = {
    "plain": "shape=box", "house": "shape=tab", "octagon": "shape=octagon", "slanted": "shape=parallelogram",
    "funnel": "shape=invtrapezium", "double": "shape=box peripheries=2", "hexagon": "shape=box3d",
    "pill": 'shape=box style="filled,rounded" penwidth=2', "flag": "shape=cds", "tab": "shape=component",
    "round": 'shape=box style="filled,rounded"', "cut": "shape=note",
}  # fmt: skip


def dot_text(picture: Picture, dpi: int | None = None, theme: str = "auto") -> str:
    """The picture in graphviz's language; the same program gives the same text."""
    writer = DotWriter(picture, theme, dpi)
    return graph_of([*writer.body(), *writer.channels()])


def graph_of(lines: Iterable[str]) -> str:
    return "\n".join(("digraph program {", *(f"  {line}" for line in lines), "}")) + "\n"


@frozen
class DotWriter:
    """Writes one picture, in the colours of a theme."""

    picture: Picture
    theme: str = "auto"
    dpi: int | None = None

    def channels(self) -> list[str]:
        return [self.edge(edge) for edge in self.picture.edges if edge.what == "channel"]

    def body(self) -> Iterator[str]:
        yield from self.head()
        for cluster in self.picture.clusters:
            yield from self.cluster(cluster, 0)
        for edge in self.picture.edges:
            if edge.what != "channel":
                yield self.edge(edge)

    def head(self) -> Iterator[str]:
        """The attributes of the whole graph, and the defaults of nodes and edges."""
        theme = theme_of(self.theme)
        yield f'graph [bgcolor="{theme.ground}" fontname="{FONT}" fontsize=11 fontcolor="{theme.ink}"]'
        yield "graph [rankdir=TB ranksep=0.38 nodesep=0.28 pad=0.25]"
        if self.picture.size > _LARGE:
            yield "graph [nslimit=1 nslimit1=1 mclimit=0.1 splines=line]"
        if self.dpi:
            yield f"graph [dpi={self.dpi}]"
        yield f"graph [labelloc=b label=<{self.legend()}>]"
        yield f'node [shape=box style=filled margin=0 fontname="{FONT}" fontsize=11]'
        yield (
            f'edge [fontname="{FONT}" fontsize=9 fontcolor="{theme.dim}" arrowsize=0.6 labeldistance=2.0 labelangle=22]'
        )

    def cluster(self, cluster: Cluster, depth: int) -> Iterator[str]:
        pad = "  " * depth
        yield from self.opened(cluster, depth)
        for box in cluster.boxes:
            yield f"{pad}  {self.box(box)}"
        for inner in cluster.clusters:
            yield from self.cluster(inner, depth + 1)
        yield f"{pad}}}"

    def opened(self, cluster: Cluster, depth: int) -> Iterator[str]:
        """The lines of dot that begin a frame."""
        pad, theme = "  " * depth, theme_of(self.theme)
        yield f"{pad}subgraph {in_dot(f'cluster_{cluster.id}')} {{"
        fill = theme.frames[min(depth, len(theme.frames) - 1)]
        style = "rounded,filled" if depth == 0 else "rounded,filled,dashed"
        yield (
            f"{pad}  graph [id={in_dot(f'cluster_{cluster.id}')} style={in_dot(style)} fillcolor={in_dot(fill)} "
            f'color="{theme.frame}" labelloc=t labeljust=l margin=12 label=<<B>{_html(cluster.title)}</B>>]'
        )

    def box(self, box: Box, place: str = "") -> str:
        """The statement of a box, in the size of the layout, or with the position and size of `place`."""
        place = place or size_text(*size_of(box, 0))
        fill, border, _ = self._colours(box)
        root = " penwidth=2.6" if box.is_root else ""
        dashed = ' style="filled,dashed"' if box.stubs else ""
        return (
            f"{in_dot(box.id)} [id={in_dot(box.id)} {_SHAPES[box.kind.outline]}{root}{dashed} "
            f'fillcolor="{fill}" color="{border}" tooltip={in_dot(box.tooltip or box.name)}{place} '
            f"label=<{self._table(box)}>]"
        )

    def _table(self, box: Box) -> str:
        """The label of a box: at the left the letter of its kind; at the right its name, op, attributes and shape."""
        _, border, ink = self._colours(box)
        root = "  ◂ ROOT" if box.is_root else ""
        small = [*((box.title,) if box.title and not box.says_its_op else ()), *box.details, *box.stubs]
        lines = [f"<B>{_html(box.name)}</B>{root}", *map(_small, small), *([_html(box.shape)] if box.shape else [])]
        lines += [f"<B>{_small(box.mark.words)}</B>"] if box.mark else []
        rows = "".join(f'<TR><TD ALIGN="LEFT">{line}</TD></TR>' for line in lines)
        return (
            f'<FONT COLOR="{ink}"><TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="2"><TR>'
            f'<TD BORDER="1" SIDES="R" COLOR="{border}"><B>{box.kind.letter}</B> </TD><TD>'
            f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1">{rows}</TABLE></TD></TR></TABLE></FONT>'
        )

    def _colours(self, box: Box) -> tuple[str, str, str]:
        """Fill, border and ink of a box: those of its kind, or those of its number on the scale."""
        scale, theme = self.picture.scale, theme_of(self.theme)
        if scale is None or scale.low is None:
            return box.kind.colours(self.theme)
        step = scale.step(box.mark)
        fill, ink = (theme.ground, theme.ink) if step is None else colours(step, self.theme)
        return fill, theme.dim, ink

    def edge(self, edge: Edge, place: str = "") -> str:
        labels = ""
        if edge.at_tail or edge.at_head:
            labels = f" taillabel={in_dot(edge.at_tail)} headlabel={in_dot(edge.at_head)}"
        tooltip = f" tooltip={in_dot(edge.tooltip)}" if edge.tooltip else ""
        style = f" {_EDGES[edge.what]}" if edge.what in _EDGES else ""
        colour = theme_of(self.theme).lines[edge.what]
        return f'{in_dot(edge.tail)} -> {in_dot(edge.head)} [color="{colour}"{style}{labels}{tooltip}{place}]'

    def legend(self) -> str:
        """The legend: the kinds of boxes and lines that occur, the scale, and the notes of what is not shown."""
        colours = theme_of(self.theme).lines
        occurring = {edge.what for edge in self.picture.edges}
        kinds = "".join(map(self._swatch, self.picture.kinds()))
        words = "".join(_word(colours[what], text) for what, text in _WORDS.items() if what in occurring)
        rows = [f'<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="4" CELLPADDING="3"><TR>{kinds}</TR></TABLE>']
        if words:
            rows.append(f'<TABLE BORDER="0" CELLSPACING="4"><TR>{words}</TR></TABLE>')
        if self.picture.scale:
            rows.append(self._scale(self.picture.scale))
        rows += (_small(note) for note in self.picture.notes)
        return f'<TABLE BORDER="0" CELLSPACING="0">{"".join(f"<TR><TD>{row}</TD></TR>" for row in rows)}</TABLE>'

    def _scale(self, scale: Scale) -> str:
        if scale.low is None:
            return _small(scale.description)
        fills = (colours(step, self.theme)[0] for step in range(STEPS))
        cells = "".join(f'<TD BORDER="0" WIDTH="16" HEIGHT="10" BGCOLOR="{fill}"></TD>' for fill in fills)
        low, high = (
            f'<TD BORDER="0">{_small(word)}</TD>'
            for word in (f"{scale.name}  {scale.words[0]}", f"{scale.words[1]}{scale.way}")
        )
        return f'<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="2"><TR>{low}{cells}{high}</TR></TABLE>'

    def _swatch(self, kind: Kind) -> str:
        fill, border, ink = kind.colours(self.theme)
        if self.picture.scale and self.picture.scale.low is not None:
            fill, border, ink = theme_of(self.theme).ground, theme_of(self.theme).dim, theme_of(self.theme).ink
        text = f'<FONT POINT-SIZE="9" COLOR="{ink}"><B>{kind.letter}</B>  {_html(kind.name)}</FONT>'
        return f'<TD BGCOLOR="{fill}" COLOR="{border}">{text}</TD>'


def size_text(width: float, height: float) -> str:
    """The attributes of a fixed size, given in pixels of the layout and written in inches of graphviz."""
    return f" width={width * SCALE / 72:.3f} height={height * SCALE / 72:.3f} fixedsize=true"


def _small(text: str) -> str:
    return f'<FONT POINT-SIZE="9">{_html(text)}</FONT>'


def _word(color: str, text: str) -> str:
    return f'<TD><FONT POINT-SIZE="9" COLOR="{color}">{_html(text)}</FONT></TD>'


def _html(text: str) -> str:
    """Text escaped for an HTML-like label, in which a line break becomes a space."""
    return in_html(text).replace("\n", " ")


# ----------------------------------------------------------------------------
# Dot text of a picture with the position of every box and line, so that graphviz draws and lays out nothing.

_LARGEST = 4000  # pixels of the longer side of a png


def placed_text(picture: Picture, theme: str = "auto", dpi: int | None = None) -> str:
    """The dot text of a picture with all positions, for the engine nop2."""
    layout = lay_out(picture)
    if dpi:
        dpi = max(12, min(dpi, int(_LARGEST * 72 / (max(layout.width, layout.height) * SCALE))))
    return graph_of(_Placed(picture, theme, dpi, layout).lines())


class _Placed:
    """Writes boxes, frames and lines at the positions of a layout; the y axis of graphviz points upwards."""

    def __init__(self, picture: Picture, theme: str, dpi: int | None, layout: PictureLayout) -> None:
        self.writer, self.layout = DotWriter(picture, theme, dpi), layout

    def lines(self) -> Iterator[str]:
        yield from self.writer.head()
        yield f'graph [bb="0,0,{self._x(self.layout.width)},{self._x(self.layout.height)}"]'
        for cluster in self.writer.picture.clusters:
            yield from self._cluster(cluster, 0)
        for route in self.layout.routes:
            yield self.writer.edge(route.edge, f' pos="e,{self._way(route)}"')

    def _x(self, x: float) -> str:
        return f"{x * SCALE:.1f}"

    def _point(self, point: Point) -> str:
        return f"{self._x(point[0])},{self._x(self.layout.height - point[1])}"

    def _cluster(self, cluster: Cluster, depth: int) -> Iterator[str]:
        places = {box.id: self._box(self.layout.boxes[box.id]) for box in cluster.boxes}
        yield from self.writer.opened(cluster, depth)
        place = self.layout.clusters[cluster.id]
        low, high = self._point((place.x, place.bottom)), self._point((place.right, place.y))
        title = self._point((place.x + 12 + len(cluster.title) * 4, place.y + 14))
        yield f'graph [bb="{low},{high}" lp="{title}"]'
        for box in cluster.boxes:
            yield self.writer.box(box, places[box.id])
        for inner in cluster.clusters:
            yield from self._cluster(inner, depth + 1)
        yield "}"

    def _box(self, place: Rectangle) -> str:
        return f' pos="{self._point(place.middle)}"{size_text(place.width, place.height)}'

    def _way(self, route: Route) -> str:
        """The positions of a route: first the point of its arrow, then the control points of its cubic curves."""
        points = route.points if route.sideways else _cubic(route.points)
        return f"{self._point(points[-1])} {' '.join(map(self._point, points))}"


def _cubic(points: tuple[Point, ...]) -> list[Point]:
    """The control points of a route: straight lines and smooth curves alternate."""
    found = [points[0]]
    for number, (after, before) in enumerate(zip(points[1:], points, strict=False)):
        middle = (before[1] + after[1]) / 2
        if number % 2:
            found += [(before[0], middle), (after[0], middle), after]
        elif before != after:
            found += [before, after, after]
    return found


# ----------------------------------------------------------------------------
# Drawing by graphviz in a child process under a time limit: the program `dot` on PATH, or that inside pygraphviz.

SECONDS = 5.0


class DrawingError(Harmless, RuntimeError):
    """Raised where graphviz is missing, takes too long or fails, so that there is no picture."""


def render(dot: str, form: str, seconds: float = SECONDS, engine: str = "nop2") -> bytes:
    """The png, pdf or svg that graphviz draws from dot text; the engine nop2 takes every position from the text.

    Raises DrawingError, whose message states a way out, where graphviz is missing, fails or takes too long.
    """
    command = _command(engine, form)
    try:
        done = run_bounded(command, dot.encode(), seconds=seconds, most=MOST_PAINTED)
    except TooMuchOutputError:
        raise DrawingError(f"graphviz produced more than {MOST_PAINTED:,} bytes of {form} and was stopped") from None
    except subprocess.TimeoutExpired:
        raise DrawingError(
            f"graphviz took more than {seconds:g} seconds and was stopped; allow more time (seconds=, --seconds), "
            "or use svg, html, mermaid, txt or dot, which do not need graphviz"
        ) from None
    if done.status or not done.output:
        said = done.said.decode(errors="replace").strip().splitlines() or ["it printed no message"]
        raise DrawingError(f"graphviz produced no {form} (exit code {done.status}): {said[-1][:300]}")
    return done.output


def _command(engine: str, form: str) -> list[str]:
    if program := shutil.which("dot"):
        return [program, f"-K{engine}", f"-T{form}"]
    if importlib.util.find_spec("pygraphviz") is not None:
        return [sys.executable, "-P", str(Path(__file__).with_name("graphviz_child.py")), engine, form]
    raise DrawingError(
        f"the format {form} needs graphviz, which is not installed: run `pip install 'xbuild-hlo[viz]'`, or put its "
        "program `dot` on PATH; the formats svg, html, mermaid, txt and dot do not need graphviz"
    )
