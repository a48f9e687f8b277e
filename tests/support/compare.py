"""Whether two results are the same: shape, dtype, and each element within so many units in the last place."""

from __future__ import annotations

from typing import Any

import numpy as np

from interpreter.engines.comparison import distance as distance
from interpreter.engines.comparison import is_float as is_float
from shape_inference import AnyShape, Shape, TupleShape, primitive_type

Array = np.ndarray[Any, Any]


def difference(actual: Any, expected: Any, ulps: float = 0) -> str | None:
    """Where `actual` differs from `expected`, in words, or None; at 0 ulps bit for bit, but that a NaN equals a NaN."""
    if isinstance(expected, tuple | list) and isinstance(actual, tuple | list):
        return _tuples(actual, expected, ulps)
    got, wanted = np.asarray(actual), np.asarray(expected)
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return f"{got.dtype}{list(got.shape)} came, {wanted.dtype}{list(wanted.shape)} is wanted"
    apart = distance(got, wanted)
    if not (apart > ulps).any():
        return None
    place = np.unravel_index(apart.argmax(), apart.shape)
    where = [int(each) for each in place]
    return f"at {where} {got[place]!r} came, {wanted[place]!r} is wanted: {apart[place]:g} ulps, {ulps:g} are allowed"


def assert_same(actual: Any, expected: Any, ulps: float = 0) -> None:
    found = difference(actual, expected, ulps)
    assert found is None, found


def shape_of(value: Any) -> AnyShape:
    """The shape of a result: of an array its own, of a tuple the tuple of its elements'."""
    if isinstance(value, tuple | list):
        return TupleShape(map(shape_of, value))
    array = np.asarray(value)
    return primitive_type(array.dtype)[array.shape]


def fits(value: Any, shape: AnyShape) -> bool:
    """Whether a value has the inferred shape; of a dynamic dimension it may hold fewer elements than the bound."""
    if isinstance(shape, TupleShape):
        return isinstance(value, tuple | list) and len(value) == len(shape) and all(map(fits, value, shape.elements))
    if not isinstance(shape, Shape):
        return value is None or value == ()
    array = np.asarray(value)
    dynamic = shape.dynamic or (False,) * shape.rank
    return (
        array.dtype == shape.dtype.dtype
        and array.ndim == shape.rank
        and all(n == m or (d and n < m) for n, m, d in zip(array.shape, shape.dims, dynamic, strict=True))
    )


def like(expected: Any, shape: AnyShape) -> Any:
    """What a case states, as arrays: Python numbers and lists get the element type of the shape."""
    if isinstance(shape, TupleShape):
        return tuple(map(like, expected, shape.elements))
    if isinstance(expected, np.ndarray | np.generic) or not isinstance(shape, Shape):
        return expected
    return np.array(expected, shape.dtype.dtype)


def _tuples(actual: Any, expected: Any, ulps: float) -> str | None:
    if len(actual) != len(expected):
        return f"a tuple of {len(actual)} came, of {len(expected)} is wanted"
    for index, (got, wanted) in enumerate(zip(actual, expected, strict=True)):
        if found := difference(got, wanted, ulps):
            return f"element {index}: {found}"
    return None
