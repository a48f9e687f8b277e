"""A scan read as a loop: its trip count, its slices and carries, and the results of a trip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from shape_inference import Shape, TupleShape

from ...core.graph import Instruction

Given = TypeVar("Given")


def split_carries(scan: Instruction, operands: Sequence[Given]) -> tuple[list[Given], list[Given]]:
    """The values along the scanned dimension, and the carries, of the operands or the results of a scan."""
    first = len(operands) - scan.attributes.num_carries
    return [*operands[:first]], [*operands[first:]]


def slices_of(scan: Instruction) -> tuple[int, bool]:
    """The number of slices of a scan, and whether that is only an upper bound."""
    dimension = scan.attributes.dimension
    shapes = [each.shape for each in split_carries(scan, scan.operands)[0] if isinstance(each.shape, Shape)]
    if not shapes:
        return scan.attributes.length or 0, False
    return shapes[0].dims[dimension], any(each.dynamic and each.dynamic[dimension] for each in shapes)


def trip_results(scan: Instruction, root: Any) -> tuple[list[Any], list[Any]]:
    """The outputs of one trip and the carries for the next, given the value of the root of the body."""
    return split_carries(scan, [*root] if isinstance(scan.attributes.to_apply.root.shape, TupleShape) else [root])


def scan_result(scan: Instruction, results: Sequence[Any]) -> Any:
    """The value of a scan, given its outputs and final carries: a tuple where its shape is one."""
    return (*results,) if isinstance(scan.shape, TupleShape) else results[0]
