"""A picture as text for graphviz."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator

from .kinds import Kind
from .picture import Box, Cluster, Edge, Picture

FONT = "Helvetica,Arial,sans-serif"
_INK, _GREY, _LINE = "#212121", "#607d8b", "#78909c"
_LARGE = 200  # boxes; above it, graphviz gets less time for beauty

_EDGES = {
    "value": f'color="{_LINE}"',
    "token": 'color="#c2185b" style=dashed arrowhead=vee',
    "control": 'color="#e65100" style=dotted arrowhead=vee penwidth=1.4',
    "call": 'color="#2e7d32" style=dashed arrowhead=onormal',
    "channel": 'color="#d81b60" style=bold penwidth=2.2 constraint=false',
}
_WORDS = {
    "token": ("#c2185b", "╌▸ token"),
    "control": ("#e65100", "┈▸ runs after"),
    "call": ("#2e7d32", "╌▹ result of a called computation"),
    "channel": ("#d81b60", "━▸ channel"),
}
_FRAMES = ("#ffffff", "#f5f7fa", "#ebeff3", "#e1e7ec")


def dot_text(picture: Picture, dpi: int | None = None) -> str:
    """The picture in graphviz's language; the same program gives the same text."""
    return _graph([*_body(picture, dpi), *channel_lines(picture)])


def steps(picture: Picture, dpi: int | None = None) -> tuple[str, str]:
    """The same in two steps: what is laid out first, and the channels, which then only find their way over it.

    With the channels in the layout, graphviz sets the devices in an order of its own.
    """
    over = "".join(f"{line}\n" for line in channel_lines(picture))
    return _graph(_body(picture, dpi)), f"graph [splines=true]\n{over}" if over else ""


def channel_lines(picture: Picture) -> list[str]:
    return [_edge(edge) for edge in picture.edges if edge.what == "channel"]


def _graph(lines: Iterable[str]) -> str:
    return "\n".join(("digraph program {", *(f"  {line}" for line in lines), "}")) + "\n"


def _body(picture: Picture, dpi: int | None) -> Iterator[str]:
    large = sum(1 for _ in picture.all_boxes()) > _LARGE
    yield f'graph [bgcolor="#ffffff" fontname="{FONT}" fontsize=11 fontcolor="{_INK}"]'
    yield "graph [rankdir=TB ranksep=0.38 nodesep=0.28 pad=0.25]"
    if large:
        yield "graph [nslimit=1 nslimit1=1 mclimit=0.1 splines=line]"
    if dpi:
        yield f"graph [dpi={dpi}]"
    yield f"graph [labelloc=b label=<{_legend(picture)}>]"
    yield f'node [shape=plain fontname="{FONT}" fontsize=11]'
    yield f'edge [fontname="{FONT}" fontsize=9 fontcolor="{_GREY}" arrowsize=0.6 labeldistance=2.0 labelangle=22]'
    for cluster in picture.clusters:
        yield from _cluster(cluster, 0)
    for edge in picture.edges:
        if edge.what != "channel":
            yield _edge(edge)


def _cluster(cluster: Cluster, depth: int) -> Iterator[str]:
    pad = "  " * depth
    yield f"{pad}subgraph {_quoted(f'cluster_{cluster.id}')} {{"
    fill = _FRAMES[min(depth, len(_FRAMES) - 1)]
    style = "rounded,filled" if depth == 0 else "rounded,filled,dashed"
    yield (
        f"{pad}  graph [id={_quoted(f'cluster_{cluster.id}')} style={_quoted(style)} fillcolor={_quoted(fill)} "
        f'color="#90a4ae" labelloc=t labeljust=l margin=12 label=<<B>{_escaped(cluster.title)}</B>>]'
    )
    for box in cluster.boxes:
        yield f"{pad}  {_box(box)}"
    for inner in cluster.clusters:
        yield from _cluster(inner, depth + 1)
    yield f"{pad}}}"


def _box(box: Box) -> str:
    identity = _quoted(box.id)
    return f"{identity} [id={identity} tooltip={_quoted(box.tooltip or box.name)} label=<{_table(box)}>]"


def _table(box: Box) -> str:
    """A letter at the left; at the right the op, its name, its attributes, its shape."""
    kind = box.kind
    width, border = ("2.6", _INK if kind.ink == _INK else kind.border) if box.is_root else ("1", kind.border)
    root = "  ◂ ROOT" if box.is_root else ""
    small = [box.name, *box.details]
    lines = [f"<B>{_escaped(box.title)}</B>{root}", *map(_small, small), _escaped(box.shape)]
    letter = f'<FONT COLOR="{kind.ink}"><B>{kind.letter}</B></FONT>'
    rows = "".join(f'<TR><TD ALIGN="LEFT"><FONT COLOR="{kind.ink}">{line}</FONT></TD></TR>' for line in lines)
    return (
        f'<TABLE BORDER="{width}" STYLE="ROUNDED" CELLBORDER="0" CELLSPACING="0" CELLPADDING="4" '
        f'BGCOLOR="{kind.fill}" COLOR="{border}"><TR>'
        f'<TD BORDER="1" SIDES="R" COLOR="{kind.border}" VALIGN="TOP">{letter}</TD>'
        f'<TD><TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1">{rows}</TABLE></TD></TR></TABLE>'
    )


def _small(text: str) -> str:
    return f'<FONT POINT-SIZE="9">{_escaped(text)}</FONT>'


def _edge(edge: Edge) -> str:
    labels = ""
    if edge.at_tail or edge.at_head:
        labels = f" taillabel={_quoted(edge.at_tail)} headlabel={_quoted(edge.at_head)}"
    tooltip = f" tooltip={_quoted(edge.tooltip)}" if edge.tooltip else ""
    return f"{_quoted(edge.tail)} -> {_quoted(edge.head)} [{_EDGES[edge.what]}{labels}{tooltip}]"


def _legend(picture: Picture) -> str:
    """The kinds of boxes and lines that occur, in one row each."""
    kinds = "".join(map(_swatch, picture.kinds()))
    occurring = {edge.what for edge in picture.edges}
    words = "".join(_word(*text) for what, text in _WORDS.items() if what in occurring)
    rows = [f'<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="4" CELLPADDING="3"><TR>{kinds}</TR></TABLE>']
    if words:
        rows.append(f'<TABLE BORDER="0" CELLSPACING="4"><TR>{words}</TR></TABLE>')
    return f'<TABLE BORDER="0" CELLSPACING="0">{"".join(f"<TR><TD>{row}</TD></TR>" for row in rows)}</TABLE>'


def _swatch(kind: Kind) -> str:
    text = f'<FONT POINT-SIZE="9" COLOR="{kind.ink}"><B>{kind.letter}</B>  {_escaped(kind.name)}</FONT>'
    return f'<TD BGCOLOR="{kind.fill}" COLOR="{kind.border}">{text}</TD>'


def _word(color: str, text: str) -> str:
    return f'<TD><FONT POINT-SIZE="9" COLOR="{color}">{_escaped(text)}</FONT></TD>'


def _escaped(text: str) -> str:
    return html.escape(text, quote=True).replace("\n", " ")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "&#10;")
    return f'"{escaped}"'
