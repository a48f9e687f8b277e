"""Provenance: for each op the operand elements from which each result element was computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce as fold
from math import prod
from typing import Any, TypeAlias

import numpy as np

from shape_inference import Dims, PrimitiveType, Shape
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.rules import RuleTable
from shape_inference.windows import Window
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction
from xbuild.core.op import OPS, opcodes

from .kernels.indexing import batch_numbers, inside, number, offsets, vectors
from .kernels.windowing import elements
from .rules import compute

# ----------------------------------------------------------------------------
# Provenance through indices: the index vectors that selected an element, and the scatter updates combined in it.


def selecting_elements(instruction: Instruction, indices: Any) -> Array:
    """For each result element, the elements of the index operand that selected it."""
    dims = instruction.shape.dims  # type: ignore[union-attr]
    if instruction.opcode != "gather":
        return np.broadcast_to(np.arange(np.size(indices)), (prod(dims), np.size(indices)))
    attributes = instruction.attribute_values()
    rows = _index_rows(indices, attributes["index_vector_dim"])
    batch = iter(rows.shape)
    spread = [1 if axis in attributes["offset_dims"] else next(batch) for axis in range(len(dims))]
    count = rows.shape[-1]
    return np.broadcast_to(rows.reshape(*spread, count), (*dims, count)).reshape(-1, count)


def _index_rows(indices: Any, dim: int) -> Array:
    """The element numbers of the indices, with the entries of each index vector along the last axis."""
    elements = np.arange(np.size(indices)).reshape(np.shape(indices))
    return elements[..., None] if dim == elements.ndim else np.moveaxis(elements, dim, -1)


def scatter_tables(operand: Any, indices: Any, update: Any, given: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """The tables of the operand, of the index vectors and of the updates for each result element of a scatter.

    If updates replace elements, only the last update of an element counts, and the operand's element does not.
    """
    target, rows = _update_targets(np.shape(operand), indices, np.shape(update), given)
    size, places = np.size(operand), np.flatnonzero(target >= 0)
    places = places[np.argsort(target[places], kind="stable")]
    at = target[places]
    root, own = given["to_apply"].root, np.arange(size)
    if root.opcode == "parameter" and root.attributes.number == 1:
        last = np.append(at[1:] != at[:-1], [True] * bool(at.size))
        at, places = at[last], places[last]
        own[at] = -1
    turn = np.arange(at.size) - np.searchsorted(at, at)
    most = int(turn.max(initial=0)) + 1
    updates = np.full((size, most), -1)
    updates[at, turn] = places
    vector = np.full((size, most, rows.shape[-1]), -1)
    vector[at, turn] = rows[places]
    return own[:, None], vector.reshape(size, -1), updates


def _update_targets(extents: Dims, indices: Any, update: Dims, given: Mapping[str, Any]) -> tuple[Array, Array]:
    """For each element of an update, its flat index in the operand (-1 if dropped) and its index vector."""
    window, dim = given["update_window_dims"], given["index_vector_dim"]
    entries = vectors(indices, dim)
    batch = entries.shape[1:]
    starts = batch_numbers(batch, given["input_batching_dims"], given["scatter_indices_batching_dims"], dim)
    starts |= dict(zip(given["scatter_dims_to_operand_dims"], entries, strict=True))
    kept, sizes = iter(window), (*given["inserted_window_dims"], *given["input_batching_dims"])
    extent = tuple(1 if axis in sizes else update[next(kept)] for axis in range(len(extents)))
    within = np.ones(batch, bool)
    for axis, start in starts.items():
        within &= inside(start, extents[axis] - extent[axis])
    first = number({axis: starts[axis].astype(np.intp) for axis in sorted(starts)}, extents)
    others = [axis for axis in range(len(update)) if axis not in window]
    places = np.where(
        within[..., None], np.reshape(first, (*np.shape(first), 1)) + offsets(extent, extents).reshape(-1), -1
    )
    rows = _index_rows(indices, dim)[..., None, :]
    shape = [update[axis] for axis in (*others, *window)]
    back = np.argsort([*others, *window])
    found = np.broadcast_to(rows, (*places.shape, rows.shape[-1])).reshape(*shape, -1)
    return places.reshape(shape).transpose(back).reshape(-1), found.transpose(*back, len(shape)).reshape(
        prod(update), -1
    )


# ----------------------------------------------------------------------------
# Provenance rules, which give for each op the operand elements from which each result element was computed.
#
# A rule takes the arguments of the op's value rule and returns for each flat operand a table with one row per
# result element, in order. A row has the numbers of the operand's elements, with -1 as filler. None stands for no
# provenance.

Origins: TypeAlias = Sequence[Array | None]

MOST = 1 << 16
"""The largest size of a table; provenance that needs larger tables is not computed."""

LARGEST = 1 << 25
"""The largest number of elements of an operand whose elements are numbered."""

origins = RuleTable("origin")

_MOVING = opcodes(lambda op: bool(op.moves) and op.needs == "nobody")

READS_VALUES = opcodes(lambda op: bool(op.chosen_by))
"""Ops whose provenance depends on the values of indices or predicates."""

_SAME_PLACE = opcodes(lambda op: op.elements == "same_place")


def origins_of(instruction: Instruction, values: Sequence[Any]) -> Origins | None:
    """For each operand, the elements that each result element was computed from; None if there is no rule or the tables
    are too large. `values` are the operands' values, of which only indices and predicates are read.

    >>> import numpy as np, xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 2])
    >>> origins_of(xb.transpose(x, (1, 0)).instruction, [np.zeros((2, 2), np.float32)])[0].tolist()
    [[0], [2], [1], [3]]
    """
    shape = instruction.shape
    arrays = all(isinstance(operand.shape, Shape) for operand in instruction.operands)
    if not isinstance(shape, Shape) or not arrays or not instruction.operands or shape.size > MOST or not shape.size:
        return None
    if any(np.shape(value) != operand.shape.dims for value, operand in zip(values, instruction.operands, strict=True)):  # type: ignore[union-attr]
        return None
    if any(np.size(value) > LARGEST for value in values):
        return None
    found = _tables_of(instruction, values)
    return found if found and sum(table.size for table in found if table is not None) <= MOST else None


def _tables_of(instruction: Instruction, values: Sequence[Any]) -> Origins | None:
    opcode = instruction.opcode
    if opcode in origins:
        arguments = OPS[opcode].unflatten(tuple(values), instruction.segments)
        result: Origins | None = origins[opcode](*arguments, **instruction.attribute_values())
        return result
    if opcode in _MOVING and opcode in compute:
        return _append_index_tables(instruction, values, _moved_elements(instruction, values))
    if opcode in _SAME_PLACE:
        return [_same_place(np.shape(value), instruction.shape.size) for value in values]  # type: ignore[union-attr]
    return None


def _same_place(dims: Dims, size: int) -> Array:
    """The table of an elementwise operand: the element at the same index; for a scalar operand, its only element."""
    return np.arange(size)[:, None] if dims or size == 1 else np.zeros((size, 1), np.int64)


def _moved_elements(instruction: Instruction, values: Sequence[Any]) -> Origins:
    """The tables of a data-movement op, by running the op on element numbers, counted across all moved operands."""
    schema = OPS[instruction.opcode]
    moving = schema.places(schema.properties.moves, instruction.segments)
    sizes = [np.size(value) if n in moving else 0 for n, value in enumerate(values)]
    starts = np.cumsum([0, *sizes])
    number_elements = tuple(
        np.arange(start, start + size).reshape(np.shape(value)) if size else value
        for value, start, size in zip(values, starts, sizes, strict=False)
    )
    arguments = schema.unflatten(number_elements, instruction.segments)
    found = np.reshape(compute[instruction.opcode](*arguments, **instruction.attribute_values()), (-1, 1))
    return [
        np.where((found >= start) & (found < start + size), found - start, -1) if size else None
        for start, size in zip(starts, sizes, strict=False)
    ]


def _append_index_tables(instruction: Instruction, values: Sequence[Any], tables: Origins) -> Origins:
    """The tables with those of the index operands added, unless they become too large."""
    found = [
        selecting_elements(instruction, value) if table is None else table
        for value, table in zip(values, tables, strict=True)
    ]
    return found if sum(table.size for table in found) <= MOST else tables


def number_elements(value: Any) -> Array:
    return np.arange(np.size(value)).reshape(np.shape(value))


@origins
def bitcast_convert(operand: Any, *, new_element_type: PrimitiveType) -> Origins:
    """Each result element comes from the element that contains its bits, or from the elements that make up its bits."""
    result = compute["bitcast_convert"](operand, new_element_type=new_element_type)
    held, made = np.size(operand), np.size(result)
    parts = np.arange(max(held, made)) // max(1, made // held)
    return [parts.reshape(made, -1)]


@origins
def select(pred: Any, on_true: Any, on_false: Any) -> Origins:
    size = np.size(on_true)
    selecting_elements = np.broadcast_to(pred, np.shape(on_true)).reshape(-1, 1)
    place = _same_place(np.shape(on_true), size)
    return [
        _same_place(np.shape(pred), size),
        np.where(selecting_elements, place, -1),
        np.where(selecting_elements, -1, place),
    ]


@origins
def scatter(operands: Sequence[Any], scatter_indices: Any, updates: Sequence[Any], **given: Any) -> Origins:
    return scatter_tables(operands[0], scatter_indices, updates[0], given)


@origins
def reduce(operands: Sequence[Any], init_values: Sequence[Any], *, to_apply: Any, dimensions: Dims) -> Origins:
    rank = np.ndim(operands[0])
    kept_dims = [dim for dim in range(rank) if dim not in dimensions]
    extents = np.shape(operands[0])
    size, folded = prod(extents[dim] for dim in kept_dims), prod(extents[dim] for dim in dimensions)
    table = number_elements(operands[0]).transpose(*kept_dims, *dimensions).reshape(size, folded)
    return [table] * len(operands) + [np.zeros((size, 1), np.int64)] * len(init_values)


@origins
def dot(
    lhs: Any, rhs: Any, *, lhs_contracting_dims: Dims, rhs_contracting_dims: Dims, lhs_batch_dims: Dims,
    rhs_batch_dims: Dims, **_: Any,
) -> Origins | None:  # fmt: skip
    left = _reorder_output(lhs, lhs_batch_dims, lhs_contracting_dims)
    right = _reorder_output(rhs, rhs_batch_dims, rhs_contracting_dims)
    batch, rows, inner = left.shape
    columns = right.shape[1]
    if batch * rows * columns * inner > MOST:
        return None
    whole = (batch, rows, columns, inner)
    return [
        np.broadcast_to(left[:, :, None], whole).reshape(-1, inner),
        np.broadcast_to(right[:, None], whole).reshape(-1, inner),
    ]


def _reorder_output(value: Any, batch: Dims, contracting: Dims) -> Array:
    """The element numbers of an operand, with the dimensions batch, free, contracting."""
    extents = np.shape(value)
    free = [dim for dim in range(len(extents)) if dim not in (*batch, *contracting)]
    sizes = [prod(extents[dim] for dim in dims) for dims in (batch, free, contracting)]
    return number_elements(value).transpose(*batch, *free, *contracting).reshape(sizes)


def _window_hits(window: Window, extents: Dims) -> tuple[list[Array], int]:
    """For each dimension, the elements that the window reads at each position; and the total size of the table."""
    places = [dim.places(extent) for dim, extent in zip(window, extents, strict=True)]
    total = prod(dim.size * count for dim, count in zip(window, places, strict=True))
    if total > MOST:
        return [], total
    return [elements(dim, extent, count) for dim, extent, count in zip(window, extents, places, strict=True)], total


def _elements_along(hit: Array, axis: int, rank: int) -> Array:
    """The array with window positions along `axis` and window offsets along axis `rank + axis`."""
    shape = [1] * (2 * rank)
    shape[axis], shape[rank + axis] = hit.shape
    return hit.reshape(shape)


@origins
def reduce_window(
    operands: Sequence[Any], init_values: Sequence[Any], *, to_apply: Any, window: Window
) -> Origins | None:
    extents = np.shape(operands[0])
    hits, total = _window_hits(window, extents)
    if total > MOST:
        return None
    rank = len(extents)
    spread = [_elements_along(hit, axis, rank) for axis, hit in enumerate(hits)]
    size = prod(hit.shape[0] for hit in hits)
    table = _numbered(spread, extents).reshape(size, -1)
    return [table] * len(operands) + [np.zeros((size, 1), np.int64)] * len(init_values)


def _numbered(indices: Sequence[Array], extents: Dims) -> Array:
    """Flat element numbers of broadcast indices; -1 if one of the indices is -1."""
    flat = fold(
        lambda total, pair: total * pair[1] + pair[0], zip(indices, extents, strict=True), np.zeros((), np.int64)
    )
    inside = fold(np.logical_and, [index >= 0 for index in indices], np.ones((), bool))
    return np.where(inside, flat, -1)


@origins
def convolution(
    lhs: Any, rhs: Any, *, window: Window, dimension_numbers: ConvolutionDimensionNumbers, feature_group_count: int,
    batch_group_count: int, **_: Any,
) -> Origins | None:  # fmt: skip
    names = dimension_numbers
    image, kernel = number_elements(lhs).transpose(names.lhs), number_elements(rhs).transpose(names.rhs)
    hits, total = _window_hits(window, image.shape[2:])
    outputs, inputs = kernel.shape[:2]
    batch = image.shape[0] // batch_group_count
    if total * batch * outputs * inputs > MOST:
        return None
    rank = len(hits) + 2
    axes = [np.arange(n).reshape([n if axis == at else 1 for axis in range(2 * rank)])
            for at, n in ((0, batch), (1, outputs), (rank + 1, inputs))]  # fmt: skip
    n, o, i = axes
    spread = [_elements_along(hit, axis + 2, rank) for axis, hit in enumerate(hits)]
    example = n + batch * (o // (outputs // batch_group_count))
    feature = i + inputs * (o // (outputs // feature_group_count))
    inside = fold(np.logical_and, [place >= 0 for place in spread], np.ones((), bool))
    offsets = [
        np.arange(dim.size)[:: -1 if dim.window_reversal else 1].reshape(
            [dim.size if at == rank + 2 + axis else 1 for at in range(2 * rank)]
        )
        for axis, dim in enumerate(window)
    ]
    from_image = np.where(inside, image[(example, feature, *(np.maximum(place, 0) for place in spread))], -1)
    from_kernel = np.where(inside, kernel[(o, i, *offsets)], -1)
    return [_as_result(table, names, rank) for table in np.broadcast_arrays(from_image, from_kernel)]


def _as_result(table: Array, names: ConvolutionDimensionNumbers, rank: int) -> Array:
    """The table with rows in the order of the output's dimensions and offsets in the columns."""
    order = np.argsort(names.output)
    size = prod(table.shape[:rank])
    return table.transpose(*order, *range(rank, 2 * rank)).reshape(size, -1)
