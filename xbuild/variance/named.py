"""Collectives by the names of the axes of a mesh: what they record, with a note of the name and the axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from shape_inference import Shape, pred, refuse, s32
from shape_inference.dims import array

from .. import derived, ops
from ..core.builder import Builder, Value
from ..core.context import marked
from .region import Region, current
from .rules.marks import CAST, COLLECTIVE, Mark

AxisNames: TypeAlias = "str | Sequence[str]"


def each(function: Callable[[Value], Value], operand: Any, region: Region) -> Any:
    """The function of every array of a value, which may be a number, or a list or tuple of values."""
    if isinstance(operand, (list, tuple)):
        return type(operand)(each(function, part, region) for part in operand)
    if not isinstance(operand, Value):
        operand = derived.constant(region.builder, operand)
    return function(operand)


def stands_for(op: str, axes: Iterable[str]) -> Any:
    """Inside, one op is recorded that stands for this collective."""
    return marked(**{COLLECTIVE: Mark(op, tuple(axes)).text()})


def groups(region: Region, axes: tuple[str, ...]) -> dict[str, Any]:
    """The attributes of a collective that covers groups of devices, or partitions."""
    found: dict[str, Any] = {"replica_groups": region.mesh.groups(axes)}
    if region.uses_partitions:
        found |= {"channel_id": region.channel(), "use_global_device_ids": True}
    return found


def exchange_groups(region: Region, axes: tuple[str, ...]) -> dict[str, Any]:
    """The same for a collective whose channel alone says that ids are partitions."""
    return {"replica_groups": region.mesh.groups(axes), "channel_id": region.channel()}


def shape_of(operand: Value) -> Shape:
    return array("operand", operand.shape)


def dimension(attribute: str, given: int, rank: int) -> int:
    """A dimension number, which may count from the end."""
    if not isinstance(given, (int, np.integer)) or not -rank <= given < rank:
        refuse("dimension_out_of_range", f"{attribute}={given!r} is none of the {rank} dimensions 0..{rank - 1}")
    return int(given) % rank


def reduced(op: str, by: Callable[..., Value], operand: Value, region: Region, axes: tuple[str, ...]) -> Value:
    """The all-reduce over the axes."""
    if shape_of(operand).dtype is pred and op == "psum":
        operand = derived.convert(operand, s32)
    with stands_for(op, axes):
        return ops.all_reduce(operand, to_apply=by, **groups(region, axes))


def gathered(op: str, operand: Value, region: Region, axes: tuple[str, ...], axis: int, tiled: bool) -> Value:
    """The all-gather over the axes: concatenated, or stacked in a new dimension."""
    shape = shape_of(operand)
    axis = dimension("axis", axis, shape.rank + (not tiled))
    if not tiled:
        operand = derived.reshape(operand, (*shape.dims[:axis], 1, *shape.dims[axis:]))
    with stands_for(op, axes):
        return ops.all_gather(
            operand, all_gather_dimension=axis, shard_count=region.mesh.size(axes), **groups(region, axes)
        )


def scattered_sum(operand: Value, region: Region, axes: tuple[str, ...], scatter: int, tiled: bool) -> Value:
    """The reduce-scatter over the axes; where it is not tiled the dimension goes."""
    scatter = cut_dimension("scatter_dimension", operand, region, axes, scatter, tiled)
    with stands_for("psum_scatter", axes):
        found = ops.reduce_scatter(
            operand,
            to_apply=ops.add,
            scatter_dimension=scatter,
            shard_count=region.mesh.size(axes),
            **groups(region, axes),
        )
    return found if tiled else without(found, scatter)


def own_slice(operand: Value, region: Region, axes: tuple[str, ...], scatter: int, tiled: bool) -> Value:
    """The slice of this device along the axes."""
    scatter = cut_dimension("scatter_dimension", operand, region, axes, scatter, tiled)
    dims = list(shape_of(operand).dims)
    dims[scatter] //= region.mesh.size(axes)
    place = coordinate(region, axes, operand.builder)
    start = place if dims[scatter] == 1 else place * dims[scatter]
    zero = derived.constant(operand.builder, np.int32(0))
    starts = [start if number == scatter else zero for number in range(len(dims))]
    with stands_for("pscatter", axes):
        found = ops.dynamic_slice(operand, starts, dynamic_slice_sizes=dims)
    return found if tiled else without(found, scatter)


def cut_dimension(
    attribute: str, operand: Value, region: Region, axes: tuple[str, ...], given: int, tiled: bool
) -> int:
    """The number of a dimension that the axes cut: divided by their size, or equal to it where it is not tiled."""
    shape, size = shape_of(operand), region.mesh.size(axes)
    found = dimension(attribute, given, shape.rank)
    extent = shape.dims[found]
    if tiled and extent % size:
        message = f"{attribute}={found} of operand {shape} has extent {extent}, which the {size} devices along "
        refuse("divisibility", f"{message}{', '.join(axes)} do not divide")
    if not tiled and extent != size:
        message = f"{attribute}={found} of operand {shape} has extent {extent}, and {size} is wanted, the number of "
        refuse("divisibility", f"{message}devices along {', '.join(axes)}; tiled=True cuts it in parts")
    return found


def without(operand: Value, axis: int) -> Value:
    """The value without a dimension of extent 1."""
    dims = shape_of(operand).dims
    return derived.reshape(operand, (*dims[:axis], *dims[axis + 1 :]))


def exchanged(operand: Value, region: Region, axes: tuple[str, ...], split: int, concat: int, tiled: bool) -> Value:
    """The all-to-all over the axes: cut along one dimension, joined along another."""
    split = cut_dimension("split_axis", operand, region, axes, split, tiled)
    rank, size = shape_of(operand).rank, region.mesh.size(axes)
    joined = dimension("concat_axis", concat, rank) if tiled else split
    with stands_for("all_to_all", axes):
        found = ops.all_to_all(
            operand, split_dimension=split, concat_dimension=joined, split_count=size, **exchange_groups(region, axes)
        )
    if tiled:
        return found
    others = [number for number in range(rank) if number != split]
    others.insert(dimension("concat_axis", concat, rank), split)
    return found if others == sorted(others) else derived.transpose(found, others)


def coordinate(region: Region, axes: tuple[str, ...], builder: Builder | None = None) -> Value:
    """The place of this device along the axes, row by row in their order, as s32[]."""
    builder, mesh = builder or region.builder, region.mesh
    own = ops.partition_id(builder) if region.uses_partitions else ops.replica_id(builder)
    if mesh.device_ids is not None:
        places = derived.constant(builder, np.argsort(mesh.device_ids).astype(np.uint32))
        own = derived.reshape(ops.dynamic_slice(places, [own], dynamic_slice_sizes=(1,)), ())
    if axes == mesh.axes:
        found = own
    else:
        found = _place(own, region, axes[0])
        for axis in axes[1:]:
            found = found * np.uint32(mesh.size(axis)) + _place(own, region, axis)
    with stands_for("axis_index", axes):
        return ops.convert(found, new_element_type=s32)


def _place(own: Value, region: Region, axis: str) -> Value:
    """The coordinate along one axis: what is left of the id by the extents outside and inside."""
    mesh = region.mesh
    stride, size = mesh.stride(axis), mesh.size(axis)
    found = own if stride == 1 else own / np.uint32(stride)
    return found if stride * size == mesh.num_devices else found % np.uint32(size)


def permuted(operand: Value, region: Region, axes: tuple[str, ...], pairs: Sequence[tuple[int, int]]) -> Value:
    """The permutation along the axes in every group."""
    with stands_for("ppermute", axes):
        return ops.collective_permute(
            operand, source_target_pairs=region.mesh.pairs(axes, pairs), channel_id=region.channel()
        )


def broadcast_from(operand: Value, region: Region, axes: tuple[str, ...], source: int) -> Value:
    """The value of one place along the axes in every group."""
    ordered = [(group[source], *group[:source], *group[source + 1 :]) for group in region.mesh.groups(axes)]
    with stands_for("pbroadcast", axes):
        return ops.collective_broadcast(operand, replica_groups=ordered, channel_id=region.channel())


def cast(operand: Value, op: str, axes: tuple[str, ...]) -> Value:
    """The value itself in another state along the axes: a copy in typed programs, nothing in those that run."""
    with marked(**{CAST: Mark(op, axes).text()}):
        return ops.copy(operand)


def bound(name: str, axis_name: AxisNames) -> tuple[Region, tuple[str, ...]]:
    """The region that is recorded, and the axes that are named, in their order."""
    region = current(name)
    axes = region.mesh.named(axis_name)
    if not axes:
        refuse("invalid_attribute", f"{name}: no axis is named, and at least 1 is wanted")
    return region, axes
