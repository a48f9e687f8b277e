"""The collectives as TensorFlow's strict ops: all arguments by keyword, checked in TensorFlow's order."""

from __future__ import annotations

import re
from typing import Any

from shape_inference import Shape

from .. import derived
from ..core.builder import Value, stands_for
from .support.arguments import integer
from .support.context import current
from .support.groups import check_rank, groups_of, matrix, pairs_of
from .support.refusals import TpuTypeError, refuse

__all__ = ["AllToAll", "CollectivePermute", "CrossReplicaSum", "all_to_all", "collective_permute", "cross_replica_sum"]

SUMMABLE = ("f16", "bf16", "f32", "f64", "s32", "u32")
_INTEGERS = ("u8", "s8", "u16", "s16", "s32", "u32", "s64", "u64")
NUMBERS = ("f16", "bf16", "f32", "f64", *_INTEGERS, "c64", "c128")
_NAMES = {"pred": "bool", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
_NAMES |= {"c64": "complex64", "c128": "complex128"}


def name_of(dtype: Any) -> str:
    """TensorFlow's name of an element type."""
    name = str(dtype)
    return _NAMES.get(name) or re.sub(r"^([su])(?=\d)", lambda sign: "int" if sign[1] == "s" else "uint", name)


def _array(op: str, input: Any, allowed: tuple[str, ...]) -> tuple[Value, Shape]:
    value = stands_for(input)
    if not isinstance(value, Value) or not isinstance(value.shape, Shape):
        refuse(
            "invalid_operand",
            f"{op}: input {input!r} is no array of a computation that is being traced",
            "call it inside of the function that is given to xb.tpu.replicate",
            error=TpuTypeError,
        )
    dtype = value.shape.dtype
    if str(dtype) not in allowed:
        refuse(
            "element_type_unsupported",
            f"{op}: Value passed to parameter 'input' has DataType {name_of(dtype)} not in list of allowed values: "
            f"{', '.join(map(name_of, allowed))}",
            f"xb.convert(x, xb.{'s32' if dtype.kind in ('pred', 'signed') else 'f32'}) makes it one that is",
            error=TpuTypeError,
            given={"input": f"{value.shape}  %{value.name}"},
        )
    return value, value.shape


def _count() -> int | None:
    tracing = current()
    return None if tracing is None else tracing.num_replicas


def cross_replica_sum(*, input: Any, group_assignment: Any, name: str | None = None) -> Value:
    """The sum of `input` over the replicas of each row of `group_assignment`; records an all-reduce.

    Shapes: an array of f16, bf16, f32, f64, s32 or u32, and a matrix [num_groups, num_replicas_per_group] of constants;
    gives the operand's shape. Integers wrap.
    Raises, in this order: element_type_unsupported (TypeError); ragged_groups; rank_mismatch; invalid_group for an
    empty group; duplicate_replica; replica_out_of_range; missing_replica.

    >>> import xbuild as xb
    >>> halves = lambda x: xb.tpu.raw_ops.CrossReplicaSum(input=x, group_assignment=[[0, 2], [1, 3]])
    >>> [float(y) for (y,) in xb.tpu.replicate(halves, [[1.0], [2.0], [3.0], [4.0]])]
    [4.0, 6.0, 4.0, 6.0]

    Source: tf.raw_ops.CrossReplicaSum.
    """
    value, _ = _array("CrossReplicaSum", input, SUMMABLE)
    groups = groups_of(matrix(group_assignment), _count())
    return derived.cross_replica_sum(value, replica_groups=groups, name=name)


def all_to_all(
    *,
    input: Any,
    group_assignment: Any,
    concat_dimension: int,
    split_dimension: int,
    split_count: int,
    name: str | None = None,
) -> Value:
    """Member k of a group gets piece k of each member's input, cut along one dimension and joined along another.

    Shapes: an array of numbers or pred; dimension `split_dimension` is divided by `split_count`, `concat_dimension`
    multiplied by it.
    Raises, in this order: element_type_unsupported (TypeError); ragged_groups; non_positive for split_count;
    rank_mismatch for the groups; split_count_mismatch; dimension_out_of_range, of the concatenation first, negatives
    too; divisibility; then what the groups may be refused for.

    >>> import numpy as np
    >>> import xbuild as xb
    >>> def turn(x):
    ...     return xb.tpu.raw_ops.AllToAll(
    ...         input=x, group_assignment=[[0, 1]], concat_dimension=0, split_dimension=0, split_count=2
    ...     )
    >>> [y.tolist() for (y,) in xb.tpu.replicate(turn, [[np.float32([1, 2])], [np.float32([3, 4])]])]
    [[1.0, 3.0], [2.0, 4.0]]

    Source: tf.raw_ops.AllToAll.
    """
    value, shape = _array("AllToAll", input, (*NUMBERS, "pred"))
    found = matrix(group_assignment)
    split_count = integer("AllToAll: split_count", split_count)
    concat_dimension = integer("AllToAll: concat_dimension", concat_dimension)
    split_dimension = integer("AllToAll: split_dimension", split_dimension)
    if split_count < 1:
        refuse(
            "non_positive",
            f"AllToAll: split_count {split_count} must at least be one.",
            "split_count is the number of replicas of a group",
        )
    check_rank(found)
    if found.shape[1] != split_count:
        refuse(
            "split_count_mismatch",
            f"AllToAll: split_count {split_count} must equal the size of the second dimension of group_assignment "
            f"{found.shape[1]}",
            f"split_count={found.shape[1]} is one piece for each replica of a group",
        )
    for role, dimension in (("concat", concat_dimension), ("split", split_dimension)):
        _check_dimension(role, dimension, shape.rank)
    size = shape.dims[split_dimension] * (split_count if split_dimension == concat_dimension else 1)
    if size % split_count:
        refuse(
            "divisibility",
            f"AllToAll: input dimension {size} not divisible by split_count {split_count}",
            "xb.pad makes the dimension divisible, another split_dimension may be",
            given={"input": f"{shape}  %{value.name}", "split_dimension": split_dimension},
        )
    groups = groups_of(found, _count())
    if shape.dims[split_dimension] % split_count:
        refuse(
            "divisibility",
            f"AllToAll: dimension {split_dimension} of {shape} is cut in {split_count} pieces, and "
            f"{shape.dims[split_dimension]} is not divisible (TensorFlow's builder lets this pass, and XLA refuses it)",
        )
    return derived.all_to_all(value, split_dimension, concat_dimension, split_count, groups, name=name)


def _check_dimension(role: str, dimension: int, rank: int) -> None:
    if not 0 <= dimension < rank:
        hints = [f"{role}_dimension={dimension % rank} counts from the start"] if dimension < 0 < rank else []
        refuse(
            "dimension_out_of_range",
            f"AllToAll: {role}_dimension {dimension} is out of range of input rank {rank}",
            *hints,
        )


def collective_permute(*, input: Any, source_target_pairs: Any, name: str | None = None) -> Value:
    """The input of the replica that names this one as its target; zeros where none does.

    Shapes: an array of numbers, and pairs [num_pairs, 2] of constants; gives the operand's shape.
    Raises, in this order: element_type_unsupported (TypeError); bad_pairs; duplicate_source; replica_out_of_range;
    duplicate_target.

    >>> import xbuild as xb
    >>> ring = lambda x: xb.tpu.raw_ops.CollectivePermute(input=x, source_target_pairs=[[0, 1], [1, 2]])
    >>> [float(y) for (y,) in xb.tpu.replicate(ring, [[1.0], [2.0], [3.0]])]
    [0.0, 1.0, 2.0]

    Source: tf.raw_ops.CollectivePermute.
    """
    value, _ = _array("CollectivePermute", input, NUMBERS)
    pairs = pairs_of(matrix(source_target_pairs, "source_target_pairs"), _count())
    return derived.collective_permute(value, pairs, name=name)


CrossReplicaSum = cross_replica_sum
AllToAll = all_to_all
CollectivePermute = collective_permute
