"""The places of devices along axes of a mesh, and the formulas of ids that give them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.graph import Instruction
from ..properties.mesh import Mesh


def is_coordinate(mesh: Mesh, axes: Sequence[str], instruction: Instruction) -> bool:
    """Whether a value is the id, divided and cut as the coordinate along the axes is, and nothing else."""
    numbers = [number_of(mesh, device, axes) for device in range(mesh.num_devices)]
    return [_evaluated(instruction, device) for device in range(mesh.num_devices)] == numbers


def number_of(mesh: Mesh, device: int, axes: Sequence[str]) -> int:
    """The coordinate of a device along the axes, row by row."""
    place, found = mesh.coordinates(device), 0
    for axis in axes:
        found = found * mesh.size(axis) + place[axis]
    return found


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a // b if b else -1,
    "remainder": lambda a, b: a % b if b else -1,
}


def _evaluated(instruction: Instruction, device: int) -> int | None:
    """What a formula of ids and constants is on a device; None for any other."""
    if instruction.opcode in ("partition_id", "replica_id"):
        return device
    if instruction.opcode == "constant" and instruction.attributes.literal.size == 1:
        return int(instruction.attributes.literal.reshape(-1)[0])
    inside = [_evaluated(each, device) for each in instruction.operands]
    if any(each is None for each in inside):
        return None
    if instruction.opcode in ("convert", "copy"):
        return inside[0]
    function = _ARITHMETIC.get(instruction.opcode)
    return function(*inside) if function is not None else None  # type: ignore[arg-type]
