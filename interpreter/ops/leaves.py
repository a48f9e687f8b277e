"""Code of ops without operands: constants are globals of the plan, ids are attributes of the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shape_inference import Shape
from shape_inference.elided import ElidedArray, refuse_elided
from xbuild.core.graph import Instruction

from ..compiler.lines import Path
from ..kernels.folds import Array
from ..rules import compute, planned

if TYPE_CHECKING:
    from ..compiler.emit import Emitter
    from ..compiler.requests import Expr


@compute
def iota(*, shape: Shape, iota_dimension: int) -> Array:
    counted = np.arange(shape.dims[iota_dimension]).astype(_counting_type(shape)).astype(shape.dtype.dtype)
    column = counted.reshape([-1 if dim == iota_dimension else 1 for dim in range(shape.rank)])
    return np.broadcast_to(column, shape.dims)


def _counting_type(shape: Shape) -> Any:
    """The type in which iota counts: i64 for integers, which then wrap, and f64 for floats, which then round once."""
    return np.int64 if shape.dtype.is_integer else np.float64


@planned
def parameter(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    raise AssertionError(f"parameter %{instruction.name} needs no line: a computation receives its arguments as values")


@planned
def constant(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    literal = instruction.attributes.literal
    if isinstance(literal, ElidedArray):
        refuse_elided(literal, instruction.name, instruction.source)
    return emitter.bind("c", literal if literal.ndim else literal[()])


def _emit_device_id(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return emitter.assign_result(instruction.shape, f"device.{instruction.opcode}", path)


planned.enter("replica_id", _emit_device_id)
planned.enter("partition_id", _emit_device_id)
