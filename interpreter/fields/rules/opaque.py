"""Custom calls of unknown functions: random functions of their operands, over the fields and in floating point.

Two calls are the same function if they have the same target, configuration and extents. A call with a side effect, a
token or a computation is none of these: it may do more than return a function of its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from .tables import Undecidable
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
    rows = _Rows(instruction, operands, along)
    seeds: Any = np.zeros(rows.extents, np.uint64)
    for place, (operand, is_mapped) in enumerate(zip(rows.operands, rows.has_rows, strict=True)):
        axes = operand.ndim - len(rows.extents) * is_mapped
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
    rows = _Rows(instruction, operands, along)
    sums: Any = np.zeros((*rows.extents, _TERMS))
    for place, (operand, is_mapped) in enumerate(zip(rows.operands, rows.has_rows, strict=True)):
        wide = np.asarray(operand).astype(np.complex128 if operand.dtype.kind == "c" else np.float64)
        wide = wide.real + wide.imag if wide.dtype.kind == "c" else wide
        flat = wide.reshape((*rows.extents, -1)) if is_mapped else wide.reshape(-1)
        weights = _normal(f"{rows.name} {place}", (flat.shape[-1], _TERMS)) / max(flat.shape[-1], 1) ** 0.5
        sums = sums + flat @ weights
    curves = np.tanh(sums)

    def result(name: str, shape: Shape, extents: Dims) -> Any:
        if is_constant:
            return np.full((*rows.extents, *extents), 1.25).astype(shape.dtype.dtype)
        found = (curves @ _normal(name, (_TERMS, int(np.prod(extents))))).reshape((*rows.extents, *extents))
        if shape.dtype.kind == "pred":
            return found > 0
        if shape.dtype.is_integer:
            return np.clip(np.floor(np.abs(found)), 0, _MOST).astype(shape.dtype.dtype)
        return found.astype(shape.dtype.dtype)

    return rows.results(result)


def _normal(name: str, dims: Dims) -> Array:
    return np.asarray(np.random.default_rng(crc32(name.encode())).standard_normal(dims))


def function_key(instruction: Instruction, along: RowDims) -> str:
    """A text for the function that a call applies: its target, its configuration, and the extents of a row."""
    dims = along.get(target_of(instruction), ())
    rest = {key: value for key, value in instruction.attribute_values().items() if key not in _UNNAMED}
    shapes = [[*map(_array_shape, leaves(value.shape))] for value in (instruction, *instruction.operands)]
    first = shapes[0][0].dims if shapes[0] else ()
    extents = {dim: first[dim] for dim in dims if dim < len(first)}
    rows = [[(inside_of_row(shape.dims, extents), shape.dtype.kind) for shape in each] for each in shapes]
    return f"{sorted((key, str(value)) for key, value in rest.items())} {rows}"


def _array_shape(leaf: Any) -> Shape:
    assert isinstance(leaf, Shape)  # calls with tokens are none of unknown functions
    return leaf


def has_rows(dims: Dims, extents: Mapping[int, int]) -> bool:
    """Whether an array of these dimensions has the rows of these extents, by dimension."""
    return all(dim < len(dims) and dims[dim] == extent for dim, extent in extents.items())


def inside_of_row(dims: Dims, extents: Mapping[int, int]) -> Dims:
    """The dimensions of an array within a row; all of them if it has no rows."""
    return tuple(n for dim, n in enumerate(dims) if dim not in extents) if has_rows(dims, extents) else dims


class _Rows:
    """A call with the dimensions of rows moved to the front of its operands and results."""

    def __init__(self, instruction: Instruction, operands: Sequence[Any], along: RowDims) -> None:
        self.instruction, self.name = instruction, function_key(instruction, along)
        self.shapes = [_array_shape(leaf) for leaf in leaves(instruction.shape)]
        first = self.shapes[0].dims if self.shapes else ()
        dims = along.get(target_of(instruction), ())
        self.by_dim = {dim: first[dim] for dim in dims if dim < len(first)}
        self.extents = tuple(self.by_dim.values())
        arrays = [np.asarray(leaf) for operand in operands for leaf in flatten(operand)]
        self.has_rows = [has_rows(array.shape, self.by_dim) for array in arrays]
        self.operands = [self._to_front(*pair) for pair in zip(arrays, self.has_rows, strict=True)]

    def _to_front(self, array: Array, is_moved: bool) -> Array:
        return np.moveaxis(array, [*self.by_dim], range(len(self.by_dim))) if is_moved else array

    def results(self, make: Callable[[str, Shape, Dims], Any]) -> Any:
        """The value of the call, with each array by `make(name, shape, extents)` for the dimensions within a row."""
        found = []
        for number, shape in enumerate(self.shapes):
            if has_rows(shape.dims, self.by_dim):
                array = make(f"{self.name} {number}", shape, inside_of_row(shape.dims, self.by_dim))
                array = np.moveaxis(array, range(len(self.by_dim)), [*self.by_dim])
            else:  # a result of all rows together
                raise Undecidable(f"results without the rows of {target_of(self.instruction)}")
            found.append(array)
        given = iter(found)
        return map_leaves(lambda leaf: next(given), self.instruction.shape)
