"""Between what the entries of index vectors lie, as far as the instructions that made them tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from shape_inference import Shape

from ...checking.dataflow.lattice import Bounds, Leaf, Open, bounded, bounds_of
from ...checking.dataflow.ranges import open_result
from ...core.graph import Instruction

Known: TypeAlias = dict[Instruction, Leaf]

_FARTHEST = 12  # steps back from an array of index vectors


def are_inside(indices: Instruction, limits: Sequence[int], vector_dim: int) -> bool:
    """Whether each entry of all index vectors is known to lie between 0 and its limit."""
    found = _by_entry(indices, len(limits), vector_dim, {})
    return all(
        bounds is not None and bounds[0] >= 0 and bounds[1] <= limit
        for bounds, limit in zip(found, limits, strict=True)
    )


def _by_entry(indices: Instruction, count: int, vector_dim: int, known: Known) -> list[Bounds | None]:
    """The bounds of each entry, apart where the vectors were put together of their entries."""
    shape = indices.shape
    assert isinstance(shape, Shape)
    if indices.opcode == "constant" and shape.size and vector_dim < shape.rank:
        columns = np.moveaxis(np.asarray(indices.attributes.literal), vector_dim, 0)
        return [(int(column.min()), int(column.max())) for column in columns]
    if indices.opcode == "concatenate" and indices.attributes.dimension == vector_dim:
        parts = [(each, each.shape.dims[vector_dim]) for each in indices.operands if isinstance(each.shape, Shape)]
        return [bounds for each, size in parts for bounds in _by_entry(each, size, vector_dim, known)]
    return [bounds_of(_leaf(indices, known, _FARTHEST), shape)] * count


def _leaf(instruction: Instruction, known: Known, steps: int) -> Leaf:
    if instruction not in known:
        known[instruction] = _found(instruction, known, steps) if steps else None
    return known[instruction]


def _found(instruction: Instruction, known: Known, steps: int) -> Leaf:
    shape = instruction.shape
    if not isinstance(shape, Shape):
        return None
    if instruction.opcode == "constant":
        literal = instruction.attributes.literal
        whole = literal.size and literal.dtype.kind in "biu"
        return Open((int(literal.min()), int(literal.max()))) if whole else Open()
    if instruction.opcode == "iota":
        return bounded((0, max(shape.dims[instruction.attributes.iota_dimension] - 1, 0)), shape)
    operands = [_leaf(each, known, steps - 1) for each in instruction.operands]
    return open_result(instruction, operands, lambda given: None)
