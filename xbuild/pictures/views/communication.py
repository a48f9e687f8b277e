"""View of a program's communication alone: all other ops are folded into boxes between the communicating ones."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.kinds import CHANNEL, COLLECTIVE
from ..model.picture import Box, Cluster, Edge, Picture
from .merging import frames, inside, merged


def only_collectives(picture: Picture) -> Picture:
    """The communicating boxes and their callers; others with equal shown neighbours are folded."""
    shown = {box.id for box in picture.all_boxes() if box.kind in (COLLECTIVE, CHANNEL)}
    for cluster, _ in reversed([*frames(picture)]):
        if cluster.caller and any(box.id in shown for box in cluster.boxes):
            shown.add(cluster.caller)
    groups: dict[str, list[Box]] = {}
    lines = inside(picture)
    for cluster, _ in frames(picture):
        for number, boxes in enumerate(_between(cluster, lines.get(cluster.id, ()), shown)):
            if len(boxes) > 1:
                groups[f"{cluster.id}/between {number}//"] = boxes
    return merged(picture, groups)


def _between(cluster: Cluster, edges: Sequence[Edge], shown: set[str]) -> list[list[Box]]:
    """The other boxes of a frame, in groups that have the same shown boxes before them and the same after them."""
    own = {box.id: number for number, box in enumerate(cluster.boxes)}
    pairs = [(own[edge.tail], own[edge.head]) for edge in edges]
    marks = [1 << number if box.id in shown else 0 for number, box in enumerate(cluster.boxes)]
    after, before = _spread(pairs, marks, forwards=True), _spread(pairs, marks, forwards=False)
    groups: dict[tuple[int, int], list[Box]] = {}
    for number, box in enumerate(cluster.boxes):
        if box.id not in shown:
            groups.setdefault((after[number], before[number]), []).append(box)
    return [*groups.values()]


def _spread(edges: list[tuple[int, int]], marks: list[int], *, forwards: bool) -> list[int]:
    """For each box the set of marks (as bits) before it, or after it."""
    found = [0] * len(marks)
    for tail, head in sorted(edges, key=lambda edge: edge[1]) if forwards else sorted(edges, reverse=True):
        here, there = (head, tail) if forwards else (tail, head)
        found[here] |= found[there] | marks[there]
    return found
