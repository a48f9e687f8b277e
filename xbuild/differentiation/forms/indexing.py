"""What the rules of gather and scatter share: index vectors in bounds, and the dimension numbers of both ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from attrs import frozen

from shape_inference import Dims

from ... import ops
from ...checking.dataflow.lattice import limits as limits_of_type
from ...core.builder import Value
from ..rules import full
from ..support import broadcast_to
from .arrays import array_of, compared
from .bounds import are_inside


@frozen
class Places:
    """Where slices of an array stand: gather's words for it; `inserted` are the dimensions that a slice lacks."""

    window: Dims
    inserted: Dims
    index_map: Dims
    batching: Dims
    indices_batching: Dims
    vector_dim: int

    def slice_sizes(self, operand: Value, updates: Value) -> Dims:
        """The extents of the slices that updates of this shape go to."""
        sizes = iter([array_of(updates).dims[dim] for dim in self.window])
        left_out = {*self.inserted, *self.batching}
        return tuple(1 if dim in left_out else next(sizes) for dim in range(array_of(operand).rank))

    def gathered(self, operand: Value, indices: Value, sizes: Dims, is_sorted: bool = False) -> Value:
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

    def scattered(
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
        """The greatest start in bounds for each entry of an index vector."""
        return [array_of(operand).dims[dim] - sizes[dim] for dim in self.index_map]

    def along_vectors(self, indices: Value, numbers: Sequence[int]) -> Value:
        """A number for each entry of the index vectors, over all of them; a number too large for their type is cut."""
        shape = array_of(indices)
        most = limits_of_type(shape)[1]
        row = np.array([min(number, most) for number in numbers]).astype(shape.dtype.dtype)
        if len(set(row.tolist())) == 1:
            return full(indices.builder, row[0], shape)
        literal = ops.constant(indices.builder, literal=row)
        return broadcast_to(literal, shape.dims, (self.vector_dim,))

    def clamped(self, indices: Value, limits: Sequence[int]) -> Value:
        """The index vectors as gather reads them: moved to where the slice is inside."""
        if not limits or are_inside(indices.instruction, limits, self.vector_dim):
            return indices
        zero = full(indices.builder, 0, array_of(indices))
        return ops.clamp(zero, indices, self.along_vectors(indices, limits))

    def inside(self, indices: Value, limits: Sequence[int], updates: Value) -> Value | None:
        """Where updates are not dropped, for each of their elements; None where none is."""
        if not limits or are_inside(indices.instruction, limits, self.vector_dim):
            return None
        zero = full(indices.builder, 0, array_of(indices))
        most = self.along_vectors(indices, limits)
        is_inside = compared(indices, most, "LE")
        if array_of(indices).dtype.kind == "signed":
            is_inside = ops.and_(compared(indices, zero, "GE"), is_inside)
        return self._over_updates(is_inside, updates)

    def _over_updates(self, flags: Value, updates: Value) -> Value:
        """Whether all flags of an index vector hold, for each element of its update."""
        if self.vector_dim < array_of(flags).rank:
            true = ops.constant(flags.builder, literal=np.asarray(True))
            flags = ops.reduce((flags,), (true,), to_apply=ops.and_, dimensions=(self.vector_dim,))
        sizes = array_of(updates).dims
        others = tuple(dim for dim in range(len(sizes)) if dim not in self.window)
        return broadcast_to(flags, sizes, others)
