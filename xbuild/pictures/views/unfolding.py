"""Pictures of the content of folded boxes, made on demand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from attrs import frozen

from ..model.picture import Box, Cluster, Edge, Picture
from .paging import with_words, words_between


@frozen(slots=False)
class Parts:
    """The parts of a picture by the boxes that they are folded into.

    `into` maps each box to its folded box; `boxes` and `clusters` map a folded box to its boxes and frames.
    """

    picture: Picture
    into: Mapping[str, str]
    boxes: Mapping[str, tuple[Box, ...]]
    clusters: Mapping[str, tuple[Cluster, ...]]

    def of(self, key: str) -> Picture:
        """The picture of the content of a folded box; lines to boxes outside it are words in its boxes."""
        cluster = Cluster(key, key, self.boxes.get(key, ()), self.clusters.get(key, ()))
        return Picture(key, (with_words(cluster, self._words),), tuple(self._edges.get(key, ())))

    @cached_property
    def _edges(self) -> dict[str, list[Edge]]:
        found: dict[str, list[Edge]] = {}
        for edge in self.picture.edges:
            key = self.into.get(edge.tail)
            if key is not None and key == self.into.get(edge.head):
                found.setdefault(key, []).append(edge)
        return found

    @cached_property
    def _words(self) -> dict[str, list[str]]:
        return words_between(self.picture, [edge for edge in self.picture.edges if self._is_cut(edge)])

    def _is_cut(self, edge: Edge) -> bool:
        return edge.what not in ("call", "channel") and self.into.get(edge.tail) != self.into.get(edge.head)


def unfolded(box: Box) -> Picture:
    """The picture of the content of a box, in one frame of its name."""
    parts = [held() for held in box.holds]
    insides = [part.clusters[0] for part in parts]
    clusters = tuple(inner for each in insides for inner in each.clusters)
    roles = ", ".join(inner.role for inner in clusters if inner.role and inner.caller == box.id)
    whole = Cluster(box.id, f"{box.name}: {roles}" if roles else box.name, insides[0].boxes, clusters)
    return Picture(box.name, (whole,), tuple(edge for part in parts for edge in part.edges))


def first_inside(box: Box) -> Box:
    """The first instruction that a box stands for."""
    while box.holds:
        box = next(box.holds[0]().all_boxes())
    return box
