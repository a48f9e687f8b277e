"""A picture as text: an indented tree, each instruction a line, called computations below their caller."""

from __future__ import annotations

from collections.abc import Iterator

from shape_inference.escaping import printable

from .picture import Box, Cluster, Picture


def terminal_text(picture: Picture) -> str:
    """The picture in box characters."""
    scale_note = (picture.scale.description,) if picture.scale else ()
    notes = "".join(f"{note}\n" for note in (*picture.notes, *scale_note))
    trees = ("".join(f"{line}\n" for line in _frame_lines(cluster, "")) for cluster in picture.clusters)
    return printable(notes + "\n".join(trees))


def _frame_lines(cluster: Cluster, indent: str) -> Iterator[str]:
    if not indent:
        yield cluster.title
    width = max((len(box.name) for box in cluster.boxes), default=0)
    own = {box.id for box in cluster.boxes}
    # These are the frames whose caller is not shown, and pages.
    others = [inner for inner in cluster.clusters if inner.caller not in own]
    for place, box in enumerate(cluster.boxes):
        is_last = place == len(cluster.boxes) - 1 and not others
        yield f"{indent}{'└' if is_last else '├'}─ {_box_line(box, width)}"
        called = [inner for inner in cluster.clusters if inner.caller == box.id]
        yield from _frames(called, f"{indent}{' ' if is_last else '│'}  ")
    yield from _frames(others, indent)


def _frames(clusters: list[Cluster], indent: str) -> Iterator[str]:
    for number, inner in enumerate(clusters):
        ends = number == len(clusters) - 1
        yield f"{indent}{'╰' if ends else '├'}╴{inner.title}"
        yield from _frame_lines(inner, f"{indent}{' ' if ends else '│'}  ")


def _box_line(box: Box, width: int) -> str:
    arguments = f"({', '.join(box.arguments)})" if box.arguments else ""
    details = [detail for detail in box.details if " = " not in detail]
    mark = (f"[{box.mark.words}]",) if box.mark else ()
    words = [
        f"{box.kind.letter} {box.name:<{width}}",
        f"{box.title}{arguments}",
        *details,
        box.shape,
        *box.stubs,
        *mark,
    ]
    return "  ".join(word for word in words if word) + ("  ◂ ROOT" if box.is_root else "")
