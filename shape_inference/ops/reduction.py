"""Shape of reduce."""

from __future__ import annotations

from collections.abc import Sequence

from .. import dims
from ..dims import dynamic_of, wider
from ..rules import infer, refuse
from ..types import AnyShape, Dims, PrimitiveType, ProgramShape, Shape, TupleShape, array_shape


@infer
def reduce(
    operands: Sequence[AnyShape], init_values: Sequence[AnyShape], *, to_apply: ProgramShape, dimensions: Dims
) -> AnyShape:
    arrays = same_extents(operands, init_values)
    first = arrays[0]
    dims.dimensions("dimensions", dimensions, "operand", first)
    types = accumulators(to_apply, arrays, init_values)
    results = [_kept(each, dtype, dimensions) for each, dtype in zip(arrays, types, strict=True)]
    return TupleShape(results) if len(results) > 1 or isinstance(to_apply.result, TupleShape) else results[0]


def _kept(operand: Shape, dtype: PrimitiveType, dimensions: Dims) -> Shape:
    sizes = tuple([size for dim, size in enumerate(operand.dims) if dim not in dimensions])
    if not operand.dynamic:
        return array_shape(dtype, sizes)
    flags = dynamic_of(len(sizes), (flag for dim, flag in enumerate(operand.dynamic) if dim not in dimensions))
    return Shape(dtype, sizes, flags)


def same_extents(operands: Sequence[AnyShape], init_values: Sequence[AnyShape]) -> list[Shape]:
    """The operand shapes of a reduction: one or more arrays of the same extents, with one init value each."""
    if len(operands) != len(init_values):
        refuse(
            "arity_mismatch",
            f"expected one init value for each operand, got {len(operands)} operands and {len(init_values)} "
            "init_values",
        )
    return dims.alike(operands)


def accumulators(
    to_apply: ProgramShape, arrays: Sequence[Shape], init_values: Sequence[AnyShape], role: str = "to_apply"
) -> list[PrimitiveType]:
    """The accumulator type for each operand: its own or a wider float. Refuses a reducer of another signature."""
    if len(arrays) == 1 and init_values[0] is array_shape(arrays[0].dtype, ()):
        scalar = init_values[0]
        if to_apply.result is scalar and to_apply.parameters == (scalar, scalar):
            return [arrays[0].dtype]
    return _fitting(to_apply, arrays, init_values, role)


def _fitting(
    to_apply: ProgramShape, arrays: Sequence[Shape], init_values: Sequence[AnyShape], role: str
) -> list[PrimitiveType]:
    count = len(arrays)
    expected = signature([array_shape(each.dtype, ()) for each in arrays])
    dims.check_arity(role, to_apply, 2 * count, "a value and an init value for each operand")
    results = to_apply.result.elements if isinstance(to_apply.result, TupleShape) else (to_apply.result,)
    if len(results) != count:
        refuse(
            "signature_mismatch",
            f"{role} must return one value for each operand: expected {expected}, got {to_apply}",
        )
    for number, (operand, result) in enumerate(zip(arrays, results, strict=True)):
        parameters = (f"parameter {place} of {role}" for place in (number, number + count))
        labels = [f"the result of {role}", *parameters, "the init value"]
        shapes = [result, to_apply.parameters[number], to_apply.parameters[number + count], init_values[number]]
        for label, shape in zip(labels, shapes, strict=True):
            fits = _between(operand, shape, result) if label == "the init value" else _is_type(operand, shape, result)
            if not fits:
                refuse(
                    "signature_mismatch",
                    f"{label} is {shape}, but operand {operand} requires {role} to be {expected}, got {to_apply}",
                )
    return [result.dtype for result in results if isinstance(result, Shape)]


def signature(scalars: Sequence[AnyShape]) -> ProgramShape:
    """The signature of a reducer of scalars of these shapes."""
    return ProgramShape((*scalars, *scalars), scalars[0] if len(scalars) == 1 else TupleShape(scalars))


def _is_type(operand: Shape, shape: AnyShape, result: AnyShape) -> bool:
    """Whether a parameter has the reducer's result type, which is the operand's type or a wider float."""
    same = isinstance(shape, Shape) and isinstance(result, Shape) and shape.dtype is result.dtype
    return same and _between(operand, shape, result)


def _between(operand: Shape, shape: AnyShape, result: AnyShape) -> bool:
    """Whether a shape is a scalar of a type from the operand's element type up to the reducer's result type."""
    if not isinstance(shape, Shape) or shape.dims or not isinstance(result, Shape):
        return False
    return _widens(operand.dtype, shape.dtype) and _widens(shape.dtype, result.dtype)


def _widens(narrow: PrimitiveType, wide: PrimitiveType) -> bool:
    return narrow is wide or (narrow.is_float and wide.is_float and wider(narrow, wide) is wide)
