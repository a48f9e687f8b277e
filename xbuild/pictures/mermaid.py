"""A picture as text for Mermaid, which GitHub and many notebooks draw."""

from __future__ import annotations

from collections.abc import Iterator

from shape_inference.escaping import in_line, in_mermaid

from .picture import FOLDED, Box, Cluster, Kind, Outline, Picture, theme_of

_ARROWS = {"value": "-->", "token": "-.->", "control": "-.->", "call": "-.->", "channel": "==>"}
_SHAPES: dict[Outline, tuple[str, str]] = {
    "plain": ("[", "]"), "house": ("[/", "\\]"), "octagon": ("[", "]"), "slanted": ("[/", "/]"), "tab": ("[", "]"),
    "funnel": ("[\\", "/]"), "double": ("[[", "]]"), "hexagon": ("{{", "}}"), "pill": ("([", "])"),
    "flag": (">", "]"), "round": ("(", ")"), "cut": ("[", "]"),
}  # fmt: skip


def mermaid_text(picture: Picture, theme: str = "auto") -> str:
    """The picture in Mermaid's language; the same program gives the same text."""
    numbers = {box.id: f"n{n}" for n, box in enumerate(picture.all_boxes())}
    lines = ["flowchart TD", *(f"  %% {in_line(note)}" for note in (*picture.notes, *_scale_note(picture)))]
    for place, cluster in enumerate(picture.clusters):
        lines += _frame_lines(cluster, numbers, f"c{place}", "  ")
    lines += (f"  {line}" for line in _edge_lines(picture, numbers))
    lines += (f"  {line}" for line in _style_lines(picture, numbers, theme))
    return "\n".join(lines) + "\n"


def _scale_note(picture: Picture) -> tuple[str, ...]:
    return (in_mermaid(picture.scale.description),) if picture.scale else ()


def _frame_lines(cluster: Cluster, numbers: dict[str, str], name: str, pad: str) -> Iterator[str]:
    yield f'{pad}subgraph {name}["{in_mermaid(cluster.title)}"]'
    for box in cluster.boxes:
        yield f"{pad}  {_box_line(box, numbers[box.id])}"
    for place, inner in enumerate(cluster.clusters):
        yield from _frame_lines(inner, numbers, f"{name}_{place}", f"{pad}  ")
    yield f"{pad}end"


def _box_line(box: Box, number: str) -> str:
    opening, closing = _SHAPES[box.kind.outline]
    root = " ◂ ROOT" if box.is_root else ""
    first = f"<b>{box.kind.letter} · {in_mermaid(box.name)}</b>{root}"
    rest = (
        *((box.title,) if not box.says_its_op else ()),
        *box.details,
        box.shape,
        *box.stubs,
        *((box.mark.words,) if box.mark else ()),
    )
    return f'{number}{opening}"{"<br/>".join([first, *(in_mermaid(each) for each in rest if each)])}"{closing}'


def _edge_lines(picture: Picture, numbers: dict[str, str]) -> Iterator[str]:
    for edge in picture.edges:
        words = " → ".join(each for each in (edge.at_tail, edge.at_head) if each)
        label = f'|"{in_mermaid(words)}"|' if words else ""
        yield f"{numbers[edge.tail]} {_ARROWS[edge.what]}{label} {numbers[edge.head]}"


def _style_lines(picture: Picture, numbers: dict[str, str], theme: str) -> Iterator[str]:
    for kind in picture.kinds():
        fill, border, ink = kind.colours(theme)
        name = _class_name(kind)
        yield f"classDef {name} fill:{fill},stroke:{border},color:{ink}"
        boxes = [numbers[box.id] for box in picture.all_boxes() if box.kind is kind]
        yield f"class {','.join(boxes)} {name}"
    for what, colour in theme_of(theme).lines.items():
        places = [str(n) for n, edge in enumerate(picture.edges) if edge.what == what]
        if places and what != "value":
            yield f"linkStyle {','.join(places)} stroke:{colour}"


def _class_name(kind: Kind) -> str:
    return "folded" if kind is FOLDED else f"kind{kind.letter}"
