"""Groups of devices along axes of a grid, as the collectives of the shard dialect form them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from shape_inference import Shape, refuse, s32
from shape_inference.dims import array

from ... import derived, ops
from ...core.builder import Builder, Value
from ...core.context import marked
from ...properties.device_groups import Groups
from ...properties.mesh import Mesh
from ...properties.undefined import UNDEFINED, undefined_text
from ..grids import axes_of as axes_of

_LAST_CHANNEL: WeakKeyDictionary[Builder, int] = WeakKeyDictionary()


def next_channel(builder: Builder) -> int:
    """A channel that no instruction of the builder, or of those around it, has."""
    inner = builder
    while builder.parent is not None:
        builder = builder.parent
    if builder not in _LAST_CHANNEL:
        given = [each for b in {builder, inner} for each in b.recorded_since(0)]
        taken = (getattr(each.attributes, "channel_id", None) for each in given)
        _LAST_CHANNEL[builder] = max((number for number in taken if number is not None), default=0)
    _LAST_CHANNEL[builder] += 1
    return _LAST_CHANNEL[builder]


def channels_from(builder: Builder, last: int) -> None:
    """Let channels of a new builder begin after this one."""
    _LAST_CHANNEL[builder] = last


def last_channel(builder: Builder) -> int:
    """The last channel that ops of a grid took in the builder."""
    return _LAST_CHANNEL.get(builder, 0)


def grouped(mesh: Mesh, axes: Sequence[str], builder: Builder) -> dict[str, Any]:
    """The attributes of a collective over the groups along the axes."""
    return {"replica_groups": mesh.groups(axes), "channel_id": next_channel(builder), "use_global_device_ids": True}


def exchanged(groups: Groups, builder: Builder) -> dict[str, Any]:
    """The same for a collective whose channel alone says that ids are partitions."""
    return {"replica_groups": groups, "channel_id": next_channel(builder)}


def shape_of(operand: Value) -> Shape:
    return array("input", operand.shape)


def tensor_axis(what: str, given: int, shape: Shape) -> int:
    """The number of a dimension; the shard dialect does not count from the end."""
    if not hasattr(given, "__index__") or isinstance(given, bool) or not 0 <= given < shape.rank:
        refuse("dimension_out_of_range", f"{what}={given} is out of bounds [0, {shape.rank}) of {shape}")
    return int(given)


def divided(what: str, axis: int, shape: Shape, count: int) -> int:
    """The extent of a piece of a dimension that is cut into `count` equal ones."""
    extent = shape.dims[axis]
    if extent % count:
        message = (
            f"operand dimension size {extent} is not divisible by collective device group size {count} for tensor "
        )
        refuse("divisibility", f"{message}axis {axis} ({what}={axis} of {shape})")
    return extent // count


def in_group(what: str, mesh: Mesh, axes: Sequence[str], index: Sequence[int]) -> int:
    """The number of a device in its group, from a coordinate for each axis in the order of the axes."""
    given, sizes = [*index], [mesh.size(axis) for axis in axes]
    if len(given) != len(sizes):
        message = f'in-group device "{what}" has unexpected multi-index size {len(given)}, expected {len(sizes)}'
        refuse("device_index_size", message)
    for number, (each, size) in enumerate(zip(given, sizes, strict=True)):
        if not 0 <= each < size:
            message = (
                f'out of bounds coordinate {number} for in-group device "{what}": got {each}, but expected a value '
            )
            refuse("device_index_out_of_range", f"{message}in the range [0, {size - 1}]")
    return int(np.ravel_multi_index(given, sizes)) if given else 0


def apart_from(mesh: Mesh, defined: Iterable[int]) -> AbstractContextManager[None]:
    """Inside, ops are recorded whose results are undefined on all devices but these."""
    devices = {*range(mesh.num_devices)} - {*defined}
    return marked(**({UNDEFINED: undefined_text(devices)} if devices else {}))


def place_in_group(builder: Builder, mesh: Mesh, axes: Sequence[str]) -> Value:
    """The number of this device in its group along the axes, as s32[]."""
    places = own_place(builder, mesh)
    found = None
    for axis in axes:
        inside = _coordinate(places, mesh, axis)
        found = inside if found is None else found * np.uint32(mesh.size(axis)) + inside
    return ops.convert(places if found is None else found, new_element_type=s32)


def own_place(builder: Builder, mesh: Mesh) -> Value:
    """The place of this device, row by row, as u32[]: its id, or what the order of the devices says."""
    own = ops.partition_id(builder)
    if mesh.device_ids is None:
        return own
    places = derived.constant(builder, np.argsort(mesh.device_ids).astype(np.uint32))
    return derived.reshape(ops.dynamic_slice(places, [own], dynamic_slice_sizes=(1,)), ())


def _coordinate(places: Value, mesh: Mesh, axis: str) -> Value:
    stride, size = mesh.stride(axis), mesh.size(axis)
    found = places if stride == 1 else derived.divide(places, np.uint32(stride))
    return found if stride * size == mesh.num_devices else found % np.uint32(size)


def own_piece(operand: Value, mesh: Mesh, axes: Sequence[str], axis: int, what: str) -> Value:
    """The piece of the operand along a dimension that has this device's number in its group."""
    shape = shape_of(operand)
    size = divided(what, axis, shape, mesh.size(axes))
    start = place_in_group(operand.builder, mesh, axes) * np.int32(size)
    zero = derived.constant(operand.builder, np.int32(0))
    starts = [start if number == axis else zero for number in range(shape.rank)]
    sizes = [size if number == axis else extent for number, extent in enumerate(shape.dims)]
    return ops.dynamic_slice(operand, starts, dynamic_slice_sizes=sizes)


def group_size(mesh: Mesh, axes: Sequence[str]) -> int:
    return math.prod(mesh.size(axis) for axis in axes)
