"""The collectives of the shard dialect on values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from shape_inference import PrimitiveType, refuse
from shape_inference.types import primitive_type

from ... import derived, ops
from ...core.builder import Value
from ...derived.support.dressing import dressed
from ...properties.mesh import Mesh
from .groups import (
    apart_from,
    axes_of,
    divided,
    exchanged,
    grouped,
    in_group,
    own_piece,
    shape_of,
    tensor_axis,
)

GridAxes: TypeAlias = "Sequence[int | str]"
_REDUCTIONS: dict[str, Callable[..., Value]] = {
    "sum": ops.add,
    "product": ops.multiply,
    "min": ops.minimum,
    "max": ops.maximum,
    "bitwise_and": ops.and_,
    "bitwise_or": ops.or_,
    "bitwise_xor": ops.xor,
}
_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")


@dressed
def all_gather(input: Value, *, mesh: Mesh, grid_axes: GridAxes = (), gather_axis: int) -> Value:
    """The pieces of the group, concatenated along a dimension in the order of the group; the same on all members.

    Raises: grid_axis_out_of_range; grid_axes_duplicate; dimension_out_of_range.

    >>> import xbuild as xb
    >>> grid, x = xb.shard.grid([2, 2]), xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 2])
    >>> xb.shard.all_gather(x, mesh=grid, grid_axes=[1], gather_axis=1).shape
    f32[2,4]

    Source: MLIR, shard dialect, shard.all_gather.
    """
    axes, axis = axes_of(mesh, grid_axes), tensor_axis("gather_axis", gather_axis, shape_of(input))
    return _gathered(input, mesh, axes, axis) if axes else input


def _gathered(input: Value, mesh: Mesh, axes: Sequence[str], axis: int) -> Value:
    count = mesh.size(axes)
    return ops.all_gather(input, all_gather_dimension=axis, shard_count=count, **grouped(mesh, axes, input.builder))


@dressed
def all_reduce(
    input: Value, *, mesh: Mesh, grid_axes: GridAxes = (), reduction: str = "sum", result_type: Any = None
) -> Value:
    """The reduction of the group's tensors, element by element; the same on all members.

    The reductions are sum, product, min, max, bitwise_and, bitwise_or and bitwise_xor, and average of numbers with a
    fraction. Elements are converted to `result_type` first, where it is given.
    Raises: grid_axis_out_of_range; grid_axes_duplicate; bad_reduction; element_type_unsupported.

    Source: MLIR, shard dialect, shard.all_reduce.
    """
    axes = axes_of(mesh, grid_axes)
    return _reduced(input, mesh, axes, reduction, result_type)


def _reduced(input: Value, mesh: Mesh, axes: Sequence[str], reduction: str, result_type: Any) -> Value:
    by = _reducer(reduction, _converted_type(input, result_type))
    found = _converted(input, result_type)
    if not axes:
        return found
    found = ops.all_reduce(found, to_apply=by, **grouped(mesh, axes, input.builder))
    return _divided_by(found, mesh.size(axes)) if reduction == "average" else found


def _divided_by(total: Value, count: int) -> Value:
    return derived.divide(total, np.asarray(count, shape_of(total).dtype.dtype))


def _converted_type(input: Value, result_type: Any) -> PrimitiveType:
    return shape_of(input).dtype if result_type is None else primitive_type(result_type)


def _converted(input: Value, result_type: Any) -> Value:
    wanted = _converted_type(input, result_type)
    return input if shape_of(input).dtype is wanted else derived.convert(input, wanted)


def _reducer(reduction: str, dtype: PrimitiveType) -> Callable[..., Value]:
    if reduction == "average":
        if dtype.kind not in ("float", "complex"):
            refuse("element_type_unsupported", f"the average of {dtype} has no element type; sum has")
        return ops.add
    if reduction not in _REDUCTIONS:
        refuse("bad_reduction", f"reduction={reduction!r}: {', '.join(_REDUCTIONS)} and average are lowered")
    if reduction in _BITWISE and dtype.kind in ("float", "complex"):
        refuse("element_type_unsupported", f"reduction={reduction} is not defined for {dtype}")
    return _REDUCTIONS[reduction]


@dressed
def all_slice(input: Value, *, mesh: Mesh, grid_axes: GridAxes = (), slice_axis: int) -> Value:
    """The piece of the device's own tensor that has its number in the group; nothing is sent.

    Raises: grid_axis_out_of_range; grid_axes_duplicate; dimension_out_of_range; divisibility.

    Source: MLIR, shard dialect, shard.all_slice.
    """
    axes, axis = axes_of(mesh, grid_axes), tensor_axis("slice_axis", slice_axis, shape_of(input))
    return own_piece(input, mesh, axes, axis, "slice_axis") if axes else input


@dressed
def all_to_all(input: Value, *, mesh: Mesh, grid_axes: GridAxes = (), split_axis: int, concat_axis: int) -> Value:
    """Piece k along `split_axis` of every member, concatenated along `concat_axis`, where k is the device's number.

    Raises: grid_axis_out_of_range; grid_axes_duplicate; dimension_out_of_range; divisibility.

    Source: MLIR, shard dialect, shard.all_to_all.
    """
    axes, shape = axes_of(mesh, grid_axes), shape_of(input)
    split = tensor_axis("split_axis", split_axis, shape)
    concat = tensor_axis("concat_axis", concat_axis, shape)
    if not axes:
        return input
    count = mesh.size(axes)
    divided("split_axis", split, shape, count)
    around = exchanged(mesh.groups(axes), input.builder)
    return ops.all_to_all(input, split_dimension=split, concat_dimension=concat, split_count=count, **around)


@dressed
def broadcast(input: Value, *, mesh: Mesh, grid_axes: GridAxes = (), root: Sequence[int]) -> Value:
    """The tensor of the root of the group, which has a coordinate for each of the axes in their order.

    Raises: grid_axis_out_of_range; grid_axes_duplicate; device_index_size; device_index_out_of_range.

    Source: MLIR, shard dialect, shard.broadcast.
    """
    axes = axes_of(mesh, grid_axes)
    return _from_root(input, mesh, axes, in_group("root", mesh, axes, root))


def _from_root(input: Value, mesh: Mesh, axes: Sequence[str], root: int) -> Value:
    if not axes:
        return input
    ordered = tuple((group[root], *group[:root], *group[root + 1 :]) for group in mesh.groups(axes))
    return ops.collective_broadcast(input, **exchanged(ordered, input.builder))


@dressed
def gather(input: Value, *, mesh: Mesh, grid_axes: GridAxes = (), gather_axis: int, root: Sequence[int]) -> Value:
    """As all_gather on the root of each group; undefined on the other devices.

    Raises: as all_gather and broadcast.

    Source: MLIR, shard dialect, shard.gather.
    """
    axes, axis = axes_of(mesh, grid_axes), tensor_axis("gather_axis", gather_axis, shape_of(input))
    place = in_group("root", mesh, axes, root)
    if not axes:
        return input
    with apart_from(mesh, (group[place] for group in mesh.groups(axes))):
        return _gathered(input, mesh, axes, axis)


@dressed
def reduce(
    input: Value,
    *,
    mesh: Mesh,
    grid_axes: GridAxes = (),
    reduction: str = "sum",
    root: Sequence[int],
    result_type: Any = None,
) -> Value:
    """As all_reduce on the root of each group; undefined on the other devices.

    Raises: as all_reduce and broadcast.

    Source: MLIR, shard dialect, shard.reduce.
    """
    axes = axes_of(mesh, grid_axes)
    place = in_group("root", mesh, axes, root)
    _reducer(reduction, _converted_type(input, result_type))
    given = _converted(input, result_type)
    with apart_from(mesh, (group[place] for group in mesh.groups(axes))):
        return _reduced(given, mesh, axes, reduction, None)


@dressed
def reduce_scatter(
    input: Value,
    *,
    mesh: Mesh,
    grid_axes: GridAxes = (),
    reduction: str = "sum",
    scatter_axis: int,
    result_type: Any = None,
) -> Value:
    """The piece, by the device's number in the group, of the reduction of the group's tensors.

    Raises: as all_reduce and all_slice.

    Source: MLIR, shard dialect, shard.reduce_scatter.
    """
    axes, shape = axes_of(mesh, grid_axes), shape_of(input)
    axis = tensor_axis("scatter_axis", scatter_axis, shape)
    by, given = _reducer(reduction, _converted_type(input, result_type)), _converted(input, result_type)
    if not axes:
        return given
    count = mesh.size(axes)
    divided("scatter_axis", axis, shape, count)
    around = grouped(mesh, axes, input.builder)
    found = ops.reduce_scatter(given, to_apply=by, scatter_dimension=axis, shard_count=count, **around)
    return _divided_by(found, count) if reduction == "average" else found


@dressed
def scatter(input: Value, *, mesh: Mesh, grid_axes: GridAxes = (), scatter_axis: int, root: Sequence[int]) -> Value:
    """The piece, by the device's number in the group, of the root's tensor.

    Raises: as all_slice and broadcast.

    Source: MLIR, shard dialect, shard.scatter.
    """
    axes, shape = axes_of(mesh, grid_axes), shape_of(input)
    axis = tensor_axis("scatter_axis", scatter_axis, shape)
    place = in_group("root", mesh, axes, root)
    if not axes:
        return input
    divided("scatter_axis", axis, shape, mesh.size(axes))
    return own_piece(_from_root(input, mesh, axes, place), mesh, axes, axis, "scatter_axis")
