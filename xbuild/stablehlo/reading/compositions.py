"""Operations that are compositions of ops: a call of a computation that is recorded once for each form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shape_inference import XbuildError

from ...core.builder import Builder, Value
from ...core.graph import Computation, Instruction
from ...ops import parameter
from ...text.spelling.faults import Fault

if TYPE_CHECKING:
    from .operation import Reading


def composed(op: Reading, function: Callable[..., Value]) -> Instruction:
    """A call of what the function records of values like the operands; it has the name of the operation."""
    name = op.operation.name.partition(".")[2]
    try:
        computation = _recorded(op, name, function)
    except XbuildError as error:
        raise Fault(error.kind, f"{op.operation.name}: {error.message}", op.operation.place, error.hints) from None
    return op.result("call", op.operands, to_apply=computation)


def _recorded(op: Reading, name: str, function: Callable[..., Any]) -> Computation:
    reader = op.scope.reader
    builder = Builder(reader.computation_names.fresh(name))
    builder.reserve(computations=[each.name for each in reader.order])
    values = [parameter(builder, number=n, shape=each.shape.plain()) for n, each in enumerate(op.operands)]
    found = builder.build(function(*values))
    where, _ = reader.origin(op.operation, op.scope)
    for each in found.reachable():
        for instruction in each.instructions:
            object.__setattr__(instruction, "where", where)  # the line of the program, not that of who reads it
        reader.computation_names.fresh(each.name)
        reader.add(each)
    return found
