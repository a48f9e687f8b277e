"""Decision of conditions from the summary of a value: whether some element or every element meets them, where known."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from attrs import evolve, frozen

from ..traces import Summary


class Undecided(Exception):
    """Raised where the figures of a summary do not decide a condition."""


@frozen
class Mask:
    """Whether a condition holds for some element, and for every element; None where that is not known."""

    some: bool | None
    every: bool | None


@frozen
class Figures:
    """The figures of an array: the range of its finite elements, where it is known, and the counts of other elements.

    `low` and `high` are elements of the array; `is_real` is False where the array is complex.
    """

    low: float | None
    high: float | None
    mean: float | None
    nans: int
    infs: int
    size: int
    is_real: bool = True
    is_low_known: bool = True


def of(told: Summary) -> Figures:
    return Figures(told.low, told.high, told.mean, told.nans, told.infs, prod(told.dims), not told.type.startswith("c"))


def is_one(value: Any) -> bool:
    """Whether a value is known by figures alone."""
    return isinstance(value, Figures | Mask)


def call(name: str, given: Figures | Mask, _: Callable[[Any], Any]) -> Any:
    """The result of a function on a value that is known by figures; raises Undecided where they do not suffice."""
    if isinstance(given, Mask):
        if name not in ("any", "all", "max", "min"):
            raise Undecided
        return _decided(given.some if name in ("any", "max") else given.every)
    if name in _MASKS:
        return _MASKS[name](given)
    if name == "abs":
        return _magnitudes(given)
    if name in ("max", "min", "mean"):
        return _figure(name, given)
    raise Undecided


_MASKS: dict[str, Callable[[Figures], Mask]] = {
    "isnan": lambda told: Mask(told.nans > 0, told.nans == told.size),
    "isinf": lambda told: Mask(told.infs > 0, told.infs == told.size),
    "isfinite": lambda told: Mask(told.nans + told.infs < told.size, not told.nans + told.infs),
}


def _decided(value: bool | None) -> bool:
    if value is None:
        raise Undecided
    return value


def _figure(name: str, told: Figures) -> Any:
    """The largest element, the least or the mean; NaN if an element is; raises Undecided if one is infinite."""
    if told.nans:
        return np.nan
    found = {"max": told.high, "min": told.low if told.is_low_known else None, "mean": told.mean}[name]
    if told.infs or found is None or not told.is_real:
        raise Undecided
    return found


def _magnitudes(told: Figures) -> Figures:
    if told.low is None or told.high is None or not told.is_real:
        return evolve(told, is_real=True)
    ends = sorted((abs(told.low), abs(told.high)))
    is_one_sided = told.low >= 0 or told.high <= 0
    mean = abs(told.mean) if is_one_sided and told.mean is not None else None
    return evolve(told, low=ends[0], high=ends[1], mean=mean, is_low_known=told.is_low_known and is_one_sided)


def truth(value: Any) -> bool | None:
    """The truth of a mask in a Boolean expression: whether it holds for some element."""
    if not isinstance(value, Mask):
        raise Undecided
    return value.some


def negated(value: Any) -> bool:
    """`not` of a mask: whether the mask holds for no element."""
    return not _decided(truth(value))


_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


def compared(left: Any, how: str, right: Any) -> Mask:
    """The mask of the comparison of a value that is known by figures with a number."""
    if isinstance(right, Figures) and not is_one(left):
        left, how, right = right, _TURNED[how], left
    if not isinstance(left, Figures) or is_one(right) or np.ndim(right) or not left.is_real or right != right:
        raise Undecided
    if how in ("==", "!="):
        equal = _equal(left, float(right))
        return equal if how == "==" else Mask(_opposite(equal.every), _opposite(equal.some))
    return _ordered(left, how, float(right))


def _opposite(value: bool | None) -> bool | None:
    return None if value is None else not value


def _equal(told: Figures, number: float) -> Mask:
    """The mask of `== number`, from the ends of the range, which are elements; the other elements are unknown."""
    ends = [each for each in (told.low if told.is_low_known else None, told.high) if each is not None]
    if np.isinf(number):
        return Mask(None if told.infs else False, False if told.infs < told.size else None)
    outside = (
        told.high is None or number > told.high or (told.low is not None and told.is_low_known and number < told.low)
    )
    some = True if number in ends else False if outside else None
    is_all = told.low == told.high == number and told.is_low_known and not told.nans + told.infs
    others = told.nans + told.infs or any(each != number for each in ends)
    return Mask(some, True if is_all else False if others else None)


def _ordered(told: Figures, how: str, number: float) -> Mask:
    holds: Callable[[float], bool] = {
        "<": lambda x: x < number, "<=": lambda x: x <= number, ">": lambda x: x > number, ">=": lambda x: x >= number,
    }[how]  # fmt: skip
    upward = how[0] == ">"
    best, worst = (told.high, told.low) if upward else (told.low, told.high)
    known = {"best": upward or told.is_low_known, "worst": not upward or told.is_low_known}
    some: bool | None = best is not None and holds(best)
    if not some and (told.infs or not known["best"]):
        some = None
    every: bool | None = worst is None or holds(worst)
    if told.nans or (not every and known["worst"]):
        every = False
    elif told.infs or not known["worst"]:
        every = None
    return Mask(some, every)
