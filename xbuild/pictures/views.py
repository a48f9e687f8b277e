"""The view that a user requests: which part is drawn, how the rest is folded, and the sheets of a viewer.

Sections:

    Selection of boxes
    Communication only
    Overview of a very large program
    The requested view
    Sheets of a viewer
"""

from __future__ import annotations

import difflib
import itertools
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from attrs import evolve, field, frozen

from shape_inference.escaping import in_line

from .folding import (
    count_live_values,
    deepest,
    drop_frames_below,
    edges_by_frame,
    fold_computation,
    fold_computations,
    fold_repeats,
    fold_scope,
    fold_scopes,
    frames,
    has_names,
    merge_boxes,
    split_into_pages,
    unfold,
)
from .picture import CHANNEL, COLLECTIVE, FOLDED, KINDS, MOST, Box, Cluster, Edge, Picture, ViewError, Words

# ----------------------------------------------------------------------------
# Selection of boxes
#
# Around a box, on the paths between two boxes, or nearest to the root.

_MANY = 16  # users of a box, above which a walk does not follow them


@frozen
class BoxNeighbours:
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
    links = BoxNeighbours(picture.edges)
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
    """The boxes on all paths from one box to another; empty if there is no path."""
    links = BoxNeighbours(picture.edges)
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
    links = BoxNeighbours(picture.edges)
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


def select_boxes(picture: Picture, ids: Collection[str], why: str) -> Picture:
    """The picture with only these boxes, each with the number of its omitted neighbours."""
    links = BoxNeighbours(picture.edges)
    omitted = picture.size - len(ids)
    clusters = tuple(_select_in_frame(cluster, ids, links) for cluster in picture.clusters)
    edges = tuple(edge for edge in picture.edges if edge.tail in ids and edge.head in ids)
    note = f"{len(ids):,} boxes {why}; +{omitted:,} hidden"
    notes = (*picture.notes, note) if omitted else picture.notes
    return evolve(picture, clusters=tuple(c for c in clusters if _has_content(c)), edges=edges, notes=notes)


def _select_in_frame(cluster: Cluster, ids: Collection[str], links: BoxNeighbours) -> Cluster:
    boxes = []
    for box in cluster.boxes:
        if box.id in ids:
            before = {other for other in links.before.get(box.id, ()) if other not in ids}
            after = {other for other in links.after.get(box.id, ()) if other not in ids}
            boxes.append(evolve(box, hidden_before=len(before), hidden_after=len(after)))
    inner = (_select_in_frame(each, ids, links) for each in cluster.clusters)
    return evolve(cluster, boxes=tuple(boxes), clusters=tuple(each for each in inner if _has_content(each)))


def _has_content(cluster: Cluster) -> bool:
    return bool(cluster.boxes or cluster.clusters)


# ----------------------------------------------------------------------------
# Communication only
#
# All other ops are folded into boxes between the communicating ones.


def only_collectives(picture: Picture) -> Picture:
    """The communicating boxes and their callers; others with equal shown neighbours are folded."""
    shown = {box.id for box in picture.all_boxes() if box.kind in (COLLECTIVE, CHANNEL)}
    for cluster, _ in reversed([*frames(picture)]):
        if cluster.caller and any(box.id in shown for box in cluster.boxes):
            shown.add(cluster.caller)
    groups: dict[str, list[Box]] = {}
    lines = edges_by_frame(picture)
    for cluster, _ in frames(picture):
        for number, boxes in enumerate(_between(cluster, lines.get(cluster.id, ()), shown)):
            if len(boxes) > 1:
                groups[f"{cluster.id}/between {number}//"] = boxes
    return merge_boxes(picture, groups)


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


# ----------------------------------------------------------------------------
# Overview of a very large program
#
# Each box covers a stretch of the recorded order.

_PART = 5  # an overview has a fifth of the boxes that a picture may have, to be read at a glance
_FRAMES = 4  # one frame for so many boxes of an overview
_LEAST = 4  # at least a quarter of the boxes of an overview are for what does not stand apart
_KINDS = 4  # kinds whose ops are counted in a box
_PAGE = 12  # boxes of a page
_WIDTH = 44  # letters of the names of two scopes


def overview(picture: Picture, most: int, apart: Collection[str] = ()) -> Picture | None:
    """The picture with one box for each stretch of the outer frames; None if it would have more than `most` boxes.

    Stretches end where scopes change and few values cross; the callers of frames, and the boxes in `apart`, are between
    them.
    """
    wanted = max(most // _PART, 1)
    shown = drop_frames_below(picture, deepest(Counter(depth for _, depth in frames(picture)), wanted // _FRAMES))
    lines, callers = edges_by_frame(shown), {cluster.caller for cluster, _ in frames(shown)} | {*apart}
    runs = [(cluster, run) for cluster, _ in frames(shown) for run in _runs(cluster, callers)]
    single = sum(box.id in callers for box in shown.all_boxes())
    spare = max(wanted - single - len(runs), wanted // _LEAST) / max(sum(end - start for _, (start, end) in runs), 1)
    groups: dict[str, list[Box]] = {}
    for cluster, _ in frames(shown):
        crossing = count_live_values(cluster, lines.get(cluster.id, ()))
        for start, end in (run for each, run in runs if each is cluster):
            cuts = _cuts(cluster.boxes, start, end, 1 + int(spare * (end - start)), crossing)
            groups |= {f"{cluster.id}/from {a}": [*cluster.boxes[a:b]] for a, b in itertools.pairwise(cuts)}
    if len(groups) + single > most:
        return None
    found = merge_boxes(shown, {key: boxes for key, boxes in groups.items() if len(boxes) > 1})
    note = "an overview: each box represents consecutive instructions; --around NAME shows a part in detail"
    return split_into_pages(evolve(_name_stretches(found, groups), notes=(*picture.notes, note)), _PAGE, _PAGE)


def _runs(cluster: Cluster, callers: set[str]) -> Iterator[tuple[int, int]]:
    """The runs of successive boxes that call no frame, as pairs of the first index and the index after the last."""
    start = 0
    for place, box in enumerate(cluster.boxes):
        if box.id in callers:
            if start < place:
                yield start, place
            start = place + 1
    if start < len(cluster.boxes):
        yield start, len(cluster.boxes)


def _cuts(boxes: Sequence[Box], start: int, end: int, count: int, crossing: Sequence[int]) -> list[int]:
    """The indices that split a run into `count` stretches of similar length."""
    step = (end - start) / count
    found = [start]
    for number in range(1, count):
        middle, reach = start + number * step, 0.3 * step
        places = range(max(int(middle - reach), found[-1] + 1), min(int(middle + reach) + 1, end))
        if places:
            found.append(min(places, key=lambda at: (_agreed(boxes[at - 1], boxes[at]), crossing[at], at)))
    return [*found, end]


def _agreed(a: Box, b: Box) -> int:
    """The number of leading names that the scopes of two boxes have in common."""
    pairs = zip(a.scope.split("/"), b.scope.split("/"), strict=False)
    return len([*itertools.takewhile(lambda pair: pair[0] and pair[0] == pair[1], pairs)])


def _name_stretches(picture: Picture, groups: Mapping[str, list[Box]]) -> Picture:
    """The picture with names and counts in the boxes of stretches."""

    def name_in_frame(cluster: Cluster) -> Cluster:
        boxes = (_name_stretch(box, groups[box.id]) if box.id in groups else box for box in cluster.boxes)
        return evolve(cluster, boxes=tuple(boxes), clusters=tuple(map(name_in_frame, cluster.clusters)))

    return evolve(picture, clusters=tuple(map(name_in_frame, picture.clusters)))


def _name_stretch(box: Box, boxes: Sequence[Box]) -> Box:
    first, last = boxes[0], boxes[-1]
    kinds = Counter(each.kind.letter for each in boxes)
    names = {kind.letter: kind.name for kind in KINDS}
    counted = tuple(f"{count:,} {names[letter]}" for letter, count in kinds.most_common(_KINDS))
    folded = any(each.kind is FOLDED for each in boxes)
    ops = (f"{len(boxes):,} {'boxes' if folded else 'ops'}", *counted)
    scopes = [_end(scope) for scope in dict.fromkeys(each.scope for each in boxes if each.scope)]
    scoped = (f"{scopes[0]} … {scopes[-1]}",) if len(scopes) > 1 else tuple(scopes)
    return evolve(box, name=f"{first.name} … {last.name}", words=Words(details=(*scoped, *ops)))


def _end(scope: str) -> str:
    return scope if len(scope) <= _WIDTH // 2 else f"…{scope[1 - _WIDTH // 2 :]}"


# ----------------------------------------------------------------------------
# The requested view
#
# Selection by `around`, `paths` and `only`, folding by name and by number of boxes.

_TIMES = 4  # boxes of a program over those that a picture may have, above which an overview is shown


def _check_only(view: View, attribute: object, only: str | None) -> None:
    if only not in (None, "collectives"):
        raise ViewError(f"only={only!r}: expected 'collectives'")


@frozen
class View:
    """A view: `around` an instruction, all `paths` from one to another, `only` collectives, names to `fold`.

    A program of more than `max_nodes` boxes is folded, by scopes and computations first, then by distance from the
    root. A far larger program is drawn as an overview; in a format that `unfolds`, every larger program is.
    """

    around: str | None = None
    radius: int = 2
    paths: tuple[str, str] | None = None
    only: str | None = field(default=None, validator=_check_only)
    fold: tuple[str, ...] = ()
    max_nodes: int = MOST
    unfolds: bool = False

    def apply(self, whole: Picture) -> Picture:
        """The part of a picture that this view shows; raises ViewError if a name is not in it."""
        picture = only_collectives(whole) if self.only else whole
        for name in self.fold:
            picture = _fold_by_name(picture, name)
        if self.paths:
            start, end = (_find_box(picture, name, whole) for name in self.paths)
            picture = _select_paths(picture, start, end)
        if self.around:
            start = _find_box(picture, self.around, whole)
            nearby = near(picture, start.id, self.radius)
            picture = select_boxes(picture, nearby, f"within {self.radius} of {start.name}")
        part = shrink(picture, max(self.max_nodes, 1), 1 if self.unfolds else _TIMES)
        return evolve(split_into_pages(part), lines=whole.edges)


def _find_box(picture: Picture, name: str, whole: Picture) -> Box:
    """The box of this name, or the box in which the instruction of this name is a word."""
    boxes = [*picture.all_boxes()]
    for box in boxes:
        if name in (box.name, box.id):
            return box
    for box in boxes:
        if name in box.folded:
            return box
    names = [each.name for each in whole.all_boxes()]
    close = difflib.get_close_matches(name, names, 1)
    raise ViewError(f"the picture has no instruction {name!r}{f'; did you mean {close[0]!r}?' if close else ''}")


def _select_paths(picture: Picture, start: Box, end: Box) -> Picture:
    for a, b in ((start, end), (end, start)):
        if found := on_paths(picture, a.id, b.id):
            return select_boxes(picture, found, f"on the paths from {a.name} to {b.name}")
    raise ViewError(f"no path leads from {start.name} to {end.name}, or from {end.name} to {start.name}")


def _fold_by_name(picture: Picture, name: str) -> Picture:
    """The picture with the computation of this name folded into its callers, or each scope of this name into a box."""
    name = in_line(name)  # scopes are escaped in the same way
    for fold in (fold_computation, fold_scope):
        found = fold(picture, name)
        if found is not None:
            return found
    names = [*(each.name for each in _frames(picture)), *{box.scope for box in picture.all_boxes() if box.scope}]
    if name in names:
        raise ViewError(f"cannot fold {name!r}: no other computation in the picture calls it")
    close = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ViewError(f"cannot fold {name!r}: the picture has no such computation or scope{hint}")


def _frames(picture: Picture) -> Iterator[Cluster]:
    stack = [*picture.clusters]
    while stack:
        cluster = stack.pop()
        yield cluster
        stack += cluster.clusters


def shrink(picture: Picture, most: int, times: int = _TIMES) -> Picture:
    """A picture of at most `most` boxes.

    Scopes are folded first (or repeated structure, if few boxes have a scope), then computations. If the picture is
    still too large, boxes far from the root are omitted, and a program of more than `times` that many boxes is drawn as
    an overview.
    """
    if picture.size <= most:
        return picture
    whole = picture
    repeated, blocks = (whole, set[str]()) if has_names(whole) else fold_repeats(whole)
    picture = fold_scopes(repeated, most) if repeated.size > most else repeated
    if picture.size > most:
        folded = fold_computations(picture, most)
        if most // 4 <= folded.size <= most:
            picture = folded
    if picture.size > most and whole.size > most * times:
        few = most if times > 1 else most // 2  # a picture that unfolds can start with fewer boxes
        picture = overview(repeated, few, blocks) or overview(whole, most) or picture
    if picture.size > most:
        picture = select_boxes(picture, nearest(picture, most), "nearest to the root")
    large = f"large program: {whole.size:,} boxes drawn as {picture.size:,} (--max-nodes {most})"
    return evolve(picture, notes=(large, *picture.notes))


# ----------------------------------------------------------------------------
# Sheets of a viewer
#
# The whole picture, and for each folded box the picture that replaces it when it is unfolded.

MOST_SHEETS = 300  # boxes of a sheet
_ALL = 12_000  # boxes of all sheets but the first, so that a page stays within a few megabytes
_SOME = 4_000  # the same for far larger programs, so that the page is made within seconds
_LINES = 2 * _ALL  # lines of a program, above which it is far larger


@frozen
class Sheet:
    """A part of a program with its own layout: `box` is the folded box that it replaces, `depth` its nesting depth."""

    picture: Picture
    box: str
    depth: int


def sheets(picture: Picture) -> Iterator[Sheet]:
    """The sheets of folded boxes, outer boxes first, up to the limit on the number of boxes of a page."""
    room = _ALL if len(picture.lines) <= _LINES else _SOME
    seen = {box.id for box in picture.all_boxes()}
    waiting = deque(_closed(picture, 0))
    while waiting:
        box, depth = waiting.popleft()
        part = evolve(split_into_pages(shrink(unfold(box), MOST_SHEETS, 1)), scale=picture.scale)
        ids = {each.id for each in part.all_boxes()}
        if part.size > room:
            break
        # A sheet of one box shows no more than the folded box; a computation that several boxes call is drawn once.
        if len(ids) < 2 or ids & seen:
            continue
        room -= part.size
        seen |= ids
        yield Sheet(part, box.id, depth)
        waiting += _closed(part, depth)


def _closed(picture: Picture, depth: int) -> Iterator[tuple[Box, int]]:
    """The folded boxes of a picture, each with its nesting depth."""
    stack = [(cluster, depth + 1) for cluster in picture.clusters]
    while stack:
        cluster, around = stack.pop()
        yield from ((box, around) for box in cluster.boxes if box.holds)
        stack += ((inner, around + 1) for inner in cluster.clusters)
