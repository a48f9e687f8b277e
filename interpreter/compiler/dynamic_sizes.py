"""Operands whose dynamic dimensions differ in size at run time: arrays are cut to the smallest size, or padded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from shape_inference import Shape
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction
from xbuild.core.op import opcodes

from ..kernels.lifting import common
from ..rules.lines import Path

if TYPE_CHECKING:
    from .emit import Emitter
    from .expressions import Expr

Fit: TypeAlias = Callable[..., tuple[Any, ...]]
Flags: TypeAlias = tuple[tuple[bool, ...], ...]

_BY_ELEMENT = opcodes(lambda op: op.elements == "same_place") - {"clamp"}


def fitted(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> list[Expr]:
    """The operands of an op, cut or padded to matching sizes at run time; unchanged where all sizes are static."""
    shapes = [operand.shape for operand in instruction.operands]
    if len(shapes) < 2 or not any(isinstance(shape, Shape) and shape.dynamic for shape in shapes):
        return operands
    fit = _fit(instruction, [shape.dynamic or (False,) * shape.rank for shape in shapes if isinstance(shape, Shape)])
    if fit is None:
        return operands
    names = [emitter.variables(shape) for shape in shapes]
    left, right = (", ".join(map(str, each)) for each in (names, operands))
    emitter.lines.add(f"{left} = {emitter.bind('r', fit)}({right})", path)
    return names


def _fit(instruction: Instruction, flags: list[tuple[bool, ...]]) -> Fit | None:
    if instruction.opcode in _BY_ELEMENT:
        return partial(cut, flags=tuple(flags))
    if instruction.opcode == "clamp":
        return bounded
    if instruction.opcode == "dot":
        a = instruction.attributes
        left, right = a.lhs_batch_dims + a.lhs_contracting_dims, a.rhs_batch_dims + a.rhs_contracting_dims
        return partial(cut_pairs, pairs=tuple(zip(left, right, strict=True)))
    if instruction.opcode == "convolution":
        return partial(filled_up, bounds=_bounds_of_sums(instruction))
    return padded if instruction.opcode == "reduce" else None


def cut(*arrays: Any, flags: Flags) -> tuple[Any, ...]:
    """The arrays cut to the least dynamic size of each dimension; size 1 is broadcast to the size of the other arrays.

    Scalars are unchanged.
    """
    rank = max(array.ndim for array in arrays)
    whole = [array for array in arrays if array.ndim == rank]
    if len({array.shape for array in whole}) == 1:
        return arrays
    dynamic = [free for array, free in zip(arrays, flags, strict=True) if array.ndim == rank]
    sizes = tuple(_least(whole, dynamic, axis) for axis in range(rank))
    part = tuple(map(slice, sizes))
    return tuple(_stretched(a[part], sizes) if a.ndim == rank else a for a in arrays)


def _least(arrays: list[Any], flags: list[tuple[bool, ...]], axis: int) -> int:
    sizes = [array.shape[axis] for array, free in zip(arrays, flags, strict=True) if free[axis]]
    if not sizes:
        return int(arrays[0].shape[axis])
    return int(min((size for size in sizes if size != 1), default=1))


def _stretched(array: Array, sizes: tuple[int, ...]) -> Array:
    return array if array.shape == sizes else np.broadcast_to(array, sizes)


def bounded(low: Array, operand: Array, high: Array) -> tuple[Array, Array, Array]:
    """The bounds of a clamp at the operand's size; beyond the end of a bound the operand's elements are not clamped."""
    return _over(low, operand), operand, _over(high, operand)


def _over(bound: Array, operand: Array) -> Array:
    if not bound.ndim or bound.shape == operand.shape:
        return bound
    shared = tuple(slice(min(pair)) for pair in zip(bound.shape, operand.shape, strict=True))
    whole = np.array(operand, common(operand.dtype, bound.dtype))
    whole[shared] = bound[shared]
    return whole


def _bounds_of_sums(instruction: Instruction) -> tuple[dict[int, int], dict[int, int]]:
    """The dimensions over which a convolution sums, with their bounds: the feature and kernel spatial dimensions."""
    numbers = instruction.attributes.dimension_numbers
    lhs, rhs = (operand.shape for operand in instruction.operands)
    assert isinstance(lhs, Shape)
    assert isinstance(rhs, Shape)
    inner = numbers.kernel_input_feature_dimension, *numbers.kernel_spatial_dimensions
    feature = numbers.input_feature_dimension
    return {feature: lhs.dims[feature]}, {dim: rhs.dims[dim] for dim in inner}


def filled_up(*arrays: Array, bounds: tuple[dict[int, int], ...]) -> tuple[Array, ...]:
    """The arrays padded with zeros to the bounds of these dimensions; the zeros change no sum of products."""
    sizes = [tuple(b.get(dim, n) for dim, n in enumerate(a.shape)) for a, b in zip(arrays, bounds, strict=True)]
    return tuple(_filled(array, size, 0) for array, size in zip(arrays, sizes, strict=True))


def cut_pairs(lhs: Array, rhs: Array, *, pairs: tuple[tuple[int, int], ...]) -> tuple[Array, Array]:
    """Two operands, with both dimensions of each pair cut to the smaller size."""
    for left, right in pairs:
        size = min(lhs.shape[left], rhs.shape[right])
        lhs, rhs = lhs[(slice(None),) * left + (slice(size),)], rhs[(slice(None),) * right + (slice(size),)]
    return lhs, rhs


def padded(*operands: Any) -> tuple[Any, ...]:
    """The arrays of a reduction, each padded with its init value to the largest size among the arrays."""
    count = len(operands) // 2
    arrays, inits = operands[:count], operands[count:]
    sizes = tuple(map(max, zip(*(array.shape for array in arrays), strict=True)))
    return *(_filled(array, sizes, init) for array, init in zip(arrays, inits, strict=True)), *inits


def _filled(array: Array, sizes: tuple[int, ...], init: Any) -> Array:
    if array.shape == sizes:
        return array
    whole = np.full(sizes, init, array.dtype)
    whole[tuple(map(slice, array.shape))] = array
    return whole
