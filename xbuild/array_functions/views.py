"""The elements of an array in other dimensions, by NumPy's names: squeeze, expand_dims, swapaxes."""

from __future__ import annotations

from typing import Any

from shape_inference import refuse
from shape_inference.dims import distinct

from .. import ops
from ..core.builder import Value
from ..derived.support import axes_of, axis_of, dressed
from .reductions import Axis, array_of

__all__ = ["expand_dims", "squeeze", "swapaxes"]


@dressed
def squeeze(operand: Value, axis: Axis = None, *, name: str | None = None) -> Value:
    """Remove all dimensions of extent 1, or only those that `axis` names. Records a reshape.

    Raises: not_array or dimension_out_of_range; dimension_mismatch if `axis` names a dimension whose extent is not 1.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[1, 3, 1])
    >>> x.squeeze().shape, xb.squeeze(x, -1).shape
    (f32[3], f32[1,3])

    Source: jax.numpy.squeeze.
    """
    shape = array_of(operand)
    dropped = [dim for dim, size in enumerate(shape.dims) if size == 1] if axis is None else axes_of(axis, shape)
    for dim in dropped:
        if shape.dims[dim] != 1:
            refuse(
                "dimension_mismatch",
                f"axis={axis}: dimension {dim} of operand {shape} has extent {shape.dims[dim]}; expected 1",
            )
    sizes = [size for dim, size in enumerate(shape.dims) if dim not in dropped]
    return ops.reshape(operand, new_sizes=sizes, name=name)


@dressed
def expand_dims(operand: Value, axis: Axis, *, name: str | None = None) -> Value:
    """Insert a dimension of extent 1 at position `axis` of the result, or at several positions. Records a reshape.

    Raises: not_array, dimension_out_of_range or duplicate_dimension.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[3])
    >>> xb.expand_dims(x, 0).shape, xb.expand_dims(x, (0, -1)).shape
    (f32[1,3], f32[1,3,1])

    Source: jax.numpy.expand_dims.
    """
    shape = array_of(operand)
    given: Any = (axis,) if isinstance(axis, int) or axis is None else tuple(axis)
    places = [axis_of(each, shape, rank=shape.rank + len(given)) for each in given]
    distinct("axis", places)
    sizes = list(shape.dims)
    for place in sorted(places):
        sizes.insert(place, 1)
    return ops.reshape(operand, new_sizes=sizes, name=name)


@dressed
def swapaxes(operand: Value, axis1: int, axis2: int, *, name: str | None = None) -> Value:
    """Swap two dimensions of the operand. Records a transpose.

    Raises: not_array or dimension_out_of_range.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 3, 4])
    >>> xb.swapaxes(x, 0, -1).shape
    f32[4,3,2]

    Source: jax.numpy.swapaxes.
    """
    shape = array_of(operand)
    a, b = axis_of(axis1, shape), axis_of(axis2, shape)
    order = [*range(shape.rank)]
    order[a], order[b] = b, a
    return ops.transpose(operand, permutation=order, name=name)
