"""The ops of MLIR's shard dialect: collectives along axes of a grid, indices of processes, and shardings of values.

Sections:

    Groups of devices along axes of a grid
    Indices of processes, sizes of grids, and shapes of parts
    Collectives
    update_halo
    Shifts, and sends and receives by coordinates
    Runs of programs whose results may be undefined on some devices
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from attrs import frozen

from shape_inference import PrimitiveType, Shape, refuse, s32
from shape_inference.dims import array
from shape_inference.types import primitive_type

from .. import derived, ops
from ..core.builder import Builder, Value
from ..core.context import annotated, marked
from ..core.graph import Instruction, Module
from ..derived.support import dressed
from ..properties.device_groups import Groups, Pairs
from ..properties.mesh import Mesh
from ..properties.placement import CONSTRAINT, target_of
from ..properties.undefined import UNDEFINED, Devices, undefined_on, undefined_text
from ..text.annotations import Raw
from .grids import axes_of as axes_of
from .grids import halos_of, sharding
from .hlo_text import AnySharding, hlo_text
from .local_shapes import shard_shape as static_shard_shape
from .sharding import Sharding
from .stated_shardings import SHARDING, sharding_of

# ----------------------------------------------------------------------------
# Groups of devices along axes of a grid
#
# As the collectives of the dialect form them.

_LAST_CHANNEL: WeakKeyDictionary[Builder, int] = WeakKeyDictionary()


def next_channel(builder: Builder) -> int:
    """A channel id that no instruction of the builder, or of those around it, has."""
    inner = builder
    while builder.parent is not None:
        builder = builder.parent
    if builder not in _LAST_CHANNEL:
        recorded = [each for b in {builder, inner} for each in b.recorded_since(0)]
        taken = (getattr(each.attributes, "channel_id", None) for each in recorded)
        _LAST_CHANNEL[builder] = max((number for number in taken if number is not None), default=0)
    _LAST_CHANNEL[builder] += 1
    return _LAST_CHANNEL[builder]


def start_channels_after(builder: Builder, last: int) -> None:
    """Make the channels of a new builder begin after this one."""
    _LAST_CHANNEL[builder] = last


def last_channel(builder: Builder) -> int:
    """The last channel id that ops of a grid used in the builder."""
    return _LAST_CHANNEL.get(builder, 0)


def group_attributes(mesh: Mesh, axes: Sequence[str], builder: Builder) -> dict[str, Any]:
    """The attributes of a collective over the groups along the axes."""
    return {"replica_groups": mesh.groups(axes), "channel_id": next_channel(builder), "use_global_device_ids": True}


def exchange_attributes(groups: Groups, builder: Builder) -> dict[str, Any]:
    """The same attributes for a collective whose channel id implies that ids are partitions."""
    return {"replica_groups": groups, "channel_id": next_channel(builder)}


def shape_of(operand: Value) -> Shape:
    return array("input", operand.shape)


def tensor_axis(what: str, given: int, shape: Shape) -> int:
    """The number of a dimension; the shard dialect does not count from the end."""
    if not hasattr(given, "__index__") or isinstance(given, bool) or not 0 <= given < shape.rank:
        refuse("dimension_out_of_range", f"{what}={given} is out of bounds [0, {shape.rank}) for {shape}")
    return int(given)


def count_piece(what: str, axis: int, shape: Shape, count: int) -> int:
    """The extent of a piece of a dimension that is split into `count` equal pieces."""
    extent = shape.dims[axis]
    if extent % count:
        message = (
            f"operand dimension size {extent} is not divisible by collective device group size {count} for tensor "
        )
        refuse("divisibility", f"{message}axis {axis} ({what}={axis} of {shape})")
    return extent // count


def read_group_index(what: str, mesh: Mesh, axes: Sequence[str], index: Sequence[int]) -> int:
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


def undefined_except_on(mesh: Mesh, defined: Iterable[int]) -> AbstractContextManager[None]:
    """A context in which the results of recorded ops are undefined on all devices except these."""
    devices = {*range(mesh.num_devices)} - {*defined}
    return marked(**({UNDEFINED: undefined_text(devices)} if devices else {}))


def place_read_group_index(builder: Builder, mesh: Mesh, axes: Sequence[str]) -> Value:
    """The number of this device in its group along the axes, as s32[]."""
    places = own_position(builder, mesh)
    found = None
    for axis in axes:
        inside = _coordinate(places, mesh, axis)
        found = inside if found is None else found * np.uint32(mesh.size(axis)) + inside
    return ops.convert(places if found is None else found, new_element_type=s32)


def own_position(builder: Builder, mesh: Mesh) -> Value:
    """The position of this device, row by row in the grid, as u32[]: its id, unless the devices have an order."""
    own = ops.partition_id(builder)
    if mesh.device_ids is None:
        return own
    places = derived.constant(builder, np.argsort(mesh.device_ids).astype(np.uint32))
    return derived.reshape(ops.dynamic_slice(places, [own], dynamic_slice_sizes=(1,)), ())


def _coordinate(places: Value, mesh: Mesh, axis: str) -> Value:
    stride, size = mesh.stride(axis), mesh.size(axis)
    found = places if stride == 1 else derived.divide(places, np.uint32(stride))
    return found if stride * size == mesh.num_devices else found % np.uint32(size)


def slice_own_piece(operand: Value, mesh: Mesh, axes: Sequence[str], axis: int, what: str) -> Value:
    """The piece of the operand along a dimension at this device's number in its group."""
    shape = shape_of(operand)
    size = count_piece(what, axis, shape, mesh.size(axes))
    start = place_read_group_index(operand.builder, mesh, axes) * np.int32(size)
    zero = derived.constant(operand.builder, np.int32(0))
    starts = [start if number == axis else zero for number in range(shape.rank)]
    sizes = [size if number == axis else extent for number, extent in enumerate(shape.dims)]
    return ops.dynamic_slice(operand, starts, dynamic_slice_sizes=sizes)


def group_size(mesh: Mesh, axes: Sequence[str]) -> int:
    return math.prod(mesh.size(axis) for axis in axes)


# ----------------------------------------------------------------------------
# Indices of processes, sizes of grids, and shapes of parts
#
# They are ops of the shard dialect.

ANNOTATE_FOR_USERS = "xbuild.annotate_for_users"


@dressed
def process_linear_index(builder: Builder, *, mesh: Mesh) -> Value:
    """The number of this device, row by row in the grid, as s32[].

    Source: MLIR, shard dialect, shard.process_linear_index.
    """
    return ops.convert(own_position(builder, mesh), new_element_type=s32)


@dressed
def process_multi_index(builder: Builder, *, mesh: Mesh, axes: Sequence[int | str] = ()) -> tuple[Value, ...]:
    """The coordinates of this device along the axes, or along all axes if none is named, each as s32[].

    Raises: grid_axis_out_of_range; grid_axes_duplicate.

    Source: MLIR, shard dialect, shard.process_multi_index.
    """
    return tuple(place_read_group_index(builder, mesh, [axis]) for axis in axes_of(mesh, axes, "axes") or mesh.axes)


@dressed
def grid_shape(builder: Builder, *, mesh: Mesh, axes: Sequence[int | str] = ()) -> tuple[Value, ...]:
    """The sizes of the grid along the axes, or along all of them, as constants s32[].

    Raises: grid_axis_out_of_range; grid_axes_duplicate.

    Source: MLIR, shard dialect, shard.grid_shape.
    """
    names = axes_of(mesh, axes, "axes") or mesh.axes
    return tuple(derived.constant(builder, np.int32(mesh.size(axis))) for axis in names)


@dressed
def neighbors_linear_indices(
    builder: Builder, *, mesh: Mesh, device: Sequence[Any], split_axes: Sequence[int | str]
) -> tuple[Value, Value]:
    """The numbers of the devices before and after one along the axes, each as s32[]; -1 if there is none.

    `device` has a coordinate for each axis of the grid, a number or a value. Several axes count as one, the first
    outermost.
    Raises: device_index_size; grid_axis_out_of_range; grid_axes_duplicate.

    Source: MLIR, shard dialect, shard.neighbors_linear_indices.
    """
    axes = axes_of(mesh, split_axes, "split_axes")
    if len(device) != len(mesh.axes):
        message = f"device has unexpected multi-index size {len(device)}, expected {len(mesh.axes)} for {mesh}"
        refuse("device_index_size", message)
    coordinates = [derived.convert(as_value(builder, each), s32) for each in device]
    places = np.arange(mesh.num_devices, dtype=np.int32).reshape(mesh.shape)
    before, after = (_look_up_neighbour(builder, mesh, axes, places, step, coordinates) for step in (-1, 1))
    return before, after


def _look_up_neighbour(
    builder: Builder, mesh: Mesh, axes: Sequence[str], places: np.ndarray[Any, Any], step: int, index: Sequence[Value]
) -> Value:
    """The device `step` further along the axes, looked up at the coordinates of a device."""
    inner = [mesh.axes.index(axis) for axis in axes]
    outer = [number for number in range(len(mesh.axes)) if number not in inner]
    lines = places.transpose([*outer, *inner]).reshape(-1, mesh.size(axes))
    moved = np.full_like(lines, -1)
    if step > 0:
        moved[:, :-1] = lines[:, 1:]
    else:
        moved[:, 1:] = lines[:, :-1]
    table = np.empty(mesh.num_devices, np.int32)
    table[lines.reshape(-1)] = moved.reshape(-1)
    constant = derived.constant(builder, table.reshape(mesh.shape))
    one = ops.dynamic_slice(constant, [*index], dynamic_slice_sizes=[1] * len(index))
    return derived.reshape(one, ())


def as_value(builder: Builder, given: Any) -> Value:
    """A value as it is, or a number as a constant s32[]."""
    return given if isinstance(given, Value) else derived.constant(builder, np.int32(given))


@dressed
def shard(input: Value, sharding: Sharding, *, annotate_for_users: bool = False) -> Value:
    """The tensor, annotated with the sharding as a result, or for its next use if `annotate_for_users` is set.

    It is recorded as the custom call "Sharding".
    Raises: rank_mismatch if the sharding has more lists than the tensor has dimensions; sharding_conflict if
    annotations contradict each other: one result or one use is annotated twice, or a result after a use.

    Source: MLIR, shard dialect, shard.shard.
    """
    shape = shape_of(input)
    if len(sharding.dims) > shape.rank:
        refuse("rank_mismatch", f"the sharding has {len(sharding.dims)} lists, but {shape} has {shape.rank} dimensions")
    check_annotation_order(input.instruction, input.builder.recorded_since(0), sharding, annotate_for_users)
    notes: dict[str, Any] = {SHARDING: Raw(hlo_text(sharding, shape.rank))}
    if annotate_for_users:
        notes["frontend_attributes"] = {ANNOTATE_FOR_USERS: "true"}
    with annotated(**notes):
        return ops.custom_call([input], custom_call_target=CONSTRAINT, shape=shape)


def check_annotation_order(
    source: Instruction, recorded: Iterable[Instruction], sharding: Sharding, annotate_for_users: bool
) -> None:
    """Refuse an annotation that contradicts the recorded ones (sharding_conflict)."""
    if not is_shard(source):
        users = [each for each in recorded if is_shard(each) and each.operands[0] is source]
        others = [] if annotate_for_users else [each for each in users if not is_for_users(each)]
        _check_equal(others, sharding, "the result of")
        return
    if is_for_users(source) and not annotate_for_users:
        message = f"the sharding of a use of {source.operands[0].name} is annotated before the sharding of its result"
        refuse("sharding_conflict", message, "annotate the result first, then each use")
    if is_for_users(source) == annotate_for_users:
        _check_equal([source], sharding, "a use of" if annotate_for_users else "the result of")


def _check_equal(shards: Sequence[Instruction], sharding: Sharding, what: str) -> None:
    for each in shards:
        if sharding_of(each) != sharding.padded(len(each.shape.dims)):  # type: ignore[union-attr]
            refuse("sharding_conflict", f"{what} {each.operands[0].name} has two different sharding annotations")


def is_shard(instruction: Instruction) -> bool:
    """Whether an instruction was recorded by `shard`."""
    return target_of(instruction) == CONSTRAINT


def is_for_users(instruction: Instruction) -> bool:
    """Whether a recorded `shard` annotates its next use, and not its operand as a result."""
    return ANNOTATE_FOR_USERS in instruction.annotations.get("frontend_attributes", {})


def get_sharding(source: Value) -> AnySharding | None:
    """The sharding that a value is annotated with, if any.

    Source: MLIR, shard dialect, shard.get_sharding.
    """
    return sharding_of(source.instruction)


@dressed
def shard_shape(
    dims: Sequence[int], sharding: Sharding, device: Sequence[Any], *, builder: Builder | None = None
) -> tuple[Any, ...]:
    """The extents of the part that a device holds, from its coordinates in the grid.

    If all coordinates are numbers, so are the results; if one is a value of the builder, they are s32[] values.
    Raises: device_index_size; device_index_out_of_range; rank_mismatch.

    >>> import xbuild as xb
    >>> xb.shard.shard_shape([14], xb.shard.sharding(xb.shard.grid([4]), [[0]]), [3])
    (4,)

    Source: MLIR, shard dialect, shard.shard_shape.
    """
    mesh = sharding.mesh
    if len(device) != len(mesh.axes):
        message = f"device has unexpected multi-index size {len(device)}, expected {len(mesh.axes)} for {mesh}"
        refuse("device_index_size", message)
    values = [each for each in device if isinstance(each, Value)]
    if not values:
        return static_shard_shape(sharding, dims, _number_device(mesh, device))
    table = np.array([static_shard_shape(sharding, dims, number) for number in _row_by_row(mesh)], np.int32)
    whole = table.reshape(*mesh.shape, len(dims))
    builder = builder or values[0].builder
    starts = [derived.convert(as_value(builder, each), s32) for each in device]
    sizes = [1] * len(starts)
    slices = [derived.constant(builder, whole[..., k]) for k in range(len(dims))]
    return tuple(derived.reshape(ops.dynamic_slice(each, starts, dynamic_slice_sizes=sizes), ()) for each in slices)


def _row_by_row(mesh: Mesh) -> Sequence[int]:
    return mesh.device_ids or range(mesh.num_devices)


def _number_device(mesh: Mesh, coordinates: Sequence[int]) -> int:
    for axis, (each, size) in enumerate(zip(coordinates, mesh.shape, strict=True)):
        if not 0 <= each < size:
            message = f"out of bounds coordinate {axis} for device: got {each}, but expected a value in the range "
            refuse("device_index_out_of_range", f"{message}[0, {size - 1}]")
    return mesh.device(**dict(zip(mesh.axes, map(int, coordinates), strict=True)))


# ----------------------------------------------------------------------------
# Collectives

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
    return _record_all_gather(input, mesh, axes, axis) if axes else input


def _record_all_gather(input: Value, mesh: Mesh, axes: Sequence[str], axis: int) -> Value:
    count = mesh.size(axes)
    return ops.all_gather(
        input, all_gather_dimension=axis, shard_count=count, **group_attributes(mesh, axes, input.builder)
    )


@dressed
def all_reduce(
    input: Value, *, mesh: Mesh, grid_axes: GridAxes = (), reduction: str = "sum", result_type: Any = None
) -> Value:
    """The reduction of the group's tensors, element by element; the same on all members.

    The reductions are sum, product, min, max, bitwise_and, bitwise_or and bitwise_xor, and average of floats and
    complex numbers. Elements are converted to `result_type` first, if it is given.
    Raises: grid_axis_out_of_range; grid_axes_duplicate; bad_reduction; element_type_unsupported.

    Source: MLIR, shard dialect, shard.all_reduce.
    """
    axes = axes_of(mesh, grid_axes)
    return _record_all_reduce(input, mesh, axes, reduction, result_type)


def _record_all_reduce(input: Value, mesh: Mesh, axes: Sequence[str], reduction: str, result_type: Any) -> Value:
    by = _choose_reducer(reduction, _result_type(input, result_type))
    found = _convert(input, result_type)
    if not axes:
        return found
    found = ops.all_reduce(found, to_apply=by, **group_attributes(mesh, axes, input.builder))
    return _divide(found, mesh.size(axes)) if reduction == "average" else found


def _divide(total: Value, count: int) -> Value:
    return derived.divide(total, np.asarray(count, shape_of(total).dtype.dtype))


def _result_type(input: Value, result_type: Any) -> PrimitiveType:
    return shape_of(input).dtype if result_type is None else primitive_type(result_type)


def _convert(input: Value, result_type: Any) -> Value:
    dtype = _result_type(input, result_type)
    return input if shape_of(input).dtype is dtype else derived.convert(input, dtype)


def _choose_reducer(reduction: str, dtype: PrimitiveType) -> Callable[..., Value]:
    if reduction == "average":
        if dtype.kind not in ("float", "complex"):
            refuse("element_type_unsupported", f"reduction='average' is not defined for {dtype}; use 'sum'")
        return ops.add
    if reduction not in _REDUCTIONS:
        refuse("bad_reduction", f"reduction={reduction!r}; expected one of {', '.join(_REDUCTIONS)} or average")
    if reduction in _BITWISE and dtype.kind in ("float", "complex"):
        refuse("element_type_unsupported", f"reduction={reduction} is not defined for {dtype}")
    return _REDUCTIONS[reduction]


@dressed
def all_slice(input: Value, *, mesh: Mesh, grid_axes: GridAxes = (), slice_axis: int) -> Value:
    """The piece of the device's own tensor at its number in the group; nothing is sent.

    Raises: grid_axis_out_of_range; grid_axes_duplicate; dimension_out_of_range; divisibility.

    Source: MLIR, shard dialect, shard.all_slice.
    """
    axes, axis = axes_of(mesh, grid_axes), tensor_axis("slice_axis", slice_axis, shape_of(input))
    return slice_own_piece(input, mesh, axes, axis, "slice_axis") if axes else input


@dressed
def all_to_all(input: Value, *, mesh: Mesh, grid_axes: GridAxes = (), split_axis: int, concat_axis: int) -> Value:
    """Piece k along `split_axis` of every member, concatenated along `concat_axis`; k is the device's number.

    Raises: grid_axis_out_of_range; grid_axes_duplicate; dimension_out_of_range; divisibility.

    Source: MLIR, shard dialect, shard.all_to_all.
    """
    axes, shape = axes_of(mesh, grid_axes), shape_of(input)
    split = tensor_axis("split_axis", split_axis, shape)
    concat = tensor_axis("concat_axis", concat_axis, shape)
    if not axes:
        return input
    count = mesh.size(axes)
    count_piece("split_axis", split, shape, count)
    around = exchange_attributes(mesh.groups(axes), input.builder)
    return ops.all_to_all(input, split_dimension=split, concat_dimension=concat, split_count=count, **around)


@dressed
def broadcast(input: Value, *, mesh: Mesh, grid_axes: GridAxes = (), root: Sequence[int]) -> Value:
    """The tensor of the root of the group, which is stated by a coordinate for each of the axes.

    Raises: grid_axis_out_of_range; grid_axes_duplicate; device_index_size; device_index_out_of_range.

    Source: MLIR, shard dialect, shard.broadcast.
    """
    axes = axes_of(mesh, grid_axes)
    return _from_root(input, mesh, axes, read_group_index("root", mesh, axes, root))


def _from_root(input: Value, mesh: Mesh, axes: Sequence[str], root: int) -> Value:
    if not axes:
        return input
    ordered = tuple((group[root], *group[:root], *group[root + 1 :]) for group in mesh.groups(axes))
    return ops.collective_broadcast(input, **exchange_attributes(ordered, input.builder))


@dressed
def gather(input: Value, *, mesh: Mesh, grid_axes: GridAxes = (), gather_axis: int, root: Sequence[int]) -> Value:
    """The result of all_gather on the root of each group; undefined on the other devices.

    Raises: as all_gather and broadcast.

    Source: MLIR, shard dialect, shard.gather.
    """
    axes, axis = axes_of(mesh, grid_axes), tensor_axis("gather_axis", gather_axis, shape_of(input))
    place = read_group_index("root", mesh, axes, root)
    if not axes:
        return input
    with undefined_except_on(mesh, (group[place] for group in mesh.groups(axes))):
        return _record_all_gather(input, mesh, axes, axis)


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
    """The result of all_reduce on the root of each group; undefined on the other devices.

    Raises: as all_reduce and broadcast.

    Source: MLIR, shard dialect, shard.reduce.
    """
    axes = axes_of(mesh, grid_axes)
    place = read_group_index("root", mesh, axes, root)
    _choose_reducer(reduction, _result_type(input, result_type))
    given = _convert(input, result_type)
    with undefined_except_on(mesh, (group[place] for group in mesh.groups(axes))):
        return _record_all_reduce(given, mesh, axes, reduction, None)


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
    """The piece at the device's number in the group of the reduction of the group's tensors.

    Raises: as all_reduce and all_slice.

    Source: MLIR, shard dialect, shard.reduce_scatter.
    """
    axes, shape = axes_of(mesh, grid_axes), shape_of(input)
    axis = tensor_axis("scatter_axis", scatter_axis, shape)
    by, given = _choose_reducer(reduction, _result_type(input, result_type)), _convert(input, result_type)
    if not axes:
        return given
    count = mesh.size(axes)
    count_piece("scatter_axis", axis, shape, count)
    around = group_attributes(mesh, axes, input.builder)
    found = ops.reduce_scatter(given, to_apply=by, scatter_dimension=axis, shard_count=count, **around)
    return _divide(found, count) if reduction == "average" else found


@dressed
def scatter(input: Value, *, mesh: Mesh, grid_axes: GridAxes = (), scatter_axis: int, root: Sequence[int]) -> Value:
    """The piece at the device's number in the group of the root's tensor.

    Raises: as all_slice and broadcast.

    Source: MLIR, shard dialect, shard.scatter.
    """
    axes, shape = axes_of(mesh, grid_axes), shape_of(input)
    axis = tensor_axis("scatter_axis", scatter_axis, shape)
    place = read_group_index("root", mesh, axes, root)
    if not axes:
        return input
    count_piece("scatter_axis", axis, shape, mesh.size(axes))
    return slice_own_piece(_from_root(input, mesh, axes, place), mesh, axes, axis, "scatter_axis")


# ----------------------------------------------------------------------------
# update_halo
#
# Each device gets rows of its neighbours, corners included.

Block = tuple[tuple[int, int], ...]  # begin and end in each dimension


@dressed
def update_halo(
    destination: Value, *, mesh: Mesh, split_axes: Sequence[Sequence[int | str]], halo_sizes: Sequence[int]
) -> Value:
    """The tensor with its halos filled from the neighbours along the axes that split each dimension.

    `halo_sizes` has two numbers for each split dimension: elements below and above. A device at a border of the grid
    keeps its halo there. Dimensions are exchanged from the last to the first, and blocks include the halos of later
    dimensions, so that corners come from diagonal neighbours.
    Raises: as xb.shard.sharding; dimension_mismatch if a halo is larger than the elements that a neighbour holds.

    Source: MLIR, shard dialect, shard.update_halo.
    """
    stated = sharding(mesh, split_axes, halo_sizes=halo_sizes)
    shape, halos = shape_of(destination), halos_of(stated)
    if len(stated.dims) > shape.rank:
        refuse("rank_mismatch", f"split_axes has {len(stated.dims)} lists, but {shape} has {shape.rank} dimensions")
    value = destination
    for dim in sorted(halos, reverse=True):
        axes = [axis.name for axis in stated.dims[dim].axes]
        value = _exchange_halos(value, mesh, axes, dim, halos)
    return value


def _exchange_halos(
    value: Value, mesh: Mesh, axes: Sequence[str], dim: int, halos: dict[int, tuple[int, int]]
) -> Value:
    """Both halos of one dimension."""
    extents = shape_of(value).dims
    below, above = halos[dim]
    core = extents[dim] - below - above
    if core < max(below, above):
        message = f"dimension {dim} has {max(core, 0)} elements inside its halos of {below} and {above}, too few for a "
        refuse("dimension_mismatch", f"{message}neighbour to fill its own")
    count, whole = mesh.size(axes), [(0, extent) for extent in extents]
    for earlier, (low, high) in halos.items():
        if earlier < dim:
            whole[earlier] = (low, extents[earlier] - high)
    place = place_read_group_index(value.builder, mesh, axes)
    upward = [(n, n + 1) for n in range(count - 1)]
    found = value
    if above:
        sent, kept = (below, below + above), (below + core, extents[dim])
        has = derived.lt(place, np.int32(count - 1))
        found = _fill_halo(
            found, mesh, axes, [(b, a) for a, b in upward], _at(whole, dim, sent), _at(whole, dim, kept), has
        )
    if below:
        sent, kept = (core, core + below), (0, below)
        has = derived.gt(place, np.int32(0))
        found = _fill_halo(found, mesh, axes, upward, _at(whole, dim, sent), _at(whole, dim, kept), has)
    return found


def _at(whole: Sequence[tuple[int, int]], dim: int, span: tuple[int, int]) -> Block:
    return (*whole[:dim], span, *whole[dim + 1 :])


def _fill_halo(
    value: Value,
    mesh: Mesh,
    axes: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    sent: Block,
    kept: Block,
    has_neighbour: Value,
) -> Value:
    """The value with a halo replaced by the block that a neighbour sends, if there is a neighbour."""
    builder = value.builder
    through = mesh.pairs(axes, pairs)
    came = ops.collective_permute(
        _slice_block(value, sent), source_target_pairs=through, channel_id=next_channel(builder)
    )
    new = derived.select(has_neighbour, came, _slice_block(value, kept))
    starts = [derived.constant(builder, np.int32(begin)) for begin, _ in kept]
    return ops.dynamic_update_slice(value, new, starts)


def _slice_block(value: Value, block: Block) -> Value:
    return derived.slice(value, [begin for begin, _ in block], [end for _, end in block], [1] * len(block))


# ----------------------------------------------------------------------------
# Shifts, and sends and receives by coordinates


@dressed
def shift(
    input: Value,
    *,
    mesh: Mesh,
    grid_axes: Sequence[int | str] = (),
    shift_axis: int | str,
    offset: int,
    rotate: bool = False,
) -> Value:
    """The tensor of the device that is `offset` positions before this one along an axis of the group.

    With `rotate` positions wrap around; without it the result is undefined on devices to which no device sends.
    Raises: grid_axis_out_of_range; grid_axes_duplicate; shift_axis_not_in_group.

    Source: MLIR, shard dialect, shard.shift; the direction is that of JAX's examples of ppermute.
    """
    axes = axes_of(mesh, grid_axes)
    (axis,) = axes_of(mesh, [shift_axis], "shift_axis")
    if axis not in axes:
        message = f"invalid shift axis {shift_axis}: it must be one of the grouping grid axes {[*grid_axes]}"
        refuse("shift_axis_not_in_group", message)
    size = mesh.size(axis)
    moved = [(place, place + offset) for place in range(size)]
    moved = [(a, b % size) for a, b in moved if rotate or 0 <= b < size]
    pairs = mesh.pairs(axis, moved)
    with undefined_except_on(mesh, (target for _, target in pairs)):
        return ops.collective_permute(input, source_target_pairs=pairs, channel_id=next_channel(input.builder))


@frozen(eq=False)
class _PendingSend:
    """A send that has no matching recv yet."""

    value: Value
    mesh: Mesh
    axes: tuple[str, ...]
    destination: int


_SENT: WeakKeyDictionary[Builder, list[_PendingSend]] = WeakKeyDictionary()


@dressed
def send(input: Value, *, mesh: Mesh, grid_axes: Sequence[int | str] = (), destination: Sequence[int]) -> Value:
    """Send the tensor to a device of the group, by a coordinate for each of the axes; returns the tensor itself.

    The next `recv` with this grid, axes and shape matches it: all devices run the same program, and the source that the
    recv names passes its tensor to the destination. The transfer is recorded with that recv.
    Raises: grid_axis_out_of_range; grid_axes_duplicate; device_index_size; device_index_out_of_range.

    Source: MLIR, shard dialect, shard.send.
    """
    axes = axes_of(mesh, grid_axes)
    sent = _PendingSend(input, mesh, axes, read_group_index("destination", mesh, axes, destination))
    _SENT.setdefault(input.builder, []).append(sent)
    return input


@dressed
def recv(
    input: Value, *, mesh: Mesh, grid_axes: Sequence[int | str] = (), source: Sequence[int] | None = None
) -> Value:
    """The tensor that a device of the group sends, on its destination; undefined on the other devices.

    The values of `input` are ignored. The source may be omitted if the group has two members: it is the other one.
    Raises: as send; missing_send if no send with this grid, axes and shape precedes it.

    Source: MLIR, shard dialect, shard.recv.
    """
    axes = axes_of(mesh, grid_axes)
    place = None if source is None else read_group_index("source", mesh, axes, source)
    sent = _take_matching_send(input, mesh, axes)
    if place is None and mesh.size(axes) == 2:
        place = 1 - sent.destination
    if place is None:
        refuse(
            "device_index_size",
            f"a recv without a source is allowed only in a group of 2 devices; this group has {mesh.size(axes)}",
        )
    pairs = tuple((group[place], group[sent.destination]) for group in mesh.groups(axes))
    return _record_transfer(sent.value, mesh, pairs)


def _take_matching_send(input: Value, mesh: Mesh, axes: tuple[str, ...]) -> _PendingSend:
    """The first pending send that matches the recv, which is no longer pending then."""
    pending = _SENT.get(input.builder, [])
    key = mesh, axes, shape_of(input)
    match = next((each for each in pending if (each.mesh, each.axes, shape_of(each.value)) == key), None)
    if match is None:
        message = (
            f"no send of {shape_of(input)} along {', '.join(axes)} of {mesh} precedes this recv; record the send first"
        )
        refuse("missing_send", message)
    pending.remove(match)
    return match


def _record_transfer(value: Value, mesh: Mesh, pairs: Pairs) -> Value:
    channel = next_channel(value.builder)
    token = derived.after_all(builder=value.builder)
    posted = ops.recv(token, shape=shape_of(value), channel_id=channel, source_target_pairs=pairs)
    begun = ops.send(value, token, channel_id=channel, source_target_pairs=pairs)
    received = ops.recv_done(posted, channel_id=channel)
    ops.send_done(begun, channel_id=channel)
    with undefined_except_on(mesh, (target for _, target in pairs)):
        return derived.get_tuple_element(received, 0)


# ----------------------------------------------------------------------------
# Runs of programs whose results may be undefined on some devices


def run(module: Module, arguments: Sequence[Sequence[Any]], **options: Any) -> list[Any]:
    """The results of a program on each device, with None for results that are undefined there.

    Takes the options of `xb.execute`. A result that an op computes from an undefined value is returned as it is; with
    `strict=True` the run reports that use.

    >>> import numpy as np, xbuild as xb
    >>> grid = xb.shard.grid([2])
    >>> def moved(x):
    ...     return xb.shard.shift(x, mesh=grid, grid_axes=[0], shift_axis=0, offset=1)
    >>> module = xb.Module("moved", xb.computation(xb.f32[1])(moved), num_partitions=2)
    >>> xb.shard.run(module, [[np.float32([3])], [np.float32([4])]])
    [None, array([3.], dtype=float32)]
    """
    from ..running import execute

    leaves = undefined_on(module.entry.root)
    results = execute(module, [list(each) for each in arguments], **options)
    return [_hide_undefined(value, leaves, device) for device, value in enumerate(results)]


def _hide_undefined(value: Any, leaves: tuple[Devices, ...], device: int) -> Any:
    if isinstance(value, tuple) and len(value) == len(leaves):
        return tuple(None if device in each else one for one, each in zip(value, leaves, strict=True))
    return None if device in leaves[0] else value
