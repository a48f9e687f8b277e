"""Building blocks of decompositions: the wrapper of one, products, masks, columns and loops on batches of matrices."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from shape_inference import COMPONENT, PRIMITIVES, Dims, PrimitiveType, Shape, f32, f64, refuse, s32
from shape_inference.dims import array, element_type, same_type

from .. import ops
from ..core.builder import Value
from ..derived.contraction import dot_general
from ..derived.control_flow import while_
from ..derived.elementwise import conj as conjugate
from ..derived.elementwise import select
from ..derived.reduction import reduce
from ..derived.shaping import broadcast_in_dim, reshape, transpose
from ..derived.slicing import dynamic_slice
from ..derived.support import as_value, shape_of
from ..derived.tuples import tuple_

# ----------------------------------------------------------------------------
# Wraps a decomposition of one batch of matrices: checks operands, flattens batch dimensions, converts narrow types.

Formula: TypeAlias = Callable[..., Any]

_ALLOWED = frozenset(each for each in PRIMITIVES.values() if each.kind in ("float", "complex"))


def record_call(formula: Formula, operands: dict[str, tuple[Value, int]], name: str | None, **options: Any) -> Value:
    """Record a call of a formula, which is traced once for each shape and each set of options.

    Each operand comes with the number of its matrix or vector dimensions, its last ones. The dimensions before them are
    the batch, which is the same for all operands; the formula takes the batch as one dimension.
    """
    shapes = [_check_matrix(role, shape_of(value), own) for role, (value, own) in operands.items()]
    roles, batch = list(operands), _batch(shapes[0], next(iter(operands.values()))[1])
    for role, shape in zip(roles[1:], shapes[1:], strict=True):
        same_type(roles[0], shapes[0], role, shape)
        if _batch(shape, operands[role][1]) != batch:
            refuse(
                "dimension_mismatch",
                f"{roles[0]} is {shapes[0]} and {role} is {shape}, but their batch dimensions must be equal",
            )
    region = _region(formula, len(batch), tuple(sorted(options.items())))
    return ops.call([value for value, _ in operands.values()], to_apply=region, name=name)


def matrix(role: str, operand: Value) -> Shape:
    """The shape of an operand, which must be a matrix or a batch of matrices."""
    return _check_matrix(role, shape_of(operand), 2)


def square(role: str, operand: Value) -> None:
    shape = matrix(role, operand)
    if shape.dims[-1] != shape.dims[-2]:
        refuse(
            "dimension_mismatch",
            f"{role} is {shape}; expected a square matrix, but its last two dimensions are {shape.dims[-2]} and "
            f"{shape.dims[-1]}",
        )


def _check_matrix(role: str, found: Any, own: int) -> Shape:
    shape = array(role, found)
    element_type(role, shape, _ALLOWED, "a float or complex")
    if shape.rank < own:
        refuse("rank_too_small", f"{role} is {shape} of rank {shape.rank}; expected rank {own} or more")
    if shape.dynamic:
        refuse("dimension_mismatch", f"{role} is {shape}: a decomposition needs static extents, not bounds")
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
            ops.reshape(_convert_type(operand, _compute_type(dtype)), new_sizes=(math.prod(batch), *shape.dims[rank:]))
            for operand, shape in zip(operands, shapes, strict=True)
        ]
        found = formula(*flat, **dict(options))
        results = found if isinstance(found, tuple) else (found,)
        whole = [_restore_batch(result, batch, dtype) for result in results]
        return tuple_(whole) if isinstance(found, tuple) else whole[0]

    del region.__wrapped__  # the signature of the formula has the options
    return region


def _restore_batch(result: Value, batch: Dims, dtype: PrimitiveType) -> Value:
    """A result with the batch dimensions restored, converted to the operands' type or its real component type."""
    shape = array("result", result.shape)
    wanted = dtype if shape.dtype.kind == dtype.kind else COMPONENT.get(dtype, shape.dtype)
    value = result if shape.dtype.is_integer else _convert_type(result, wanted)
    return ops.reshape(value, new_sizes=(*batch, *shape.dims[1:]))


def _compute_type(dtype: PrimitiveType) -> PrimitiveType:
    return f32 if dtype.bits < 32 else dtype


def _convert_type(value: Value, dtype: PrimitiveType) -> Value:
    return value if array("value", value.shape).dtype is dtype else ops.convert(value, new_element_type=dtype)


# ----------------------------------------------------------------------------
# Building blocks of algorithms on a batch of matrices: products, masks, columns, loops.


def dims_of(x: Value) -> Dims:
    return array("operand", x.shape).dims


def dtype_of(x: Value) -> PrimitiveType:
    return array("operand", x.shape).dtype


def is_complex(x: Value) -> bool:
    return dtype_of(x).kind == "complex"


def epsilon(x: Value) -> float:
    """The machine epsilon of the value's element type; for a complex type, of its component type."""
    return 2.0**-52 if dtype_of(x).bits // (2 if is_complex(x) else 1) == f64.bits else 2.0**-23


def conj(x: Value) -> Value:
    return conjugate(x) if is_complex(x) else x


def adjoint(x: Value) -> Value:
    return conj(transpose(x, (0, 2, 1)))


def product(a: Value, b: Value) -> Value:
    return dot_general(a, b, (2,), (1,), (0,), (0,), precision="highest")


def like(x: Value, model: Value) -> Value:
    """A real value converted to the element type of `model`."""
    dtype = dtype_of(model)
    return x if dtype_of(x) is dtype else ops.convert(x, new_element_type=dtype)


def along(x: Value, dims: Dims, *places: int) -> Value:
    """A value broadcast to the extents `dims`, its dimensions mapped to `places`."""
    return broadcast_in_dim(x, dims, places)


def places(x: Value, dimension: int) -> Value:
    """For each element its index along a dimension, as s32."""
    return ops.iota(x.builder, shape=s32[dims_of(x)], iota_dimension=dimension)


def column(x: Value, j: Value) -> Value:
    """Column j of each matrix."""
    batch, rows, _ = dims_of(x)
    return reshape(dynamic_slice(x, (0, 0, j), (batch, rows, 1)), (batch, rows))


def row(x: Value, j: Value) -> Value:
    batch, _, columns = dims_of(x)
    return reshape(dynamic_slice(x, (0, j, 0), (batch, 1, columns)), (batch, columns))


def entry(x: Value, j: Value) -> Value:
    """Element j of each vector."""
    batch, _ = dims_of(x)
    return reshape(dynamic_slice(x, (0, j), (batch, 1)), (batch,))


def total(x: Value, *dimensions: int) -> Value:
    return reduce(x, 0, ops.add, dimensions)


def squares(x: Value) -> Value:
    """The squared absolute value of each element, which is real."""
    return ops.real(x) * ops.real(x) + ops.imag(x) * ops.imag(x) if is_complex(x) else x * x


def identity(model: Value, rows: int, columns: int) -> Value:
    """Identity matrices (rows x columns) of the batch size and the element type of `model`."""
    shape = dtype_of(model)[dims_of(model)[0], rows, columns]
    ones = broadcast_in_dim(as_value(model.builder, 1, shape.dtype), shape.dims, ())
    return select(ops.compare(places(ones, 1), places(ones, 2), direction="EQ"), ones, 0)


def no_rotation(a: Value, columns: int) -> Value:
    """Identity matrices; NaN for each matrix that has an infinite or NaN element."""
    start = identity(a, columns, columns)
    return start + along(total(a * 0, 1, 2), dims_of(start), 0)


def scale_of(x: Value) -> Value:
    """For each matrix a power of two near half of its largest element; 1 if the element is zero, NaN if it is NaN."""
    half = reduce(abs(x), 0, ops.maximum, (1, 2)) * 0.5
    bits = 11 if epsilon(x) < 1e-10 else 8
    power = ops.reduce_precision(half, exponent_bits=bits, mantissa_bits=0)
    scale = select(ops.compare(power, half * 0, direction="EQ"), 1.0, power)
    return select(ops.compare(half, half, direction="NE"), half, scale)


def divide_by_scale(x: Value, scale: Value) -> Value:
    return x / along(like(scale, x), dims_of(x), 0)


def loop(
    trips: int, body: Callable[..., Sequence[Value]], state: Sequence[Value], fixed: Sequence[Value] = ()
) -> list[Value]:
    """`state` after `body(j, *state, *fixed)` for j = 0, 1, ... below `trips`."""
    count = as_value(state[0].builder, 0, s32)

    def step(values: Value) -> list[Any]:
        j, *rest = values
        return [j + 1, *body(j, *rest), *rest[len(state) :]]

    if not trips:
        return list(state)
    return list(while_((count, *state, *fixed), lambda values: values[0] < trips, step))[1 : len(state) + 1]
