"""The inputs of replicas, checked in TensorFlow's order: structure, types, arity, maximum shapes, static shapes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import Shape, primitive_type

from .infeed import InfeedQueue
from .padding import PaddedDimension, PaddingSpec, leaves_of, pad_replica_inputs
from .raw_ops import name_of
from .support import structures
from .support.arrays import as_array, is_shape, shape_of
from .support.refusals import TpuTypeError, refuse


@frozen(eq=False)
class Inputs:
    """The inputs of all replicas: `structure` of replica 0, its leaves' shapes (None for None), the arrays of each.

    `padded` are the dimensions that were padded; their sizes are the last arrays of each row.
    """

    structure: Any
    form: Any
    shapes: tuple[Shape | None, ...]
    rows: list[list[Any]]
    padded: tuple[PaddedDimension, ...]
    has_data: bool

    @property
    def num_replicas(self) -> int:
        """How many replicas there are inputs for."""
        return len(self.rows)


def read(
    computation: Callable[..., Any],
    inputs: Any,
    infeed_queue: InfeedQueue | None,
    maximum_shapes: Any,
    padding_spec: PaddingSpec | None,
    known: dict[Any, Any],
) -> Inputs:
    """The inputs of all replicas, or the refusal that TensorFlow would give first.

    `known` holds the signatures of plain arrays for which this computation was found right.
    """
    signature = _signature(inputs, infeed_queue) if maximum_shapes is None else None
    if signature is not None and signature in known:
        form, shapes = known[signature]
        return Inputs(list(inputs[0]), form, shapes, [list(row) for row in inputs], (), True)
    found = _checked(computation, inputs, infeed_queue, maximum_shapes, padding_spec)
    if signature is not None:
        known[signature] = found.form, found.shapes
    return found


def _signature(inputs: Any, queue: InfeedQueue | None) -> Any:
    """Shapes and types of the rows, where they are lists of plain arrays and all alike; else None."""
    if type(inputs) is not list or not inputs:
        return None
    first = None
    for row in inputs:
        if type(row) is not list:
            return None
        found = [(each.shape, each.dtype) for each in row if type(each) is np.ndarray]
        if len(found) != len(row) or (first is not None and found != first):
            return None
        first = found
    return len(inputs), tuple(first or ()), None if queue is None else queue.number_of_tuple_elements


def _checked(
    computation: Callable[..., Any],
    inputs: Any,
    infeed_queue: InfeedQueue | None,
    maximum_shapes: Any,
    padding_spec: PaddingSpec | None,
) -> Inputs:
    rows = _rows(inputs)
    form = _one_form(rows)
    leaves = [structures.flatten(row) for row in rows]
    kept = [[leaf for leaf in row if leaf is not None] for row in leaves]
    shapes = [[shape_of(leaf) for leaf in row] for row in kept]
    _one_type([["None" if leaf is None else name_of(shape_of(leaf).dtype) for leaf in row] for row in leaves])
    _check_arity(computation, len(rows[0]), infeed_queue)
    _check_maxima(maximum_shapes, len(leaves[0]), infeed_queue)
    has_data = not any(is_shape(leaf) for row in kept for leaf in row)
    if maximum_shapes is None:
        _one_shape(shapes)
        padded: list[PaddedDimension] = []
        arrays: list[list[Any]] = [[None if is_shape(leaf) else as_array(leaf) for leaf in row] for row in kept]
    elif not has_data:
        refuse("invalid_operand", "inputs are padded to arrays, and shapes are given", "give an array for each input")
    else:
        arrays, padded = _padded(leaves, maximum_shapes, padding_spec)
        shapes = [[primitive_type(array.dtype)[array.shape] for array in row] for row in arrays]
        _one_shape(shapes)
    found = iter(shapes[0])
    return Inputs(
        list(rows[0]),
        form,
        tuple(None if leaf is None else next(found) for leaf in leaves[0]),
        arrays,
        tuple(padded),
        has_data,
    )


def _rows(inputs: Any) -> list[Any]:
    if inputs is None:
        return [[]]
    if not isinstance(inputs, list):
        refuse(
            "invalid_operand",
            f"tpu.replicate() inputs must be a list of lists/tuples, received {type(inputs)}",
            "a list with a list of arguments for each replica: [[x0, y0], [x1, y1]]",
            error=TpuTypeError,
        )
    if any(not isinstance(row, list | tuple) for row in inputs):
        refuse(
            "invalid_operand",
            f"tpu.replicate() inputs must be a list of lists/tuples, received types: {[type(row) for row in inputs]}",
            "a list with a list of arguments for each replica: [[x0, y0], [x1, y1]]",
            error=TpuTypeError,
        )
    if not inputs:
        refuse(
            "no_replicas",
            "tpu.replicate() inputs is an empty list, which is no replica: it has one entry for each",
            "inputs=None or [[]] is one replica without inputs, [[]] * 4 are four",
        )
    return inputs


def _one_form(rows: Sequence[Any]) -> Any:
    first = structures.form_of(list(rows[0]))
    for replica, row in enumerate(rows[1:], 1):
        if structures.form_of(list(row)) != first:
            refuse(
                "structure_mismatch",
                f"The two structures don't have the same nested structure. Inputs of replica 0: {_told(rows[0])}; of "
                f"replica {replica}: {_told(row)}",
                "every replica runs one computation, with inputs of one structure",
            )
    return first


def _told(row: Any) -> str:
    shown = structures.mapped(lambda leaf: None if leaf is None else _Word("."), list(row))
    return f"{shown} ({len(structures.flatten(list(row)))} leaves)"


class _Word(str):
    """Text that is shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _one_type(types: Sequence[Sequence[str]]) -> None:
    for replica, row in enumerate(types[1:], 1):
        if row != types[0]:
            refuse(
                "element_type_mismatch",
                f"Replicas must have matching input types. Replica 0 had input types [{', '.join(types[0])}], "
                f"replica {replica} had input types [{', '.join(row)}]",
                "a Python int is int32 and a float float32; np.float32(1) is float32 in any case",
            )


def _check_arity(computation: Callable[..., Any], count: int, queue: InfeedQueue | None) -> None:
    total = count + (queue.number_of_tuple_elements or 0 if queue is not None else 0)
    try:
        signature = inspect.signature(computation)
    except (TypeError, ValueError):  # a function of C that does not tell
        return
    try:
        signature.bind(*[None] * total)
    except TypeError:
        infeed = "" if queue is None else f" and {queue.number_of_tuple_elements} of the infeed"
        name = getattr(computation, "__name__", repr(computation))
        refuse(
            "arity_mismatch",
            "Supplied computation cannot be called with the specified inputs. "
            f"You specified {count} inputs{infeed}, but the computation needs {_needed(signature)}",
            error=TpuTypeError,
            given={"computation": f"{name}{signature}"},
        )


def _needed(signature: inspect.Signature) -> str:
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
            "without maximum_shapes or without infeed_queue: items of a queue have one shape",
        )
    given = len(leaves_of(maximum_shapes))
    if given != count:
        refuse(
            "structure_mismatch",
            "The two structures don't have the same nested structure. "
            f"maximum_shapes has {given} shapes, and each replica {count} inputs",
            "one shape for each input, None for an input or an extent that is not limited",
        )


def _one_shape(shapes: Sequence[Sequence[Shape]]) -> None:
    for replica, row in enumerate(shapes[1:], 1):
        if row == shapes[0]:
            continue
        number, a, b = next((n, a, b) for n, (a, b) in enumerate(zip(shapes[0], row, strict=True)) if a != b)
        refuse(
            "shape_mismatch",
            f"input {number} is {a} on replica 0 and {b} on replica {replica}: {_differing(a, b)}",
            "maximum_shapes=... pads inputs of different extents to one, and passes the true sizes",
        )


def _differing(a: Shape, b: Shape) -> str:
    if a.rank != b.rank:
        return f"Shapes must be equal rank, but are {a.rank} and {b.rank}"
    dim = next(d for d, pair in enumerate(zip(a.dims, b.dims, strict=True)) if pair[0] != pair[1])
    return f"Dimension {dim} in both shapes must be equal, but are {a.dims[dim]} and {b.dims[dim]}"


def _padded(
    leaves: list[list[Any]], maximum_shapes: Any, padding_spec: PaddingSpec | None
) -> tuple[list[list[Any]], list[PaddedDimension]]:
    rows, padded = pad_replica_inputs(leaves, maximum_shapes, padding_spec)
    return [[np.asarray(leaf) for leaf in row if leaf is not None] for row in rows], padded
