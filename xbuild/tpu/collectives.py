"""Collectives of a replicated computation; without groups they span all replicas of the enclosing replicate."""

from __future__ import annotations

import logging
from typing import Any

from shape_inference import Shape, s32

from .. import derived, ops
from ..core.builder import Value, stands_for
from . import raw_ops
from .arguments import read_integer, refuse
from .context import current

__all__ = [
    "all_to_all", "collective_permute", "cross_replica_concat", "cross_replica_mean", "cross_replica_sum",
]  # fmt: skip

_log = logging.getLogger("xbuild.tpu")


def number_of_shards(what: str) -> int:
    """The number of replicas of the enclosing replicate; without one, 1 and a warning in the log, as in TensorFlow."""
    tracing = current()
    if tracing is not None:
        return tracing.num_replicas
    _log.warning("%s should be used within a tpu_shard_context, but got unset number_of_shards. Assuming 1.", what)
    return 1


def group_of_all(what: str) -> list[list[int]]:
    """One group of all replicas."""
    return [[*range(number_of_shards(what))]]


def cross_replica_sum(x: Any, group_assignment: Any = None, name: str | None = None) -> Value:
    """The sum of `x` over the replicas of each group, or over all replicas without groups.

    Outside of a computation that `xb.tpu` traces, it assumes one replica and logs a warning.
    Raises: as xb.tpu.raw_ops.CrossReplicaSum.

    >>> import xbuild as xb
    >>> [float(y) for (y,) in xb.tpu.replicate(xb.tpu.cross_replica_sum, [[1.0], [2.0], [4.0]])]
    [7.0, 7.0, 7.0]

    Source: tf.compat.v1.tpu.cross_replica_sum.
    """
    groups = group_of_all("cross_replica_sum") if group_assignment is None else group_assignment
    return raw_ops.cross_replica_sum(input=x, group_assignment=groups, name=name)


def all_to_all(
    x: Any,
    concat_dimension: int,
    split_dimension: int,
    split_count: int,
    group_assignment: Any = None,
    name: str | None = None,
) -> Value:
    """Exchange pieces of `x` with the replicas of the group, or with all replicas without groups.

    Raises: as xb.tpu.raw_ops.AllToAll.

    >>> import numpy as np
    >>> import xbuild as xb
    >>> turn = lambda x: xb.tpu.all_to_all(x, concat_dimension=0, split_dimension=0, split_count=2)
    >>> [y.tolist() for (y,) in xb.tpu.replicate(turn, [[np.int32([1, 2])], [np.int32([3, 4])]])]
    [[1, 3], [2, 4]]

    Source: tensorflow/python/tpu/ops/tpu_ops.py, all_to_all.
    """
    return raw_ops.all_to_all(
        input=x,
        group_assignment=group_of_all("all_to_all") if group_assignment is None else group_assignment,
        concat_dimension=concat_dimension,
        split_dimension=split_dimension,
        split_count=split_count,
        name=name,
    )


def collective_permute(x: Any, source_target_pairs: Any, name: str | None = None) -> Value:
    """The `x` of the replica that has this one as its target; zeros if none does.

    Raises: as xb.tpu.raw_ops.CollectivePermute.

    >>> import xbuild as xb
    >>> swap = lambda x: xb.tpu.collective_permute(x, [[0, 1], [1, 0]])
    >>> [float(y) for (y,) in xb.tpu.replicate(swap, [[1.0], [2.0]])]
    [2.0, 1.0]

    Source: tensorflow/python/tpu/ops/tpu_ops.py, collective_permute.
    """
    return raw_ops.collective_permute(input=x, source_target_pairs=source_target_pairs, name=name)


def cross_replica_mean(x: Any, num_shards_per_group: int | None = None, name: str | None = None) -> Value:
    """The mean of `x` over consecutive groups of `num_shards_per_group` replicas, or over all replicas.

    Raises divisibility if the group size does not divide the replicas, non_positive, and as xb.tpu.cross_replica_sum.

    >>> import xbuild as xb
    >>> pairs = lambda x: xb.tpu.cross_replica_mean(x, 2)
    >>> [float(y) for (y,) in xb.tpu.replicate(pairs, [[1.0], [2.0], [4.0], [8.0]])]
    [1.5, 1.5, 6.0, 6.0]

    Source: tensorflow models, tpu_utils.cross_replica_mean.
    """
    count = number_of_shards("cross_replica_mean")
    requested = count if num_shards_per_group is None else num_shards_per_group
    size = read_integer("cross_replica_mean: num_shards_per_group", requested)
    if size < 1:
        refuse("non_positive", f"cross_replica_mean: num_shards_per_group is {size}, but must be at least 1")
    if count % size:
        refuse(
            "divisibility",
            f"cross_replica_mean: {count} replicas cannot be divided into groups of {size}",
            _list_divisors(count),
        )
    groups = [[*range(start, start + size)] for start in range(0, count, size)]
    total = raw_ops.cross_replica_sum(input=x, group_assignment=groups)
    return derived.divide(total, size, name=name)


def _list_divisors(count: int) -> str:
    divisors = [size for size in range(1, count + 1) if count % size == 0]
    return f"num_shards_per_group may be {', '.join(map(str, divisors))}"


def cross_replica_concat(x: Any, name: str | None = None) -> Value:
    """The values of all replicas concatenated along dimension 0, in the order of the replicas.

    Each replica writes its value into zeros, and the replicas are summed; so the element type must be summable.
    Raises rank_too_small for a scalar, and as xb.tpu.cross_replica_sum.

    >>> import numpy as np
    >>> import xbuild as xb
    >>> [y.tolist() for (y,) in xb.tpu.replicate(xb.tpu.cross_replica_concat, [[np.int32([1])], [np.int32([2])]])]
    [[1, 2], [1, 2]]

    Source: tensorflow models, tpu_utils.cross_replica_concat.
    """
    value, count = stands_for(x), number_of_shards("cross_replica_concat")
    shape = value.shape if isinstance(value, Value) else None
    if isinstance(shape, Shape) and shape.rank == 0:
        refuse(
            "rank_too_small",
            f"cross_replica_concat: {shape} is a scalar and has no dimension 0 to concatenate along",
            "xb.reshape(x, [1])",
        )
    if not isinstance(shape, Shape):  # the sum refuses anything but an array
        return cross_replica_sum(x)
    zeros = derived.broadcast(derived.constant(value.builder, 0, shape.dtype), (count, *shape.dims))
    number = derived.convert(ops.replica_id(value.builder), s32)
    row = derived.reshape(value, (1, *shape.dims))
    placed = derived.dynamic_update_slice(zeros, row, [number, *[0] * shape.rank])
    total = cross_replica_sum(placed)
    return derived.reshape(total, (count * shape.dims[0], *shape.dims[1:]), name=name)
