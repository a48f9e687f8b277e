"""Selection of boxes: those around a box, those on paths between two, those nearest to the root."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping

from attrs import evolve, field, frozen

from ..model.picture import Cluster, Edge, Picture

_MANY = 16  # users of a box, above which a walk does not follow them


@frozen
class Neighbours:
    """For each box the boxes before it and after it."""

    edges: Iterable[Edge]
    before: Mapping[str, list[str]] = field(init=False)
    after: Mapping[str, list[str]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        before: dict[str, list[str]] = {}
        after: dict[str, list[str]] = {}
        for edge in self.edges:
            before.setdefault(edge.head, []).append(edge.tail)
            after.setdefault(edge.tail, []).append(edge.head)
        object.__setattr__(self, "before", before)
        object.__setattr__(self, "after", after)


def near(picture: Picture, start: str, radius: int) -> set[str]:
    """The boxes within `radius` steps of a box; no step goes through a tuple, or to more than 16 users."""
    links = Neighbours(picture.edges)
    tuples = {box.id for box in picture.all_boxes() if box.title == "tuple"} - {start}
    found, layer = {start}, [start]
    for _ in range(radius):
        following: list[str] = []
        for box in layer:
            if box in tuples:
                continue
            users = links.after.get(box, [])
            for other in (*links.before.get(box, ()), *(users if len(users) <= _MANY else ())):
                if other not in found:
                    found.add(other)
                    following.append(other)
        if not following:
            break
        layer = following
    return found


def on_paths(picture: Picture, start: str, end: str) -> set[str]:
    """The boxes on all paths from one box to another; empty where there is no path."""
    links = Neighbours(picture.edges)
    return _reached(links.after, start) & _reached(links.before, end) if start != end else {start}


def _reached(links: Mapping[str, list[str]], start: str) -> set[str]:
    found, stack = {start}, [start]
    while stack:
        for other in links.get(stack.pop(), ()):
            if other not in found:
                found.add(other)
                stack.append(other)
    return found


def nearest(picture: Picture, count: int) -> set[str]:
    """The `count` boxes nearest to the roots of the outermost frames."""
    links = Neighbours(picture.edges)
    roots = [box.id for cluster in picture.clusters for box in cluster.boxes if box.is_root]
    queue = deque(dict.fromkeys([*roots, *(box.id for box in picture.all_boxes())]))
    found: dict[str, None] = dict.fromkeys(roots[:count])
    walk = deque(found)
    while len(found) < count and queue:
        box = walk.popleft() if walk else queue.popleft()
        for other in (box, *links.before.get(box, ()), *links.after.get(box, ())):
            if other not in found and len(found) < count:
                found[other] = None
                walk.append(other)
    return set(found)


def kept(picture: Picture, ids: Collection[str], why: str) -> Picture:
    """The picture with these boxes alone, each with the number of its neighbours that are left out."""
    links = Neighbours(picture.edges)
    left_out = picture.size - len(ids)
    clusters = tuple(_kept(cluster, ids, links) for cluster in picture.clusters)
    edges = tuple(edge for edge in picture.edges if edge.tail in ids and edge.head in ids)
    note = f"{len(ids):,} boxes {why}; +{left_out:,} hidden"
    notes = (*picture.notes, note) if left_out else picture.notes
    return evolve(picture, clusters=tuple(c for c in clusters if _holds(c)), edges=edges, notes=notes)


def _kept(cluster: Cluster, ids: Collection[str], links: Neighbours) -> Cluster:
    boxes = []
    for box in cluster.boxes:
        if box.id in ids:
            before = {each for each in links.before.get(box.id, ()) if each not in ids}
            after = {each for each in links.after.get(box.id, ()) if each not in ids}
            boxes.append(evolve(box, hidden_before=len(before), hidden_after=len(after)))
    inner = (_kept(each, ids, links) for each in cluster.clusters)
    return evolve(cluster, boxes=tuple(boxes), clusters=tuple(each for each in inner if _holds(each)))


def _holds(cluster: Cluster) -> bool:
    return bool(cluster.boxes or cluster.clusters)
