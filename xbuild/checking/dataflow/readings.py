"""Readings: a leaf of the lattice for each array of a tuple, and the operations on them for loops and scans."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from shape_inference import AnyShape, Shape, TupleShape
from shape_inference.types import leaves

from ...core.graph import Instruction
from ..model.scans import split_carries
from .analysis import Reading, spread
from .exchange import Promise, WalkCoroutine
from .lattice import Leaf, Open, bounded, holds, is_value, join
from .ranges import MOST_TRIED

SHOWN = 64  # elements up to which equal values are recognised


def settled(reading: Reading) -> WalkCoroutine:
    """The reading with every promise replaced, once its collective is settled."""
    if isinstance(reading, tuple):
        found = []
        for each in reading:
            found.append((yield from settled(each)))
        return (*found,)
    if not isinstance(reading, Promise):
        return reading
    while not reading.instance.is_settled:
        yield reading.instance
    return reading.leaf()


def fresh(shape: AnyShape) -> Reading:
    """An unknown value of a shape."""
    if isinstance(shape, TupleShape):
        return (*map(fresh, shape.elements),)
    if isinstance(shape, Shape) and shape.dtype.kind == "pred":
        return bounded((0, 1), shape)
    return Open()


def full(reading: Reading, shape: AnyShape) -> Reading:
    """The reading with a leaf for each array: `None` for arrays outside the slice."""
    if not isinstance(shape, TupleShape):
        return reading
    if reading is None:
        return spread(None, shape)
    return (*map(full, reading, shape.elements),)


def shaped(found: Sequence[Leaf], shape: AnyShape) -> Reading:
    """The leaves in the tuples of a shape."""
    left = iter(found)

    def filled(each: AnyShape) -> Reading:
        return (*map(filled, each.elements),) if isinstance(each, TupleShape) else next(left)

    return filled(shape)


def mark(leaf: Leaf) -> Hashable:
    """A key of a leaf: equal small values have one, and one unknown has one."""
    if is_value(leaf) and leaf.size <= SHOWN:
        return leaf.dtype, leaf.shape, leaf.tobytes()
    return id(leaf)


def stays(now: Leaf, after: Leaf, shape: AnyShape, is_changed: bool) -> bool:
    """Whether a trip leaves a leaf of the state unchanged, or, once it has changed, within what it describes."""
    if now is after or now is None:
        return True
    if is_changed or is_value(now):
        return holds(now, after, shape)
    return False


def widened(now: Leaf, after: Leaf, shape: AnyShape) -> Leaf:
    found = join(now, after, shape)
    return fresh(shape) if found is None else found


def another(leaf: Leaf) -> Leaf:
    """A leaf with the same facts that stands for another value."""
    return Open(leaf.bounds, leaf.among) if isinstance(leaf, Open) else leaf


def joined_columns(rows: Sequence[Sequence[Leaf]], shape: AnyShape) -> Iterator[Leaf]:
    """The join of the rows, leaf by leaf."""
    for column, of in zip(zip(*rows, strict=True), leaves(shape), strict=True):
        yield functools.reduce(lambda a, b, of=of: join(a, b, of), column)  # type: ignore[misc]


def ways_of_state(state: Sequence[Leaf]) -> list[list[Leaf]]:
    """The concrete states that a state stands for, where these are few: one for each combination of possible values."""
    options = {id(leaf): leaf.among for leaf in state if isinstance(leaf, Open) and leaf.among}
    if not options or math.prod(map(len, options.values())) > MOST_TRIED:
        return []
    chosen = (dict(zip(options, values, strict=True)) for values in itertools.product(*options.values()))
    return [[values.get(id(leaf), leaf) for leaf in state] for values in chosen]


def sliced(leaf: Leaf, scan: Instruction, place: int) -> Leaf:
    if is_value(leaf):
        return np.take(leaf, place, scan.attributes.dimension)[()]
    return Open(leaf.bounds) if isinstance(leaf, Open) else None


def stacked(scan: Instruction, given: Sequence[Sequence[Leaf]]) -> list[Leaf]:
    """The outputs of all trips, in the order of the slices; unknown where no trip was walked."""
    shapes = scan.shape.elements if isinstance(scan.shape, TupleShape) else (scan.shape,)
    outputs = split_carries(scan, shapes)[0]
    if not given:
        return [*map(fresh, outputs)]
    columns = zip(*(given[::-1] if scan.attributes.is_reverse else given), strict=True)
    axis = scan.attributes.dimension
    return [
        np.stack(column, axis) if all(map(is_value, column)) else fresh(shape)
        for column, shape in zip(columns, outputs, strict=True)
    ]
