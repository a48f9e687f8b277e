"""The collectives as TensorFlow's raw ops: keyword arguments, group assignments, checks in TensorFlow's order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from shape_inference import Shape

from .. import derived
from ..core.builder import Value, stands_for
from ..core.identifiers import public_names as _public_names
from ..core.report_text import join_words
from .arguments import TpuTypeError, read_integer, refuse
from .context import current

__all__ = ["AllToAll", "CollectivePermute", "CrossReplicaSum", "all_to_all", "collective_permute", "cross_replica_sum"]


# ----------------------------------------------------------------------------
# Group assignments and source-target pairs: read as constants, then checked as XLA checks replica groups.

Groups: TypeAlias = tuple[tuple[int, ...], ...]
LIMITS = np.iinfo(np.int32)


def read_matrix(given: Any, what: str = "group_assignment") -> np.ndarray[Any, Any]:
    """Read a Python list, an array or a constant of the program as an int32 tensor of any rank.

    Refuses ragged lists, other element types, and values that only a run computes.
    """
    if isinstance(given, Value):
        given = _read_literal(given, what)
    try:
        ids = np.asarray(given)
    except ValueError:
        refuse(
            "ragged_groups",
            f"{what} is a tensor, so all rows must have the same length; {given!r} has rows of "
            f"{_describe_lengths(given)}",
            "for groups of different sizes, use xb.all_reduce(x, xb.add, replica_groups=[[0, 1], [2]])",
        )
    if ids.size and ids.dtype.kind not in "iu":
        refuse("element_type_mismatch", f"{what} holds replica ids (int32), but {given!r} is {ids.dtype}")
    if ids.size and (ids.min() < LIMITS.min or ids.max() > LIMITS.max):
        refuse("element_type_mismatch", f"{what} holds int32 numbers, but {given!r} does not fit in int32")
    return ids.astype(np.int32)


def _read_literal(value: Value, what: str) -> Any:
    instruction = value.instruction
    if instruction.opcode != "constant":
        refuse(
            "not_concrete",
            f"{what} must be a compile-time constant, but %{value.name} is the result of "
            f"{instruction.opcode}, which is known only at run time",
            "pass a Python list",
        )
    return instruction.attributes.literal


def _describe_lengths(given: Any) -> str:
    rows = [len(row) if isinstance(row, list | tuple) else "no" for row in given]
    return join_words(f"{size} ids" for size in dict.fromkeys(rows))


def check_rank(ids: np.ndarray[Any, Any]) -> None:
    """Refuse a group_assignment that is not a matrix."""
    if ids.ndim != 2:
        refuse(
            "rank_mismatch",
            f"group_assignment must have rank 2, [num_groups, num_replicas_per_group], but has shape {list(ids.shape)}",
            f"write a single group as [{ids.tolist()}]" if ids.ndim == 1 else "pass a list of lists of ids",
        )


def read_groups(ids: np.ndarray[Any, Any], num_replicas: int | None) -> Groups:
    """Read the rows as replica groups; `num_replicas` is None if unknown.

    Refuses empty groups, duplicate ids, ids that are not replicas, and replicas without a group.
    """
    check_rank(ids)
    if not ids.size:
        refuse("invalid_group", f"group_assignment has shape {list(ids.shape)}: groups must not be empty")
    groups = tuple(tuple(row) for row in ids.tolist())
    check_ids([replica for row in groups for replica in row], num_replicas, str([list(row) for row in groups]))
    return groups


def check_ids(ids: Sequence[int], num_replicas: int | None, shown: str, what: str = "group_assignment") -> None:
    """Refuse ids unless they are 0..num_replicas-1, each once."""
    twice = [replica for replica, times in Counter(ids).items() if times > 1]
    if twice:
        refuse(
            "duplicate_replica",
            f"{what} {shown} lists replica {twice[0]} {_how_often(Counter(ids)[twice[0]])}",
            "list each replica in only one group",
        )
    outside = [i for i in ids if i < 0 or (num_replicas is not None and i >= num_replicas)]
    if outside:
        many = "0 and higher" if num_replicas is None else f"0..{num_replicas - 1}"
        refuse("replica_out_of_range", f"{what} {shown} contains replica {outside[0]}, but the replicas are {many}")
    missing = sorted(set(range(num_replicas or 0)) - set(ids))
    if missing:
        refuse(
            "missing_replica",
            f"{what} {shown} has no group for replica{_list_ids(missing)} of the {num_replicas} replicas",
            "put a replica in a group of its own if it should keep its value",
        )


def _how_often(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


def _list_ids(ids: Sequence[int]) -> str:
    text = ", ".join(map(str, ids[:8])) + (", ..." if len(ids) > 8 else "")
    return f"{'s' * (len(ids) > 1)} {text}"


def read_pairs(ids: np.ndarray[Any, Any], num_replicas: int | None) -> tuple[tuple[int, int], ...]:
    """Read the rows as source-target pairs; each id is at most once a source and once a target."""
    if ids.size == 0 and ids.ndim == 1:
        ids = ids.reshape(0, 2)
    if ids.ndim != 2 or ids.shape[1] != 2:
        refuse(
            "bad_pairs",
            f"source_target_pairs must have shape [num_pairs, 2], but has {list(ids.shape)}: {ids.tolist()}",
            "each row holds the sending and the receiving replica: [[0, 1], [1, 0]]",
        )
    pairs = tuple((int(source), int(target)) for source, target in ids)
    _check_once([source for source, _ in pairs], "source", ids, num_replicas)
    _check_once([target for _, target in pairs], "target", ids, num_replicas)
    return pairs


def _check_once(ids: Iterable[int], role: str, matrix: np.ndarray[Any, Any], num_replicas: int | None) -> None:
    counts = Counter(ids)
    twice = [replica for replica, times in counts.items() if times > 1]
    if twice:
        refuse(
            f"duplicate_{role}",
            f"source_target_pairs {matrix.tolist()} contains replica {twice[0]} as {role} "
            f"{_how_often(counts[twice[0]])}; list each replica as {role} at most once",
            *(["xb.all_gather sends one value to several replicas"] if role == "source" else []),
        )
    outside = [i for i in counts if i < 0 or (num_replicas is not None and i >= num_replicas)]
    if outside:
        many = "0 and higher" if num_replicas is None else f"0..{num_replicas - 1}"
        refuse(
            "replica_out_of_range",
            f"source_target_pairs {matrix.tolist()} contains replica {outside[0]} as {role}, but the replicas are "
            f"{many}",
        )


# ----------------------------------------------------------------------------
# The collectives as raw ops: all arguments by keyword.

SUMMABLE = ("f16", "bf16", "f32", "f64", "s32", "u32")
_INTEGERS = ("u8", "s8", "u16", "s16", "s32", "u32", "s64", "u64")
NUMBERS = ("f16", "bf16", "f32", "f64", *_INTEGERS, "c64", "c128")
_NAMES = {"pred": "bool", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
_NAMES |= {"c64": "complex64", "c128": "complex128"}


def tensorflow_name(dtype: Any) -> str:
    """TensorFlow's name of an element type."""
    name = str(dtype)
    return _NAMES.get(name) or re.sub(r"^([su])(?=\d)", lambda sign: "int" if sign[1] == "s" else "uint", name)


def _read_array(op: str, input: Any, allowed: tuple[str, ...]) -> tuple[Value, Shape]:
    value = stands_for(input)
    if not isinstance(value, Value) or not isinstance(value.shape, Shape):
        refuse(
            "invalid_operand",
            f"{op}: input {input!r} is not an array of a computation being traced",
            "call it inside the function that you pass to xb.tpu.replicate",
            error=TpuTypeError,
        )
    dtype = value.shape.dtype
    if str(dtype) not in allowed:
        refuse(
            "element_type_unsupported",
            f"{op}: Value passed to parameter 'input' has DataType {tensorflow_name(dtype)} not in list of allowed "
            f"values: {', '.join(map(tensorflow_name, allowed))}",
            f"xb.convert(x, xb.{'s32' if dtype.kind in ('pred', 'signed') else 'f32'}) converts it to an allowed type",
            error=TpuTypeError,
            given={"input": f"{value.shape}  %{value.name}"},
        )
    return value, value.shape


def _num_replicas() -> int | None:
    tracing = current()
    return None if tracing is None else tracing.num_replicas


def cross_replica_sum(*, input: Any, group_assignment: Any, name: str | None = None) -> Value:
    """The sum of `input` over the replicas of each row of `group_assignment`; records an all-reduce.

    Shapes: an array of f16, bf16, f32, f64, s32 or u32, and a matrix [num_groups, num_replicas_per_group] of constants;
    returns the operand's shape. Integers wrap.
    Raises, in this order: element_type_unsupported (TypeError); ragged_groups; rank_mismatch; invalid_group for an
    empty group; duplicate_replica; replica_out_of_range; missing_replica.

    >>> import xbuild as xb
    >>> halves = lambda x: xb.tpu.raw_ops.CrossReplicaSum(input=x, group_assignment=[[0, 2], [1, 3]])
    >>> [float(y) for (y,) in xb.tpu.replicate(halves, [[1.0], [2.0], [3.0], [4.0]])]
    [4.0, 6.0, 4.0, 6.0]

    Source: tf.raw_ops.CrossReplicaSum.
    """
    value, _ = _read_array("CrossReplicaSum", input, SUMMABLE)
    groups = read_groups(read_matrix(group_assignment), _num_replicas())
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
    """Member k of a group gets piece k of each member's input, split along one dimension and joined along another.

    Shapes: an array of numbers or pred; dimension `split_dimension` is divided by `split_count`, `concat_dimension`
    multiplied by it.
    Raises, in this order: element_type_unsupported (TypeError); ragged_groups; non_positive for split_count;
    rank_mismatch for the groups; split_count_mismatch; dimension_out_of_range, for concat_dimension first, also for
    negative dimensions; divisibility; then the refusals of the groups.

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
    value, shape = _read_array("AllToAll", input, (*NUMBERS, "pred"))
    ids = read_matrix(group_assignment)
    split_count = read_integer("AllToAll: split_count", split_count)
    concat_dimension = read_integer("AllToAll: concat_dimension", concat_dimension)
    split_dimension = read_integer("AllToAll: split_dimension", split_dimension)
    if split_count < 1:
        refuse(
            "non_positive",
            f"AllToAll: split_count {split_count} must at least be one.",
            "set split_count to the number of replicas in a group",
        )
    check_rank(ids)
    if ids.shape[1] != split_count:
        refuse(
            "split_count_mismatch",
            f"AllToAll: split_count {split_count} must equal the size of the second dimension of group_assignment "
            f"{ids.shape[1]}",
            f"pass split_count={ids.shape[1]}, one piece for each replica of a group",
        )
    for role, dimension in (("concat", concat_dimension), ("split", split_dimension)):
        _check_dimension(role, dimension, shape.rank)
    size = shape.dims[split_dimension] * (split_count if split_dimension == concat_dimension else 1)
    if size % split_count:
        refuse(
            "divisibility",
            f"AllToAll: input dimension {size} not divisible by split_count {split_count}",
            "make the dimension divisible with xb.pad, or choose a different split_dimension",
            given={"input": f"{shape}  %{value.name}", "split_dimension": split_dimension},
        )
    groups = read_groups(ids, _num_replicas())
    if shape.dims[split_dimension] % split_count:
        refuse(
            "divisibility",
            f"AllToAll: dimension {split_dimension} of {shape} is split into {split_count} pieces, but "
            f"{shape.dims[split_dimension]} is not divisible by {split_count} (TensorFlow's builder accepts this, "
            "but XLA refuses it)",
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
    """The input of the replica that has this one as its target; zeros if none does.

    Shapes: an array of numbers, and pairs [num_pairs, 2] of constants; returns the operand's shape.
    Raises, in this order: element_type_unsupported (TypeError); bad_pairs; duplicate_source; replica_out_of_range;
    duplicate_target.

    >>> import xbuild as xb
    >>> ring = lambda x: xb.tpu.raw_ops.CollectivePermute(input=x, source_target_pairs=[[0, 1], [1, 2]])
    >>> [float(y) for (y,) in xb.tpu.replicate(ring, [[1.0], [2.0], [3.0]])]
    [0.0, 1.0, 2.0]

    Source: tf.raw_ops.CollectivePermute.
    """
    value, _ = _read_array("CollectivePermute", input, NUMBERS)
    pairs = read_pairs(read_matrix(source_target_pairs, "source_target_pairs"), _num_replicas())
    return derived.collective_permute(value, pairs, name=name)


CrossReplicaSum = cross_replica_sum
AllToAll = all_to_all
CollectivePermute = collective_permute


def __dir__() -> list[str]:
    return _public_names(globals())
