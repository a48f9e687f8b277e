"""Boxes of a picture folded: a computation into its callers, the ops of a scope into one box, all but communication."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from attrs import evolve

from .kinds import CHANNEL, COLLECTIVE, FOLDED, LEAF, PARAMETER
from .picture import Box, Cluster, Edge, Picture
from .splitting import split

_LISTED = 12  # names on hover
_OPAQUE = 8  # a picture of less than this part of what it may have hides too much


def fold_computation(picture: Picture, name: str) -> Picture | None:
    """The picture with a called computation folded into its callers; None where there is none of this name."""
    inner = [each for each, depth in frames(picture) if depth and name in (each.name, each.id)]
    return _without(picture, {each.id for each in inner}) if inner else None


def fold_computations(picture: Picture, most: int) -> Picture:
    """Called computations folded, innermost first, until there are no more boxes than so many."""
    depths = {cluster.id: depth for cluster, depth in frames(picture)}
    folded = picture
    for least in range(max(depths.values(), default=0), 0, -1):
        folded = _without(picture, {each for each, depth in depths.items() if depth >= least})
        if folded.size <= most:
            break
    return folded


def frames(picture: Picture) -> Iterator[tuple[Cluster, int]]:
    """All frames, with how deep each stands in others."""
    stack = [(cluster, 0) for cluster in reversed(picture.clusters)]
    while stack:
        cluster, depth = stack.pop()
        yield cluster, depth
        stack += [(inner, depth + 1) for inner in reversed(cluster.clusters)]


def _without(picture: Picture, gone: set[str]) -> Picture:
    """Frames removed; what they are said to hold goes to the boxes of their callers."""
    into: dict[str, str] = {}
    counts: dict[str, int] = {}
    outermost: set[str] = set()
    for cluster, _ in frames(picture):
        if cluster.id in gone:
            inside = [box.id for box in cluster.all_boxes()]
            if inside[0] not in into:
                outermost |= {box.id for box in cluster.boxes}
            for box in inside:
                into.setdefault(box, cluster.caller)
                counts.setdefault(box, len(inside))
    told: dict[str, list[str]] = {}
    for edge in picture.edges:
        if edge.what == "call" and edge.tail in outermost and edge.head not in into:
            told.setdefault(edge.head, []).append(f"{edge.tooltip}: +{counts[edge.tail]:,} hidden")

    def trimmed(cluster: Cluster) -> Cluster:
        boxes = (evolve(box, details=(*box.details, *told.get(box.id, ()))) for box in cluster.boxes)
        inner = (trimmed(each) for each in cluster.clusters if each.id not in gone)
        return evolve(cluster, boxes=tuple(boxes), clusters=tuple(inner))

    kept = [edge for edge in picture.edges if not (edge.what == "call" and edge.tail in into)]
    return evolve(picture, clusters=tuple(map(trimmed, picture.clusters)), edges=tuple(_redirected(kept, into)))


def _redirected(edges: list[Edge], into: Mapping[str, str]) -> Iterator[Edge]:
    """Lines between what boxes have become, each once."""
    seen = set()
    for edge in edges:
        tail, head = _last(into, edge.tail), _last(into, edge.head)
        if tail == head:
            continue
        moved = evolve(
            edge,
            tail=tail,
            head=head,
            at_tail=edge.at_tail if tail == edge.tail else "",
            at_head=edge.at_head if head == edge.head else "",
        )
        key = tail, head, moved.what, moved.at_tail, moved.at_head
        if key not in seen:
            seen.add(key)
            yield moved


def _last(into: Mapping[str, str], box: str) -> str:
    while box in into:
        box = into[box]
    return box


def fold_scope(picture: Picture, name: str) -> Picture | None:
    """The ops of every scope of this name (a whole path, or a part between slashes) in one box; None without any."""

    def of(box: Box) -> str:
        at = f"/{box.scope}/".find(f"/{name}/")
        return box.scope[: at + len(name)] if at >= 0 else ""

    found = _grouped(picture, of)
    return merged(picture, found) if found else None


def fold_scopes(picture: Picture, most: int) -> Picture:
    """Ops in one box for each scope, as deep as leaves no more than so many boxes, or as near to it as shows enough."""
    deepest = max((box.scope.count("/") for box in picture.all_boxes()), default=0)
    best = picture
    for depth in range(deepest, -1, -1):
        groups = _grouped(picture, lambda box: "/".join(box.scope.split("/")[: depth + 1]))  # noqa: B023
        folded = merged(picture, _with_own_leaves(picture, groups))
        if folded.size < most // _OPAQUE:
            break  # that hides nearly all
        if folded.size < best.size:
            note = f"scopes are folded below {depth + 1} name{'s' * (depth > 0)}"
            best = evolve(folded, notes=(*picture.notes, note))
        if folded.size <= most:
            break
    return best


def _grouped(picture: Picture, scope: Callable[[Box], str]) -> dict[str, list[Box]]:
    """The boxes of each frame by scope, in groups that no line leaves and enters again."""
    found: dict[str, list[Box]] = {}
    for cluster, _ in frames(picture):
        groups: dict[str, list[Box]] = {}
        for box in cluster.boxes:
            if name := scope(box):
                groups.setdefault(name, []).append(box)
        found |= {f"{cluster.id}/{name}": boxes for name, boxes in groups.items() if len(boxes) > 1}
    return split(found, picture.edges)


def _with_own_leaves(picture: Picture, groups: dict[str, list[Box]]) -> dict[str, list[Box]]:
    """Parameters and constants without a scope go with the one group that uses them."""
    group_of = {box.id: key for key, boxes in groups.items() for box in boxes}
    users: dict[str, set[str]] = {}
    for edge in picture.edges:
        users.setdefault(edge.tail, set()).add(group_of.get(edge.head, ""))
    found = {key: [*boxes] for key, boxes in groups.items()}
    for box in picture.all_boxes():
        if box.kind in (PARAMETER, LEAF) and box.id not in group_of and len(users.get(box.id, ())) == 1:
            (key,) = users[box.id]
            if key:
                found[key].insert(0, box)
    return found


def merged(picture: Picture, groups: Mapping[str, list[Box]]) -> Picture:
    """Each group of boxes as one, with the frames of what they call."""
    into = {box.id: key for key, boxes in groups.items() for box in boxes}
    counts = {key: len(boxes) for key, boxes in groups.items()}
    for cluster, _ in frames(picture):
        if cluster.caller in into:
            key = into[cluster.caller]
            into |= {box.id: key for box in cluster.boxes}
            counts[key] += len(cluster.boxes)

    def folded(cluster: Cluster) -> Cluster:
        boxes: dict[str, Box] = {}
        for box in cluster.boxes:
            key = into.get(box.id, box.id)
            if key not in boxes:
                boxes[key] = _one(key, groups[key], counts[key]) if key in groups else box
        inner = (folded(each) for each in cluster.clusters if each.caller not in into)
        return evolve(cluster, boxes=tuple(boxes.values()), clusters=tuple(inner))

    clusters = tuple(map(folded, picture.clusters))
    return evolve(picture, clusters=clusters, edges=tuple(_redirected([*picture.edges], into)))


def _one(key: str, boxes: list[Box], count: int) -> Box:
    """The box that stands for several."""
    name = key.rpartition("//")[2] if "//" in key else _common(boxes)
    names = [f"{box.name}  {box.shape}" for box in boxes[:_LISTED]]
    more = [f"and {len(boxes) - _LISTED:,} more"] if len(boxes) > _LISTED else []
    ops = f"{count:,} ops"
    folded = frozenset(each for box in boxes for each in (box.name, *box.folded))
    root = any(box.is_root for box in boxes)
    together = sum(box.kind in (COLLECTIVE, CHANNEL) for box in boxes)
    details = ((ops,) if name else ()) + ((f"{together:,} between devices",) if together else ())
    return Box(key, name or ops, "", "", FOLDED, details, (), "\n".join([*names, *more]), root, name, folded)


def _common(boxes: list[Box]) -> str:
    """The scope that all boxes have, as far as they agree."""
    paths = [box.scope.split("/") for box in boxes]
    agreed = []
    for names in zip(*paths, strict=False):
        if len(set(names)) > 1:
            break
        agreed.append(names[0])
    return "/".join(agreed)


def only_collectives(picture: Picture) -> Picture:
    """What devices do together, and the calls that hold it; other ops in boxes by what they come after and before."""
    shown = {box.id for box in picture.all_boxes() if box.kind in (COLLECTIVE, CHANNEL)}
    for cluster, _ in reversed([*frames(picture)]):
        if cluster.caller and any(box.id in shown for box in cluster.boxes):
            shown.add(cluster.caller)
    groups: dict[str, list[Box]] = {}
    for cluster, _ in frames(picture):
        for number, boxes in enumerate(_between(cluster, picture.edges, shown)):
            if len(boxes) > 1:
                groups[f"{cluster.id}/between {number}//"] = boxes
    return merged(picture, groups)


def _between(cluster: Cluster, edges: tuple[Edge, ...], shown: set[str]) -> list[list[Box]]:
    """The other boxes of a frame, those together that come after the same shown ones and before the same."""
    own = {box.id: number for number, box in enumerate(cluster.boxes)}
    inside = [(own[e.tail], own[e.head]) for e in edges if e.what != "channel" and e.tail in own and e.head in own]
    marks = [1 << number if box.id in shown else 0 for number, box in enumerate(cluster.boxes)]
    after, before = _spread(inside, marks, forwards=True), _spread(inside, marks, forwards=False)
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
