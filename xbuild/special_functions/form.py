"""Wraps a formula as a public function: operands are broadcast and checked, and the formula is called by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from shape_inference import PRIMITIVES, PrimitiveType, Shape, bf16, f16, f32, f64, refuse
from shape_inference.dims import array, element_type, same_type

from .. import ops
from ..core.builder import Value
from ..derived.support import align_operands, as_values, dressed, shape_of

FLOATS = frozenset(each for each in PRIMITIVES.values() if each.is_float)
IEEE = frozenset({bf16, f16, f32, f64})


def special(formula: Callable[..., Value]) -> Callable[..., Value]:
    """Wrap a formula for f32 and f64 as a function of all floats: narrower types are computed in f32 and rounded once.

    The function records a call of a computation with the formula's name, which is traced once for each shape. Operands
    are broadcast as in xb.add. Raises element_type_unsupported for a type that is not a float, element_type_mismatch
    for operands of different types.
    """

    @functools.wraps(formula)
    def region(*operands: Value) -> Value:
        dtype = _dtype(operands[0])
        wide = f32 if dtype.bits < 32 else dtype
        result = formula(*(_in_type(operand, wide) for operand in operands))
        return _in_type(result, dtype)

    return _form(formula, region, FLOATS, "a float")


def on_bits(formula: Callable[..., Value]) -> Callable[..., Value]:
    """Wrap a formula on the bits of floats as a function of the types in IEEE 754's format; otherwise as `special`."""
    return _form(formula, formula, IEEE, "one of bf16, f16, f32, f64")


def _form(
    formula: Callable[..., Value], region: Callable[..., Value], allowed: frozenset[PrimitiveType], words: str
) -> Callable[..., Value]:
    signature = inspect.signature(formula)
    wanted = tuple(signature.parameters)

    @dressed
    @functools.wraps(formula)
    def form(*given: Any, name: str | None = None, **named: Any) -> Value:
        values = _operands(signature.bind(*given, **named).args)
        for operand, value in zip(wanted, values, strict=True):
            element_type(operand, array(operand, shape_of(value)), allowed, words)
        first = array(wanted[0], values[0].shape)
        for operand, value in zip(wanted[1:], values[1:], strict=True):
            same_type(wanted[0], first, operand, array(operand, value.shape))
        return ops.call(values, to_apply=region, name=name)

    last = inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="str | None")
    form.__signature__ = signature.replace(parameters=[*signature.parameters.values(), last])  # type: ignore[attr-defined]
    return form


def _operands(given: tuple[Any, ...]) -> list[Value]:
    """The operands as values, broadcast to the same extents."""
    values = as_values(given)
    model = values[0]
    for value in values[1:]:
        model = align_operands(model, value, None)[0]
    return [align_operands(value, model, None)[0] for value in values]


def _dtype(value: Value) -> PrimitiveType:
    if not isinstance(value.shape, Shape):
        refuse("not_array", f"operand is {value.shape}; expected an array")
    return value.shape.dtype


def _in_type(value: Value, dtype: PrimitiveType) -> Value:
    return value if _dtype(value) is dtype else ops.convert(value, new_element_type=dtype)
