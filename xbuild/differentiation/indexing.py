"""What the rules of gather, scatter and sort share: slices at index vectors, and bounds on index vectors.

Sections:

    Slices at index vectors
    Bounds on the entries of index vectors
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import Dims, Shape

from .. import ops
from ..checking.dataflow.lattice import Bounds, Leaf, OpenValue, bounds_of, leaf_within, open_result
from ..checking.dataflow.lattice import type_limits as limits_of_type
from ..core.builder import Value
from ..core.graph import Instruction
from .arrays import array_shape, broadcast_to, compare
from .rules import full

# ----------------------------------------------------------------------------
# Slices at index vectors


@frozen
class SlicePlaces:
    """The dimension numbers of gather: where slices are in an array. A slice lacks the dimensions `inserted`."""

    window: Dims
    inserted: Dims
    index_map: Dims
    batching: Dims
    indices_batching: Dims
    vector_dim: int

    def slice_sizes(self, operand: Value, updates: Value) -> Dims:
        """The extents of the slices to which updates of this shape go."""
        sizes = iter([array_shape(updates).dims[dim] for dim in self.window])
        left_out = {*self.inserted, *self.batching}
        return tuple(1 if dim in left_out else next(sizes) for dim in range(array_shape(operand).rank))

    def gather(self, operand: Value, indices: Value, sizes: Dims, is_sorted: bool = False) -> Value:
        return ops.gather(
            operand,
            indices,
            offset_dims=self.window,
            collapsed_slice_dims=self.inserted,
            start_index_map=self.index_map,
            operand_batching_dims=self.batching,
            start_indices_batching_dims=self.indices_batching,
            index_vector_dim=self.vector_dim,
            slice_sizes=sizes,
            indices_are_sorted=is_sorted,
        )

    def scatter(
        self,
        operand: Value,
        indices: Value,
        updates: Value,
        to_apply: Callable[..., Value],
        is_sorted: bool = False,
        is_unique: bool = False,
    ) -> Value:
        return ops.scatter(
            (operand,),
            indices,
            (updates,),
            to_apply=to_apply,
            update_window_dims=self.window,
            inserted_window_dims=self.inserted,
            scatter_dims_to_operand_dims=self.index_map,
            input_batching_dims=self.batching,
            scatter_indices_batching_dims=self.indices_batching,
            index_vector_dim=self.vector_dim,
            indices_are_sorted=is_sorted,
            unique_indices=is_unique,
        )

    def last_starts(self, operand: Value, sizes: Dims) -> list[int]:
        """The largest start in bounds for each entry of an index vector."""
        return [array_shape(operand).dims[dim] - sizes[dim] for dim in self.index_map]

    def repeat_along_vectors(self, indices: Value, numbers: Sequence[int]) -> Value:
        """A number for each entry, repeated for all index vectors, and limited to the largest of their type."""
        shape = array_shape(indices)
        most = limits_of_type(shape)[1]
        row = np.array([min(number, most) for number in numbers]).astype(shape.dtype.dtype)
        if len(set(row.tolist())) == 1:
            return full(indices.builder, row[0], shape)
        literal = ops.constant(indices.builder, literal=row)
        return broadcast_to(literal, shape.dims, (self.vector_dim,))

    def clamp(self, indices: Value, limits: Sequence[int]) -> Value:
        """The index vectors clamped as gather does, so that each slice is in bounds."""
        if not limits or are_inside(indices.instruction, limits, self.vector_dim):
            return indices
        zero = full(indices.builder, 0, array_shape(indices))
        return ops.clamp(zero, indices, self.repeat_along_vectors(indices, limits))

    def in_bounds_mask(self, indices: Value, limits: Sequence[int], updates: Value) -> Value | None:
        """A mask of the update elements that are not dropped; None if none is dropped."""
        if not limits or are_inside(indices.instruction, limits, self.vector_dim):
            return None
        zero = full(indices.builder, 0, array_shape(indices))
        most = self.repeat_along_vectors(indices, limits)
        is_inside = compare(indices, most, "LE")
        if array_shape(indices).dtype.kind == "signed":
            is_inside = ops.and_(compare(indices, zero, "GE"), is_inside)
        return self._broadcast_over_updates(is_inside, updates)

    def _broadcast_over_updates(self, flags: Value, updates: Value) -> Value:
        """For each update element, whether all flags of its index vector hold."""
        if self.vector_dim < array_shape(flags).rank:
            true = ops.constant(flags.builder, literal=np.asarray(True))
            flags = ops.reduce((flags,), (true,), to_apply=ops.and_, dimensions=(self.vector_dim,))
        sizes = array_shape(updates).dims
        others = tuple(dim for dim in range(len(sizes)) if dim not in self.window)
        return broadcast_to(flags, sizes, others)


# ----------------------------------------------------------------------------
# Bounds on the entries of index vectors
#
# As far as the instructions that computed them show, so that no clamp or mask is recorded where none is needed.


Known: TypeAlias = dict[Instruction, Leaf]
_FARTHEST = 12  # instructions that are followed back from the index vectors


def are_inside(indices: Instruction, limits: Sequence[int], vector_dim: int) -> bool:
    """Whether every entry of all index vectors is known to be between 0 and its limit."""
    entries = _bounds_by_entry(indices, len(limits), vector_dim, {})
    return all(
        bounds is not None and bounds[0] >= 0 and bounds[1] <= limit
        for bounds, limit in zip(entries, limits, strict=True)
    )


def _bounds_by_entry(indices: Instruction, count: int, vector_dim: int, known: Known) -> list[Bounds | None]:
    """The bounds of each entry, separately if the vectors were concatenated from entries."""
    bounds: list[Bounds | None] = []
    stack = [(indices, count)]
    while stack:
        instruction, count = stack.pop()
        shape = instruction.shape
        assert isinstance(shape, Shape)
        if not count:
            continue
        if instruction.opcode == "constant" and shape.size and vector_dim < shape.rank:
            columns = np.moveaxis(np.asarray(instruction.attributes.literal), vector_dim, 0)
            bounds += [(int(column.min()), int(column.max())) for column in columns]
        elif instruction.opcode == "concatenate" and instruction.attributes.dimension == vector_dim:
            stack += [(part, part.shape.dims[vector_dim]) for part in reversed(instruction.operands)]  # type: ignore[union-attr]
        else:
            bounds += [bounds_of(_bounds(instruction, known, _FARTHEST), shape)] * count
    return bounds


def _bounds(instruction: Instruction, known: Known, steps: int) -> Leaf:
    if instruction not in known:
        known[instruction] = _compute_bounds(instruction, known, steps) if steps else None
    return known[instruction]


def _compute_bounds(instruction: Instruction, known: Known, steps: int) -> Leaf:
    shape = instruction.shape
    if not isinstance(shape, Shape):
        return None
    if instruction.opcode == "constant":
        literal = instruction.attributes.literal
        has_integers = literal.size and literal.dtype.kind in "biu"
        return OpenValue((int(literal.min()), int(literal.max()))) if has_integers else OpenValue()
    if instruction.opcode == "iota":
        return leaf_within((0, max(shape.dims[instruction.attributes.iota_dimension] - 1, 0)), shape)
    operands = [_bounds(operand, known, steps - 1) for operand in instruction.operands]
    return open_result(instruction, operands, lambda _: None)
