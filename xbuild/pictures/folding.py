"""Folding: many boxes drawn as one box, a very large frame drawn as pages, and the content of a folded box.

Sections:

    Pages of a very large frame
    Content of a folded box
    Folding of computations and groups
    Splitting of groups
    Folding of scopes
    Folding of repeated structure
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial

from attrs import evolve, frozen

from .data import BoxData, combined
from .layout import Layering
from .picture import CHANNEL, COLLECTIVE, FOLDED, KINDS, LEAF, PARAMETER, TUPLE, Box, Cluster, Edge, Picture, Words

# ----------------------------------------------------------------------------
# Pages of a very large frame
#
# They are read like columns; words in the boxes replace the lines between pages.

LARGE = 250  # boxes of a frame, above which it is split into pages
_PAGE = 110
_MOST_NAMES = 3
_BENDS = 2500


def split_into_pages(picture: Picture, size: int = _PAGE, large: int = LARGE) -> Picture:
    """The picture with each large frame split into pages of about `size` boxes, in the recorded order."""
    pages: dict[str, str] = {}
    clusters = tuple(_split_frame(cluster, picture.edges, pages, size, large) for cluster in picture.clusters)
    if not pages:
        return picture
    cut = [edge for edge in picture.edges if _is_cut(edge, pages)]
    words = link_words(picture, cut)
    clusters = tuple(add_words(cluster, words) for cluster in clusters)
    edges = tuple(edge for edge in picture.edges if not _is_cut(edge, pages))
    note = "large frames are split into pages; a line between pages appears as a word in its boxes: ← from, → to"
    return evolve(picture, clusters=clusters, edges=edges, notes=(*picture.notes, note))


def _is_cut(edge: Edge, pages: Mapping[str, str]) -> bool:
    return edge.what != "channel" and pages.get(edge.tail) != pages.get(edge.head) and edge.head in pages


def _split_frame(cluster: Cluster, edges: Sequence[Edge], pages: dict[str, str], size: int, large: int) -> Cluster:
    cluster = evolve(
        cluster, clusters=tuple(_split_frame(inner, edges, pages, size, large) for inner in cluster.clusters)
    )
    if len(cluster.boxes) <= large and not _has_long_lines(cluster, edges):
        return cluster
    parts = _page_boxes(cluster, edges, size)
    if len(parts) < 2:
        return cluster
    found = []
    for number, boxes in enumerate(parts, 1):
        ids = {box.id for box in boxes}
        name = f"{cluster.id}/page {number}"
        called = tuple(inner for inner in cluster.clusters if inner.caller in ids)
        pages |= {box.id: name for inner in called for box in inner.all_boxes() if box.id not in pages}
        pages |= dict.fromkeys(ids, name)
        found.append(Cluster(name, f"page {number} of {len(parts)}", boxes, called))
    return evolve(cluster, boxes=(), clusters=tuple(found))


def _has_long_lines(cluster: Cluster, edges: Sequence[Edge]) -> bool:
    """Whether the lines of a frame pass so many layers that the eye cannot follow them."""
    if len(cluster.boxes) < 1.4 * _PAGE:
        return False
    place = {box.id: number for number, box in enumerate(cluster.boxes)}
    pairs = [(place[edge.tail], place[edge.head]) for edge in edges if edge.tail in place and edge.head in place]
    layering = Layering(len(place), pairs)
    return sum(layering.layer[head] - layering.layer[tail] - 1 for tail, head in pairs) > _BENDS


def _page_boxes(cluster: Cluster, edges: Sequence[Edge], size: int) -> list[tuple[Box, ...]]:
    """The boxes of a frame in pages of about one size, cut where few values are live."""
    crossing = count_live_values(cluster, edges)
    cuts, start, count = [0], 0, len(cluster.boxes)
    while count - start > 1.4 * size:
        cut = min(range(start + int(size * 0.7), start + int(size * 1.3)), key=lambda at: (crossing[at], at))
        cuts.append(cut)
        start = cut
    return [cluster.boxes[a:b] for a, b in zip(cuts, [*cuts[1:], count], strict=True)]


def count_live_values(cluster: Cluster, edges: Sequence[Edge]) -> list[int]:
    """The number of values live at each place of the order: made before it, and used at it or after it."""
    place = {box.id: number for number, box in enumerate(cluster.boxes)}
    last: dict[str, int] = {}
    for edge in edges:
        if edge.tail in place and edge.head in place:
            last[edge.tail] = max(last.get(edge.tail, 0), place[edge.head])
    change = [0] * (len(place) + 1)
    for tail, use in last.items():
        if use > place[tail]:
            change[place[tail] + 1] += 1
            change[use + 1 if use + 1 <= len(place) else len(place)] -= 1
    found, total = [], 0
    for each in change:
        total += each
        found.append(total)
    return found


def link_words(picture: Picture, cut: Sequence[Edge]) -> dict[str, list[str]]:
    """The words that replace cut lines in the boxes at their ends."""
    names = {box.id: box.name.partition(" … ")[0] for box in picture.all_boxes()}
    starts: dict[tuple[str, str], list[str]] = {}
    goals: dict[str, list[str]] = {}
    for edge in cut:
        starts.setdefault((edge.head, edge.at_head), []).append(f"{names[edge.tail]}{edge.at_tail}")
        goals.setdefault(edge.tail, []).append(names[edge.head])
    words: dict[str, list[str]] = {}
    for (head, place), tails in starts.items():
        words.setdefault(head, []).append(f"{place} ← {_some(tails)}".strip())
    for tail, heads in goals.items():
        words.setdefault(tail, []).append(f"→ {_some(heads)}")
    return words


def _some(names: list[str]) -> str:
    listed = list(dict.fromkeys(names))
    return f"{', '.join(listed[:_MOST_NAMES])}{f' +{len(listed) - _MOST_NAMES}' if len(listed) > _MOST_NAMES else ''}"


def add_words(cluster: Cluster, words: Mapping[str, list[str]]) -> Cluster:
    """A frame with these words added to its boxes."""
    boxes = (evolve(box, added=(*box.added, *_few(words[box.id]))) if box.id in words else box for box in cluster.boxes)
    return evolve(cluster, boxes=tuple(boxes), clusters=tuple(add_words(inner, words) for inner in cluster.clusters))


def _few(words: list[str]) -> list[str]:
    return words if len(words) <= 6 else [*words[:5], f"and {len(words) - 5} more"]


# ----------------------------------------------------------------------------
# Content of a folded box
#
# Its picture is made on demand.


@frozen(slots=False)
class FoldedParts:
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
        return Picture(key, (add_words(cluster, self._words),), tuple(self._edges.get(key, ())))

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
        return link_words(self.picture, [edge for edge in self.picture.edges if self._is_cut(edge)])

    def _is_cut(self, edge: Edge) -> bool:
        return edge.what not in ("call", "channel") and self.into.get(edge.tail) != self.into.get(edge.head)


def unfold(box: Box) -> Picture:
    """The picture of the content of a box, in one frame of its name."""
    parts = [held() for held in box.holds]
    insides = [part.clusters[0] for part in parts]
    clusters = tuple(inner for each in insides for inner in each.clusters)
    roles = ", ".join(inner.role for inner in clusters if inner.role and inner.caller == box.id)
    whole = Cluster(box.id, f"{box.name}: {roles}" if roles else box.name, insides[0].boxes, clusters)
    return Picture(box.name, (whole,), tuple(edge for part in parts for edge in part.edges))


def first_instruction(box: Box) -> Box:
    """The first instruction that a box stands for."""
    while box.holds:
        box = next(box.holds[0]().all_boxes())
    return box


# ----------------------------------------------------------------------------
# Folding of computations and groups
#
# A computation into its callers, a group of boxes into one box.

_LISTED = 12  # names in the text on hover
_APART = 4  # lines from a folded box to one other, above which their operand numbers are left out


def fold_computation(picture: Picture, name: str) -> Picture | None:
    """The picture with a called computation folded into its callers; None where no frame has this name."""
    inner = [each for each, depth in frames(picture) if depth and name in (each.name, each.id)]
    return _without(picture, {each.id for each in inner}) if inner else None


def fold_computations(picture: Picture, most: int) -> Picture:
    """The picture with called computations folded, innermost first, until at most `most` boxes are left."""
    boxes: dict[int, int] = {}
    for cluster, depth in frames(picture):
        boxes[depth] = boxes.get(depth, 0) + len(cluster.boxes)
    return drop_frames_below(picture, deepest(boxes, most))


def drop_frames_below(picture: Picture, most: int) -> Picture:
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
        edges_by_frame = [box.id for box in cluster.all_boxes()]
        into |= dict.fromkeys(edges_by_frame, cluster.caller)
        counts |= dict.fromkeys((box.id for box in cluster.boxes), len(edges_by_frame))
    told: dict[str, list[str]] = {}
    for edge in picture.edges:
        if edge.what == "call" and edge.tail in counts and edge.head not in into:
            told.setdefault(edge.head, []).append(f"{edge.tooltip}: +{counts[edge.tail]:,} hidden")
    parts = FoldedParts(picture, into, {}, clusters)

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


def edges_by_frame(picture: Picture) -> dict[str, list[Edge]]:
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


def merge_boxes(picture: Picture, groups: Mapping[str, list[Box]]) -> Picture:
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
    parts = FoldedParts(picture, into, {key: tuple(boxes) for key, boxes in groups.items()}, called)

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


def _one(key: str, boxes: list[Box], count: int, parts: FoldedParts, mark: BoxData | None) -> Box:
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
    """The longest common prefix of the scopes of boxes that have one."""
    return common_prefix(box.scope for box in boxes if box.scope)


def common_prefix(scopes: Iterable[str]) -> str:
    """The longest path that all scopes begin with."""
    agreed = []
    for names in zip(*(scope.split("/") for scope in scopes), strict=False):
        if len(set(names)) > 1:
            break
        agreed.append(names[0])
    return "/".join(agreed)


# ----------------------------------------------------------------------------
# Splitting of groups
#
# So that folding each group into one box makes no cycle.


def split(groups: Mapping[str, list[Box]], edges: Iterable[Edge]) -> dict[str, list[Box]]:
    """The groups, split where groups depend on each other in a cycle; a part of one box is no group."""
    if not groups:
        return {}
    group_of = {box.id: key for key, boxes in groups.items() for box in boxes}
    lines = [(edge.tail, edge.head) for edge in edges if edge.what != "channel"]
    found: dict[str, list[Box]] = {}
    for key, boxes in groups.items():
        found[key] = boxes
    for component in _cycles(group_of, lines):
        for key in component & groups.keys():
            del found[key]
        found |= _parts({key: groups[key] for key in groups if key in component}, component, group_of, lines)
    return {key: boxes for key, boxes in found.items() if len(boxes) > 1}


def _cycles(group_of: Mapping[str, str], lines: list[tuple[str, str]]) -> list[set[str]]:
    """The strongly connected components of groups and boxes."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    ends = ((group_of.get(tail, tail), group_of.get(head, head)) for tail, head in lines)
    graph.add_edges_from((tail, head) for tail, head in ends if tail != head)
    return [component for component in nx.strongly_connected_components(graph) if len(component) > 1]


def _parts(
    groups: Mapping[str, list[Box]], component: set[str], group_of: Mapping[str, str], lines: list[tuple[str, str]]
) -> dict[str, list[Box]]:
    """The groups of a component, split by depth: how often the path to a box that changes groups most does so."""
    edges_by_frame = {box for box, key in group_of.items() if key in component} | component
    before: dict[str, list[str]] = {}
    for tail, head in lines:
        if tail in edges_by_frame and head in edges_by_frame:
            before.setdefault(head, []).append(tail)
    depth: dict[str, int] = {}
    for start in before:
        _set_depths(start, before, group_of, depth)
    found: dict[str, list[Box]] = {}
    for key, boxes in groups.items():
        parts = {each: part for part, each in enumerate(sorted({depth.get(box.id, 0) for box in boxes}))}
        for box in boxes:
            part = parts[depth.get(box.id, 0)]
            found.setdefault(f"{key} {part + 1}" if part else key, []).append(box)
    return found


def _set_depths(
    start: str, before: Mapping[str, list[str]], group_of: Mapping[str, str], depth: dict[str, int]
) -> None:
    """Compute the depth of a box and of all its predecessors, without recursion; edges that close a cycle count 0."""
    stack, entered = [start], set()
    while stack:
        box = stack[-1]
        waiting = [each for each in before.get(box, ()) if each not in depth and each not in entered]
        if box in depth or not waiting:
            stack.pop()
            own = group_of.get(box, box)
            depth.setdefault(
                box,
                max((depth.get(e, 0) + (group_of.get(e, e) != own) for e in before.get(box, ())), default=0),
            )
        else:
            entered.add(box)
            stack += waiting


# ----------------------------------------------------------------------------
# Folding of scopes
#
# The ops of a scope become one box, with the ops between them that have no scope.

_LEAVES = 8  # leaves with the same users, above which they are folded into one box
_OPAQUE = 8  # a picture with less than an eighth of the boxes that it may have hides too much


def fold_scope(picture: Picture, name: str) -> Picture | None:
    """The picture with each scope of this name (a path, or a part between slashes) as a box; None without any."""

    def of(box: Box) -> str:
        at = f"/{box.scope}/".find(f"/{name}/")
        return box.scope[: at + len(name)] if at >= 0 else ""

    found = _grouped(picture, of)
    return merge_boxes(picture, found) if found else None


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
    folded = merge_boxes(picture, _with_own_leaves(picture, groups))
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
    lines, found = edges_by_frame(picture), dict[str, str]()
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


# ----------------------------------------------------------------------------
# Folding of repeated structure
#
# Successive stretches of one structure, such as the layers of a network, become a box each.
#
# A stretch begins at each occurrence of an op that comes at regular distances in the order of a frame. Stretches count
# as repeated where nearly the same ops, compared by the labels of `xbuild/properties/structure.py`, are in each of
# them.

_SHORTEST = 6  # boxes of a stretch
_TIMES = 3  # stretches
_UNEVEN = 0.2  # by which distances may differ
_ALIKE = 0.8  # of the ops of two stretches
_TRIED = 12  # ops at which stretches may begin, of those that cover most
_MOST_BLOCKS = 24  # in a picture; of more, a run of blocks is one box
_MOST_RUNS = 8  # in a frame
_KINDS = 4  # that are counted in a box
_NAMED = 0.2  # of the boxes: scopes of so many tell more than structure


@frozen
class RepeatedStretch:
    """Successive repeated stretches of a frame: the indices at which they begin, and the index after the last."""

    cuts: tuple[int, ...]

    @property
    def length(self) -> int:
        return self.cuts[-1] - self.cuts[0]

    @property
    def stretches(self) -> list[tuple[int, int]]:
        return [*itertools.pairwise(self.cuts)]


def has_names(picture: Picture) -> bool:
    """Whether scopes tell boxes apart: many have another than the most frequent one."""
    found = Counter(box.scope for box in picture.all_boxes() if box.kind not in (PARAMETER, LEAF))
    named = found.total() - found[""] - max((n for scope, n in found.items() if scope), default=0)
    return named >= _NAMED * found.total()


def fold_repeats(picture: Picture) -> tuple[Picture, set[str]]:
    """The picture with each repeated stretch as a box, and the ids of these boxes; of many, each run is one box."""
    lines = edges_by_frame(picture)
    runs = [
        (cluster, run)
        for cluster, _ in frames(picture)
        for run in _runs(cluster, count_live_values(cluster, lines.get(cluster.id, ())))
    ]
    if not runs:
        return picture, set()
    groups: dict[str, list[Box]] = {}
    whole: dict[str, list[str]] = {}
    told: list[str] = []
    for number, (cluster, run) in enumerate(runs):
        letter, times = _letter(number), len(run.stretches)
        told.append(f"{letter} {times} times")
        key = f"{cluster.id}//blocks {letter}: {times} times"
        for place, (start, end) in enumerate(run.stretches, 1):
            block = f"{cluster.id}//block {letter}{place} of {times}"
            groups[block] = [*cluster.boxes[start:end]]
            whole.setdefault(key, []).append(block)
    note = f"repeated structure is drawn as blocks: {', '.join(told)}"
    found = _folded(evolve(picture, notes=(*picture.notes, note)), groups, {key: _words(groups[key]) for key in groups})
    if len(groups) <= _MOST_BLOCKS:
        return found, {*groups}
    boxes = {box.id: box for box in found.all_boxes()}
    folded = {key: [boxes[block] for block in blocks] for key, blocks in whole.items()}
    words = {key: _words(groups[blocks[0]], f"{len(blocks)} blocks, each ") for key, blocks in whole.items()}
    return _folded(found, folded, words), {*whole}


def _folded(picture: Picture, groups: Mapping[str, list[Box]], words: Mapping[str, Words]) -> Picture:
    """The picture with these groups of boxes as boxes with these words."""

    def told(cluster: Cluster) -> Cluster:
        boxes = (evolve(box, words=words[box.id]) if box.id in words else box for box in cluster.boxes)
        return evolve(cluster, boxes=tuple(boxes), clusters=tuple(map(told, cluster.clusters)))

    found = merge_boxes(picture, groups)
    return evolve(found, clusters=tuple(map(told, found.clusters)))


def _letter(number: int) -> str:
    """A, B, ... Z, AA, AB and so on."""
    before, last = divmod(number, 26)
    return (_letter(before - 1) if before else "") + chr(ord("A") + last)


def _words(boxes: Sequence[Box], prefix: str = "") -> Words:
    """The number of ops of a stretch, and the number by kind."""
    kinds = Counter(each.kind.letter for each in boxes)
    names = {kind.letter: kind.name for kind in KINDS}
    counted = (f"{count:,} {names[letter]}" for letter, count in kinds.most_common(_KINDS))
    return Words(details=(f"{prefix}{len(boxes):,} ops from {boxes[0].name}", *counted))


def _runs(cluster: Cluster, crossing: Sequence[int]) -> list[RepeatedStretch]:
    """The repeated stretches of a frame, those that cover most first looked for."""
    if len(cluster.boxes) < _TIMES * _SHORTEST:
        return []
    numbers: dict[bytes, int] = {}
    labels = [numbers.setdefault(box.label, len(numbers)) for box in cluster.boxes]
    found: list[RepeatedStretch] = []
    waiting = [(0, len(labels))]
    while waiting and len(found) < _MOST_RUNS:
        start, end = waiting.pop()
        run = _best(labels, start, end, crossing)
        if run is not None:
            found.append(run)
            waiting += [(start, run.cuts[0]), (run.cuts[-1], end)]
    return sorted(found, key=lambda run: run.cuts[0])


def _best(labels: Sequence[int], start: int, end: int, crossing: Sequence[int]) -> RepeatedStretch | None:
    """The run that covers most of these places; of those that cover as much, one whose cuts few values cross."""
    if end - start < _TIMES * _SHORTEST:
        return None
    candidates = [*_candidates(labels, start, end)]
    most = max((run.length for run in candidates), default=0)
    candidates = [run for run in candidates if run.length > 0.8 * most]
    candidates.sort(key=lambda run: (-len(run.cuts), statistics.mean(crossing[at] for at in run.cuts[:-1])))
    for run in candidates[:_TRIED]:
        if (whole := _verified(labels, run, start, end)) is not None:
            return whole
    return None


def _candidates(labels: Sequence[int], start: int, end: int) -> Iterator[RepeatedStretch]:
    """For each label the places where it comes at regular distances."""
    places: dict[int, list[int]] = {}
    for at in range(start, end):
        places.setdefault(labels[at], []).append(at)
    for found in places.values():
        for cuts in _regular(found):
            step = (cuts[-1] - cuts[0]) // (len(cuts) - 1)
            yield RepeatedStretch((*cuts, min(cuts[-1] + step, end)))


def _regular(places: Sequence[int]) -> Iterator[list[int]]:
    """The longest parts of ascending numbers in which the distances are about the same."""
    cuts = list(places[:1])
    for at in places[1:]:
        step = cuts[1] - cuts[0] if len(cuts) > 1 else at - cuts[-1]
        if abs(at - cuts[-1] - step) <= _UNEVEN * step:
            cuts.append(at)
            continue
        if _is_long(cuts):
            yield cuts
        cuts = [cuts[-1], at]
    if _is_long(cuts):
        yield cuts


def _is_long(cuts: Sequence[int]) -> bool:
    return len(cuts) >= _TIMES and cuts[-1] - cuts[0] >= _SHORTEST * (len(cuts) - 1)


def _verified(labels: Sequence[int], run: RepeatedStretch, start: int, end: int) -> RepeatedStretch | None:
    """The longest part of a run in which each stretch is like the one before; one more before it, if that is alike."""
    step = run.length // len(run.stretches)
    before = run.cuts[0] - step
    cuts = (before, *run.cuts) if before >= start else run.cuts
    counts = [Counter(labels[a:b]) for a, b in itertools.pairwise(cuts)]
    best: tuple[int, int] = (0, 0)
    first = 0
    for at in range(1, len(counts) + 1):
        if at == len(counts) or _share(counts[at - 1], counts[at]) < _ALIKE:
            best = max(best, (at - first, -first))
            first = at
    count, first = best[0], -best[1]
    return RepeatedStretch(cuts[first : first + count + 1]) if count >= _TIMES else None


def _share(a: Counter[int], b: Counter[int]) -> float:
    """The part of the ops of two stretches that both have."""
    return 2 * (a & b).total() / max(a.total() + b.total(), 1)
