"""Rules of async_start and async_done: collectives with a start of their own, and calls of a computation."""

from __future__ import annotations

from ..reading.operation import Reading
from ..reading.rules import Results, both, rule
from ..syntax.trees import Operation
from .collectives import STARTED


@rule(*both("async_start"))
def async_start(op: Reading) -> Results:
    """The start of the one collective that the region has, or of the region."""
    op.wants_regions(1)
    inner = _only(op)
    opcode = inner.name.partition(".")[2] if inner else ""
    if inner is not None and opcode in STARTED:
        attributes = STARTED[opcode](Reading(op.scope, inner, op.operands))
        return op.result(f"{opcode}_start", op.operands, **attributes)
    return op.result("async_start", op.operands, calls=op.region(0, "wrapped", len(op.operands)))


def _only(op: Reading) -> Operation | None:
    """The operation that the region has besides its end, if it takes the arguments as they are."""
    region = op.operation.regions[0]
    if len(region.operations) != 2 or len(region.arguments) != len(op.operands):
        return None
    inner = region.operations[0]
    names = tuple(argument.name for argument in region.arguments)
    return inner if inner.operands == names and region.operations[1].operands == inner.results else None


@rule(*both("async_done"))
def async_done(op: Reading) -> Results:
    (start,) = op.wants(1)
    if not start.opcode.endswith("_start"):
        op.fail("invalid_operand", f"%{start.name} is no start, and its done is wanted here")
    return op.one_or_elements(op.result(start.opcode.replace("_start", "_done"), start))
