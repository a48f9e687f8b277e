"""Python's operators on values, and the methods of NumPy's arrays: each records an op of `xbuild`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from shape_inference import PrimitiveType, Shape

from .hooks import forms
from .numpy_protocols import missing_attribute, refusal, warn_of_division, warn_of_ranks, warn_of_remainder

if TYPE_CHECKING:
    from collections.abc import Callable

    from .builder import Value


class Operators:
    """The operators of a Value; each records an elementwise op.

    `==` and `!=` record compare, as `<` does. A value is hashed by identity, so that it can be a key: no two that are
    alive have one hash, and dicts and sets, which compare keys of one hash alone, never record anything. `x is y` tells
    whether two names stand for one value. `/` and `%` are XLA's divide and remainder (integers are cut towards zero, a
    remainder has the sign of the dividend), `@` is its Dot, and a MeaningWarning says where NumPy's are others. `//` is
    NumPy's and JAX's floor_divide, `>>` shifts signed integers
    arithmetically and unsigned ones logically. `+=` and its like give the name a new value. What Python asks beyond
    that, such as a truth value, `xbuild.core.numpy_protocols` refuses.
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
        warn_of_division(self)
        return forms.divide(self, other)

    def __rtruediv__(self, other: Any) -> Value:
        warn_of_division(self)
        return forms.divide(other, self)

    def __floordiv__(self, other: Any) -> Value:
        return forms.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Value:
        return forms.floor_divide(other, self)

    def __mod__(self, other: Any) -> Value:
        warn_of_remainder(self)
        return forms.remainder(self, other)

    def __rmod__(self, other: Any) -> Value:
        warn_of_remainder(self)
        return forms.remainder(other, self)

    def __pow__(self, other: Any, modulus: Any = None) -> Value:
        if modulus is not None:
            raise refusal(
                "pow",
                self,
                "invalid_operand",
                "xb does not support powers with a modulus",
                "use xb.remainder(x ** y, m)",
            )
        return forms.power(self, other)

    def __rpow__(self, other: Any) -> Value:
        return forms.power(other, self)

    def __matmul__(self, other: Any) -> Value:
        warn_of_ranks(self, other)
        return forms.dot(self, other)

    def __rmatmul__(self, other: Any) -> Value:
        warn_of_ranks(other, self)
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
            raise refusal("+", self, "not_array", f"expected an array, got {self.shape}")
        return self  # type: ignore[no-any-return]

    def __abs__(self: Any) -> Value:
        return forms.abs(self)

    def __invert__(self: Any) -> Value:
        return forms.not_(self)

    def __getitem__(self: Any, index: Any) -> Value:
        return forms.index(self, index)


class Methods:
    """The attributes and methods of NumPy's arrays that a Value has; a method records the form that it names."""

    __slots__ = ()

    @property
    def dtype(self: Any) -> PrimitiveType:
        """The element type."""
        return _array(self, "dtype").dtype

    @property
    def ndim(self: Any) -> int:
        """The number of dimensions."""
        return _array(self, "ndim").rank

    @property
    def size(self: Any) -> int:
        """The number of elements."""
        shape = _array(self, "size")
        if shape.is_dynamic:
            raise AttributeError("size")
        return shape.size

    @property
    def T(self) -> Value:  # noqa: N802
        """The dimensions in the opposite order."""
        _array(self, "T")
        return forms.transpose(self)

    def transpose(self, *axes: Any) -> Value:
        """The dimensions in this order, reversed by default; as xb.transpose."""
        return forms.transpose(self, _as_list(axes) if axes else None)

    def swapaxes(self: Any, axis1: int, axis2: int) -> Value:
        """Two dimensions exchanged; as xb.swapaxes."""
        return forms.swapaxes(self, axis1, axis2)

    def reshape(self, *sizes: Any) -> Value:
        """The same elements with these extents, of which one may be -1; as xb.reshape."""
        return forms.reshape(self, _as_list(sizes))

    def ravel(self) -> Value:
        """All elements in one dimension."""
        return forms.reshape(self, (-1,))

    flatten = ravel

    def squeeze(self, axis: Any = None) -> Value:
        """Without the dimensions of extent 1, or without those that `axis` names; as xb.squeeze."""
        return forms.squeeze(self, axis)

    def astype(self, dtype: Any) -> Value:
        """Each element in another type, which may be xb.f32, numpy.float32 or 'float32'; as xb.convert."""
        return forms.convert(self, dtype)

    def sum(self, axis: Any = None, *, keepdims: bool = False) -> Value:
        """As xb.sum."""
        return forms.sum(self, axis, keepdims=keepdims)

    def prod(self, axis: Any = None, *, keepdims: bool = False) -> Value:
        """As xb.prod."""
        return forms.prod(self, axis, keepdims=keepdims)

    def mean(self, axis: Any = None, *, keepdims: bool = False) -> Value:
        """As xb.mean."""
        return forms.mean(self, axis, keepdims=keepdims)

    def var(self, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Value:
        """As xb.var."""
        return forms.var(self, axis, ddof=ddof, keepdims=keepdims)

    def std(self, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Value:
        """As xb.std."""
        return forms.std(self, axis, ddof=ddof, keepdims=keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Value:
        """As xb.amax."""
        return forms.amax(self, axis, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Value:
        """As xb.amin."""
        return forms.amin(self, axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Value:
        """As xb.argmax."""
        return forms.argmax(self, axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Value:
        """As xb.argmin."""
        return forms.argmin(self, axis, keepdims=keepdims)

    def any(self, axis: Any = None, *, keepdims: bool = False) -> Value:
        """As xb.any."""
        return forms.any(self, axis, keepdims=keepdims)

    def all(self, axis: Any = None, *, keepdims: bool = False) -> Value:
        """As xb.all."""
        return forms.all(self, axis, keepdims=keepdims)


def _missing(self: Any, name: str) -> NoReturn:
    if name.startswith("_"):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
    raise missing_attribute(self, name)


# Set at run time: type checkers would otherwise allow every attribute.
setattr(Methods, "__getattr__", _missing)  # noqa: B010


def _array(value: Any, name: str) -> Shape:
    """The shape of an array value; AttributeError for others, so that Python calls `__getattr__`."""
    if not isinstance(value.shape, Shape):
        raise AttributeError(name)
    return value.shape


def _as_list(arguments: tuple[Any, ...]) -> Any:
    """The list that is the one argument, or the arguments as a list."""
    return arguments[0] if len(arguments) == 1 and hasattr(arguments[0], "__iter__") else arguments


def _right_shift(value: Any) -> Callable[..., Value]:
    dtype = getattr(value.shape, "dtype", None)
    return forms.shift_right_arithmetic if dtype and dtype.kind == "signed" else forms.shift_right_logical
