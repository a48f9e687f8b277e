"""Values of reshape, transpose, broadcast and other shape ops; most results are views of the operand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_inference import Dims
from xbuild.core.attributes import Array, Padding, PaddingDimension
from xbuild.core.graph import Instruction

from ..compiler.lines import Path
from ..kernels.lifting import common, narrowed
from ..kernels.moving import broadcaster
from ..rules import compute, planned

if TYPE_CHECKING:
    from ..compiler.emit import Emitter
    from ..compiler.requests import Expr


@compute
def broadcast(operand: Array, *, sizes: Dims, dimensions: Dims) -> Array:
    target = [*sizes]
    for dim, extent in zip(dimensions, operand.shape, strict=True):
        target[dim] = extent
    return broadcaster(operand.shape, tuple(target), dimensions)(operand)


@compute
def reshape(operand: Array, *, new_sizes: Dims) -> Array:
    if np.size(operand) == prod(new_sizes):
        return np.reshape(operand, new_sizes)
    return np.reshape(operand, _actual_sizes(operand.shape, new_sizes))


def _actual_sizes(old: Dims, new: Dims) -> Dims:
    """The sizes if a dimension of the operand is shorter than its bound: equal leading and trailing sizes are kept.

    Dimensions of size 1 are passed over, since they tell nothing of the others.
    """
    if len(old) == len(new) and all(size <= bound for size, bound in zip(old, new, strict=True)):
        return old
    sizes = [size for size in old if size != 1]
    places = [dim for dim, bound in enumerate(new) if bound != 1] or [0]
    start = _count_full(sizes, [new[dim] for dim in places[:-1]])
    end = _count_full(sizes[:start:-1], [new[dim] for dim in places[:start:-1]])
    free = places[min(start, len(places) - 1 - end)]
    rest = prod(size for dim, size in enumerate(new) if dim != free)
    return (*new[:free], prod(old) // rest, *new[free + 1 :])


def _count_full(sizes: Sequence[int], bounds: Sequence[int]) -> int:
    """How many sizes are equal to their bounds before the first that is not."""
    pairs = enumerate(zip(sizes, bounds, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(sizes), len(bounds)))


@compute
def transpose(operand: Array, *, permutation: Dims) -> Array:
    return np.transpose(operand, permutation)


@compute
def reverse(operand: Array, *, dimensions: Dims) -> Array:
    return np.flip(operand, dimensions)


@compute
def concatenate(operands: Sequence[Array], *, dimension: int) -> Array:
    dtype = reduce(common, [operand.dtype for operand in operands])
    return np.concatenate([narrowed(operand, dtype) for operand in operands], dimension)


@compute
def pad(operand: Array, padding_value: Array, *, padding: Padding) -> Array:
    extents = np.shape(operand)
    sizes = [n + max(n - 1, 0) * p.interior + p.low + p.high for n, p in zip(extents, padding, strict=True)]
    dtype = common(operand.dtype, padding_value.dtype)
    windows = [_remaining_slices(n, size, p) for n, size, p in zip(extents, sizes, padding, strict=True)]
    kept: Array = operand[tuple(source for source, _ in windows)]
    if kept.shape == tuple(sizes) and kept.dtype == dtype:
        return kept
    result = np.full(sizes, padding_value, dtype)
    result[tuple(target for _, target in windows)] = kept
    return result


def _remaining_slices(extent: int, size: int, padding: PaddingDimension) -> tuple[Any, Any]:
    """The slice of elements of a dimension that remain after negative padding, and their slice in the result."""
    step = padding.interior + 1
    first = -(min(padding.low, 0) // step)
    last = min(extent - 1, (size - 1 - padding.low) // step)
    if last < first:
        return np.s_[0:0], np.s_[0:0]
    return np.s_[first : last + 1], np.s_[padding.low + first * step : padding.low + last * step + 1 : step]


@compute
def get_dimension_size(operand: Array, *, dimension: int) -> Any:
    return np.int32(operand.shape[dimension])


@planned
def set_dimension_size(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    """Emit the call with the dimension's bound, which is known to the plan but not to the array."""
    from ..compiler.emit import call_text

    bound = instruction.shape.dims[instruction.attributes.dimension]  # type: ignore[union-attr]
    call = call_text(emitter, _set_size, instruction, operands, str(bound))
    return emitter.assign_result(instruction.shape, call, path)


def _set_size(bound: int, operand: Array, size: Any, *, dimension: int) -> Array:
    have, wanted = operand.shape[dimension], _clamp_size(size, bound)
    if wanted > have:
        lacking = (*operand.shape[:dimension], wanted - have, *operand.shape[dimension + 1 :])
        return np.concatenate((operand, np.zeros(lacking, operand.dtype)), dimension)
    return operand[(slice(None),) * dimension + (slice(wanted),)]


@compute
def dynamic_reshape(
    operand: Array, dim_sizes: Sequence[Any], *, new_size_bounds: Dims, dims_are_dynamic: tuple[bool, ...]
) -> Array:
    rows = zip(dim_sizes, new_size_bounds, dims_are_dynamic, strict=True)
    sizes = [_clamp_size(size, bound) if is_dynamic else bound for size, bound, is_dynamic in rows]
    elements, wanted = np.ravel(operand), prod(sizes)
    if wanted > elements.size:
        elements = np.concatenate((elements, np.zeros(wanted - elements.size, elements.dtype)))
    return elements[:wanted].reshape(sizes)


def _clamp_size(size: Any, bound: int) -> int:
    return min(max(int(size), 0), bound)
