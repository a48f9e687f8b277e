"""Lists of axes compared by their beginnings, with parts of axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ..axis import Axis, count

Axes: TypeAlias = tuple[Axis, ...]


def begins(one: Axis, other: Axis) -> bool:
    """Whether an axis is the outer part of another, or the same."""
    return (
        one.name == other.name
        and one.pre_size == other.pre_size
        and one.size <= other.size
        and other.size % one.size == 0
    )


def contains(one: Axis, other: Axis) -> bool:
    """Whether a part of an axis has all of another part."""
    return one.name == other.name and one.pre_size <= other.pre_size and other.end <= one.end


def outside(axis: Axis, others: Iterable[Axis]) -> Axis | None:
    """The longest outer part of an axis that none of the others overlaps; None where there is none, or where no
    splitting of the axis has both parts.
    """
    for other in others:
        if not axis.fits(other):
            return None
        if axis.name != other.name or not axis.overlaps(other):
            continue
        size, rest = divmod(other.pre_size, axis.pre_size)
        if size <= 1 or rest:
            return None
        axis = Axis(axis.name, size, axis.pre_size)
    return axis


def is_strict_beginning(one: Sequence[Axis], other: Sequence[Axis]) -> bool:
    """Whether a list of axes cuts as another does, and less: its last axis may be an outer part.

    >>> x, half, y = Axis("x", 4), Axis("x", 2), Axis("y", 2)
    >>> is_strict_beginning([half], [x, y]), is_strict_beginning([x, y], [x, y]), is_strict_beginning([y], [x, y])
    (True, False, False)
    """
    return tuple(one) != tuple(other) and is_beginning(one, other)


def is_beginning(one: Sequence[Axis], other: Sequence[Axis]) -> bool:
    """Whether a list of axes cuts as another does, or less."""
    if len(one) > len(other):
        return False
    if not one:
        return True
    return tuple(one[:-1]) == tuple(other[: len(one) - 1]) and begins(one[-1], other[len(one) - 1])


def common(old: Axes, new: Axes, may_grow: bool) -> tuple[Axes, bool]:
    """The axes that two lists have in common from the outermost on, and whether they may still grow.

    Where one ends, the rest of the other follows; the rest of `new` only if `may_grow`.

    >>> a, b, c = Axis("a", 2), Axis("b", 2), Axis("c", 2)
    >>> [axis.name for axis in common((a, b), (a, c), True)[0]], [axis.name for axis in common((a,), (a, b), True)[0]]
    (['a'], ['a', 'b'])

    Source: Shardy, compatible major axes of a factor.
    """
    if old == new or not new:
        return old, may_grow
    if not old:
        return (new, True) if may_grow else ((), False)
    found: list[Axis] = []
    shorter = min(len(old), len(new))
    for place in range(shorter):
        one, other = old[place], new[place]
        if one == other:
            found.append(one)
            continue
        return _differing(found, old, new, place, may_grow)
    return _rest(found, old[shorter:], new[shorter:], may_grow)


def _differing(found: list[Axis], old: Axes, new: Axes, place: int, may_grow: bool) -> tuple[Axes, bool]:
    """What is common of two lists that differ first at a place: an outer part, where that is the end of its list."""
    one, other = old[place], new[place]
    if begins(other, one):
        is_end = place + 1 == len(new)
        found.append(one if is_end else other)
    elif begins(one, other):
        is_end = place + 1 == len(old) and may_grow
        found.append(other if is_end else one)
    else:
        return tuple(found), False
    if not is_end:
        return tuple(found), False
    return _rest(found, old[place + 1 :], new[place + 1 :], may_grow)


def _rest(found: list[Axis], old: Axes, new: Axes, may_grow: bool) -> tuple[Axes, bool]:
    return (*found, *old, *(new if may_grow else ())), may_grow


__all__ = ["Axes", "begins", "common", "contains", "count", "is_beginning", "is_strict_beginning", "outside"]
