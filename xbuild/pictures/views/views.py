"""The view that a user asks for: selection by `around`, `paths` and `only`, folding by name and by number of boxes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from attrs import evolve, field, frozen

from shape_inference.escaping import in_line

from ..model.errors import MOST, ViewError
from ..model.picture import Box, Cluster, Picture
from .communication import only_collectives
from .merging import fold_computation, fold_computations, fold_scope, fold_scopes
from .overview import overview
from .paging import paged
from .selecting import kept, near, nearest, on_paths

_TIMES = 4  # boxes of a program over those that a picture may have, above which an overview is shown


def _only(view: View, attribute: object, only: str | None) -> None:
    if only not in (None, "collectives"):
        raise ViewError(f"only={only!r}: 'collectives' is what there is")


@frozen
class View:
    """A view: `around` an instruction, all `paths` from one to another, `only` collectives, names to `fold`.

    More than `max_nodes` boxes are folded, by scopes and computations first, then by distance from the root. A program
    that is far larger is shown as an overview; in a format that `unfolds`, every program that is larger.
    """

    around: str | None = None
    radius: int = 2
    paths: tuple[str, str] | None = None
    only: str | None = field(default=None, validator=_only)
    fold: tuple[str, ...] = ()
    max_nodes: int = MOST
    unfolds: bool = False

    def of(self, whole: Picture) -> Picture:
        """The part of a picture that this view shows; raises ViewError where a name is not in it."""
        picture = only_collectives(whole) if self.only else whole
        for name in self.fold:
            picture = _folded(picture, name)
        if self.paths:
            start, end = (_found(picture, name, whole) for name in self.paths)
            picture = _between(picture, start, end)
        if self.around:
            start = _found(picture, self.around, whole)
            picture = kept(picture, near(picture, start.id, self.radius), f"within {self.radius} of {start.name}")
        part = smaller(picture, max(self.max_nodes, 1), 1 if self.unfolds else _TIMES)
        return evolve(paged(part), lines=whole.edges)


def _found(picture: Picture, name: str, whole: Picture) -> Box:
    """The box of this name, or the box in which the instruction of this name stands as a word."""
    boxes = [*picture.all_boxes()]
    for box in boxes:
        if name in (box.name, box.id):
            return box
    for box in boxes:
        if name in box.folded:
            return box
    names = [each.name for each in whole.all_boxes()]
    close = difflib.get_close_matches(name, names, 1)
    raise ViewError(f"no instruction {name!r} is drawn{f'; did you mean {close[0]!r}?' if close else ''}")


def _between(picture: Picture, start: Box, end: Box) -> Picture:
    for a, b in ((start, end), (end, start)):
        if found := on_paths(picture, a.id, b.id):
            return kept(picture, found, f"on the paths from {a.name} to {b.name}")
    raise ViewError(f"no path leads from {start.name} to {end.name}, or back")


def _folded(picture: Picture, name: str) -> Picture:
    """The picture with the computation of this name folded into its callers, or each scope of this name into a box."""
    name = in_line(name)  # scopes are escaped in the same way
    for fold in (fold_computation, fold_scope):
        found = fold(picture, name)
        if found is not None:
            return found
    names = [*(each.name for each in _frames(picture)), *{box.scope for box in picture.all_boxes() if box.scope}]
    if name in names:
        raise ViewError(f"{name!r} has nothing to be folded into: no other computation that is drawn calls it")
    close = difflib.get_close_matches(name, names, 1)
    raise ViewError(f"no computation or scope {name!r} to fold{f'; did you mean {close[0]!r}?' if close else ''}")


def _frames(picture: Picture) -> Iterator[Cluster]:
    stack = [*picture.clusters]
    while stack:
        cluster = stack.pop()
        yield cluster
        stack += cluster.clusters


def smaller(picture: Picture, most: int, times: int = _TIMES) -> Picture:
    """A picture of at most `most` boxes.

    Scopes are folded first, then computations; if the picture is still too large, the boxes far from the root are left
    out, and a program of more than `times` that many boxes is shown as an overview.
    """
    if picture.size <= most:
        return picture
    whole = picture
    picture = fold_scopes(picture, most)
    if picture.size > most:
        folded = fold_computations(picture, most)
        if most // 4 <= folded.size <= most:
            picture = folded
    if picture.size > most and whole.size > most * times:
        picture = overview(whole, most) or picture
    if picture.size > most:
        picture = kept(picture, nearest(picture, most), "nearest to the root")
    large = f"large: {whole.size:,} boxes are drawn as {picture.size:,} (--max-nodes {most})"
    return evolve(picture, notes=(large, *picture.notes))
