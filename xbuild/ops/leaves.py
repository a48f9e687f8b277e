"""Ops without operands: parameters, constants, iota, replica and partition ids."""

from __future__ import annotations

from shape_inference import AnyShape, Shape

from ..core.attributes import Array
from ..core.builder import Builder, Value
from ..core.op import op
from ..core.properties import Properties

__all__ = ["constant", "iota", "parameter", "partition_id", "replica_id"]


@op(Properties("made", depends_on="caller", is_view=True, states_shape=True))
def parameter(builder: Builder, *, number: int, shape: AnyShape) -> Value:
    """Declare the computation's parameter with this number.

    Shapes: any shape is allowed. The parameters of a computation have the numbers 0..n-1, each exactly once.
    Raises: duplicate_parameter (BuildError) if the number is taken; missing_parameter when the computation is built, if
    a number was left out.

    >>> import xbuild as xb
    >>> xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 3], name="x")
    %x: f32[2,3]

    Source: Operation Semantics, Tuple and While (examples); xla_builder.h, Parameter.
    """
    ...


@op(Properties("made", is_view=True, states_shape=True))
def constant(builder: Builder, *, literal: Array) -> Value:
    """Return an array that is fixed when the program is built.

    Shapes: the value has the shape of the array; its dtype determines the element type. `xb.constant` also takes Python
    numbers, as s32, f32, c64 or pred.
    Raises: invalid_attribute if XLA has no such element type.

    >>> import numpy as np, xbuild as xb
    >>> xb.ops.constant(xb.Builder("b"), literal=np.array([1, 2], np.int8))
    %constant.1: s8[2]

    Source: xla_builder.h, ConstantLiteral.
    """
    ...


@op(Properties("made", states_shape=True))
def iota(builder: Builder, *, shape: Shape, iota_dimension: int) -> Value:
    """Return an array in which each element is its own index along `iota_dimension`.

    An index that is too large for the element type is wrapped or rounded.
    Shapes: the shape has rank 1 or higher and any integer, float or complex type.
    Raises: dimension_out_of_range; element_type_unsupported for pred.

    >>> import xbuild as xb
    >>> builder = xb.Builder("b")
    >>> xb.evaluate(builder.build(xb.iota(builder, shape=xb.s32[2, 3], iota_dimension=1)))
    array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)

    Source: Operation Semantics, Iota; StableHLO, iota.
    """
    ...


@op(Properties("made", depends_on="device"))
def replica_id(builder: Builder) -> Value:
    """Return the number of this replica, a u32[] in 0..num_replicas-1.

    >>> import xbuild as xb
    >>> builder = xb.Builder("who")
    >>> who = builder.build(xb.replica_id(builder))
    >>> xb.execute(xb.Module("who", who, num_replicas=3), [()] * 3)
    [np.uint32(0), np.uint32(1), np.uint32(2)]

    Source: xla_builder.h, ReplicaId; StableHLO, replica_id.
    """
    ...


@op(Properties("made", depends_on="device"))
def partition_id(builder: Builder) -> Value:
    """Return the number of this partition, a u32[] in 0..num_partitions-1.

    The devices are numbered so that device = replica * num_partitions + partition.

    >>> import xbuild as xb
    >>> builder = xb.Builder("who")
    >>> who = builder.build(xb.partition_id(builder))
    >>> xb.execute(xb.Module("who", who, num_partitions=2), [()] * 2)
    [np.uint32(0), np.uint32(1)]

    Source: StableHLO, partition_id.
    """
    ...
