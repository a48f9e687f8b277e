"""The arrays of a value: a tuple is the list of its parts, and only its arrays take memory."""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable
from itertools import accumulate
from typing import TypeAlias

from shape_inference import AnyShape, Dims, Shape, TupleShape

HOST = "S(5)"
"""How a layout says that an array lies in the memory of the host."""

_PACKED = re.compile(r"E\((\d+)\)")

Parts: TypeAlias = tuple[tuple[Dims, AnyShape], ...]


@functools.lru_cache(maxsize=4096)
def parts_of(shape: AnyShape) -> Parts:
    """The arrays and tokens of a shape in order, each with its index in nested tuples."""
    if not isinstance(shape, TupleShape):
        return (((), shape),)
    return tuple(((n, *path), part) for n, each in enumerate(shape.elements) for path, part in parts_of(each))


@functools.lru_cache(maxsize=4096)
def part_ends(shape: TupleShape) -> tuple[int, ...]:
    """Where in the list of parts those of each element of a tuple end, after a leading 0."""
    return (0, *accumulate(len(parts_of(each)) for each in shape.elements))


def place_of(shape: AnyShape, path: Dims) -> int | None:
    """The place of a part in the list, by its index in nested tuples; None where there is none."""
    return _places(shape).get(path)


@functools.lru_cache(maxsize=4096)
def _places(shape: AnyShape) -> dict[Dims, int]:
    return {path: place for place, (path, _) in enumerate(parts_of(shape))}


@functools.lru_cache(maxsize=4096)
def stored_bytes(shape: Shape) -> int:
    """The bytes of the elements as the layout stores them: `E(4)` says that an element takes 4 bits, not a byte."""
    packed = _PACKED.search(shape.layout.suffix) if shape.layout is not None and shape.layout.suffix else None
    return shape.bytes if packed is None else -(-shape.size * int(packed[1]) // 8)


@functools.lru_cache(maxsize=4096)
def bytes_of(shape: AnyShape) -> int:
    """The bytes that an array takes on the device: none of tokens, and none of what lies in the memory of the host."""
    return stored_bytes(shape) if isinstance(shape, Shape) and not is_on_host(shape) else 0


def is_on_host(shape: AnyShape) -> bool:
    """Whether a layout puts an array into the memory of the host."""
    return isinstance(shape, Shape) and shape.layout is not None and HOST in shape.layout.suffix


def is_alike(a: AnyShape, b: AnyShape) -> bool:
    """Whether an array can take the memory of another as it lies there: the same extents, bytes and order."""
    return isinstance(a, Shape) and isinstance(b, Shape) and a.dims == b.dims and likeness(a) == likeness(b)


@functools.lru_cache(maxsize=4096)
def likeness(shape: AnyShape) -> Hashable:
    """What is equal of arrays that can take the memory of each other; of a token nothing is."""
    return (shape.dims, bytes_of(shape), order_of(shape)) if isinstance(shape, Shape) else id(shape)


def order_of(shape: Shape) -> Dims:
    """The dimensions from the one whose elements are next to each other."""
    return shape.layout.minor_to_major if shape.layout is not None else tuple(range(shape.rank - 1, -1, -1))
