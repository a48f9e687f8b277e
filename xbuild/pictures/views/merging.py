"""Folding of boxes: a computation into its callers, the ops of a scope into one box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from attrs import evolve

from ..model.data import Mark, combined
from ..model.kinds import CHANNEL, COLLECTIVE, FOLDED, LEAF, PARAMETER
from ..model.picture import Box, Cluster, Edge, Picture, Words
from .splitting import split
from .unfolding import Parts

_LISTED = 12  # names in the text on hover
_LEAVES = 8  # leaves with the same users, above which they are folded into one box
_APART = 4  # lines from a folded box to one other, above which their operand numbers are left out
_OPAQUE = 8  # a picture with less than an eighth of the boxes that it may have hides too much


def fold_computation(picture: Picture, name: str) -> Picture | None:
    """The picture with a called computation folded into its callers; None where no frame has this name."""
    inner = [each for each, depth in frames(picture) if depth and name in (each.name, each.id)]
    return _without(picture, {each.id for each in inner}) if inner else None


def fold_computations(picture: Picture, most: int) -> Picture:
    """The picture with called computations folded, innermost first, until at most `most` boxes are left."""
    boxes: dict[int, int] = {}
    for cluster, depth in frames(picture):
        boxes[depth] = boxes.get(depth, 0) + len(cluster.boxes)
    return without_below(picture, deepest(boxes, most))


def without_below(picture: Picture, most: int) -> Picture:
    """The picture with all frames folded that are nested deeper than `most`."""
    gone = {cluster.id for cluster, depth in frames(picture) if depth > most}
    return _without(picture, gone) if gone else picture


def deepest(counts: Mapping[int, int], most: int) -> int:
    """The greatest depth down to which the sum of the counts by depth is at most `most`; at least 0."""
    total, depth = counts[0], 0
    while depth + 1 in counts and total + counts[depth + 1] <= most:
        depth += 1
        total += counts[depth]
    return depth


def frames(picture: Picture) -> Iterator[tuple[Cluster, int]]:
    """All frames, each with its nesting depth."""
    stack = [(cluster, 0) for cluster in reversed(picture.clusters)]
    while stack:
        cluster, depth = stack.pop()
        yield cluster, depth
        stack += [(inner, depth + 1) for inner in reversed(cluster.clusters)]


def _without(picture: Picture, gone: set[str]) -> Picture:
    """The picture without these frames; their boxes are folded into the boxes of their callers."""
    into: dict[str, str] = {}
    counts: dict[str, int] = {}
    clusters: dict[str, tuple[Cluster, ...]] = {}
    for cluster in _outermost(picture, gone):
        clusters[cluster.caller] = (*clusters.get(cluster.caller, ()), cluster)
        inside = [box.id for box in cluster.all_boxes()]
        into |= dict.fromkeys(inside, cluster.caller)
        counts |= dict.fromkeys((box.id for box in cluster.boxes), len(inside))
    told: dict[str, list[str]] = {}
    for edge in picture.edges:
        if edge.what == "call" and edge.tail in counts and edge.head not in into:
            told.setdefault(edge.head, []).append(f"{edge.tooltip}: +{counts[edge.tail]:,} hidden")
    parts = Parts(picture, into, {}, clusters)

    def caller(box: Box) -> Box:
        holds = (*box.holds, *((partial(parts.of, box.id),) if box.id in clusters else ()))
        inner = (each.mark for cluster in clusters.get(box.id, ()) for each in cluster.all_boxes())
        return evolve(box, added=(*box.added, *told.get(box.id, ())), holds=holds, mark=combined((box.mark, *inner)))

    def trimmed(cluster: Cluster) -> Cluster:
        boxes = (caller(box) if box.id in told or box.id in clusters else box for box in cluster.boxes)
        inner = (trimmed(each) for each in cluster.clusters if each.id not in gone)
        return evolve(cluster, boxes=tuple(boxes), clusters=tuple(inner))

    kept = [edge for edge in picture.edges if not (edge.what == "call" and edge.tail in into)]
    return evolve(picture, clusters=tuple(map(trimmed, picture.clusters)), edges=tuple(_redirected(kept, into)))


def inside(picture: Picture) -> dict[str, list[Edge]]:
    """The lines between the boxes of each frame, by its id."""
    home = {box.id: cluster.id for cluster, _ in frames(picture) for box in cluster.boxes}
    found: dict[str, list[Edge]] = {}
    for edge in picture.edges:
        if edge.what != "channel" and home[edge.tail] == home[edge.head]:
            found.setdefault(home[edge.tail], []).append(edge)
    return found


def _outermost(picture: Picture, gone: set[str]) -> Iterator[Cluster]:
    """The outermost of the frames to be removed."""
    stack = [*reversed(picture.clusters)]
    while stack:
        cluster = stack.pop()
        if cluster.id in gone:
            yield cluster
        else:
            stack += reversed(cluster.clusters)


def _redirected(edges: Sequence[Edge], into: Mapping[str, str]) -> Iterator[Edge]:
    """The lines after folding; lines with the same ends and labels become one, whose text on hover counts them."""
    found: dict[tuple[str, ...], Edge] = {}
    counts: dict[tuple[str, ...], int] = {}
    ends = [(_last(into, edge.tail), _last(into, edge.head)) for edge in edges]
    often = Counter(ends)
    for edge, (tail, head) in zip(edges, ends, strict=True):
        if tail != head:
            apart = tail == edge.tail or often[tail, head] <= _APART
            at_tail, at_head = edge.at_tail * (tail == edge.tail), edge.at_head * (head == edge.head and apart)
            key = tail, head, edge.what, at_tail, at_head
            is_same = tail == edge.tail and head == edge.head
            found.setdefault(key, edge if is_same else Edge(tail, head, edge.what, at_tail, at_head, edge.hover))
            counts[key] = counts.get(key, 0) + 1
    for edge, count in zip(found.values(), counts.values(), strict=True):
        yield edge if count == 1 else evolve(edge, hover=f"{count:,} lines; the first: {edge.tooltip}")


def _last(into: Mapping[str, str], box: str) -> str:
    while box in into:
        box = into[box]
    return box


def fold_scope(picture: Picture, name: str) -> Picture | None:
    """The picture with each scope of this name (a path, or a part between slashes) as a box; None without any."""

    def of(box: Box) -> str:
        at = f"/{box.scope}/".find(f"/{name}/")
        return box.scope[: at + len(name)] if at >= 0 else ""

    found = _grouped(picture, of)
    return merged(picture, found) if found else None


def fold_scopes(picture: Picture, most: int) -> Picture:
    """The picture with scopes folded at the deepest level that leaves at most `most` boxes, or about that."""
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
    """The groups, with each leaf without a scope added to its only user; many with the same users are a group."""
    group_of = {box.id: key for key, boxes in groups.items() for box in boxes}
    users: dict[str, set[str]] = {}
    for edge in picture.edges:
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


def merged(picture: Picture, groups: Mapping[str, list[Box]]) -> Picture:
    """The picture with each group of boxes, and the frames that the boxes call, folded into one box."""
    into = {box.id: key for key, boxes in groups.items() for box in boxes}
    counts = {key: len(boxes) for key, boxes in groups.items()}
    called: dict[str, tuple[Cluster, ...]] = {}
    own = {*into}
    marks = {key: [box.mark for box in boxes] for key, boxes in groups.items()}
    for cluster, _ in frames(picture):
        if cluster.caller in into:
            key = into[cluster.caller]
            into |= {box.id: key for box in cluster.boxes}
            counts[key] += len(cluster.boxes)
            marks[key] += [box.mark for box in cluster.boxes]
            if cluster.caller in own:
                called[key] = (*called.get(key, ()), cluster)
    parts = Parts(picture, into, {key: tuple(boxes) for key, boxes in groups.items()}, called)

    def folded(cluster: Cluster) -> Cluster:
        boxes: dict[str, Box] = {}
        for box in cluster.boxes:
            key = into.get(box.id, box.id)
            if key not in boxes:
                boxes[key] = _one(key, groups[key], counts[key], parts, combined(marks[key])) if key in groups else box
        inner = (folded(each) for each in cluster.clusters if each.caller not in into)
        return evolve(cluster, boxes=tuple(boxes.values()), clusters=tuple(inner))

    clusters = tuple(map(folded, picture.clusters))
    return evolve(picture, clusters=clusters, edges=tuple(_redirected(picture.edges, into)))


def _one(key: str, boxes: list[Box], count: int, parts: Parts, mark: Mark | None) -> Box:
    """The folded box of a group of boxes."""
    name = key.rpartition("//")[2] if "//" in key else _common(boxes)
    ops = f"{count:,} ops"
    folded = frozenset(each for box in boxes for each in (box.name, *box.folded))
    root = any(box.is_root for box in boxes)
    combined = sum(box.kind in (COLLECTIVE, CHANNEL) for box in boxes)
    details = ((ops,) if name else ()) + ((f"{combined:,} between devices",) if combined else ())
    words = Words(details=details)
    holds = (partial(parts.of, key),)
    return Box(
        key, name or ops, "", words, FOLDED, (), partial(_listed, boxes), root, name, folded, holds=holds, mark=mark
    )


def _listed(boxes: list[Box]) -> str:
    """The text on hover of a folded box: the names of its first boxes, and the number of the others."""
    names = [f"{box.name}  {box.shape}" for box in boxes[:_LISTED]]
    more = [f"and {len(boxes) - _LISTED:,} more"] if len(boxes) > _LISTED else []
    return "\n".join([*names, *more])


def _common(boxes: list[Box]) -> str:
    """The longest common prefix of the scopes of boxes."""
    paths = [box.scope.split("/") for box in boxes]
    agreed = []
    for names in zip(*paths, strict=False):
        if len(set(names)) > 1:
            break
        agreed.append(names[0])
    return "/".join(agreed)
