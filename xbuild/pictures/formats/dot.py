"""A picture as text for graphviz."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from shape_inference.escaping import in_dot, in_html

from ..layout.sizes import size_of
from ..model.data import STEPS, Scale, colours
from ..model.kinds import Kind, Outline
from ..model.picture import Box, Cluster, Edge, Picture
from ..model.themes import theme_of

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
    writer = Writer(picture, theme, dpi)
    return graph_of([*writer.body(), *writer.channels()])


def graph_of(lines: Iterable[str]) -> str:
    return "\n".join(("digraph program {", *(f"  {line}" for line in lines), "}")) + "\n"


@frozen
class Writer:
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
