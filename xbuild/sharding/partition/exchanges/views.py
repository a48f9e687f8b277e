"""Views: arrays made of elements of other arrays, dimension by dimension, such as slices, pads, rolls and reversals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from attrs import evolve, frozen

from shape_inference import Shape
from shape_inference.types import Dims

from ..parts.frame import Piece
from .lines import Line, joined, whole_line

MOST_SEGMENTS = 64
"""Up to how many segments a dimension is described by those of its operands' operands."""


@frozen(eq=False)
class View:
    """An array by dimension: of which elements of the bases it is made; what is of none is the filler, a number.

    Segments of dimension `joint` name their base; those of all other dimensions are the same for every base.
    """

    bases: tuple[Piece, ...]
    lines: tuple[Line, ...]
    joint: int = 0
    filler: Piece | None = None

    @property
    def is_padded(self) -> bool:
        return any(line.has_padding for line in self.lines)

    def moves(self, dim: int) -> bool:
        """Whether a dimension is another one than that of its base."""
        return (len(self.bases) > 1 and dim == self.joint) or not self.lines[dim].is_all_of(dims_of(self.bases[0])[dim])

    def with_line(self, dim: int, line: Line) -> View:
        found = evolve(self, lines=(*self.lines[:dim], line, *self.lines[dim + 1 :]))
        return found if found.is_padded else evolve(found, filler=None)


def dims_of(piece: Piece) -> Dims:
    assert isinstance(piece.shape, Shape)
    return piece.shape.dims


def whole(piece: Piece) -> View:
    """The array as it is."""
    return View((piece,), tuple(whole_line(extent) for extent in dims_of(piece)))


def view_of(piece: Piece) -> View:
    """Of which other arrays an array is made; itself where it is not left for later, or made of very many."""
    view = piece.later.view if piece.later is not None else None
    if not isinstance(view, View) or any(len(line.segments) > MOST_SEGMENTS for line in view.lines):
        return whole(piece)
    return view


Bounds: TypeAlias = "Sequence[tuple[int, int, int]]"


def sliced(view: View, bounds: Bounds) -> View:
    """A slice by (start, limit, stride) of each dimension."""
    for dim, each in enumerate(bounds):
        view = view.with_line(dim, view.lines[dim].sliced(*each))
    return view


def reversed_(view: View, dims: Sequence[int]) -> View:
    for dim in dims:
        view = view.with_line(dim, view.lines[dim].reversed())
    return view


def padded(view: View, filler: Piece, around: Bounds) -> View | None:
    """A pad by (low, high, interior) of each dimension; None where the view has padding of another number."""
    if view.filler is not None and not is_same_number(view.filler, filler):
        return None
    for dim, each in enumerate(around):
        view = evolve(view, filler=filler).with_line(dim, view.lines[dim].padded(*each))
    return view


def is_same_number(one: Piece, other: Piece) -> bool:
    literals = [each.origin.attributes.literal for each in (one, other) if each.origin.opcode == "constant"]
    if one is other or len(literals) < 2:
        return one is other
    return one.shape == other.shape and np.asarray(literals[0]).tobytes() == np.asarray(literals[1]).tobytes()


def concatenated(pieces: Sequence[Piece], dim: int, of: Callable[[Piece], View]) -> View:
    """Arrays joined along a dimension, described by views of them where these fit together."""
    views = [of(each) for each in pieces]
    one = _of_one(views, dim)
    return one if one is not None else _of_several(pieces, views, dim)


def _of_one(views: Sequence[View], dim: int) -> View | None:
    """The view of one base that all operands are views of, with the same other dimensions."""
    first = views[0]
    fillers = [each.filler for each in views if each.filler is not None]
    for each in views:
        others = [n for n in range(len(first.lines)) if n != dim]
        is_alike = len(each.bases) == 1 and each.bases == first.bases and all(
            each.lines[n] == first.lines[n] for n in others)  # fmt: skip
        if not is_alike or not all(is_same_number(fillers[0], filler) for filler in fillers):
            return None
    filler = fillers[0] if fillers else None
    return evolve(first, joint=dim, filler=filler).with_line(dim, joined(each.lines[dim] for each in views))


def _of_several(pieces: Sequence[Piece], views: Sequence[View], dim: int) -> View:
    """The view of several bases; an operand is one itself where it is made of others along other dimensions."""
    bases: list[Piece] = []
    lines, filler = [], None
    for piece, given in zip(pieces, views, strict=True):
        is_fit = _is_along(given, dim) and (
            filler is None or given.filler is None or is_same_number(filler, given.filler))  # fmt: skip
        view = given if is_fit else whole(piece)
        bases += [each for each in view.bases if not any(each is other for other in bases)]
        numbers = {n: next(m for m, other in enumerate(bases) if other is each) for n, each in enumerate(view.bases)}
        lines.append(view.lines[dim].of_sources(numbers))
        filler = view.filler if filler is None else filler
    others = [whole_line(extent) for extent in dims_of(pieces[0])]
    return View(tuple(bases), (*others[:dim], joined(lines), *others[dim + 1 :]), dim, filler)


def _is_along(view: View, dim: int) -> bool:
    """Whether an array is made of others along one dimension alone."""
    is_joint = len(view.bases) == 1 or view.joint == dim
    return is_joint and not any(view.moves(n) for n in range(len(view.lines)) if n != dim)
