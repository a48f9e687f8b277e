"""Ragged dot: the slices of the operands that belong to each group, and the slice of the result that it fills."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from attrs import frozen

from shape_inference import Dims
from shape_inference.ops.contraction import before
from xbuild.core.attributes import Array

from .products import DType


@frozen
class Ragged:
    """The dimension numbers of a ragged dot.

    `dimension` is the ragged dimension of lhs; `paired` maps each batch or contracting dimension of lhs to that of rhs;
    `group` are the group dimensions of rhs.
    """

    dimension: int
    batch: Dims
    contracting: Dims
    paired: Mapping[int, int]
    group: Dims

    @property
    def by_group(self) -> bool:
        """Whether each group has its own slice of the result, which happens if the ragged dimension is contracting."""
        return self.dimension in self.contracting

    def products(
        self, lhs: Array, rhs: Array, group_sizes: Array, product: Callable[[Array, Array], Array], dtype: DType
    ) -> Array:
        """The result of the ragged dot: the product of each run, and 0 for the elements that belong to no run."""
        order = self.batch + tuple(dim for dim in range(lhs.ndim) if dim not in self.paired)
        place = {dim: axis for axis, dim in enumerate(order)}  # axis of each lhs dimension in a product
        free = (dim for dim in range(rhs.ndim) if dim not in {*self.paired.values(), *self.group})
        sizes = (*(lhs.shape[dim] for dim in order), *(rhs.shape[dim] for dim in free))
        result = np.zeros((group_sizes.shape[-1], *sizes) if self.by_group else sizes, dtype)
        for number, at in self._runs(group_sizes, lhs):
            left = lhs[_slices(at, lhs.ndim)]
            right = rhs[_slices({self.paired[dim]: part for dim, part in at.items() if dim in self.paired}, rhs.ndim)]
            right = right.take(number, self.group[0]) if self.group else right
            into = _slices({place[dim]: part for dim, part in at.items() if dim in place}, len(sizes))
            (result[number] if self.by_group else result)[into] += product(left, right)
        return result

    def _runs(self, group_sizes: Array, lhs: Array) -> Iterator[tuple[int, dict[int, slice]]]:
        """The group number and the lhs slices of each run; each row of `group_sizes` has its own runs."""
        prefix = before(lhs.ndim, self.dimension, self.batch, self.contracting) if group_sizes.ndim > 1 else ()
        for outer in np.ndindex(group_sizes.shape[:-1]):
            here = {dim: slice(index, index + 1) for dim, index in zip(prefix, outer, strict=True)}
            for number, run in _one_after_the_other(group_sizes[outer], lhs.shape[self.dimension]):
                yield number, {**here, self.dimension: run}


def _one_after_the_other(sizes: Array, extent: int) -> Iterator[tuple[int, slice]]:
    """The number and the run of each group; runs end at the extent of the ragged dimension, empty ones are left out."""
    ends = np.cumsum(sizes.astype(np.int64))
    for number, (end, size) in enumerate(zip(ends.tolist(), sizes.tolist(), strict=True)):
        first, last = max(end - int(size), 0), min(end, extent)
        if first < last:
            yield number, slice(first, last)


def _slices(parts: Mapping[int, slice], rank: int) -> tuple[slice, ...]:
    return tuple(parts.get(dim, slice(None)) for dim in range(rank))
