"""Arguments of a call: integers, sequences, element types and arrays, refused as TensorFlow refuses them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from attrs import frozen

from shape_inference import PrimitiveType, Shape, XbuildError, primitive_type

from ..core.builder import Value
from ..core.diagnostics import caller, dressed_text
from ..derived.support import literal

# ----------------------------------------------------------------------------
# Errors: those of TensorFlow's Python types, with the user's line.


class TpuError(XbuildError):
    """Refuses a call of `xb.tpu`; a ValueError, as TensorFlow raises."""


class TpuTypeError(TpuError, TypeError):
    """Refuses a call of `xb.tpu` for which TensorFlow raises TypeError."""


class TpuNestingError(TpuError, NotImplementedError):
    """Refuses nested use for which TensorFlow raises NotImplementedError."""


def refuse(
    kind: str, message: str, *hints: str, error: type[TpuError] = TpuError, given: dict[str, object] | None = None
) -> NoReturn:
    """Raise an error with the arguments, the user's line and hints."""
    rows = [(label, _shorten(value)) for label, value in (given or {}).items()]
    raised = error(kind, dressed_text(f"{message} [{kind}]", rows, caller(), hints), hints)
    raised.message, raised.explained = message, True
    raise raised


def _shorten(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


# ----------------------------------------------------------------------------
# Arguments read as integers, sequences, element types and functions.


def read_integer(what: str, given: Any) -> int:
    """Read an argument as an int; otherwise raise invalid_attribute (TypeError)."""
    try:
        return operator.index(given)
    except TypeError:
        refuse("invalid_attribute", f"{what}: expected an integer, got {given!r}", error=TpuTypeError)


def read_sequence(what: str, given: Any, of: str) -> Sequence[Any]:
    """Read an argument as a list or a tuple; otherwise raise invalid_attribute (TypeError)."""
    items = getattr(given, "dims", given)
    if hasattr(items, "tolist"):
        items = items.tolist()
    if not isinstance(items, list | tuple):
        refuse("invalid_attribute", f"{what}: expected a list of {of}, got {given!r}", error=TpuTypeError)
    return items


def read_integers(what: str, given: Any) -> list[int]:
    """Read an argument as a list of ints; otherwise raise invalid_attribute (TypeError)."""
    return [read_integer(f"entry {n} of {what}", each) for n, each in enumerate(read_sequence(what, given, "integers"))]


def read_extents(what: str, given: Any) -> tuple[int, ...]:
    """Read an argument as the extents of a shape; raise invalid_attribute for other types or negative extents."""
    sizes = tuple(read_integers(what, given))
    if any(size < 0 for size in sizes):
        refuse("invalid_attribute", f"{what} is {list(sizes)}; expected extents of at least 0")
    return sizes


def read_element_type(what: str, given: Any) -> PrimitiveType:
    """Read an argument as an element type; otherwise raise invalid_attribute (TypeError)."""
    try:
        return primitive_type(given)
    except (TypeError, ValueError):
        refuse(
            "invalid_attribute",
            f"{what}: expected an element type, got {given!r}",
            "pass an element type such as xb.f32 or np.float32",
            error=TpuTypeError,
        )


def check_callable(what: str, given: Any) -> Any:
    """Return an argument that can be called; otherwise raise invalid_operand (TypeError)."""
    if not callable(given):
        refuse(
            "invalid_operand",
            f"{what}: expected a function, got {given!r}",
            "pass the function itself, without calling it",
            error=TpuTypeError,
        )
    return given


# ----------------------------------------------------------------------------
# Inputs as arrays: Python numbers in TensorFlow's default types, arrays in their own; or shapes without data.


@frozen(eq=False)
class Placeholder:
    """An input whose static shape is partly unknown: `shape` has None for unknown extents."""

    value: np.ndarray[Any, Any]
    shape: tuple[int | None, ...]


def placeholder_with_default(input: Any, shape: Sequence[int | None]) -> Placeholder:
    """An input of which only some extents are known before the run; None marks an unknown one.

    Raises shape_mismatch if the known extents differ from those of the array.

    >>> import xbuild as xb
    >>> xb.tpu.placeholder_with_default([7], [None]).shape
    (None,)

    Source: tf.compat.v1.placeholder_with_default.
    """
    value = as_array(input)
    wanted = tuple(read_sequence("placeholder_with_default: shape", shape, "extents and None"))
    fits = len(wanted) == value.ndim and all(w in (None, n) for w, n in zip(wanted, value.shape, strict=False))
    if not fits:
        refuse(
            "shape_mismatch", f"the static shape {list(wanted)} does not match an array of shape {list(value.shape)}"
        )
    return Placeholder(value, wanted)


def as_array(leaf: Any, what: str = "an input") -> np.ndarray[Any, Any]:
    """A leaf as an array: a Python int, float or bool becomes s32, f32 or pred; an array keeps its type."""
    if type(leaf) is np.ndarray and leaf.dtype.kind in "biufcV":
        return leaf
    if isinstance(leaf, Placeholder):
        return leaf.value
    if isinstance(leaf, Value):
        refuse(
            "nested_replicate",
            f"{what} is %{leaf.name}, a value of a computation being traced: TPU computations cannot be nested",
            "call the function itself instead of replicate, shard or rewrite",
        )
    if hasattr(leaf, "__array__"):  # np.float64(1) is also a Python float, but keeps its type
        leaf = np.asarray(leaf)
    try:
        array = literal(leaf)
        primitive_type(array.dtype)
    except (TypeError, ValueError):
        refuse("invalid_operand", f"{what}: expected an array or a number, got {leaf!r}", error=TpuTypeError)
    return array


def shape_of(leaf: Any) -> Shape:
    """The shape of a leaf: the leaf itself if it is a shape, otherwise that of its array."""
    if isinstance(leaf, Shape):
        return leaf
    if isinstance(leaf, PrimitiveType):
        return leaf[()]
    array = as_array(leaf)
    return primitive_type(array.dtype)[array.shape]


def is_shape(leaf: Any) -> bool:
    """Whether an input is only a shape, for a program built without data."""
    return isinstance(leaf, Shape | PrimitiveType)
