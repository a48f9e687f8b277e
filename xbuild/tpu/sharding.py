"""shard and batch_parallel: arrays cut for the replicas, and the results joined again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .infeed import InfeedQueue
from .program import Program
from .programs import with_program
from .replication import XLAOptions, _replicated
from .support import structures
from .support.arguments import integer, integers
from .support.arrays import as_array, is_shape, shape_of
from .support.context import Operation
from .support.refusals import TpuTypeError, refuse


def _shard(
    computation: Callable[..., Any],
    inputs: Any = None,
    num_shards: int = 1,
    input_shard_axes: Sequence[int] | None = None,
    outputs_from_all_shards: bool | Sequence[bool] = True,
    output_shard_axes: Sequence[int] | None = None,
    infeed_queue: InfeedQueue | None = None,
    device_assignment: Any = None,
    name: str | None = None,
    xla_options: XLAOptions | None = None,
    **options: Any,
) -> Program:
    """Cut each input in `num_shards` equal parts, run the computation on each, and join the results.

    Axes default to 0. Results that are scalars are stacked to a vector; `outputs_from_all_shards` False gives that of
    shard 0. Gives a list of the results, or the structure that the computation returned; `[Operation]` without any.
    `shard.program(...)` takes the same arguments and gives the program without running it.
    Raises, in this order: non_positive for num_shards; invalid_operand (TypeError) for inputs that are no list;
    attribute_length_mismatch for input_shard_axes; dimension_out_of_range; divisibility; as xb.tpu.replicate;
    attribute_length_mismatch for output_shard_axes and outputs_from_all_shards; invalid_attribute (TypeError) where
    these hold something else than integers and bools.

    >>> import xbuild as xb
    >>> xb.tpu.shard(lambda x: x * 2, [[[0, 1], [2, 3]]], num_shards=2, output_shard_axes=[1])[0].tolist()
    [[0, 2, 4, 6]]

    Source: tf.compat.v1.tpu.shard.
    """
    num_shards = integer("num_shards", num_shards)
    if num_shards <= 0:
        refuse("non_positive", f"num_shards must be a positive integer. Received {num_shards}", "1 shard is the whole")
    _check_list(inputs)
    count = 0 if inputs is None else len(inputs)
    axes = _listed("input_shard_axes", input_shard_axes, count, "inputs")
    program = _replicated(
        computation,
        inputs,
        infeed_queue,
        device_assignment,
        name,
        xla_options=xla_options,
        prepare=lambda given: _cut(given, axes, num_shards),
        finish=lambda results: _joined(results, results_axes, flags),
        **options,
    )
    outputs = _outputs(program.traced.results)
    results_axes = _listed("output_shard_axes", output_shard_axes, outputs, "outputs") if outputs else []
    flags = _flags(outputs_from_all_shards, outputs) if outputs else []
    return program


def _batch_parallel(
    computation: Callable[..., Any],
    inputs: Any = None,
    num_shards: int = 1,
    infeed_queue: InfeedQueue | None = None,
    device_assignment: Any = None,
    name: str | None = None,
    xla_options: XLAOptions | None = None,
    **options: Any,
) -> Program:
    """`shard` along the first axis of every input and result.

    Raises: as xb.tpu.shard.

    >>> import xbuild as xb
    >>> xb.tpu.batch_parallel(lambda x: x + 1, [[1, 2, 3, 4]], num_shards=4)
    [array([2, 3, 4, 5], dtype=int32)]

    Source: tf.compat.v1.tpu.batch_parallel.
    """
    return _shard(
        computation,
        inputs,
        num_shards=num_shards,
        infeed_queue=infeed_queue,
        device_assignment=device_assignment,
        name=name,
        xla_options=xla_options,
        **options,
    )


def _check_list(inputs: Any) -> None:
    if inputs is not None and not isinstance(inputs, list):
        refuse(
            "invalid_operand",
            f"tpu.shard()'s inputs must be a list of Tensors or None. Received {type(inputs)}",
            "a list of whole arrays, which are cut: [x, y]",
            error=TpuTypeError,
        )


def _listed(what: str, given: Sequence[int] | None, count: int, of: str) -> list[int]:
    if given is None:
        return [0] * count
    found = integers(what, structures.flatten(given))
    if len(found) != count:
        refuse(
            "attribute_length_mismatch",
            f"Length of {what} must be equal to the number of {of}. Received {count} {of} and {len(found)} {what}.",
        )
    return found


def _flags(given: bool | Sequence[bool], count: int) -> list[bool]:
    found = [given] * count if isinstance(given, bool) else structures.flatten(given)
    if len(found) != count:
        refuse(
            "attribute_length_mismatch",
            "Length of outputs_from_all_shards must be equal to the number of outputs. "
            f"Received {count} outputs and {len(found)} outputs_from_all_shards.",
        )
    for number, flag in enumerate(found):
        if not isinstance(flag, int | np.bool_):
            refuse(
                "invalid_attribute",
                f"outputs_from_all_shards has {flag!r} for output {number}, and True or False is wanted",
                error=TpuTypeError,
            )
    return found


def _cut(given: Any, axes: list[int], num_shards: int) -> list[list[Any]]:
    _check_list(given)
    if given is not None and len(given) != len(axes):
        refuse("argument_mismatch", f"{len(axes)} inputs were given before, and {len(given)} are now")
    columns = [_parts(n, each, axis, num_shards) for n, (each, axis) in enumerate(zip(given or [], axes, strict=True))]
    return [[column[replica] for column in columns] for replica in range(num_shards)]


def _parts(number: int, given: Any, axis: int, num_shards: int) -> Sequence[Any]:
    """Equal parts of an input along an axis, each an array of its own; of a shape, its parts' shape."""
    array = given if is_shape(given) else as_array(given, f"input {number}")
    shape = shape_of(array)
    if not -shape.rank <= axis < shape.rank:
        refuse(
            "dimension_out_of_range",
            f"input {number} is {shape}, which has no axis {axis} (its entry of input_shard_axes) to be cut along",
            f"its axes are 0..{shape.rank - 1}"
            if shape.rank
            else "what is not cut is closed over by the function, and whole on every shard",
        )
    size = shape.dims[axis]
    if size % num_shards:
        refuse(
            "divisibility",
            f"Dimension size must be evenly divisible by {num_shards} but is {size} "
            f"(dimension {axis} of input {number}, {shape})",
            "input_shard_axes names another dimension; an array that is closed over is whole on every shard",
        )
    if is_shape(given):
        dims = [*shape.dims]
        dims[axis] = size // num_shards
        return [shape.dtype[tuple(dims)]] * num_shards
    return np.split(array, num_shards, axis)


def _outputs(results: Any) -> int:
    """How many results there are, None among them counted."""
    return 0 if results.form is None else len(structures.flatten(results.form))


def _joined(results: list[Any], axes: list[int], flags: list[bool]) -> Any:
    if isinstance(results[0], Operation):
        return [results[0]]
    columns = zip(*map(structures.flatten, results), strict=True)
    found = [_join(n, *each) for n, each in enumerate(zip(columns, axes, flags, strict=True))]
    return structures.packed(results[0], found)


def _join(number: int, parts: Sequence[Any], axis: int, from_all: bool) -> Any:
    first = parts[0]
    if first is None or not from_all:
        return first
    if not first.ndim:
        return np.stack(parts)
    if not -first.ndim <= axis < first.ndim:
        refuse(
            "dimension_out_of_range",
            f"output {number} is of extents {list(first.shape)} on each shard, which has no axis {axis} "
            "(its entry of output_shard_axes)",
            f"its axes are 0..{first.ndim - 1}",
        )
    return np.concatenate(parts, axis)


shard = with_program(_shard)
batch_parallel = with_program(_batch_parallel)
