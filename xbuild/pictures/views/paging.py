"""Pages of a very large frame, read like columns; lines between pages are replaced by words in their boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from ..layout.layering import Layering
from ..model.picture import Box, Cluster, Edge, Picture

LARGE = 250  # boxes of a frame, above which it is split into pages
_PAGE = 110
_NAMED = 3
_BENDS = 2500


def paged(picture: Picture, size: int = _PAGE, large: int = LARGE) -> Picture:
    """The picture with each large frame split into pages of about `size` boxes, in the recorded order."""
    pages: dict[str, str] = {}
    clusters = tuple(_paged(cluster, picture.edges, pages, size, large) for cluster in picture.clusters)
    if not pages:
        return picture
    cut = [edge for edge in picture.edges if _is_cut(edge, pages)]
    words = words_between(picture, cut)
    clusters = tuple(with_words(cluster, words) for cluster in clusters)
    edges = tuple(edge for edge in picture.edges if not _is_cut(edge, pages))
    note = "large frames are in pages; a line from one page to another is a word in its boxes: ← from, → to"
    return evolve(picture, clusters=clusters, edges=edges, notes=(*picture.notes, note))


def _is_cut(edge: Edge, pages: Mapping[str, str]) -> bool:
    return edge.what != "channel" and pages.get(edge.tail) != pages.get(edge.head) and edge.head in pages


def _paged(cluster: Cluster, edges: Sequence[Edge], pages: dict[str, str], size: int, large: int) -> Cluster:
    cluster = evolve(cluster, clusters=tuple(_paged(inner, edges, pages, size, large) for inner in cluster.clusters))
    if len(cluster.boxes) <= large and not _has_long_lines(cluster, edges):
        return cluster
    parts = _parts(cluster, edges, size)
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


def _parts(cluster: Cluster, edges: Sequence[Edge], size: int) -> list[tuple[Box, ...]]:
    """The boxes of a frame in pages of about one size, cut where few values are alive."""
    crossing = alive(cluster, edges)
    cuts, start, count = [0], 0, len(cluster.boxes)
    while count - start > 1.4 * size:
        cut = min(range(start + int(size * 0.7), start + int(size * 1.3)), key=lambda at: (crossing[at], at))
        cuts.append(cut)
        start = cut
    return [cluster.boxes[a:b] for a, b in zip(cuts, [*cuts[1:], count], strict=True)]


def alive(cluster: Cluster, edges: Sequence[Edge]) -> list[int]:
    """The number of values alive at each place of the order: made before it, and used at it or after it."""
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


def words_between(picture: Picture, cut: Sequence[Edge]) -> dict[str, list[str]]:
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
    return f"{', '.join(listed[:_NAMED])}{f' +{len(listed) - _NAMED}' if len(listed) > _NAMED else ''}"


def with_words(cluster: Cluster, words: Mapping[str, list[str]]) -> Cluster:
    """A frame with these words added to its boxes."""
    boxes = (evolve(box, added=(*box.added, *_few(words[box.id]))) if box.id in words else box for box in cluster.boxes)
    return evolve(cluster, boxes=tuple(boxes), clusters=tuple(with_words(inner, words) for inner in cluster.clusters))


def _few(words: list[str]) -> list[str]:
    return words if len(words) <= 6 else [*words[:5], f"and {len(words) - 5} more"]
