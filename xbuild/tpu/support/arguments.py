"""Arguments of a call read as integers, sequences and element types; refused where they are none."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from shape_inference import PrimitiveType, primitive_type

from .refusals import TpuTypeError, refuse


def integer(what: str, given: Any) -> int:
    """An argument as an int; raises invalid_attribute (TypeError) for what is none."""
    try:
        return operator.index(given)
    except TypeError:
        refuse("invalid_attribute", f"{what} is {given!r}, and an integer is wanted", error=TpuTypeError)


def sequence(what: str, given: Any, of: str) -> Sequence[Any]:
    """An argument as a list or a tuple; raises invalid_attribute (TypeError) for what is none."""
    found = getattr(given, "dims", given)
    if hasattr(found, "tolist"):
        found = found.tolist()
    if not isinstance(found, list | tuple):
        refuse("invalid_attribute", f"{what} is {given!r}, and a list of {of} is wanted", error=TpuTypeError)
    return found


def integers(what: str, given: Any) -> list[int]:
    """An argument as a list of ints; raises invalid_attribute (TypeError) for what is none."""
    return [integer(f"entry {n} of {what}", each) for n, each in enumerate(sequence(what, given, "integers"))]


def extents(what: str, given: Any) -> tuple[int, ...]:
    """An argument as the extents of a shape; raises invalid_attribute for what is none or negative."""
    found = tuple(integers(what, given))
    if any(size < 0 for size in found):
        refuse("invalid_attribute", f"{what} is {list(found)}, and extents are 0 or more")
    return found


def element_type(what: str, given: Any) -> PrimitiveType:
    """An argument as an element type; raises invalid_attribute (TypeError) for what is none."""
    try:
        return primitive_type(given)
    except (TypeError, ValueError):
        refuse(
            "invalid_attribute",
            f"{what} is {given!r}, which is no element type",
            "xb.f32 and np.float32 name one",
            error=TpuTypeError,
        )


def callable_(what: str, given: Any) -> Any:
    """An argument that can be called; raises invalid_operand (TypeError) for what is none."""
    if not callable(given):
        refuse(
            "invalid_operand",
            f"{what} is {given!r}, and a function is wanted",
            "give the function itself, without calling it",
            error=TpuTypeError,
        )
    return given
