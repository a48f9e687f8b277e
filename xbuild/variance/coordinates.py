"""The places of devices along axes of a mesh, and the formulas of ids that give them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shape_inference import Shape

from ..core.graph import Instruction
from ..properties.mesh import Mesh

MOST_STEPS = 64  # instructions of a formula; a coordinate along k axes takes about 5 k


def is_coordinate(mesh: Mesh, axes: Sequence[str], instruction: Instruction) -> bool:
    """Whether a value is the id, divided and cut as the coordinate along the axes is, and nothing else."""
    found = _evaluated(instruction, mesh.num_devices)
    return found is not None and bool(np.array_equal(found, places(mesh, axes)))


def places(mesh: Mesh, axes: Sequence[str]) -> Any:
    """The coordinate of each device along the axes, row by row in their order."""
    grid = np.indices(mesh.shape).reshape(len(mesh.axes), -1)
    found = np.zeros(mesh.num_devices, np.int64)
    for axis in axes:
        found = found * mesh.size(axis) + grid[mesh.axes.index(axis)]
    return found


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "multiply": np.multiply,
    "divide": np.floor_divide,
    "remainder": np.remainder,
}


def _evaluated(root: Instruction, count: int) -> Any | None:
    """What a formula of ids and constants is on each device; None for any other, and where a type may wrap."""
    order = _steps(root)
    known: dict[Instruction, Any] = {}
    for each in order or ():
        known[each] = _step(each, [known[operand] for operand in each.operands], count)
        if known[each] is None:
            return None
    return known.get(root)


def _steps(root: Instruction) -> list[Instruction] | None:
    """What a value is computed from, operands first; None where it is much."""
    found: dict[Instruction, None] = {}
    stack = [(root, False)]
    while stack:
        each, is_done = stack.pop()
        if is_done:
            found[each] = None
        elif each not in found:
            stack += [(each, True), *((operand, False) for operand in each.operands)]
        if len(stack) + len(found) > MOST_STEPS:
            return None
    return list(found)


def _step(each: Instruction, operands: list[Any], count: int) -> Any | None:
    if not isinstance(each.shape, Shape) or each.shape.dims or not each.shape.dtype.is_integer:
        return None
    if each.opcode in ("partition_id", "replica_id"):
        return np.arange(count)
    if each.opcode == "constant":
        return _fitting(np.full(count, int(each.attributes.literal.reshape(-1)[0])), each)
    if each.opcode in ("convert", "copy"):
        return _fitting(operands[0], each)
    function = _ARITHMETIC.get(each.opcode)
    if function is None or (each.opcode in ("divide", "remainder") and not operands[1].all()):
        return None
    return _fitting(function(*operands), each)


def _fitting(values: Any, each: Instruction) -> Any | None:
    """The values, where each is a number of the type that is not negative, and small."""
    assert isinstance(each.shape, Shape)
    most = min((1 << (each.shape.dtype.bits - (each.shape.dtype.kind == "signed"))) - 1, (1 << 31) - 1)
    return values if values.min() >= 0 and values.max() <= most else None
