"""Records the steps of a resharding as HLO ops on the part of an array that a device holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from shape_inference import PrimitiveType, refuse
from shape_inference.rules import RuleTable

from .. import ops
from ..core.attributes import PaddingDimension
from ..core.builder import Builder, Value
from ..properties.mesh import Mesh
from ..properties.patterns import additive_zero
from .resharding import Axes, ReshardingPlan, ReshardingState, ReshardingStep
from .sharding import count, groups_along, index_along, moves

Reducer = Callable[..., Any]

recorded = RuleTable("recorded")
"""step -> rule(to, value, step, before, reducer): the part of a device after a step of a plan."""

_S32 = np.dtype(np.int32)


@define(eq=False)
class CollectiveRecorder:
    """Records collectives on a mesh: assigns their channels, and reuses values that depend on the device.

    `noted` is called with each recorded collective and its step.
    """

    mesh: Mesh
    builder: Builder
    channels: list[int]
    noted: Callable[[Value, ReshardingStep], None] = lambda value, step: None
    _tables: dict[tuple[int, ...], Value] = field(factory=dict)

    def channel(self) -> int:
        """A channel id that no collective uses."""
        self.channels[0] += 1
        return self.channels[0]

    def groups(self, axes: Axes) -> dict[str, Any]:
        """The attributes of a collective over axes, with groups of device numbers."""
        return {"replica_groups": groups_along(self.mesh, axes), "channel_id": self.channel()}

    def global_groups(self, axes: Axes) -> dict[str, Any]:
        return {**self.groups(axes), "use_global_device_ids": True}

    def number(self, by_device: Sequence[int]) -> Value:
        """An s32[] with a number for each device."""
        key = tuple(map(int, by_device))
        if key not in self._tables:
            self._tables[key] = self._record_number(key)
        return self._tables[key]

    def _record_number(self, numbers: tuple[int, ...]) -> Value:
        if len(set(numbers)) == 1:
            return constant(self.builder, np.int32(numbers[0]))
        device = ops.convert(ops.partition_id(self.builder), new_element_type=_S32)
        if numbers == tuple(range(len(numbers))):
            return device
        table = constant(self.builder, np.array(numbers, np.int32))
        return ops.reshape(ops.dynamic_slice(table, [device], dynamic_slice_sizes=(1,)), new_sizes=())

    def place(self, axes: Axes, factor: int = 1) -> Value:
        """The position of the device along axes, times a factor."""
        return self.number((index_along(self.mesh, axes) * factor).tolist())

    def is_first(self, axes: Axes) -> Value:
        """A pred[]: whether the device is the first one along axes."""
        return ops.compare(self.place(axes), constant(self.builder, np.int32(0)), direction="EQ")

    def record_steps(
        self, value: Value, steps: Sequence[ReshardingStep], start: ReshardingState, reducer: Reducer | None = None
    ) -> Value:
        """The value after the steps; the reducer combines partial results, by default as sums."""
        before = start
        for step in steps:
            value = recorded[step.op](self, value, step, before, reducer or combiner(value))
            if not step.is_local:
                self.noted(value, step)
            before = step.after
        return value


def combiner(value: Value) -> Reducer:
    """The op that combines partial sums: addition, or `or` for pred."""
    return ops.or_ if dtype_of(value).kind == "pred" else ops.add


def dtype_of(value: Value) -> PrimitiveType:
    return value.shape.dtype  # type: ignore[union-attr]


def dims_of(value: Value) -> tuple[int, ...]:
    return value.shape.dims  # type: ignore[union-attr]


def constant(builder: Builder, literal: Any) -> Value:
    return ops.constant(builder, literal=literal)


def zero(value: Value) -> Value:
    return constant(value.builder, np.zeros((), dtype_of(value).dtype))


@recorded
def all_slice(
    to: CollectiveRecorder, value: Value, step: ReshardingStep, before: ReshardingState, reducer: Reducer
) -> Value:
    (dim,) = step.dimensions
    return slice_own_part(to, value, dim, step.axes)


def slice_own_part(to: CollectiveRecorder, value: Value, dim: int, axes: Axes) -> Value:
    """The device's part along axes of a dimension that they split equally."""
    sizes = list(dims_of(value))
    sizes[dim] //= count(axes)
    nothing = constant(to.builder, np.int32(0))
    starts = [to.place(axes, size) if number == dim else nothing for number, size in enumerate(sizes)]
    return ops.dynamic_slice(value, starts, dynamic_slice_sizes=sizes)


@recorded
def all_gather(
    to: CollectiveRecorder, value: Value, step: ReshardingStep, before: ReshardingState, reducer: Reducer
) -> Value:
    (dim,), parts = step.dimensions, count(step.axes)
    return ops.all_gather([value], all_gather_dimension=dim, shard_count=parts, **to.global_groups(step.axes))


@recorded
def all_to_all(
    to: CollectiveRecorder, value: Value, step: ReshardingStep, before: ReshardingState, reducer: Reducer
) -> Value:
    split, join = step.dimensions
    return ops.all_to_all(
        [value], split_dimension=split, concat_dimension=join, split_count=count(step.axes), **to.groups(step.axes)
    )


@recorded
def collective_permute(
    to: CollectiveRecorder, value: Value, step: ReshardingStep, before: ReshardingState, reducer: Reducer
) -> Value:
    pairs = moves(to.mesh, before.tiles, step.after.tiles)
    return ops.collective_permute([value], source_target_pairs=pairs, channel_id=to.channel())


@recorded
def all_reduce(
    to: CollectiveRecorder, value: Value, step: ReshardingStep, before: ReshardingState, reducer: Reducer
) -> Value:
    return ops.all_reduce([value], to_apply=reducer, **to.global_groups(step.axes))


@recorded
def reduce_scatter(
    to: CollectiveRecorder, value: Value, step: ReshardingStep, before: ReshardingState, reducer: Reducer
) -> Value:
    (dim,), parts = step.dimensions, count(step.axes)
    return ops.reduce_scatter(
        [value], to_apply=reducer, scatter_dimension=dim, shard_count=parts, **to.global_groups(step.axes)
    )


@recorded
def to_unreduced(
    to: CollectiveRecorder, value: Value, step: ReshardingStep, before: ReshardingState, reducer: Reducer
) -> Value:
    is_first = to.is_first(step.axes)
    dims = dims_of(value)
    return ops.select(
        spread(is_first, dims), value, spread(constant(value.builder, additive_zero(dtype_of(value))), dims)
    )


def spread(value: Value, dims: Sequence[int]) -> Value:
    """A scalar as an array of these extents."""
    return ops.broadcast(value, sizes=tuple(dims), dimensions=()) if dims else value


@recorded
def pad(to: CollectiveRecorder, value: Value, step: ReshardingStep, before: ReshardingState, reducer: Reducer) -> Value:
    (dim,) = step.dimensions
    return resize(value, dim, step.after.extents[dim])


def resize(value: Value, dim: int, extent: int) -> Value:
    """The value with a dimension padded with zeros, or shortened, at its end."""
    dims = dims_of(value)
    if extent == dims[dim]:
        return value
    if extent < dims[dim]:
        limits = (*dims[:dim], extent, *dims[dim + 1 :])
        return ops.slice(value, start_indices=(0,) * len(dims), limit_indices=limits, strides=(1,) * len(dims))
    high = [extent - dims[dim] if number == dim else 0 for number in range(len(dims))]
    return ops.pad(value, zero(value), padding=[PaddingDimension(0, each, 0) for each in high])


def reshard(value: Value, plan: ReshardingPlan) -> Value:
    """The part of an array that a device holds after a plan, recorded as HLO collectives over partition ids.

    `value` is the part before, with GSPMD's padding at the end of dimensions that do not divide.
    Raises: dimension_mismatch if the value does not have the extents from which the plan starts.

    >>> import numpy as np, xbuild as xb
    >>> from xbuild.sharding.resharding import plan
    >>> from xbuild.sharding.sharding import shard_dims
    >>> from xbuild.sharding.sharding import get_axis
    >>> mesh = xb.Mesh(x=2)
    >>> there = plan(shard_dims(mesh, [[get_axis(mesh, "x")]]), shard_dims(mesh, [[]]), (4,))
    >>> xb.computation(xb.f32[2])(lambda x: reshard(x, there)).root
    all-gather.2 = f32[4] all-gather(parameter.1), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true

    Source: Shardy, reshard to collectives.
    """  # noqa: E501
    if dims_of(value) != plan.start.local_dims:
        refuse(
            "dimension_mismatch",
            f"reshard: the value is {value.shape}, but the plan starts from dimensions {list(plan.start.local_dims)}",
        )
    channels = [getattr(each.attributes, "channel_id", None) or 0 for each in value.builder.recorded]
    recorder = CollectiveRecorder(plan.source.mesh, value.builder, [max(channels, default=0)])
    return recorder.record_steps(value, plan.steps, plan.start)
