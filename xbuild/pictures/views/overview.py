"""Overview of a very large program: each box stands for a stretch of the recorded order."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve

from ..model.kinds import FOLDED, KINDS
from ..model.picture import Box, Cluster, Picture, Words
from .merging import deepest, frames, inside, merged, without_below
from .paging import alive, paged

_PART = 5  # an overview has a fifth of the boxes that a picture may have, to be read at a glance
_FRAMES = 4  # one frame for so many boxes of an overview
_KINDS = 4  # kinds whose ops are counted in a box
_PAGE = 12  # boxes of a page
_WIDTH = 44  # letters of the names of two scopes


def overview(picture: Picture, most: int) -> Picture | None:
    """The picture with each stretch as a box in the outer frames; None where there would be more than `most` boxes.

    Stretches end where scopes change and few values go across; the callers of frames stand between them.
    """
    wanted = max(most // _PART, 1)
    shown = without_below(picture, deepest(Counter(depth for _, depth in frames(picture)), wanted // _FRAMES))
    lines, callers = inside(shown), {cluster.caller for cluster, _ in frames(shown)}
    runs = [(cluster, run) for cluster, _ in frames(shown) for run in _runs(cluster, callers)]
    single = sum(box.id in callers for box in shown.all_boxes())
    spare = max(wanted - single - len(runs), 0) / max(sum(end - start for _, (start, end) in runs), 1)
    groups: dict[str, list[Box]] = {}
    for cluster, _ in frames(shown):
        crossing = alive(cluster, lines.get(cluster.id, ()))
        for start, end in (run for each, run in runs if each is cluster):
            cuts = _cuts(cluster.boxes, start, end, 1 + int(spare * (end - start)), crossing)
            groups |= {f"{cluster.id}/from {a}": [*cluster.boxes[a:b]] for a, b in itertools.pairwise(cuts)}
    if len(groups) + single > most:
        return None
    found = merged(shown, {key: boxes for key, boxes in groups.items() if len(boxes) > 1})
    note = "an overview: a box stands for what comes one after the other in the program; --around NAME shows a part"
    return paged(evolve(_told(found, groups), notes=(*picture.notes, note)), _PAGE, _PAGE)


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
    """The indices at which a run is cut into `count` stretches of about one length."""
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


def _told(picture: Picture, groups: Mapping[str, list[Box]]) -> Picture:
    """The picture with names and counts in the boxes of stretches."""

    def told(cluster: Cluster) -> Cluster:
        boxes = (_named(box, groups[box.id]) if box.id in groups else box for box in cluster.boxes)
        return evolve(cluster, boxes=tuple(boxes), clusters=tuple(map(told, cluster.clusters)))

    return evolve(picture, clusters=tuple(map(told, picture.clusters)))


def _named(box: Box, boxes: Sequence[Box]) -> Box:
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
