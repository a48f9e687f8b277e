"""Sheets of a viewer: the whole picture, and for each folded box the picture that replaces it when it is unfolded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from attrs import evolve, frozen

from ..model.picture import Box, Picture
from .paging import paged
from .unfolding import unfolded
from .views import smaller

MOST = 300  # boxes of a sheet
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
        part = evolve(paged(smaller(unfolded(box), MOST, 1)), scale=picture.scale)
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
