"""Inputs as arrays: Python numbers in TensorFlow's default types, arrays in their own; shapes in place of data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import PrimitiveType, Shape, primitive_type

from ...core.builder import Value
from ...derived.support.operands import literal
from .arguments import sequence
from .refusals import TpuTypeError, refuse


@frozen(eq=False)
class Placeholder:
    """An input whose static shape is partly unknown: `shape` has None for such a dimension."""

    value: np.ndarray[Any, Any]
    shape: tuple[int | None, ...]


def placeholder_with_default(input: Any, shape: Sequence[int | None]) -> Placeholder:
    """An input of which only these extents are known before the run; a None stands for one that is not.

    Raises shape_mismatch where the known extents are not those of the array.

    >>> import xbuild as xb
    >>> xb.tpu.placeholder_with_default([7], [None]).shape
    (None,)

    Source: tf.compat.v1.placeholder_with_default.
    """
    value = as_array(input)
    wanted = tuple(sequence("placeholder_with_default: shape", shape, "extents and None"))
    fits = len(wanted) == value.ndim and all(w in (None, n) for w, n in zip(wanted, value.shape, strict=False))
    if not fits:
        refuse("shape_mismatch", f"the static shape {list(wanted)} does not hold an array of {list(value.shape)}")
    return Placeholder(value, wanted)


def as_array(leaf: Any, what: str = "an input") -> np.ndarray[Any, Any]:
    """A leaf as an array: a Python int, float or bool as s32, f32 or pred, an array as it is."""
    if type(leaf) is np.ndarray and leaf.dtype.kind in "biufcV":
        return leaf
    if isinstance(leaf, Placeholder):
        return leaf.value
    if isinstance(leaf, Value):
        refuse(
            "nested_replicate",
            f"{what} is %{leaf.name}, a value of a computation that is traced: TPU computations cannot be nested",
            "call the function itself, in place of replicate, shard or rewrite",
        )
    if hasattr(leaf, "__array__"):  # np.float64(1) is a Python float, too, and keeps its type
        leaf = np.asarray(leaf)
    try:
        found = literal(leaf)
        primitive_type(found.dtype)
    except (TypeError, ValueError):
        refuse("invalid_operand", f"{what} is {leaf!r}, and an array or a number is wanted", error=TpuTypeError)
    return found


def shape_of(leaf: Any) -> Shape:
    """The shape of a leaf: of a shape itself, or of the array that it stands for."""
    if isinstance(leaf, Shape):
        return leaf
    if isinstance(leaf, PrimitiveType):
        return leaf[()]
    array = as_array(leaf)
    return primitive_type(array.dtype)[array.shape]


def is_shape(leaf: Any) -> bool:
    """Whether only the shape of an input is given, for a program that is built without data."""
    return isinstance(leaf, Shape | PrimitiveType)
