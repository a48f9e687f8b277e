"""The inputs of replicas: TensorFlow's checks in its order, and padding of extents that differ between replicas.

Sections:

    Padding of inputs whose extents differ between replicas
    Checks of the inputs, in TensorFlow's order
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import Shape, primitive_type

from . import structures
from .arguments import Placeholder, TpuTypeError, as_array, is_shape, read_integer, read_sequence, refuse, shape_of
from .infeed import InfeedQueue
from .raw_ops import tensorflow_name

# ----------------------------------------------------------------------------
# Padding of inputs whose extents differ between replicas
#
# The padded size, and the true sizes that are passed along.

Maximum: TypeAlias = tuple[int | None, ...]
SMALLEST = 2
"""XLA has no dynamic dimension of size 1."""


class PaddingSpec(IntEnum):
    """The padded size of a dimension without a maximum: the largest of the replicas, or the next power of two.

    >>> import xbuild as xb
    >>> xb.tpu.PaddingSpec.POWER_OF_TWO
    <PaddingSpec.POWER_OF_TWO: 1>

    Source: tf.compat.v1.tpu.PaddingSpec.
    """

    AUTO = 0
    POWER_OF_TWO = 1


@frozen
class PaddedDimension:
    """A padded dimension of an input, and the argument that holds its true size on each replica."""

    arg_index: int
    shape_index: int
    padding_arg_index: int


def pad_replica_inputs(
    inputs: Sequence[Sequence[Any]], maximum_shapes: Any = None, padding_spec: PaddingSpec | None = None
) -> tuple[list[list[Any]], list[PaddedDimension]]:
    """Pad the inputs of all replicas to common shapes; the true size of each padded dimension follows the inputs.

    A dimension is padded if its extent differs between replicas or is unknown before the run: to its maximum, or by
    the policy without one, but never below 2. Zeros are appended. With one replica nothing is padded.
    Raises maximum_too_small, rank_mismatch for a maximum of a different rank, shape_mismatch for inputs of different
    ranks, invalid_attribute (TypeError) for policies or extents of the wrong type.

    >>> import numpy as np
    >>> import xbuild as xb
    >>> rows, dims = xb.tpu.pad_replica_inputs([[np.int32([1, 2, 3])], [np.int32([1, 2])]])
    >>> rows[1], [dim.padding_arg_index for dim in dims]
    ([array([1, 2, 0], dtype=int32), np.int32(2)], [1])

    Source: tensorflow/python/tpu/tpu.py, _pad_all_input.
    """
    rows = [structures.flatten(list(row)) for row in inputs]
    maxima = read_maxima(maximum_shapes, len(rows[0]))
    spec = _read_policy(padding_spec)
    padded: list[list[Any]] = [[] for _ in rows]
    sizes: list[list[Any]] = [[] for _ in rows]
    dimensions: list[PaddedDimension] = []
    for number, column in enumerate(zip(*rows, strict=True)):
        targets = _find_padding(number, column, maxima[number], spec)
        for dim in targets:
            dimensions.append(PaddedDimension(number, dim, len(rows[0]) + len(dimensions)))
        for replica, leaf in enumerate(column):
            array = None if leaf is None else as_array(leaf)
            padded[replica].append(None if array is None else _pad_array(array, targets))
            sizes[replica] += [np.int32(array.shape[dim]) for dim in targets if array is not None]
    return [[*row, *size] for row, size in zip(padded, sizes, strict=True)], dimensions


def _read_policy(given: Any) -> PaddingSpec:
    if given is None:
        return PaddingSpec.AUTO
    if given not in tuple(PaddingSpec):
        refuse(
            "invalid_attribute",
            f"padding_spec: expected a PaddingSpec, got {given!r}",
            "pass xb.tpu.PaddingSpec.AUTO or xb.tpu.PaddingSpec.POWER_OF_TWO",
            error=TpuTypeError,
        )
    return PaddingSpec(given)


def read_maxima(maximum_shapes: Any, count: int) -> list[Maximum | None]:
    """The maximum of each input: extents, with None for unknown ones; () for no maximum; None for no padding."""
    if maximum_shapes is None:
        return [()] * count
    return [_read_maximum(shape) for shape in flatten_maxima(maximum_shapes)]


def flatten_maxima(maximum_shapes: Any) -> list[Any]:
    """The maximum shapes of the inputs in order; within the outer list, a list of ints and None is one shape."""
    if isinstance(maximum_shapes, list | tuple) and not any(map(_is_extent, maximum_shapes)):
        return [shape for inner in maximum_shapes for shape in _flatten_maximum(inner)]
    return _flatten_maximum(maximum_shapes)


def _flatten_maximum(nested: Any) -> list[Any]:
    if isinstance(nested, dict):
        return [shape for key in sorted(nested) for shape in _flatten_maximum(nested[key])]
    if isinstance(nested, list | tuple) and not all(shape is None or _is_extent(shape) for shape in nested):
        return [shape for inner in nested for shape in _flatten_maximum(inner)]
    return [nested]


def _is_extent(entry: Any) -> bool:
    return isinstance(entry, int | np.integer)


def _read_maximum(shape: Any) -> Maximum | None:
    what = "a shape of maximum_shapes"
    dims = None if shape is None else read_sequence(what, shape, "extents and None")
    return (
        None
        if dims is None
        else tuple(None if each is None else read_integer(f"an extent of {what}", each) for each in dims)
    )


def _find_padding(number: int, column: Sequence[Any], maximum: Maximum | None, spec: PaddingSpec) -> dict[int, int]:
    """The dimensions of one input to pad, with their padded sizes."""
    if column[0] is None or maximum is None:
        return {}
    static = [leaf.shape if isinstance(leaf, Placeholder) else as_array(leaf).shape for leaf in column]
    ranks = [len(shape) for shape in static]
    if len(set(ranks)) > 1:
        other = next(n for n, rank in enumerate(ranks) if rank != ranks[0])
        refuse(
            "shape_mismatch",
            f"input {number} has {ranks[0]} dimensions on replica 0, but {ranks[other]} on replica {other}; padding "
            "changes extents, not the number of dimensions",
        )
    if maximum and len(maximum) != ranks[0]:
        refuse(
            "rank_mismatch",
            f"the maximum shape {list(maximum)} of input {number} has {len(maximum)} extents, but the input has "
            f"{ranks[0]} dimensions",
            f"{[None] * ranks[0]} sets no maximum",
        )
    real = [as_array(leaf).shape for leaf in column]
    return {
        dim: _padded_size(number, dim, [shape[dim] for shape in real], maximum[dim] if maximum else None, spec)
        for dim in range(ranks[0])
        if any(shape[dim] is None or shape[dim] != static[0][dim] for shape in static[1:])
    }


def _padded_size(number: int, dim: int, sizes: Sequence[int], maximum: int | None, spec: PaddingSpec) -> int:
    largest = max(sizes)
    if maximum is not None and maximum < largest:
        refuse(
            "maximum_too_small",
            f"the maximum shape of input {number} has extent {maximum} in dimension {dim}, but the input of replica "
            f"{sizes.index(largest)} has extent {largest}",
            f"set the maximum to {largest} or more, or pass None to let the policy choose",
        )
    size = max(largest if maximum is None else maximum, SMALLEST)
    return 1 << (size - 1).bit_length() if maximum is None and spec is PaddingSpec.POWER_OF_TWO else size


def _pad_array(array: np.ndarray[Any, Any], targets: dict[int, int]) -> np.ndarray[Any, Any]:
    if not targets:
        return array
    whole = np.zeros([targets.get(dim, size) for dim, size in enumerate(array.shape)], array.dtype)
    whole[tuple(map(slice, array.shape))] = array
    return whole


# ----------------------------------------------------------------------------
# Checks of the inputs, in TensorFlow's order
#
# Structure, types, arity, maximum shapes, static shapes.


@frozen(eq=False)
class Inputs:
    """The inputs of all replicas: the structure of replica 0, its leaves' shapes (None for None), the arrays of each.

    `padded` lists the padded dimensions; their true sizes are the last arrays of each row.
    """

    structure: Any
    form: Any
    shapes: tuple[Shape | None, ...]
    rows: list[list[Any]]
    padded: tuple[PaddedDimension, ...]
    has_data: bool

    @property
    def num_replicas(self) -> int:
        """The number of replicas with inputs."""
        return len(self.rows)


def read_inputs(
    computation: Callable[..., Any],
    inputs: Any,
    infeed_queue: InfeedQueue | None,
    maximum_shapes: Any,
    padding_spec: PaddingSpec | None,
    known: dict[Any, Any],
) -> Inputs:
    """Read the inputs of all replicas, or raise what TensorFlow would raise first.

    `known` caches the signatures of plain arrays that this computation accepts.
    """
    signature = _signature(inputs, infeed_queue) if maximum_shapes is None else None
    if signature is not None and signature in known:
        form, shapes = known[signature]
        return Inputs(list(inputs[0]), form, shapes, [list(row) for row in inputs], (), True)
    checked = _check_inputs(computation, inputs, infeed_queue, maximum_shapes, padding_spec)
    if signature is not None:
        known[signature] = checked.form, checked.shapes
    return checked


def _signature(inputs: Any, queue: InfeedQueue | None) -> Any:
    """The shapes and types of the rows if all are alike and hold only plain arrays; otherwise None."""
    if type(inputs) is not list or not inputs:
        return None
    first = None
    for row in inputs:
        if type(row) is not list:
            return None
        types_of_row = [(array.shape, array.dtype) for array in row if type(array) is np.ndarray]
        if len(types_of_row) != len(row) or (first is not None and types_of_row != first):
            return None
        first = types_of_row
    return len(inputs), tuple(first or ()), None if queue is None else queue.number_of_tuple_elements


def _check_inputs(
    computation: Callable[..., Any],
    inputs: Any,
    infeed_queue: InfeedQueue | None,
    maximum_shapes: Any,
    padding_spec: PaddingSpec | None,
) -> Inputs:
    rows = _check_rows(inputs)
    form = _check_one_form(rows)
    leaves = [structures.flatten(row) for row in rows]
    kept = [[leaf for leaf in row if leaf is not None] for row in leaves]
    shapes = [[shape_of(leaf) for leaf in row] for row in kept]
    _check_one_type(
        [["None" if leaf is None else tensorflow_name(shape_of(leaf).dtype) for leaf in row] for row in leaves]
    )
    _check_arity(computation, len(rows[0]), infeed_queue)
    _check_maxima(maximum_shapes, len(leaves[0]), infeed_queue)
    has_data = not any(is_shape(leaf) for row in kept for leaf in row)
    if maximum_shapes is None:
        _check_one_shape(shapes)
        padded: list[PaddedDimension] = []
        arrays: list[list[Any]] = [[None if is_shape(leaf) else as_array(leaf) for leaf in row] for row in kept]
    elif not has_data:
        refuse("invalid_operand", "padding needs arrays, but the inputs are shapes", "pass an array for each input")
    else:
        arrays, padded = _pad_inputs(leaves, maximum_shapes, padding_spec)
        shapes = [[primitive_type(array.dtype)[array.shape] for array in row] for row in arrays]
        _check_one_shape(shapes)
    shapes_in_order = iter(shapes[0])
    return Inputs(
        list(rows[0]),
        form,
        tuple(None if leaf is None else next(shapes_in_order) for leaf in leaves[0]),
        arrays,
        tuple(padded),
        has_data,
    )


def _check_rows(inputs: Any) -> list[Any]:
    if inputs is None:
        return [[]]
    if not isinstance(inputs, list):
        refuse(
            "invalid_operand",
            f"tpu.replicate() inputs must be a list of lists/tuples, received {type(inputs)}",
            "pass a list of arguments for each replica: [[x0, y0], [x1, y1]]",
            error=TpuTypeError,
        )
    if any(not isinstance(row, list | tuple) for row in inputs):
        refuse(
            "invalid_operand",
            f"tpu.replicate() inputs must be a list of lists/tuples, received types: {[type(row) for row in inputs]}",
            "pass a list of arguments for each replica: [[x0, y0], [x1, y1]]",
            error=TpuTypeError,
        )
    if not inputs:
        refuse(
            "no_replicas",
            "tpu.replicate() inputs is an empty list; expected one entry for each replica",
            "for one replica without inputs, pass inputs=None or [[]]; for four, pass [[]] * 4",
        )
    return inputs


def _check_one_form(rows: Sequence[Any]) -> Any:
    first = structures.read_form(list(rows[0]))
    for replica, row in enumerate(rows[1:], 1):
        if structures.read_form(list(row)) != first:
            refuse(
                "structure_mismatch",
                "The two structures don't have the same nested structure. "
                f"Inputs of replica 0: {_describe(rows[0])}; of replica {replica}: {_describe(row)}",
                "every replica runs the same computation, so all replicas need inputs of the same structure",
            )
    return first


def _describe(row: Any) -> str:
    shown = structures.map_leaves(lambda leaf: None if leaf is None else _Word("."), list(row))
    return f"{shown} ({len(structures.flatten(list(row)))} leaves)"


class _Word(str):
    """Text shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _check_one_type(types: Sequence[Sequence[str]]) -> None:
    for replica, row in enumerate(types[1:], 1):
        if row != types[0]:
            refuse(
                "element_type_mismatch",
                f"Replicas must have matching input types. Replica 0 had input types [{', '.join(types[0])}], "
                f"replica {replica} had input types [{', '.join(row)}]",
                "a Python int becomes int32 and a Python float becomes float32; np.float32(1) is always float32",
            )


def _check_arity(computation: Callable[..., Any], count: int, queue: InfeedQueue | None) -> None:
    total = count + (queue.number_of_tuple_elements or 0 if queue is not None else 0)
    try:
        signature = inspect.signature(computation)
    except (TypeError, ValueError):  # a C function without a signature
        return
    try:
        signature.bind(*[None] * total)
    except TypeError:
        infeed = "" if queue is None else f" and {queue.number_of_tuple_elements} of the infeed"
        name = getattr(computation, "__name__", repr(computation))
        refuse(
            "arity_mismatch",
            "Supplied computation cannot be called with the specified inputs. "
            f"You specified {count} inputs{infeed}, but the computation needs {_arity(signature)}",
            error=TpuTypeError,
            given={"computation": f"{name}{signature}"},
        )


def _arity(signature: inspect.Signature) -> str:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p for p in signature.parameters.values() if p.kind in kinds]
    least = sum(p.default is p.empty for p in positional)
    if any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()):
        return f"at least {least} arguments"
    return f"exactly {least} arguments" if least == len(positional) else f"{least} to {len(positional)} arguments"


def _check_maxima(maximum_shapes: Any, count: int, queue: InfeedQueue | None) -> None:
    if maximum_shapes is None:
        return
    if queue is not None:
        refuse(
            "invalid_attribute",
            "Dynamic input shapes are not supported with infeed queues",
            "omit maximum_shapes or infeed_queue: all items of a queue have the same shape",
        )
    num_shapes = len(flatten_maxima(maximum_shapes))
    if num_shapes != count:
        refuse(
            "structure_mismatch",
            "The two structures don't have the same nested structure. "
            f"maximum_shapes has {num_shapes} shapes, but each replica has {count} inputs",
            "pass one shape for each input; use None for an input or an extent without a maximum",
        )


def _check_one_shape(shapes: Sequence[Sequence[Shape]]) -> None:
    for replica, row in enumerate(shapes[1:], 1):
        if row == shapes[0]:
            continue
        number, a, b = next((n, a, b) for n, (a, b) in enumerate(zip(shapes[0], row, strict=True)) if a != b)
        refuse(
            "shape_mismatch",
            f"input {number} is {a} on replica 0, but {b} on replica {replica}: {_describe_difference(a, b)}",
            "pass maximum_shapes=... to pad the inputs to equal extents; the program also receives their true extents",
        )


def _describe_difference(a: Shape, b: Shape) -> str:
    if a.rank != b.rank:
        return f"Shapes must be equal rank, but are {a.rank} and {b.rank}"
    dim = next(d for d, pair in enumerate(zip(a.dims, b.dims, strict=True)) if pair[0] != pair[1])
    return f"Dimension {dim} in both shapes must be equal, but are {a.dims[dim]} and {b.dims[dim]}"


def _pad_inputs(
    leaves: list[list[Any]], maximum_shapes: Any, padding_spec: PaddingSpec | None
) -> tuple[list[list[Any]], list[PaddedDimension]]:
    rows, padded = pad_replica_inputs(leaves, maximum_shapes, padding_spec)
    return [[np.asarray(leaf) for leaf in row if leaf is not None] for row in rows], padded
