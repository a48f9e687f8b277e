"""The pool of values of a trace as columns: each distinct type and shape once, and all bytes one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field

from shape_inference import primitive_type

from ..core.attributes import Array
from .summary import Summary

Spelled: TypeAlias = Callable[[Array], tuple[str, Array]]
"""A function that gives the format of an array in the pool, and the array in this format."""

_FIGURES = ("low", "high", "mean", "nans", "infs")


def as_they_are(array: Array) -> tuple[str, Array]:
    return str(primitive_type(array.dtype)), array


def single(cells: Array) -> Array:
    return np.asarray(cells, np.float32)


@define(eq=False)
class Pool:
    """Values to be written; an object that is added again is stored once.

    A kind is `{t, d, f}` of an array of type `t` and extents `d` in format `f`; `{t, d, c}` of a summary with cells of
    extents `c` as `shaded` gives them, after five figures as f64; `{of}` of a tuple of so many, whose bytes are the
    numbers of its elements.
    """

    spelled: Spelled = as_they_are
    shaded: Callable[[Array], Array] = single
    kinds: list[dict[str, Any]] = field(factory=list)
    size: int = 0
    _kind: list[int] = field(factory=list)
    _at: list[int] = field(factory=list)
    _bytes: list[bytes] = field(factory=list)
    _number: dict[Any, int] = field(factory=dict)
    _known: dict[int, tuple[Any, int]] = field(factory=dict)

    def add(self, value: Any) -> int:
        """Add a value to the pool; its number, or -1 for None."""
        if value is None:
            return -1
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = value, self._added(value)
        return known[1]

    def _added(self, value: Any) -> int:
        if isinstance(value, tuple):
            return self._put(len(value), {"of": len(value)}, np.array([self.add(each) for each in value], np.int32))
        if isinstance(value, Summary):
            figures = [np.nan if (each := getattr(value, name)) is None else each for name in _FIGURES]
            key = value.type, value.dims, value.cells.shape
            kind = {"t": value.type, "d": list(value.dims), "c": list(value.cells.shape)}
            return self._put(key, kind, np.array(figures, np.float64), self.shaded(value.cells))
        array = np.asarray(value)
        form, plain = self.spelled(array)
        known = self._number.get((array.dtype, array.shape))
        kind = {} if known is not None else _kind(array, form)
        return self._put((array.dtype, array.shape), kind, plain)

    def _put(self, key: Any, kind: dict[str, Any], *arrays: Array) -> int:
        number = self._number.get(key)
        if number is None:
            number = self._number[key] = len(self.kinds)
            self.kinds.append(kind)
        self._kind.append(number)
        self._at.append(self.size)
        for array in arrays:
            letters = array.tobytes()
            self._bytes.append(letters)
            self.size += len(letters)
        return len(self._kind) - 1

    def __len__(self) -> int:
        return len(self._kind)

    @property
    def columns(self) -> tuple[Array, Array, Array]:
        """The kind of each value, the offset of its bytes, and all bytes."""
        at = np.array(self._at, np.int64)
        return np.array(self._kind, np.int32), at, np.frombuffer(b"".join(self._bytes), np.uint8)


def _kind(array: Array, form: str) -> dict[str, Any]:
    return {"t": str(primitive_type(array.dtype)), "d": list(array.shape), "f": form}
