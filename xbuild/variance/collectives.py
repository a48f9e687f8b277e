"""Collectives by axis name, on arrays and nested values: what they record, and casts between states of an axis.

Sections:

    Recording of collectives
    Casts between the states of an axis
    Collectives between devices
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from shape_inference import Shape, pred, refuse, s32
from shape_inference.dims import array

from .. import derived, ops
from ..core.builder import Builder, Value
from ..core.context import marked
from ..derived.support import dressed
from .program import ManualRegion, current
from .types import CAST, COLLECTIVE, NamedCollective

# ----------------------------------------------------------------------------
# Recording of collectives
#
# Each instruction is marked with the name and the axes.

AxisNames: TypeAlias = "str | Sequence[str]"


def map_values(function: Callable[[Value], Value], operand: Any, region: ManualRegion) -> Any:
    """Apply a function to every array of a value, which may be a number, or a list or tuple of values."""
    if isinstance(operand, (list, tuple)):
        return type(operand)(map_values(function, part, region) for part in operand)
    if not isinstance(operand, Value):
        operand = derived.constant(region.builder, operand)
    return function(operand)


def marked_as(op: str, axes: Iterable[str]) -> Any:
    """A context in which the recorded op is marked as this collective."""
    return marked(**{COLLECTIVE: NamedCollective(op, tuple(axes)).text()})


def group_attributes(region: ManualRegion, axes: tuple[str, ...]) -> dict[str, Any]:
    """The attributes of a collective that covers groups of devices, or partitions."""
    attributes: dict[str, Any] = {"replica_groups": region.mesh.groups(axes)}
    if region.uses_partitions:
        attributes |= {"channel_id": region.channel(), "use_global_device_ids": True}
    return attributes


def exchange_attributes(region: ManualRegion, axes: tuple[str, ...]) -> dict[str, Any]:
    """The same attributes for a collective whose channel id implies that ids are partitions."""
    return {"replica_groups": region.mesh.groups(axes), "channel_id": region.channel()}


def shape_of(operand: Value) -> Shape:
    return array("operand", operand.shape)


def read_dimension(attribute: str, given: int, rank: int) -> int:
    """A dimension number, which may count from the end."""
    if not isinstance(given, (int, np.integer)) or not -rank <= given < rank:
        refuse("dimension_out_of_range", f"{attribute}={given!r}; expected one of the dimensions 0..{rank - 1}")
    return int(given) % rank


def record_all_reduce(
    op: str, by: Callable[..., Value], operand: Value, region: ManualRegion, axes: tuple[str, ...]
) -> Value:
    """An all-reduce over the axes."""
    if shape_of(operand).dtype is pred and op == "psum":
        operand = derived.convert(operand, s32)
    with marked_as(op, axes):
        return ops.all_reduce(operand, to_apply=by, **group_attributes(region, axes))


def record_all_gather(
    op: str, operand: Value, region: ManualRegion, axes: tuple[str, ...], axis: int, tiled: bool
) -> Value:
    """An all-gather over the axes: concatenated, or stacked in a new dimension."""
    shape = shape_of(operand)
    axis = read_dimension("axis", axis, shape.rank + (not tiled))
    if not tiled:
        operand = derived.reshape(operand, (*shape.dims[:axis], 1, *shape.dims[axis:]))
    with marked_as(op, axes):
        return ops.all_gather(
            operand, all_gather_dimension=axis, shard_count=region.mesh.size(axes), **group_attributes(region, axes)
        )


def record_reduce_scatter(
    operand: Value, region: ManualRegion, axes: tuple[str, ...], scatter: int, tiled: bool
) -> Value:
    """A reduce-scatter over the axes; unless it is tiled, the dimension is removed."""
    scatter = read_split_dimension("scatter_dimension", operand, region, axes, scatter, tiled)
    with marked_as("psum_scatter", axes):
        found = ops.reduce_scatter(
            operand,
            to_apply=ops.add,
            scatter_dimension=scatter,
            shard_count=region.mesh.size(axes),
            **group_attributes(region, axes),
        )
    return found if tiled else drop_dimension(found, scatter)


def record_own_slice(operand: Value, region: ManualRegion, axes: tuple[str, ...], scatter: int, tiled: bool) -> Value:
    """This device's slice along the axes."""
    scatter = read_split_dimension("scatter_dimension", operand, region, axes, scatter, tiled)
    dims = list(shape_of(operand).dims)
    dims[scatter] //= region.mesh.size(axes)
    place = coordinate(region, axes, operand.builder)
    start = place if dims[scatter] == 1 else place * dims[scatter]
    zero = derived.constant(operand.builder, np.int32(0))
    starts = [start if number == scatter else zero for number in range(len(dims))]
    with marked_as("pscatter", axes):
        found = ops.dynamic_slice(operand, starts, dynamic_slice_sizes=dims)
    return found if tiled else drop_dimension(found, scatter)


def read_split_dimension(
    attribute: str, operand: Value, region: ManualRegion, axes: tuple[str, ...], given: int, tiled: bool
) -> int:
    """The number of a dimension that the axes split: their size divides it, or equals it unless it is tiled."""
    shape, size = shape_of(operand), region.mesh.size(axes)
    found = read_dimension(attribute, given, shape.rank)
    extent = shape.dims[found]
    if tiled and extent % size:
        message = f"{attribute}={found} of operand {shape} has extent {extent}, which is not divisible by the "
        refuse("divisibility", f"{message}{size} devices along {', '.join(axes)}")
    if not tiled and extent != size:
        message = f"{attribute}={found} of operand {shape} has extent {extent}, expected {size}, the number of "
        refuse("divisibility", f"{message}devices along {', '.join(axes)}; tiled=True splits it instead")
    return found


def drop_dimension(operand: Value, axis: int) -> Value:
    """The value with a dimension of extent 1 removed."""
    dims = shape_of(operand).dims
    return derived.reshape(operand, (*dims[:axis], *dims[axis + 1 :]))


def record_all_to_all(
    operand: Value, region: ManualRegion, axes: tuple[str, ...], split: int, concat: int, tiled: bool
) -> Value:
    """An all-to-all over the axes: split along one dimension, concatenated along another."""
    split = read_split_dimension("split_axis", operand, region, axes, split, tiled)
    rank, size = shape_of(operand).rank, region.mesh.size(axes)
    joined = read_dimension("concat_axis", concat, rank) if tiled else split
    with marked_as("all_to_all", axes):
        found = ops.all_to_all(
            operand,
            split_dimension=split,
            concat_dimension=joined,
            split_count=size,
            **exchange_attributes(region, axes),
        )
    if tiled:
        return found
    others = [number for number in range(rank) if number != split]
    others.insert(read_dimension("concat_axis", concat, rank), split)
    return found if others == sorted(others) else derived.transpose(found, others)


def coordinate(region: ManualRegion, axes: tuple[str, ...], builder: Builder | None = None) -> Value:
    """The position of this device along the axes, row by row in their order, as s32[]."""
    builder, mesh = builder or region.builder, region.mesh
    own = ops.partition_id(builder) if region.uses_partitions else ops.replica_id(builder)
    if mesh.device_ids is not None:
        places = derived.constant(builder, np.argsort(mesh.device_ids).astype(np.uint32))
        own = derived.reshape(ops.dynamic_slice(places, [own], dynamic_slice_sizes=(1,)), ())
    if axes == mesh.axes:
        found = own
    else:
        found = _record_coordinate(own, region, axes[0])
        for axis in axes[1:]:
            found = found * np.uint32(mesh.size(axis)) + _record_coordinate(own, region, axis)
    with marked_as("axis_index", axes):
        return ops.convert(found, new_element_type=s32)


def _record_coordinate(own: Value, region: ManualRegion, axis: str) -> Value:
    """The coordinate along one axis, computed from the device's position."""
    mesh = region.mesh
    stride, size = mesh.stride(axis), mesh.size(axis)
    found = own if stride == 1 else own / np.uint32(stride)
    return found if stride * size == mesh.num_devices else found % np.uint32(size)


def record_permute(
    operand: Value, region: ManualRegion, axes: tuple[str, ...], pairs: Sequence[tuple[int, int]]
) -> Value:
    """A permutation along the axes in every group."""
    with marked_as("ppermute", axes):
        return ops.collective_permute(
            operand, source_target_pairs=region.mesh.pairs(axes, pairs), channel_id=region.channel()
        )


def record_broadcast(operand: Value, region: ManualRegion, axes: tuple[str, ...], source: int) -> Value:
    """The value at one position along the axes, in every group."""
    ordered = [(group[source], *group[:source], *group[source + 1 :]) for group in region.mesh.groups(axes)]
    with marked_as("pbroadcast", axes):
        return ops.collective_broadcast(operand, replica_groups=ordered, channel_id=region.channel())


def cast(operand: Value, op: str, axes: tuple[str, ...]) -> Value:
    """The value in a different state along the axes: a copy in typed programs, nothing in those that run."""
    with marked(**{CAST: NamedCollective(op, axes).text()}):
        return ops.copy(operand)


def read_axes(name: str, axis_name: AxisNames) -> tuple[ManualRegion, tuple[str, ...]]:
    """The region that is recorded, and the named axes in their order."""
    region = current(name)
    axes = region.mesh.named(axis_name)
    if not axes:
        refuse("invalid_attribute", f"{name}: expected at least 1 axis name, got none")
    return region, axes


# ----------------------------------------------------------------------------
# Casts between the states of an axis
#
# They move no data.

_TO = ("varying", "reduced", "unreduced")


@dressed
def pcast(operand: Any, axis_name: AxisNames, *, to: Literal["varying", "reduced", "unreduced"]) -> Any:
    """The value in a different state along the axes.

    There are four casts: invarying to varying, invarying to reduced, reduced to varying, varying to unreduced.
    Raises: unbound_axis; invalid_attribute for an unknown `to`; unsupported_cast for to='invarying'; unsupported_cast
    or already_varying if the operand is in another state; mixed_axis_state.

    >>> import xbuild as xb
    >>> program = xb.shard_map(lambda w: xb.mesh.pcast(w, "i", to="reduced"), xb.Mesh(i=2), xb.P(), xb.P(reduced="i"))
    >>> program(xb.f32[2]).result
    'f32[2]{R:i}'

    Source: JAX, jax.lax.pcast.
    """
    if to == "invarying":  # type: ignore[comparison-overlap]
        refuse(
            "unsupported_cast",
            "a value cannot be cast to invarying, because a cast cannot guarantee that all devices hold the same value",
            "combine the values with xb.mesh.psum, xb.mesh.pmax or xb.mesh.all_gather_invariant",
        )
    if to not in _TO:
        refuse("invalid_attribute", f"to={to!r}; expected one of {', '.join(_TO)}")
    region, axes = read_axes("pcast", axis_name)
    return map_values(lambda x: cast(x, f"to_{to}", axes), operand, region)


@dressed
def pvary(operand: Any, axis_name: AxisNames) -> Any:
    """An invarying value as one that may vary along the axes; its transpose is psum.

    Raises: unbound_axis; already_varying; unsupported_cast; mixed_axis_state.

    >>> import xbuild as xb
    >>> program = xb.shard_map(lambda w: xb.mesh.pvary(w, "i"), xb.Mesh(i=2), xb.P(), xb.P("i"))
    >>> program(xb.f32[2]).result
    'f32[2]{V:i}'

    Source: JAX, jax.lax.pvary.
    """
    region, axes = read_axes("pvary", axis_name)
    return map_values(lambda x: cast(x, "pvary", axes), operand, region)


# ----------------------------------------------------------------------------
# Collectives between devices
#
# They take arrays, numbers, and lists and tuples of these.


@dressed
def psum(operand: Any, axis_name: AxisNames) -> Any:
    """The sum over the devices along the axes: varying, or unreduced, to invarying.

    An invarying operand counts once for each device. pred is added as s32.
    Raises: unbound_axis; mixed_axis_state if the axes are in several states; state_mismatch for a reduced operand.

    >>> import numpy as np, xbuild as xb
    >>> total = xb.shard_map(lambda x: xb.mesh.psum(x, "i"), xb.Mesh(i=2), xb.P("i"), xb.P())
    >>> total(np.array([1, 2, 30, 40]))
    array([31, 42])

    Source: JAX, jax.lax.psum.
    """
    region, axes = read_axes("psum", axis_name)
    return map_values(lambda x: record_all_reduce("psum", ops.add, x, region, axes), operand, region)


@dressed
def pmax(operand: Any, axis_name: AxisNames) -> Any:
    """The maximum over the devices along the axes: varying to invarying.

    Raises: as psum; nonlinear_on_unreduced for an unreduced operand.

    >>> import numpy as np, xbuild as xb
    >>> largest = xb.shard_map(lambda x: xb.mesh.pmax(x, "i"), xb.Mesh(i=2), xb.P("i"), xb.P())
    >>> largest(np.array([1, 40, 30, 4]))
    array([30, 40])

    Source: JAX, jax.lax.pmax.
    """
    region, axes = read_axes("pmax", axis_name)
    return map_values(lambda x: record_all_reduce("pmax", ops.maximum, x, region, axes), operand, region)


@dressed
def pmin(operand: Any, axis_name: AxisNames) -> Any:
    """The minimum over the devices along the axes: varying to invarying.

    Raises: as pmax.

    >>> import numpy as np, xbuild as xb
    >>> smallest = xb.shard_map(lambda x: xb.mesh.pmin(x, "i"), xb.Mesh(i=2), xb.P("i"), xb.P())
    >>> smallest(np.array([1, 40, 30, 4]))
    array([1, 4])

    Source: JAX, jax.lax.pmin.
    """
    region, axes = read_axes("pmin", axis_name)
    return map_values(lambda x: record_all_reduce("pmin", ops.minimum, x, region, axes), operand, region)


@dressed
def pmean(operand: Any, axis_name: AxisNames) -> Any:
    """The mean over the devices along the axes: psum, divided by their number.

    Raises: as psum.

    >>> import numpy as np, xbuild as xb
    >>> mean = xb.shard_map(lambda x: xb.mesh.pmean(x, "i"), xb.Mesh(i=2), xb.P("i"), xb.P())
    >>> mean(np.array([1.0, 2.0, 3.0, 4.0]))
    array([2., 3.])

    Source: JAX, jax.lax.pmean.
    """
    region, axes = read_axes("pmean", axis_name)
    size = region.mesh.size(axes)
    return map_values(
        lambda x: derived.divide(record_all_reduce("psum", ops.add, x, region, axes), size), operand, region
    )


@dressed
def all_gather(operand: Any, axis_name: AxisNames, *, axis: int = 0, tiled: bool = False) -> Any:
    """The operands of all devices along the axes: varying to varying, although every device gets the same.

    They are stacked in a new dimension, or concatenated if `tiled`, in row-major order of the named axes.
    Its transpose is psum_scatter; that of all_gather_invariant needs no communication.
    Raises: as psum; state_mismatch also for an unreduced operand; dimension_out_of_range.

    >>> import numpy as np, xbuild as xb
    >>> everywhere = xb.shard_map(lambda x: xb.mesh.all_gather(x, "i"), xb.Mesh(i=2), xb.P("i"), xb.P("i"))
    >>> everywhere(np.array([1, 2]))
    array([[1],
           [2],
           [1],
           [2]])

    Source: JAX, jax.lax.all_gather.
    """
    region, axes = read_axes("all_gather", axis_name)
    return map_values(lambda x: record_all_gather("all_gather", x, region, axes, axis, tiled), operand, region)


@dressed
def all_gather_invariant(operand: Any, axis_name: AxisNames, *, axis: int = 0, tiled: bool = False) -> Any:
    """The operands of all devices along the axes: varying to invarying.

    The data are those of all_gather; the transpose is the device's own slice, which needs no communication.
    Raises: as all_gather.

    >>> import numpy as np, xbuild as xb
    >>> whole = xb.shard_map(
    ...     lambda x: xb.mesh.all_gather_invariant(x, "i", tiled=True), xb.Mesh(i=2), xb.P("i"), xb.P()
    ... )
    >>> whole(np.array([1, 2, 3, 4]))
    array([1, 2, 3, 4])

    Source: JAX, jax.lax.all_gather (to="invarying"), formerly all_gather_invariant.
    """
    region, axes = read_axes("all_gather_invariant", axis_name)
    return map_values(
        lambda x: record_all_gather("all_gather_invariant", x, region, axes, axis, tiled), operand, region
    )


@dressed
def all_gather_reduced(operand: Any, axis_name: AxisNames, *, axis: int = 0, tiled: bool = False) -> Any:
    """The operands of all devices along the axes: varying to reduced, whose cotangent is unreduced.

    Raises: as all_gather; state_mismatch for an invarying operand, which is not cast.

    >>> import xbuild as xb
    >>> gather = lambda x: xb.mesh.all_gather_reduced(x, "i", tiled=True)
    >>> xb.shard_map(gather, xb.Mesh(i=2), xb.P("i"), xb.P(reduced={"i"}))(xb.f32[4]).result
    'f32[4]{R:i}'

    Source: JAX, jax.lax.all_gather (to="reduced").
    """
    region, axes = read_axes("all_gather_reduced", axis_name)
    return map_values(lambda x: record_all_gather("all_gather_reduced", x, region, axes, axis, tiled), operand, region)


@dressed
def psum_scatter(operand: Any, axis_name: AxisNames, *, scatter_dimension: int = 0, tiled: bool = False) -> Any:
    """The device's own part of the sum over the devices along the axes: varying, or unreduced, to varying.

    The dimension is split into as many parts as there are devices; unless `tiled`, it has that extent and is removed.
    Raises: as psum; divisibility; dimension_out_of_range.

    >>> import numpy as np, xbuild as xb
    >>> parts = xb.shard_map(lambda x: xb.mesh.psum_scatter(x, "i"), xb.Mesh(i=2), xb.P("i"), xb.P())
    >>> share = lambda x: xb.mesh.psum_scatter(x, "i", tiled=True)
    >>> xb.shard_map(share, xb.Mesh(i=2), xb.P("i"), xb.P("i"))(np.array([1, 2, 30, 40]))
    array([31, 42])

    Source: JAX, jax.lax.psum_scatter.
    """
    region, axes = read_axes("psum_scatter", axis_name)
    return map_values(lambda x: record_reduce_scatter(x, region, axes, scatter_dimension, tiled), operand, region)


@dressed
def pscatter(operand: Any, axis_name: AxisNames, *, scatter_dimension: int = 0, tiled: bool = True) -> Any:
    """The device's own part of a value that all devices along the axes hold: invarying to varying, nothing is sent.

    Raises: as psum_scatter; state_mismatch unless the operand is invarying.

    >>> import numpy as np, xbuild as xb
    >>> own = xb.shard_map(lambda x: xb.mesh.pscatter(x, "i") * 10, xb.Mesh(i=2), xb.P(), xb.P("i"))
    >>> own(np.array([1, 2, 3, 4]))
    array([10, 20, 30, 40])

    Source: JAX, the transpose of all_gather_invariant, which has no name there.
    """
    region, axes = read_axes("pscatter", axis_name)
    return map_values(lambda x: record_own_slice(x, region, axes, scatter_dimension, tiled), operand, region)


@dressed
def all_to_all(operand: Any, axis_name: AxisNames, split_axis: int, concat_axis: int, *, tiled: bool = False) -> Any:
    """Part k of every operand goes to device k along the axes, which concatenates the parts: varying to varying.

    If `tiled`, `split_axis` is split and `concat_axis` grows; else `split_axis` has as many elements as there are
    devices and is removed, and a new dimension of that extent is inserted at `concat_axis`.
    Raises: as psum; state_mismatch also for an unreduced operand; divisibility; dimension_out_of_range.

    >>> import numpy as np, xbuild as xb
    >>> swap = xb.shard_map(
    ...     lambda x: xb.mesh.all_to_all(x, "i", 0, 0, tiled=True), xb.Mesh(i=2), xb.P("i"), xb.P("i")
    ... )
    >>> swap(np.array([1, 2, 30, 40]))
    array([ 1, 30,  2, 40])

    Source: JAX, jax.lax.all_to_all.
    """
    region, axes = read_axes("all_to_all", axis_name)
    return map_values(lambda x: record_all_to_all(x, region, axes, split_axis, concat_axis, tiled), operand, region)


@dressed
def ppermute(operand: Any, axis_name: AxisNames, perm: Sequence[tuple[int, int]] | Mapping[int, int]) -> Any:
    """The value of the device that sends to this one along the axes; zeros if none does.

    `perm` has pairs of a source and a target, as positions along the axes. Varying to varying.
    Raises: as psum; state_mismatch also for an unreduced operand; invalid_group for a position out of range, or one
    that is twice a source or twice a target.

    >>> import numpy as np, xbuild as xb
    >>> swap = lambda x: xb.mesh.ppermute(x, "i", [(0, 1), (1, 0)])
    >>> xb.shard_map(swap, xb.Mesh(i=2), xb.P("i"), xb.P("i"))(np.array([1, 2, 3, 4]))
    array([3, 4, 1, 2])

    Source: JAX, jax.lax.ppermute.
    """
    region, axes = read_axes("ppermute", axis_name)
    pairs = _pairs(perm, region.mesh.size(axes))
    return map_values(lambda x: record_permute(x, region, axes, pairs), operand, region)


def _pairs(perm: Any, size: int) -> list[tuple[int, int]]:
    pairs = [(int(a), int(b)) for a, b in (perm.items() if isinstance(perm, Mapping) else perm)]
    for place, role in ((0, "source"), (1, "target")):
        for number, pair in enumerate(pairs):
            if not 0 <= pair[place] < size:
                refuse("invalid_group", f"perm {pairs}: {role} {pair[place]} is not one of the positions 0..{size - 1}")
            if pair[place] in (earlier[place] for earlier in pairs[:number]):
                refuse("invalid_group", f"perm {pairs}: {role} {pair[place]} appears twice; list each {role} only once")
    return pairs


@dressed
def pbroadcast(operand: Any, axis_name: AxisNames, source: int) -> Any:
    """The value at one position along the axes, on every device: varying to varying.

    Raises: as psum; state_mismatch also for an unreduced operand; index_out_of_range for a source out of range.

    >>> import numpy as np, xbuild as xb
    >>> first = xb.shard_map(lambda x: xb.mesh.pbroadcast(x, "i", 1), xb.Mesh(i=2), xb.P("i"), xb.P("i"))
    >>> first(np.array([1, 2, 3, 4]))
    array([3, 4, 3, 4])

    Source: JAX, jax.lax.pbroadcast.
    """
    region, axes = read_axes("pbroadcast", axis_name)
    size = region.mesh.size(axes)
    if not 0 <= source < size:
        refuse(
            "index_out_of_range", f"source={source} is not one of the positions 0..{size - 1} along {', '.join(axes)}"
        )
    return map_values(lambda x: record_broadcast(x, region, axes, source), operand, region)


@dressed
def axis_index(axis_name: AxisNames) -> Value:
    """The position of this device along the axes, row by row in their order: s32[], varying along them.

    Raises: unbound_axis.

    >>> import xbuild as xb
    >>> places = lambda: xb.reshape(xb.mesh.axis_index("j"), [1])
    >>> xb.shard_map(places, xb.Mesh(i=2, j=2), (), xb.P("j"))()
    array([0, 1], dtype=int32)

    Source: JAX, jax.lax.axis_index.
    """
    region, axes = read_axes("axis_index", axis_name)
    return coordinate(region, axes)


@dressed
def axis_size(axis_name: AxisNames) -> int:
    """The number of devices along the axes, as a Python int.

    Raises: unbound_axis.

    >>> import xbuild as xb
    >>> xb.shard_map(lambda x: x * xb.mesh.axis_size(("i", "j")), xb.Mesh(i=2, j=3), xb.P(), xb.P())(7)
    array(42)

    Source: JAX, jax.lax.axis_size.
    """
    region, axes = read_axes("axis_size", axis_name)
    return region.mesh.size(axes)
