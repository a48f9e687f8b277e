"""The cases of all ops as global programs, and the comparison of their results with those of partitioned programs."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import numpy as np

import tests.cases
from tests.cases.case import Case

# What belongs to one device, or goes between devices already.
APART = ("infeed", "outfeed", "send", "recv", "broadcast-channel", "all-reduce-groups")
TOLERANCE = {1: 0.3, 2: 3e-2, 4: 2e-4, 8: 1e-9, 16: 1e-9}
"""By the bytes of an element, how far sums in another order may be apart, of the largest element."""


@functools.cache
def cases() -> tuple[tuple[str, Case], ...]:
    """(family, case) of all ops."""
    found = []
    for info in pkgutil.iter_modules(tests.cases.__path__):
        module = importlib.import_module(f"tests.cases.{info.name}")
        lists = [each for each in vars(module).values() if isinstance(each, (list, tuple))]
        found += [(info.name, case) for each in lists for case in each if isinstance(case, Case)]
    return tuple((family, case) for family, case in found if not any(word in case.id for word in APART))


def arrays(tree: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The arrays of a result."""
    if isinstance(tree, tuple):
        for each in tree:
            yield from arrays(each)
    elif tree is not None:
        yield np.asarray(tree)


def difference(wanted: Any, found: Any) -> str | None:
    """Where two results differ by more than another order of sums explains, or None; integers are compared exactly."""
    for one, other in zip(arrays(wanted), arrays(found), strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"{one.dtype}{one.shape} and {other.dtype}{other.shape}"
        if not _equal(one, other):
            return f"{one}\n and \n{other}"
    return None


def bits_differ(wanted: Any, found: Any) -> str | None:
    """Where two results differ in any bit, such as the sign of a zero; NaN are told apart by nothing."""
    for one, other in zip(arrays(wanted), arrays(found), strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"{one.dtype}{one.shape} and {other.dtype}{other.shape}"
        if not (_same_bits(one, other) | ((one != one) & (other != other))).all():
            return f"{one}\n and \n{other}"
    return None


def _same_bits(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> Any:
    """For each element whether all its bits are equal."""
    if not one.size:
        return np.ones(one.shape, bool)
    rows = [np.ascontiguousarray(each).reshape(-1).view(np.uint8).reshape(each.size, -1) for each in (one, other)]
    return (rows[0] == rows[1]).all(axis=1).reshape(one.shape)


def _equal(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    if one.dtype.kind in "biu" or one.size == 0:
        return bool((one == other).all())
    with np.errstate(all="ignore"):
        wide, others = (each.astype(np.complex128) for each in (one, other))
        finite = np.abs(wide[np.isfinite(wide)])
        size = TOLERANCE.get(one.dtype.itemsize, 0.3)
        return np.allclose(wide, others, rtol=size, atol=size * float(finite.max(initial=1e-30)), equal_nan=True)
