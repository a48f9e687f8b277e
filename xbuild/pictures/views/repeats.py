"""Folding of what repeats: successive stretches of one structure, as the layers of a network, are a box each.

A stretch begins at each occurrence of an op that comes at regular distances in the order of a frame. Stretches count as
repeated where nearly the same ops, compared by the labels of `xbuild/properties/structure.py`, are in each of them.
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from ..model.kinds import KINDS, LEAF, PARAMETER
from ..model.picture import Box, Cluster, Picture, Words
from .merging import frames, inside, merged
from .paging import alive

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
class Run:
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
    lines = inside(picture)
    runs = [
        (cluster, run)
        for cluster, _ in frames(picture)
        for run in _runs(cluster, alive(cluster, lines.get(cluster.id, ())))
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
    note = f"what repeats in structure is a block: {', '.join(told)}"
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

    found = merged(picture, groups)
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


def _runs(cluster: Cluster, crossing: Sequence[int]) -> list[Run]:
    """The repeated stretches of a frame, those that cover most first looked for."""
    if len(cluster.boxes) < _TIMES * _SHORTEST:
        return []
    numbers: dict[bytes, int] = {}
    labels = [numbers.setdefault(box.label, len(numbers)) for box in cluster.boxes]
    found: list[Run] = []
    waiting = [(0, len(labels))]
    while waiting and len(found) < _MOST_RUNS:
        start, end = waiting.pop()
        run = _best(labels, start, end, crossing)
        if run is not None:
            found.append(run)
            waiting += [(start, run.cuts[0]), (run.cuts[-1], end)]
    return sorted(found, key=lambda run: run.cuts[0])


def _best(labels: Sequence[int], start: int, end: int, crossing: Sequence[int]) -> Run | None:
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


def _candidates(labels: Sequence[int], start: int, end: int) -> Iterator[Run]:
    """For each label the places where it comes at regular distances."""
    places: dict[int, list[int]] = {}
    for at in range(start, end):
        places.setdefault(labels[at], []).append(at)
    for found in places.values():
        for cuts in _regular(found):
            step = (cuts[-1] - cuts[0]) // (len(cuts) - 1)
            yield Run((*cuts, min(cuts[-1] + step, end)))


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


def _verified(labels: Sequence[int], run: Run, start: int, end: int) -> Run | None:
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
    return Run(cuts[first : first + count + 1]) if count >= _TIMES else None


def _share(a: Counter[int], b: Counter[int]) -> float:
    """The part of the ops of two stretches that both have."""
    return 2 * (a & b).total() / max(a.total() + b.total(), 1)
