"""shard and batch_parallel: inputs split over the replicas, and results joined again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import structures
from .arguments import TpuTypeError, as_array, is_shape, read_integer, read_integers, refuse, shape_of
from .context import Operation
from .infeed import InfeedQueue
from .replication import TpuProgram, XLAOptions, _build_program, with_program


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
) -> TpuProgram:
    """Split each input into `num_shards` equal parts, run the computation on each, and join the results.

    Axes default to 0. Scalar results are stacked to a vector; with `outputs_from_all_shards` False, only the result of
    shard 0 is returned. Returns a list of the results, or the structure that the computation returned; `[Operation]` if
    it returned none. `shard.program(...)` takes the same arguments and returns the program without running it.
    Raises, in this order: non_positive for num_shards; invalid_operand (TypeError) for inputs that are not a list;
    attribute_length_mismatch for input_shard_axes; dimension_out_of_range; divisibility; as xb.tpu.replicate;
    attribute_length_mismatch for output_shard_axes and outputs_from_all_shards; invalid_attribute (TypeError) if
    these are not integers and bools.

    >>> import xbuild as xb
    >>> xb.tpu.shard(lambda x: x * 2, [[[0, 1], [2, 3]]], num_shards=2, output_shard_axes=[1])[0].tolist()
    [[0, 2, 4, 6]]

    Source: tf.compat.v1.tpu.shard.
    """
    num_shards = read_integer("num_shards", num_shards)
    if num_shards <= 0:
        refuse(
            "non_positive",
            f"num_shards must be a positive integer. Received {num_shards}",
            "pass num_shards=1 to run the computation on the unsplit inputs",
        )
    _check_list(inputs)
    count = 0 if inputs is None else len(inputs)
    axes = _read_axes("input_shard_axes", input_shard_axes, count, "inputs")
    program = _build_program(
        computation,
        inputs,
        infeed_queue,
        device_assignment,
        name,
        xla_options=xla_options,
        prepare=lambda given: _split_inputs(given, axes, num_shards),
        finish=lambda results: _join_outputs(results, results_axes, flags),
        **options,
    )
    outputs = _count_outputs(program.traced.results)
    results_axes = _read_axes("output_shard_axes", output_shard_axes, outputs, "outputs") if outputs else []
    flags = _read_flags(outputs_from_all_shards, outputs) if outputs else []
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
) -> TpuProgram:
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
            "pass a list of unsplit arrays, such as [x, y]; tpu.shard splits them",
            error=TpuTypeError,
        )


def _read_axes(what: str, given: Sequence[int] | None, count: int, of: str) -> list[int]:
    if given is None:
        return [0] * count
    axes = read_integers(what, structures.flatten(given))
    if len(axes) != count:
        refuse(
            "attribute_length_mismatch",
            f"Length of {what} must be equal to the number of {of}. Received {count} {of} and {len(axes)} {what}.",
        )
    return axes


def _read_flags(given: bool | Sequence[bool], count: int) -> list[bool]:
    flags = [given] * count if isinstance(given, bool) else structures.flatten(given)
    if len(flags) != count:
        refuse(
            "attribute_length_mismatch",
            "Length of outputs_from_all_shards must be equal to the number of outputs. "
            f"Received {count} outputs and {len(flags)} outputs_from_all_shards.",
        )
    for number, flag in enumerate(flags):
        if not isinstance(flag, int | np.bool_):
            refuse(
                "invalid_attribute",
                f"outputs_from_all_shards: expected True or False for output {number}, got {flag!r}",
                error=TpuTypeError,
            )
    return flags


def _split_inputs(inputs: Any, axes: list[int], num_shards: int) -> list[list[Any]]:
    _check_list(inputs)
    if inputs is not None and len(inputs) != len(axes):
        refuse("argument_mismatch", f"the program was built for {len(axes)} inputs, but got {len(inputs)}")
    columns = [
        _split_input(n, array, axis, num_shards) for n, (array, axis) in enumerate(zip(inputs or [], axes, strict=True))
    ]
    return [[column[replica] for column in columns] for replica in range(num_shards)]


def _split_input(number: int, given: Any, axis: int, num_shards: int) -> Sequence[Any]:
    """Equal parts of an input along an axis, each its own array; for a shape, the shapes of the parts."""
    array = given if is_shape(given) else as_array(given, f"input {number}")
    shape = shape_of(array)
    if not -shape.rank <= axis < shape.rank:
        refuse(
            "dimension_out_of_range",
            f"input {number} is {shape}, which has no axis {axis} (its entry in input_shard_axes) to split along",
            f"its axes are 0..{shape.rank - 1}"
            if shape.rank
            else "let the function close over arrays that should not be split; every shard then has each array in full",
        )
    size = shape.dims[axis]
    if size % num_shards:
        refuse(
            "divisibility",
            f"Dimension size must be evenly divisible by {num_shards} but is {size} "
            f"(dimension {axis} of input {number}, {shape})",
            "choose a different dimension with input_shard_axes, or let the function close over the array; "
            "every shard then has the entire array",
        )
    if is_shape(given):
        dims = [*shape.dims]
        dims[axis] = size // num_shards
        return [shape.dtype[tuple(dims)]] * num_shards
    return np.split(array, num_shards, axis)


def _count_outputs(results: Any) -> int:
    """The number of results, including None."""
    return 0 if results.form is None else len(structures.flatten(results.form))


def _join_outputs(results: list[Any], axes: list[int], flags: list[bool]) -> Any:
    if isinstance(results[0], Operation):
        return [results[0]]
    columns = zip(*map(structures.flatten, results), strict=True)
    outputs = [_join_output(n, *column) for n, column in enumerate(zip(columns, axes, flags, strict=True))]
    return structures.pack(results[0], outputs)


def _join_output(number: int, parts: Sequence[Any], axis: int, from_all: bool) -> Any:
    first = parts[0]
    if first is None or not from_all:
        return first
    if not first.ndim:
        return np.stack(parts)
    if not -first.ndim <= axis < first.ndim:
        refuse(
            "dimension_out_of_range",
            f"output {number} has shape {list(first.shape)} on each shard, which has no axis {axis} (its entry in "
            "output_shard_axes)",
            f"its axes are 0..{first.ndim - 1}",
        )
    return np.concatenate(parts, axis)


shard = with_program(_shard)
batch_parallel = with_program(_batch_parallel)
