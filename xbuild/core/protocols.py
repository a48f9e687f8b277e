"""Python's and NumPy's protocols on values: those that the shape answers work, others are refused with a way out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from attrs import frozen

from shape_inference import AnyShape, Shape, TupleShape

from .diagnostics import MissingAttributeError, ValueUseError, caller, dressed_text
from .hooks import forms
from .numpy_names import RECORDED, attribute_hint, way_out

if TYPE_CHECKING:
    from .builder import Value

_FOLD = "x.sum(axis=0), x.max(), x.min(), x.any() and x.all() fold them; xb.reduce(x, 0, xb.add) is a sum, too"
_NUMBERS = "xb.evaluate(builder.build(x), ...) gives the number of a run"
_NUMBER = f"x.astype(dtype), which is xb.convert, changes the element type; {_NUMBERS}"


def refusal(
    spelling: str, value: Any, kind: str, message: str, *hints: str, error_class: type[ValueUseError] = ValueUseError
) -> ValueUseError:
    """The error of a protocol that a value does not support, with its shape, its name and the user's line."""
    rows = [("value", f"{value.shape}  %{value.name}")]
    error = error_class(kind, dressed_text(f"{spelling}: {message} [{kind}]", rows, caller(), hints), hints)
    error.message, error.explained = message, True
    return error


def missing_attribute(value: Any, name: str) -> ValueUseError:
    """The error of an attribute that a value does not have, with the form that does the same."""
    message, hint = f"a Value has no attribute {name!r}", attribute_hint(name)
    if not isinstance(value.shape, Shape):
        message += f": the value is {value.shape}, and no array"
    elif value.shape.is_dynamic:
        message += f", since {value.shape} has a dynamic dimension"
    return refusal(f"x.{name}", value, "not_concrete", message, *hint, error_class=MissingAttributeError)


@frozen
class _Refused:
    """A special method that a value refuses."""

    spelling: str
    message: str
    hints: tuple[str, ...]
    kind: str = "not_concrete"


def _wanted(what: str) -> str:
    return f"{what} is wanted now, and the value has none until the program runs"


_REFUSED = {
    "__bool__": _Refused(
        "bool", _wanted("a truth value"),
        (
            "for `if` and `while`: xb.select(pred, x, y) chooses elements, xb.conditional(pred, x, on_true, y, "
            "on_false) a branch, and xb.while_(init, condition, body) repeats",
            "and, or and not of preds are &, | and ~; a < x < b is (a < x) & (x < b); min and max are xb.minimum and "
            "xb.maximum",
            "`x is y` tells whether two names stand for one value; `in`, index and remove of a list compare by ==",
        ),
    ),
    "__contains__": _Refused(
        "in", _wanted("whether it contains something"), ("(x == item).any() tells at run time",)
    ),
    "__int__": _Refused("int", _wanted("an int"), (_NUMBER,)),
    "__float__": _Refused(
        "float", _wanted("a number"), ("xb.exp, xb.sqrt, xb.floor and so on are those of math", _NUMBER)
    ),
    "__complex__": _Refused("complex", _wanted("a number"), ("xb.complex(real, imag) makes complex elements", _NUMBER)),
    "__index__": _Refused(
        "index", _wanted("an int"),
        (
            "x[n] and xb.dynamic_slice take a scalar value as a start, and xb.while_ repeats as often as one says",
            "extents are known: x.shape.dims",
        ),
    ),
    "__round__": _Refused(
        "round", _wanted("a number"),
        ("xb.round_nearest_even rounds as Python does, xb.round_nearest_afz half away from zero",),
    ),
    "__floor__": _Refused("floor", _wanted("an int"), ("xb.floor(x) records it",)),
    "__ceil__": _Refused("ceil", _wanted("an int"), ("xb.ceil(x) records it",)),
    "__trunc__": _Refused("trunc", _wanted("an int"), ("xb.convert(x, xb.s32) cuts towards zero",)),
    "__divmod__": _Refused(
        "divmod", "% is the remainder of a division towards zero, and // is floored: they are no pair",
        ("q = x // y and x - q * y are Python's pair, xb.divide and xb.remainder XLA's",), "invalid_operand",
    ),
    "__setitem__": _Refused(
        "x[...] = y", "a value is never changed",
        (
            "xb.dynamic_update_slice(x, y, starts) gives x with y in it: x[0] = y of a matrix is "
            "x = xb.dynamic_update_slice(x, y, [0, 0]) with a y of one row, which may be a list; xb.scatter updates "
            "many places, xb.select(pred, y, x) those that a pred chooses",
        ),
        "immutable",
    ),
    "__delitem__": _Refused(
        "del x[...]", "a value is never changed", ("xb.slice and xb.concatenate give the elements that are left",),
        "immutable",
    ),
    "__delattr__": _Refused("del x.name", "a value is never changed", (), "immutable"),
    "__array__": _Refused(
        "numpy.asarray", _wanted("an array"),
        (
            "x is a value already: ops take it as it is",
            "xb.evaluate(computation, ...) gives arrays of NumPy",
        ),
    ),
}  # fmt: skip
_REFUSED["__rdivmod__"] = _REFUSED["__divmod__"]


def _refusing(refused: _Refused) -> Callable[..., NoReturn]:
    def method(self: Any, *arguments: Any, **keywords: Any) -> NoReturn:
        raise refusal(refused.spelling, self, refused.kind, refused.message, *refused.hints)

    return method


class Protocols:
    """The special methods of a value for Python's statements and functions, and for NumPy's."""

    __slots__ = ()

    def __len__(self: Any) -> int:
        shape: AnyShape = self.shape
        if isinstance(shape, TupleShape):
            return len(shape)
        if not isinstance(shape, Shape) or not shape.dims:
            raise refusal("len", self, "rank_too_small", f"{shape} has no dimensions")
        if shape.dynamic and shape.dynamic[0]:
            hint = "xb.get_dimension_size(x, dimension=0) is the extent of the run"
            raise refusal("len", self, "not_concrete", f"{shape} has a dynamic dimension 0", hint)
        return shape.dims[0]

    def __iter__(self: Any) -> Iterator[Value]:
        elements: list[Value] = self._elements("iter", "x[n] is a part of it, xb.scan and xb.while_ go through them")
        return iter(elements)

    def __reversed__(self: Any) -> Iterator[Value]:
        elements: list[Value] = self._elements("reversed", "xb.rev(x, dimensions) turns it round")
        return reversed(elements)

    def _elements(self: Any, spelling: str, hint: str) -> list[Value]:
        """The elements of a tuple, each a value."""
        if not isinstance(self.shape, TupleShape):
            message = f"the value is {self.shape} and no tuple; its elements are not values of their own"
            raise refusal(spelling, self, "not_tuple", message, hint, _FOLD)
        return [forms.get_tuple_element(self, index=n) for n in range(len(self.shape))]

    def __format__(self, spec: str) -> str:
        if spec:
            hint = "{x!s:>20} formats its name and shape as text"
            raise refusal(f"format {spec!r}", self, "not_concrete", _wanted("a number"), _NUMBERS, hint)
        return str(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Record operators such as `array + value`, which NumPy passes on as calls of ufuncs; refuse other ufuncs."""
        name = ufunc.__name__
        if method == "__call__" and not keywords and name in RECORDED:
            return RECORDED[name](*map(_scalar, inputs))
        spelling = name if method == "__call__" else f"{name}.{method}"
        hint = "y = array + x gives a value" if "out" in keywords else way_out(name, method)
        raise refusal(f"numpy.{spelling}", self, "not_concrete", _wanted("an array"), hint)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> NoReturn:
        name = function.__name__
        raise refusal(f"numpy.{name}", self, "not_concrete", _wanted("an array"), way_out(name))


def _scalar(operand: Any) -> Any:
    """A NumPy scalar for an array of rank 0, which NumPy makes of its scalars to compare them."""
    return operand[()] if isinstance(operand, np.ndarray) and not operand.ndim else operand


def _set_nothing(self: Any, name: str, value: Any) -> NoReturn:
    hint = "name= and xb.scope name an op as it is recorded; ops such as xb.reshape and xb.convert give new values"
    raise refusal(f"x.{name} = ...", self, "immutable", "a value is never changed", hint)


# These methods are set at run time, since type checkers would take their definitions as support of the protocol.
setattr(Protocols, "__setattr__", _set_nothing)  # noqa: B010
for _name, _refused in _REFUSED.items():
    setattr(Protocols, _name, _refusing(_refused))
