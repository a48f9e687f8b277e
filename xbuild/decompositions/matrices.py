"""Building blocks of algorithms on a batch of matrices: products, masks, columns, loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shape_inference import Dims, PrimitiveType, f64, s32
from shape_inference.dims import array

from .. import ops
from ..core.builder import Value
from ..derived.contraction import dot_general
from ..derived.control_flow import while_
from ..derived.elementwise import conj as conjugate
from ..derived.elementwise import select
from ..derived.reduction import reduce
from ..derived.shaping import broadcast_in_dim, reshape, transpose
from ..derived.slicing import dynamic_slice
from ..derived.support.operands import as_value


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


def divided(x: Value, scale: Value) -> Value:
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
