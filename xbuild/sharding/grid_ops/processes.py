"""Indices of processes, sizes of grids, and shapes of parts, as ops of the shard dialect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from shape_inference import refuse, s32

from ... import derived, ops
from ...core.builder import Builder, Value
from ...core.context import annotated
from ...core.graph import Instruction
from ...derived.support.dressing import dressed
from ...properties.mesh import Mesh
from ...text.spelling.notes import Raw
from ..hlo_text import AnySharding, hlo_text
from ..local_shapes import shard_shape as static_shard_shape
from ..sharding import Sharding
from ..stored import SHARDING, sharding_of
from .groups import axes_of, own_place, place_in_group, shape_of

ANNOTATE_FOR_USERS = "xbuild.annotate_for_users"


@dressed
def process_linear_index(builder: Builder, *, mesh: Mesh) -> Value:
    """The number of this device, row by row in the grid, as s32[].

    Source: MLIR, shard dialect, shard.process_linear_index.
    """
    return ops.convert(own_place(builder, mesh), new_element_type=s32)


@dressed
def process_multi_index(builder: Builder, *, mesh: Mesh, axes: Sequence[int | str] = ()) -> tuple[Value, ...]:
    """The coordinates of this device along the axes, or along all of them where none is named, each as s32[].

    Raises: grid_axis_out_of_range; grid_axes_duplicate.

    Source: MLIR, shard dialect, shard.process_multi_index.
    """
    return tuple(place_in_group(builder, mesh, [axis]) for axis in axes_of(mesh, axes, "axes") or mesh.axes)


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
    """The numbers of the devices before and after one along the axes, each as s32[]; -1 where there is none.

    `device` has a coordinate for each axis of the grid, numbers or values. Several axes are counted as one, the first
    outermost.
    Raises: device_index_size; grid_axis_out_of_range; grid_axes_duplicate.

    Source: MLIR, shard dialect, shard.neighbors_linear_indices.
    """
    axes = axes_of(mesh, split_axes, "split_axes")
    if len(device) != len(mesh.axes):
        message = f"device has unexpected multi-index size {len(device)}, and the grid {mesh} has {len(mesh.axes)} axes"
        refuse("device_index_size", message)
    coordinates = [derived.convert(number(builder, each), s32) for each in device]
    places = np.arange(mesh.num_devices, dtype=np.int32).reshape(mesh.shape)
    found = [_table(builder, mesh, axes, places, step, coordinates) for step in (-1, 1)]
    return found[0], found[1]


def _table(
    builder: Builder, mesh: Mesh, axes: Sequence[str], places: np.ndarray[Any, Any], step: int, index: Sequence[Value]
) -> Value:
    """The place `step` further along the axes for each device, looked up at the coordinates."""
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


def number(builder: Builder, given: Any) -> Value:
    """A value as it is, a number as a constant s32[]."""
    return given if isinstance(given, Value) else derived.constant(builder, np.int32(given))


@dressed
def shard(input: Value, sharding: Sharding, *, annotate_for_users: bool = False) -> Value:
    """The tensor, noted to be cut by the sharding: by the op that makes it, or with `annotate_for_users` for its use.

    It is recorded as the custom call "Sharding".
    Raises: rank_mismatch where the sharding has more lists than the tensor has dimensions; sharding_conflict for two
    annotations whose order has no meaning: of one result twice, of one use twice, of a result after a use.

    Source: MLIR, shard dialect, shard.shard.
    """
    shape = shape_of(input)
    if len(sharding.dims) > shape.rank:
        refuse("rank_mismatch", f"the sharding has {len(sharding.dims)} lists, and {shape} has {shape.rank} dimensions")
    check_chain(input.instruction, input.builder.recorded_since(0), sharding, annotate_for_users)
    notes: dict[str, Any] = {SHARDING: Raw(hlo_text(sharding, shape.rank))}
    if annotate_for_users:
        notes["frontend_attributes"] = {ANNOTATE_FOR_USERS: "true"}
    with annotated(**notes):
        return ops.custom_call([input], custom_call_target="Sharding", shape=shape)


def check_chain(
    source: Instruction, recorded: Iterable[Instruction], sharding: Sharding, annotate_for_users: bool
) -> None:
    """Refuse an annotation of a value that has no meaning behind those that are recorded (sharding_conflict)."""
    if not is_shard(source):
        users = [each for each in recorded if is_shard(each) and each.operands[0] is source]
        others = [] if annotate_for_users else [each for each in users if not is_for_users(each)]
        _check_equal(others, sharding, "the result of")
        return
    if is_for_users(source) and not annotate_for_users:
        message = f"a use of {source.operands[0].name} is annotated before its result"
        refuse("sharding_conflict", message, "annotate the result first, then each use")
    if is_for_users(source) == annotate_for_users:
        _check_equal([source], sharding, "a use of" if annotate_for_users else "the result of")


def _check_equal(shards: Sequence[Instruction], sharding: Sharding, what: str) -> None:
    for each in shards:
        if sharding_of(each) != sharding.padded(len(each.shape.dims)):  # type: ignore[union-attr]
            refuse("sharding_conflict", f"{what} {each.operands[0].name} is annotated with two different shardings")


def is_shard(instruction: Instruction) -> bool:
    """Whether an instruction is what `shard` records."""
    target = getattr(instruction.attributes, "custom_call_target", None)
    return instruction.opcode == "custom_call" and target == "Sharding"


def is_for_users(instruction: Instruction) -> bool:
    """Whether a recorded `shard` annotates the use that follows, and not the result of its operand."""
    return ANNOTATE_FOR_USERS in instruction.annotations.get("frontend_attributes", {})


def get_sharding(source: Value) -> AnySharding | None:
    """The sharding that is noted of a value; None where there is none.

    Source: MLIR, shard dialect, shard.get_sharding.
    """
    return sharding_of(source.instruction)


@dressed
def shard_shape(
    dims: Sequence[int], sharding: Sharding, device: Sequence[Any], *, builder: Builder | None = None
) -> tuple[Any, ...]:
    """The extents of the part that a device holds, from its coordinates in the grid: numbers, or values s32[].

    Numbers give numbers; where a coordinate is a value of the builder, so are the results.
    Raises: device_index_size; device_index_out_of_range; rank_mismatch.

    >>> import xbuild as xb
    >>> xb.shard.shard_shape([14], xb.shard.sharding(xb.shard.grid([4]), [[0]]), [3])
    (4,)

    Source: MLIR, shard dialect, shard.shard_shape.
    """
    mesh = sharding.mesh
    if len(device) != len(mesh.axes):
        message = f"device has unexpected multi-index size {len(device)}, and the grid {mesh} has {len(mesh.axes)} axes"
        refuse("device_index_size", message)
    values = [each for each in device if isinstance(each, Value)]
    if not values:
        return static_shard_shape(sharding, dims, _device(mesh, device))
    table = np.array([static_shard_shape(sharding, dims, number) for number in _row_by_row(mesh)], np.int32)
    whole = table.reshape(*mesh.shape, len(dims))
    builder = builder or values[0].builder
    starts = [derived.convert(number(builder, each), s32) for each in device]
    sizes = [1] * len(starts)
    slices = [derived.constant(builder, whole[..., k]) for k in range(len(dims))]
    return tuple(derived.reshape(ops.dynamic_slice(each, starts, dynamic_slice_sizes=sizes), ()) for each in slices)


def _row_by_row(mesh: Mesh) -> Sequence[int]:
    return mesh.device_ids or range(mesh.num_devices)


def _device(mesh: Mesh, coordinates: Sequence[int]) -> int:
    for axis, (each, size) in enumerate(zip(coordinates, mesh.shape, strict=True)):
        if not 0 <= each < size:
            message = f"out of bounds coordinate {axis} for device: got {each}, but expected a value in the range "
            refuse("device_index_out_of_range", f"{message}[0, {size - 1}]")
    return mesh.device(**dict(zip(mesh.axes, map(int, coordinates), strict=True)))
