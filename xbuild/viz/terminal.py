"""A picture as text: an indented tree, each instruction a line, called computations below their caller."""

from __future__ import annotations

from collections.abc import Iterator

from .picture import Box, Cluster, Picture


def terminal_text(picture: Picture) -> str:
    """The picture in box characters."""
    trees = ("".join(f"{line}\n" for line in _tree(cluster, "")) for cluster in picture.clusters)
    return "\n".join(trees)


def _tree(cluster: Cluster, indent: str) -> Iterator[str]:
    if not indent:
        yield cluster.title
    width = max((len(box.name) for box in cluster.boxes), default=0)
    for place, box in enumerate(cluster.boxes):
        is_last = place == len(cluster.boxes) - 1
        yield f"{indent}{'└' if is_last else '├'}─ {_line(box, width)}"
        inside = f"{indent}{' ' if is_last else '│'}  "
        called = [inner for inner in cluster.clusters if inner.caller == box.id]
        for number, inner in enumerate(called):
            ends = number == len(called) - 1
            yield f"{inside}{'╰' if ends else '├'}╴{inner.title}"
            yield from _tree(inner, f"{inside}{' ' if ends else '│'}  ")


def _line(box: Box, width: int) -> str:
    arguments = f"({', '.join(box.arguments)})" if box.arguments else ""
    details = [detail for detail in box.details if " = " not in detail]
    words = [f"{box.kind.letter} {box.name:<{width}}  {box.title}{arguments}", *details, box.shape]
    return "  ".join(words) + ("  ◂ ROOT" if box.is_root else "")
