"""Dual numbers, which differentiate a formula with respect to one variable: a value and its derivative."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from ..core.builder import Value
from ..derived.elementwise import select


@frozen(eq=False)
class Dual:
    """A value and its derivative; formulas can be applied to Value and to Dual."""

    value: Value
    slope: Value

    def __add__(self, other: Any) -> Dual:
        other = _dual(other)
        return Dual(self.value + other.value, _sum(self.slope, other.slope))

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slope)

    def __sub__(self, other: Any) -> Dual:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Dual:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> Dual:
        other = _dual(other)
        return Dual(self.value * other.value, _sum(self.slope * other.value, _times(self.value, other.slope)))

    def __truediv__(self, other: Any) -> Dual:
        other = _dual(other)
        quotient = self.value / other.value
        return Dual(quotient, (self.slope - (0 if other.slope is None else quotient * other.slope)) / other.value)

    def __rtruediv__(self, other: Any) -> Dual:
        quotient = other / self.value
        return Dual(quotient, -quotient * self.slope / self.value)

    __radd__ = __add__
    __rmul__ = __mul__


@frozen(eq=False)
class _Constant:
    value: Any
    slope: None = None


def _dual(number: Any) -> Any:
    return number if isinstance(number, Dual) else _Constant(number)


def _sum(slope: Value, other: Value | None) -> Value:
    return slope if other is None else slope + other


def _times(value: Value, slope: Value | None) -> Value | None:
    return None if slope is None else value * slope


def chosen(pred: Value, on_true: Any, on_false: Any) -> Any:
    """`select` for values and for duals."""
    if isinstance(on_true, Dual):
        return Dual(select(pred, on_true.value, on_false.value), select(pred, on_true.slope, on_false.slope))
    return select(pred, on_true, on_false)


def parts(number: Any) -> list[Value]:
    return [number.value, number.slope] if isinstance(number, Dual) else [number]
