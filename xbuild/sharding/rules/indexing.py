"""The rule of gather, and the walk over its dimensions that scatter shares."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from shape_inference.types import Dims

from ...core.graph import Instruction
from ..factors import ShardingRule
from .builder import FactorBuilder
from .table import sharding_rule


@frozen
class Indexing:
    """What a gather and a scatter have in common, in the words of a gather: `slices` is its result, or the updates."""

    operand: Dims
    indices: Dims
    slices: Dims
    index_vector_dim: int
    offset_dims: Dims
    collapsed: Dims
    operand_batching: Dims
    indices_batching: Dims

    def factors(self) -> Iterator[tuple[int, int | None, int | None, int]]:
        """The dimensions of slices in order, as (size, dimension of the operand, of indices, of slices).

        Those that are offsets come with the operand's dimension where they are all of it, and not at all where not.
        Others count index vectors, and have a dimension of the operand where they are batching dimensions of it.
        """
        kept = iter(self._kept())
        counting = (d for d in range(len(self.indices)) if d != self.index_vector_dim)
        paired = dict(zip(self.indices_batching, self.operand_batching, strict=True))
        for out, size in enumerate(self.slices):
            if out not in self.offset_dims:
                dim = next(counting)
                yield size, paired.get(dim), dim, out
            elif self.operand[own := next(kept)] == size:
                yield size, own, None, out

    def parts(self) -> list[int]:
        """The dimensions of the operand of which a slice has a part of more elements than one, or of none."""
        sizes = (self.slices[out] for out in sorted(self.offset_dims))
        return [dim for dim, size in zip(self._kept(), sizes, strict=True) if self.operand[dim] != size]

    def _kept(self) -> list[int]:
        """The dimensions of the operand that are offsets in the slices."""
        return [d for d in range(len(self.operand)) if d not in self.collapsed and d not in self.operand_batching]


@sharding_rule
def gather(instruction: Instruction) -> ShardingRule:
    """Batch dimensions and whole windows pass; a dimension of which one element is taken is a reduction.

    A device finds the elements that it holds, and zeros elsewhere: the sum is the gather. Index vectors are wanted
    whole, and so is a dimension of which a part is taken.
    """
    builder, attributes = FactorBuilder(instruction), instruction.attributes
    indexing = Indexing(
        builder.operands[0],
        builder.operands[1],
        builder.results[0],
        attributes.index_vector_dim,
        attributes.offset_dims,
        attributes.collapsed_slice_dims,
        attributes.operand_batching_dims,
        attributes.start_indices_batching_dims,
    )
    for size, own, dim, out in indexing.factors():
        builder.add(size, (own, dim), (out,))
    for dim in indexing.collapsed:
        builder.add(indexing.operand[dim], (dim,), (), "reduction")
    return builder.rule()
