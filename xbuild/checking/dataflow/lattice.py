"""The lattice of constant propagation: what is known of one array before a run.

From least to most information: `None` (nothing), an `Open` (a value within bounds, or one of a few values), a value
(an array, or a NumPy scalar for rank 0). One `Open` object stands for one value, so that `x - x` is zero. A `Promise`
stands for the result of a collective until that is settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import AnyShape, Shape

from ...running import Value, same

MOST_AMONG = 8  # possible values of a leaf

Bounds: TypeAlias = tuple[int, int]
Leaf: TypeAlias = Any  # None, an Open, a Promise, or a value


@frozen(eq=False)
class Open:
    """An unknown value: of integers and booleans with bounds of the elements, or with all values that are possible."""

    bounds: Bounds | None = None
    among: tuple[Value, ...] = ()


def is_value(leaf: Leaf) -> bool:
    return isinstance(leaf, np.ndarray | np.generic)


def is_counted(shape: AnyShape) -> bool:
    """Whether the elements are integers or booleans, so that they have bounds."""
    return isinstance(shape, Shape) and shape.dtype.kind in ("signed", "unsigned", "pred")


def limits(shape: Shape) -> Bounds:
    """The least and greatest element that the type has."""
    if shape.dtype.kind == "pred":
        return 0, 1
    if shape.dtype.kind == "unsigned":
        return 0, 2**shape.dtype.bits - 1
    return -(2 ** (shape.dtype.bits - 1)), 2 ** (shape.dtype.bits - 1) - 1


def bounds_of(leaf: Leaf, shape: AnyShape) -> Bounds | None:
    """Bounds of the elements; None where they are no integers, or there are none."""
    if not isinstance(shape, Shape) or not is_counted(shape):
        return None
    if is_value(leaf):
        return (int(leaf.min()), int(leaf.max())) if leaf.size else None
    return leaf.bounds if isinstance(leaf, Open) and leaf.bounds is not None else limits(shape)


def possible(leaf: Leaf) -> tuple[Value, ...]:
    """All possible values, where these are few; else empty."""
    return (leaf,) if is_value(leaf) else leaf.among if isinstance(leaf, Open) else ()


def bounded(bounds: Bounds | None, shape: AnyShape) -> Leaf:
    """A leaf with these bounds: a value where they are equal, any value where the type does not hold them."""
    if bounds is None or not isinstance(shape, Shape) or not is_counted(shape) or shape.is_dynamic:
        return Open()
    low, high = limits(shape)
    if not low <= bounds[0] <= bounds[1] <= high or bounds == (low, high) != (0, 1):
        return Open()
    if shape.dims:
        return Open(bounds)
    return among(np.asarray(each).astype(shape.dtype.dtype)[()] for each in _few(bounds)) or Open(bounds)


def _few(bounds: Bounds) -> range:
    return range(bounds[0], bounds[1] + 1) if bounds[1] - bounds[0] < MOST_AMONG else range(0)


def among(values: Iterable[Value]) -> Leaf:
    """A leaf that is one of these values; None where there are none, or too many."""
    found = [*distinct(values)]
    if not 0 < len(found) <= MOST_AMONG:
        return None
    if len(found) == 1:
        return found[0]
    counted = found[0].dtype.kind in "biu" and all(each.size for each in found)
    return Open((min(int(v.min()) for v in found), max(int(v.max()) for v in found)) if counted else None, (*found,))


def distinct(values: Iterable[Value]) -> Iterator[Value]:
    """The values without repetitions, compared by their bits."""
    seen = set()
    for value in values:
        mark = value.dtype, value.shape, value.tobytes()
        if mark not in seen:
            seen.add(mark)
            yield value


def join(a: Leaf, b: Leaf, shape: AnyShape) -> Leaf:
    """The join of two leaves."""
    if a is b or a is None or b is None:
        return a if a is b else None
    if is_value(a) and is_value(b) and same(a, b):
        return a
    some = among((*possible(a), *possible(b))) if possible(a) and possible(b) else None
    if some is not None:
        return some
    first, second = bounds_of(a, shape), bounds_of(b, shape)
    return bounded(
        None if first is None or second is None else (min(first[0], second[0]), max(first[1], second[1])), shape
    )


def holds(outer: Leaf, inner: Leaf, shape: AnyShape) -> bool:
    """Whether each value that the inner leaf describes is described by the outer."""
    if outer is inner or outer is None:
        return True
    if is_value(outer):
        return is_value(inner) and same(outer, inner)
    if outer.among:
        options = possible(inner)
        return bool(options) and len([*distinct((*outer.among, *options))]) == len(outer.among)
    if outer.bounds is None:
        return True
    bounds = bounds_of(inner, shape)
    return bounds is not None and outer.bounds[0] <= bounds[0] and bounds[1] <= outer.bounds[1]
