"""Python's operators on values: each records the op of `xbuild` that it spells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xbuild
from shape_inference import TupleShape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .builder import Value


class Operators:
    """The operators of a Value; == and != stay identity, since a value is also a key (`xb.eq`, `xb.ne` record)."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy arrays leave `array + value` to us

    def __add__(self, other: Any) -> Value:
        return xbuild.add(self, other)

    def __radd__(self, other: Any) -> Value:
        return xbuild.add(other, self)

    def __sub__(self, other: Any) -> Value:
        return xbuild.subtract(self, other)

    def __rsub__(self, other: Any) -> Value:
        return xbuild.subtract(other, self)

    def __mul__(self, other: Any) -> Value:
        return xbuild.multiply(self, other)

    def __rmul__(self, other: Any) -> Value:
        return xbuild.multiply(other, self)

    def __truediv__(self, other: Any) -> Value:
        return xbuild.divide(self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return xbuild.divide(other, self)

    def __mod__(self, other: Any) -> Value:
        return xbuild.remainder(self, other)

    def __rmod__(self, other: Any) -> Value:
        return xbuild.remainder(other, self)

    def __pow__(self, other: Any) -> Value:
        return xbuild.power(self, other)

    def __rpow__(self, other: Any) -> Value:
        return xbuild.power(other, self)

    def __matmul__(self, other: Any) -> Value:
        return xbuild.dot(self, other)

    def __rmatmul__(self, other: Any) -> Value:
        return xbuild.dot(other, self)

    def __and__(self, other: Any) -> Value:
        return xbuild.and_(self, other)

    def __rand__(self, other: Any) -> Value:
        return xbuild.and_(other, self)

    def __or__(self, other: Any) -> Value:
        return xbuild.or_(self, other)

    def __ror__(self, other: Any) -> Value:
        return xbuild.or_(other, self)

    def __xor__(self, other: Any) -> Value:
        return xbuild.xor(self, other)

    def __rxor__(self, other: Any) -> Value:
        return xbuild.xor(other, self)

    def __lt__(self, other: Any) -> Value:
        return xbuild.lt(self, other)

    def __le__(self, other: Any) -> Value:
        return xbuild.le(self, other)

    def __gt__(self, other: Any) -> Value:
        return xbuild.gt(self, other)

    def __ge__(self, other: Any) -> Value:
        return xbuild.ge(self, other)

    def __neg__(self: Any) -> Value:
        return xbuild.negate(self)

    def __abs__(self: Any) -> Value:
        return xbuild.abs(self)

    def __invert__(self: Any) -> Value:
        return xbuild.not_(self)

    def __getitem__(self: Any, index: Any) -> Value:
        return xbuild.index(self, index)

    def __iter__(self: Any) -> Iterator[Value]:
        if not isinstance(self.shape, TupleShape):
            raise TypeError(f"{self} is no tuple; its elements are not values of their own")
        return (xbuild.get_tuple_element(self, index=n) for n in range(len(self.shape)))

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self!r} has no truth value while the program is built; xb.select and xb.conditional decide at run time"
        )
