"""Custom calls of unknown functions: random functions of their operands, over the fields and in floating point.

Two calls are the same function if they have the same target, configuration and extents. A call with a side effect, a
token or a computation is none of these: it may do more than return a function of its operands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np

from shape_inference import Dims, Shape, TokenShape, leaves
from shape_inference.trees import flatten, map_leaves
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction
from xbuild.properties.effects import has_effect
from xbuild.properties.placement import is_same, target_of

from ...custom_calls.built_in import BUILT_IN
from .complexes import joined
from .functions import random_words
from .lapack import ROUTINES, SOLVES
from .laws import chosen
from .places import mixed
from .wholes import digest, random_outputs

RowDims: TypeAlias = Mapping[str, Sequence[int]]
"""For a target, the dimensions of its first operand and result along which it maps each row by itself."""

_UNNAMED = frozenset({
    "shape", "operand_layout_constraints", "output_to_operand_aliasing", "schedule", "api_version",
    "called_computations", "custom_call_has_side_effect",
})  # fmt: skip
"""Attributes that say how a function is called, and not which one it is."""
_MOST = 4
"""The largest integer that an unknown function returns: integers may be indices and numbers of trips."""


def is_opaque(instruction: Instruction) -> bool:
    """Whether an instruction is a custom call of an unknown function, without effects.

    >>> import xbuild as xb
    >>> call = xb.computation(xb.f32[2])(lambda x: xb.custom_call(x, "norm", xb.f32[2])).root
    >>> is_opaque(call), is_opaque(call.operands[0])
    (True, False)
    """
    target = target_of(instruction)
    if not target or is_same(instruction) or target in BUILT_IN or target in ROUTINES | SOLVES:
        return False
    values = (instruction, *instruction.operands)
    has_token = any(isinstance(leaf, TokenShape) for value in values for leaf in leaves(value.shape))
    return not has_token and not instruction.called and not has_effect(instruction)


def opaque(instruction: Instruction, operands: Sequence[Any], along: RowDims) -> Any:
    """The results over the fields: a random number for each element, by the elements of all operands, or of a row."""
    rows = _Rows(instruction, operands, along.get(target_of(instruction), ()))
    seeds: Any = np.zeros(rows.extents, np.uint64)
    for place, operand in enumerate(rows.operands):
        shared = operand.ndim < len(rows.extents) or operand.shape[: len(rows.extents)] != rows.extents
        axes = operand.ndim if shared else operand.ndim - len(rows.extents)
        seeds = mixed(seeds ^ mixed(digest(operand, axes), place), 21)
    return rows.results(lambda name, shape, extents: _words(name, seeds, shape, extents))


def _words(name: str, seeds: Array, shape: Shape, extents: Dims) -> Any:
    words = random_outputs(name, seeds, extents)
    if shape.dtype.kind == "complex":
        return joined(words, random_words("i", words))
    if shape.dtype.kind == "float":
        return words
    below = np.uint64(2 if shape.dtype.kind == "pred" else min(_MOST + 1, 1 << (shape.dtype.bits - 1)))
    return chosen(words.shape, lambda: words % below).astype(shape.dtype.dtype)


_TERMS = 4


def stand_in(instruction: Instruction, operands: Sequence[Any], along: RowDims, *, is_constant: bool = False) -> Any:
    """The results of a run in floating point: a smooth function of all operands, or of a row, the same in each run.

    If `is_constant`, all elements of all results are one number, whatever the operands are.
    """
    rows = _Rows(instruction, operands, along.get(target_of(instruction), ()))
    sums: Any = np.zeros((*rows.extents, _TERMS))
    for place, operand in enumerate(rows.operands):
        outer = len(rows.extents)
        shared = operand.ndim < outer or operand.shape[:outer] != rows.extents
        wide = np.asarray(operand).astype(np.complex128 if operand.dtype.kind == "c" else np.float64)
        wide = wide.real + wide.imag if wide.dtype.kind == "c" else wide
        flat = wide.reshape(-1) if shared else wide.reshape(*rows.extents, -1)
        weights = _normal(f"{rows.name} {place}", (flat.shape[-1], _TERMS)) / max(flat.shape[-1], 1) ** 0.5
        sums = sums + flat @ weights
    curves = np.tanh(sums)

    def result(name: str, shape: Shape, extents: Dims) -> Any:
        if is_constant:
            return np.full((*rows.extents, *extents), 1.25).astype(shape.dtype.dtype)
        found = (curves @ _normal(name, (_TERMS, int(np.prod(extents))))).reshape(*rows.extents, *extents)
        if shape.dtype.kind == "pred":
            return found > 0
        if shape.dtype.is_integer:
            return np.clip(np.floor(np.abs(found)), 0, _MOST).astype(shape.dtype.dtype)
        return found.astype(shape.dtype.dtype)

    return rows.results(result)


def _normal(name: str, dims: Dims) -> Array:
    return np.asarray(np.random.default_rng(crc32(name.encode())).standard_normal(dims))


class _Rows:
    """A call with the dimensions of rows moved to the front of its operands and results."""

    def __init__(self, instruction: Instruction, operands: Sequence[Any], dims: Sequence[int]) -> None:
        self.instruction = instruction
        shapes = [leaf for leaf in leaves(instruction.shape) if isinstance(leaf, Shape)]
        self.dims = tuple(dim for dim in dims if shapes and dim < shapes[0].rank)
        self.extents = tuple(shapes[0].dims[dim] for dim in self.dims)
        arrays = [np.asarray(leaf) for operand in operands for leaf in flatten(operand)]
        self.operands = [self._to_front(array) for array in arrays]
        rest = {key: value for key, value in instruction.attribute_values().items() if key not in _UNNAMED}
        whole = [tuple(each.shape[len(self.extents) :] if self._has_rows(array) else array.shape)
                 for each, array in zip(self.operands, arrays, strict=True)]  # fmt: skip
        self.name = f"{sorted((key, str(value)) for key, value in rest.items())} {whole}"

    def _has_rows(self, array: Array) -> bool:
        return all(dim < array.ndim and array.shape[dim] == extent
                   for dim, extent in zip(self.dims, self.extents, strict=True))  # fmt: skip

    def _to_front(self, array: Array) -> Array:
        return np.moveaxis(array, self.dims, range(len(self.dims))) if self._has_rows(array) else array

    def results(self, make: Any) -> Any:
        """The value of the call, with each array by `make(name, shape, extents)` for the dimensions within a row."""
        found = []
        for number, shape in enumerate(leaf for leaf in leaves(self.instruction.shape) if isinstance(leaf, Shape)):
            has_rows = all(dim < shape.rank and shape.dims[dim] == extent
                           for dim, extent in zip(self.dims, self.extents, strict=True))  # fmt: skip
            inside = tuple(n for dim, n in enumerate(shape.dims) if not has_rows or dim not in self.dims)
            array = make(f"{self.name} {number} {inside} {shape.dtype.kind}", shape, inside)
            found.append(np.moveaxis(array, range(len(self.dims)), self.dims) if has_rows else array)
        given = iter(found)
        return map_leaves(lambda leaf: next(given), self.instruction.shape)
