"""Folding of scopes: the ops of a scope into one box, with the ops between them that have no scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from attrs import evolve

from ..model.kinds import LEAF, PARAMETER, TUPLE
from ..model.picture import Box, Cluster, Picture
from .merging import common_prefix, frames, inside, merged
from .splitting import split

_LEAVES = 8  # leaves with the same users, above which they are folded into one box
_OPAQUE = 8  # a picture with less than an eighth of the boxes that it may have hides too much


def fold_scope(picture: Picture, name: str) -> Picture | None:
    """The picture with each scope of this name (a path, or a part between slashes) as a box; None without any."""

    def of(box: Box) -> str:
        at = f"/{box.scope}/".find(f"/{name}/")
        return box.scope[: at + len(name)] if at >= 0 else ""

    found = _grouped(picture, of)
    return merged(picture, found) if found else None


def fold_scopes(picture: Picture, most: int) -> Picture:
    """The picture with scopes folded at the deepest level that leaves at most `most` boxes, or about that."""
    picture = with_inferred(picture)
    deepest = max((box.scope.count("/") for box in picture.all_boxes()), default=0)
    first = next((depth for depth in range(deepest, 0, -1) if _least(picture, depth) <= most), 0)
    best = picture
    for depth in range(first, -1, -1):
        folded = _scopes_folded(picture, depth)
        if folded.size < most // _OPAQUE:
            # Too few boxes hide nearly the whole program, so a picture with more than `most` boxes is preferred.
            deeper = _scopes_folded(picture, depth + 1) if depth == first < deepest else best
            return deeper if deeper.size >= most // _OPAQUE else best
        if folded.size < best.size:
            best = folded
        if folded.size <= most:
            break
    return best


def _scopes_folded(picture: Picture, depth: int) -> Picture:
    groups = _grouped(picture, partial(_prefix, depth))
    folded = merged(picture, _with_own_leaves(picture, groups))
    note = f"scopes are folded below {depth + 1} name{'s' * (depth > 0)}"
    return evolve(folded, notes=(*picture.notes, note)) if folded.size < picture.size else picture


def _prefix(depth: int, box: Box) -> str:
    return "/".join(box.scope.split("/")[: depth + 1])


def _least(picture: Picture, depth: int) -> int:
    """A lower bound on the number of boxes that folding scopes at this depth leaves."""
    scopes, single = set(), 0
    for cluster, _ in frames(picture):
        for box in cluster.boxes:
            if box.scope:
                scopes.add((cluster.id, _prefix(depth, box)))
            else:
                single += box.kind not in (PARAMETER, LEAF)
    return len(scopes) + single


def _grouped(picture: Picture, scope: Callable[[Box], str]) -> dict[str, list[Box]]:
    """The boxes of each frame by scope, in groups that no path leaves and enters again."""
    found: dict[str, list[Box]] = {}
    for cluster, _ in frames(picture):
        groups: dict[str, list[Box]] = {}
        for box in cluster.boxes:
            if name := scope(box):
                groups.setdefault(name, []).append(box)
        found |= {f"{cluster.id}/{name}": boxes for name, boxes in groups.items() if len(boxes) > 1}
    return split(found, picture.edges)


def _with_own_leaves(picture: Picture, groups: dict[str, list[Box]]) -> dict[str, list[Box]]:
    """The groups, with each leaf without a scope added to its only user, but for tuples of results.

    Many leaves with the same users are a group.
    """
    group_of = {box.id: key for key, boxes in groups.items() for box in boxes}
    results = {box.id for box in picture.all_boxes() if box.kind is TUPLE}
    users: dict[str, set[str]] = {}
    for edge in picture.edges:
        if edge.head in group_of or edge.head not in results:
            users.setdefault(edge.tail, set()).add(group_of.get(edge.head, ""))
    found = {key: [*boxes] for key, boxes in groups.items()}
    alike: dict[tuple[str, frozenset[str]], list[Box]] = {}
    for cluster, _ in frames(picture):
        for box in cluster.boxes:
            if box.kind in (PARAMETER, LEAF) and box.id not in group_of and not box.is_root:
                alike.setdefault((cluster.id, frozenset(users.get(box.id, ()))), []).append(box)
    for (frame, keys), boxes in alike.items():
        if len(keys) == 1 and "" not in keys:
            (key,) = keys
            found[key] = [*boxes, *found[key]]
        elif len(keys) > 1 and len(boxes) > _LEAVES:
            first, last = boxes[0].name, boxes[-1].name
            found[f"{frame}/{first}//{first} … {last}"] = boxes
    return found


def with_inferred(picture: Picture) -> Picture:
    """The picture in which a box without a scope has that of the ops around it, if these agree.

    It is what the scopes of the ops that it depends on have in common with those of the ops that depend on it.
    """
    lines, found = inside(picture), dict[str, str]()
    for cluster, _ in frames(picture):
        ends = [(edge.tail, edge.head) for edge in lines.get(cluster.id, ()) if edge.what != "call"]
        before = _spread(cluster.boxes, ends)
        after = _spread(cluster.boxes[::-1], [(head, tail) for tail, head in ends])
        found |= {id: common_prefix((before[id], after[id])) for id in before.keys() & after.keys()}

    def scoped(cluster: Cluster) -> Cluster:
        boxes = (evolve(box, scope=found[box.id]) if found.get(box.id) else box for box in cluster.boxes)
        return evolve(cluster, boxes=tuple(boxes), clusters=tuple(map(scoped, cluster.clusters)))

    return evolve(picture, clusters=tuple(map(scoped, picture.clusters))) if found else picture


def _spread(boxes: Iterable[Box], lines: Iterable[tuple[str, str]]) -> dict[str, str]:
    """For each box without a scope what the scopes of the boxes before it, in the given order, have in common."""
    near: dict[str, list[str]] = {}
    for tail, head in lines:
        near.setdefault(head, []).append(tail)
    scopes = dict[str, str]()
    found = dict[str, str]()
    for box in boxes:
        scopes[box.id] = box.scope
        if not box.scope and box.kind not in (PARAMETER, LEAF, TUPLE):
            known = [scope for each in near.get(box.id, ()) if (scope := scopes.get(each))]
            if known:
                scopes[box.id] = found[box.id] = common_prefix(known)
    return found
