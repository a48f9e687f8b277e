"""Wraps a decomposition of one batch of matrices: checks operands, flattens batch dimensions, converts narrow types."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

from shape_inference import COMPONENT, PRIMITIVES, Dims, PrimitiveType, Shape, f32, refuse
from shape_inference.dims import array, element_type, same_type

from .. import ops
from ..core.builder import Value
from ..derived.support.arguments import shape_of
from ..derived.tuples import tuple_

Formula: TypeAlias = Callable[..., Any]

_ALLOWED = frozenset(each for each in PRIMITIVES.values() if each.kind in ("float", "complex"))


def recorded(formula: Formula, operands: dict[str, tuple[Value, int]], name: str | None, **options: Any) -> Value:
    """Record a call of a formula, which is traced once for each shape and each set of options.

    Each operand comes with the number of its matrix or vector dimensions, its last ones. The dimensions before them are
    the batch, which is the same for all operands; the formula takes the batch as one dimension.
    """
    shapes = [_checked(role, shape_of(value), own) for role, (value, own) in operands.items()]
    roles, batch = list(operands), _batch(shapes[0], next(iter(operands.values()))[1])
    for role, shape in zip(roles[1:], shapes[1:], strict=True):
        same_type(roles[0], shapes[0], role, shape)
        if _batch(shape, operands[role][1]) != batch:
            refuse("dimension_mismatch", f"{roles[0]} is {shapes[0]}, {role} is {shape}: their batch dimensions differ")
    region = _region(formula, len(batch), tuple(sorted(options.items())))
    return ops.call([value for value, _ in operands.values()], to_apply=region, name=name)


def matrix(role: str, operand: Value) -> Shape:
    """The shape of an operand, which must be a matrix or a batch of matrices."""
    return _checked(role, shape_of(operand), 2)


def square(role: str, operand: Value) -> None:
    shape = matrix(role, operand)
    if shape.dims[-1] != shape.dims[-2]:
        refuse(
            "dimension_mismatch",
            f"{role} is {shape}: its last dimensions, {shape.dims[-2]} and {shape.dims[-1]}, are not equal",
        )


def _checked(role: str, found: Any, own: int) -> Shape:
    shape = array(role, found)
    element_type(role, shape, _ALLOWED, "a float or complex")
    if shape.rank < own:
        refuse("rank_too_small", f"{role} is {shape} of rank {shape.rank}; at least {own} is wanted")
    if shape.dynamic:
        refuse("dimension_mismatch", f"{role} is {shape}: a decomposition needs extents that are known, not bounds")
    return shape


def _batch(shape: Shape, own: int) -> Dims:
    return shape.dims[: shape.rank - own]


@functools.cache
def _region(formula: Formula, rank: int, options: tuple[tuple[str, Any], ...]) -> Formula:
    """The computation of a formula; it is cached by the options, so that a builder traces each one once."""

    @functools.wraps(formula)
    def region(*operands: Value) -> Value:
        shapes = [array("operand", operand.shape) for operand in operands]
        batch, dtype = shapes[0].dims[:rank], shapes[0].dtype
        flat = [
            ops.reshape(_in_type(operand, _computed(dtype)), new_sizes=(math.prod(batch), *shape.dims[rank:]))
            for operand, shape in zip(operands, shapes, strict=True)
        ]
        found = formula(*flat, **dict(options))
        results = found if isinstance(found, tuple) else (found,)
        whole = [_unfolded(result, batch, dtype) for result in results]
        return tuple_(whole) if isinstance(found, tuple) else whole[0]

    del region.__wrapped__  # the signature of the formula has the options
    return region


def _unfolded(result: Value, batch: Dims, dtype: PrimitiveType) -> Value:
    """A result with the batch dimensions restored, converted to the operands' type or its real component type."""
    shape = array("result", result.shape)
    wanted = dtype if shape.dtype.kind == dtype.kind else COMPONENT.get(dtype, shape.dtype)
    value = result if shape.dtype.is_integer else _in_type(result, wanted)
    return ops.reshape(value, new_sizes=(*batch, *shape.dims[1:]))


def _computed(dtype: PrimitiveType) -> PrimitiveType:
    return f32 if dtype.bits < 32 else dtype


def _in_type(value: Value, dtype: PrimitiveType) -> Value:
    return value if array("value", value.shape).dtype is dtype else ops.convert(value, new_element_type=dtype)
