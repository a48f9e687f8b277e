"""Quantized values are their integers; an op on them is computed on the numbers that these stand for, and rounded back.

A value of a quantized type is an array of its storage type. Ops with regions, calls and ops that only arrange elements
take the integers as they are; what a region computes is read like everything else.
"""

from __future__ import annotations

import re
from functools import wraps
from typing import Any

import numpy as np

from shape_inference import PrimitiveType, Shape
from shape_inference.dims import limits

from ...core.graph import Instruction
from ..reading.operation import OperationReading
from ..reading.rules import RULES, Results, Rule, rule
from ..syntax.trees import QuantizedType, TensorType
from .dynamic import apply_rule

# ----------------------------------------------------------------------------
# The value itself outside of rules; dequantized operands and quantized results inside

_ON_INTEGERS = set(re.findall(
    r"\w+",
    """after_all all_gather all_to_all bitcast_convert broadcast broadcast_in_dim collective_broadcast
    collective_permute concatenate constant custom_call dynamic_broadcast_in_dim dynamic_gather dynamic_pad
    dynamic_reshape dynamic_slice dynamic_update_slice gather get_dimension_size get_tuple_element infeed
    optimization_barrier outfeed pad real_dynamic_slice recv reshape reverse select send slice transpose tuple""",
))  # fmt: skip
"""Ops that only rearrange elements, so that quantized elements of one type stay as they are."""


@rule("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize", "mhlo.uniform_quantize", "mhlo.uniform_dequantize")
def requantize(op: OperationReading) -> Results:
    """The value itself: the wrapper of every rule dequantizes operands and quantizes results."""
    return op.expect_operands(1)[0]


def _quantized_type(written: Any) -> QuantizedType | None:
    return written.element if isinstance(written, TensorType) and isinstance(written.element, QuantizedType) else None


def _expressed_type(written: Any) -> Any:
    """The expressed type of a quantized type; any other type unchanged."""
    element = _quantized_type(written)
    return written if element is None else Shape(element.expressed, written.dims)


def _on_quantized(name: str, inner: Rule) -> Rule:
    """The rule of an op, extended to quantized operands and results."""

    @wraps(inner)
    def outer(op: OperationReading) -> Results:
        written = op.operation
        types = (*written.operand_types, *written.result_types)
        if written.regions or not any(map(_quantized_type, types)):
            return inner(op)
        pairs = zip(op.operands, written.operand_types, strict=True)
        numbers = tuple([_dequantize(op, value, type_) for value, type_ in pairs])
        results = tuple([_expressed_type(type_) for type_ in written.result_types])
        found = apply_rule(op, name, numbers, results=results, by=inner)
        given = found if isinstance(found, tuple) else () if found is None else (found,)
        made = tuple([_quantize(op, v, t) for v, t in zip(given, written.result_types, strict=True)])
        return made[0] if len(made) == 1 else made

    return outer


def _dequantize(op: OperationReading, value: Instruction, written: Any) -> Instruction:
    """(integer - zero point) * scale, in the expressed type."""
    element = _quantized_type(written)
    if element is None:
        return value
    number = op.emit("convert", value, new_element_type=element.expressed)
    if any(element.zero_points):
        number = op.emit("subtract", number, _parameter_array(op, written, element.zero_points))
    return op.emit("multiply", number, _parameter_array(op, written, element.scales))


def _quantize(op: OperationReading, value: Instruction, written: Any) -> Instruction:
    """value / scale + zero point, clamped to the storage range and rounded to nearest, ties to even."""
    element = _quantized_type(written)
    if element is None:
        return value
    number = op.emit("divide", value, _parameter_array(op, written, element.scales))
    if any(element.zero_points):
        number = op.emit("add", number, _parameter_array(op, written, element.zero_points))
    low, high = element.storage_range or limits(element.storage)
    bounds = [op.emit("constant", literal=_scalar_literal(each, element.expressed)) for each in (low, high)]
    clamped = op.emit("clamp", bounds[0], number, bounds[1])
    return op.emit("convert", op.emit("round_nearest_even", clamped), new_element_type=element.storage)


def _parameter_array(op: OperationReading, written: Any, numbers: tuple[float, ...]) -> Instruction:
    """Scales or zero points as an array of the expressed type with the shape of the value."""
    element = written.element
    if element.dimension is None:
        one = op.emit("constant", literal=_scalar_literal(numbers[0], element.expressed))
        return op.emit("broadcast", one, sizes=written.dims, dimensions=())
    if not 0 <= element.dimension < len(written.dims) or written.dims[element.dimension] != len(numbers):
        op.fail(
            "dimension_mismatch",
            f"{written} has {len(numbers)} scales, but dimension {element.dimension} does not have that extent",
        )
    row = op.emit("constant", literal=np.array(numbers).astype(element.expressed.dtype))
    return op.emit("broadcast", row, sizes=written.dims, dimensions=(element.dimension,))


def _scalar_literal(number: float, dtype: PrimitiveType) -> Any:
    return np.array(number).astype(dtype.dtype)


for _name in [each for each in RULES if each.startswith(("stablehlo.", "mhlo.", "chlo."))]:
    if _name.partition(".")[2] not in _ON_INTEGERS:
        RULES[_name] = _on_quantized(_name, RULES[_name])
