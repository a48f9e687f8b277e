"""Python's operators on values: each records an op of `xbuild`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shape_inference import Shape

from .hooks import forms
from .protocols import refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from .builder import Value


class Operators:
    """The operators of a Value; each records an elementwise op.

    `==` and `!=` record compare, as `<` does. A value is hashed by identity, so that it can be a key: no two that are
    alive have one hash, and dicts and sets, which compare keys of one hash alone, never record anything. `x is y` tells
    whether two names stand for one value. `/` and `%` are XLA's divide and remainder (integers are cut towards zero, a
    remainder has the sign of the dividend), `//` is NumPy's and JAX's floor_divide, `>>` shifts signed integers
    arithmetically and unsigned ones logically. `+=` and its like give the name a new value. What Python asks beyond
    that, such as a truth value, `xbuild.core.protocols` refuses.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Value:
        return forms.add(self, other)

    def __radd__(self, other: Any) -> Value:
        return forms.add(other, self)

    def __sub__(self, other: Any) -> Value:
        return forms.subtract(self, other)

    def __rsub__(self, other: Any) -> Value:
        return forms.subtract(other, self)

    def __mul__(self, other: Any) -> Value:
        return forms.multiply(self, other)

    def __rmul__(self, other: Any) -> Value:
        return forms.multiply(other, self)

    def __truediv__(self, other: Any) -> Value:
        return forms.divide(self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return forms.divide(other, self)

    def __floordiv__(self, other: Any) -> Value:
        return forms.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Value:
        return forms.floor_divide(other, self)

    def __mod__(self, other: Any) -> Value:
        return forms.remainder(self, other)

    def __rmod__(self, other: Any) -> Value:
        return forms.remainder(other, self)

    def __pow__(self, other: Any, modulus: Any = None) -> Value:
        if modulus is not None:
            raise refusal("pow", self, "invalid_operand", "no op has a modulus", "xb.remainder(x ** y, m) records both")
        return forms.power(self, other)

    def __rpow__(self, other: Any) -> Value:
        return forms.power(other, self)

    def __matmul__(self, other: Any) -> Value:
        return forms.dot(self, other)

    def __rmatmul__(self, other: Any) -> Value:
        return forms.dot(other, self)

    def __and__(self, other: Any) -> Value:
        return forms.and_(self, other)

    def __rand__(self, other: Any) -> Value:
        return forms.and_(other, self)

    def __or__(self, other: Any) -> Value:
        return forms.or_(self, other)

    def __ror__(self, other: Any) -> Value:
        return forms.or_(other, self)

    def __xor__(self, other: Any) -> Value:
        return forms.xor(self, other)

    def __rxor__(self, other: Any) -> Value:
        return forms.xor(other, self)

    def __lshift__(self, other: Any) -> Value:
        return forms.shift_left(self, other)

    def __rlshift__(self, other: Any) -> Value:
        return forms.shift_left(other, self)

    def __rshift__(self, other: Any) -> Value:
        return _right_shift(self)(self, other)

    def __rrshift__(self, other: Any) -> Value:
        return _right_shift(self)(other, self)

    def __eq__(self, other: Any) -> Value:  # type: ignore[override]
        return forms.eq(self, other)

    def __ne__(self, other: Any) -> Value:  # type: ignore[override]
        return forms.ne(self, other)

    def __lt__(self, other: Any) -> Value:
        return forms.lt(self, other)

    def __le__(self, other: Any) -> Value:
        return forms.le(self, other)

    def __gt__(self, other: Any) -> Value:
        return forms.gt(self, other)

    def __ge__(self, other: Any) -> Value:
        return forms.ge(self, other)

    def __neg__(self: Any) -> Value:
        return forms.negate(self)

    def __pos__(self: Any) -> Value:
        if not isinstance(self.shape, Shape):
            raise refusal("+", self, "not_array", f"the operand is {self.shape}, and an array is wanted")
        return self  # type: ignore[no-any-return]

    def __abs__(self: Any) -> Value:
        return forms.abs(self)

    def __invert__(self: Any) -> Value:
        return forms.not_(self)

    def __getitem__(self: Any, index: Any) -> Value:
        return forms.index(self, index)


def _right_shift(value: Any) -> Callable[..., Value]:
    dtype = getattr(value.shape, "dtype", None)
    return forms.shift_right_arithmetic if dtype and dtype.kind == "signed" else forms.shift_right_logical
