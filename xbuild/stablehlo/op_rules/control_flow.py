"""Rules of loops, branches, calls, barriers, and asynchronous starts and dones."""

from __future__ import annotations

from ...core.graph import Instruction
from ...text.annotations import Raw
from ..reading.operation import OperationReading, attribute_text
from ..reading.rules import Results, hlo_names, rule
from ..reading.scope import Captures, pack_values, read_state_region
from ..spelling import COMPOSITE_NAME
from ..syntax.trees import ParsedOperation, Record
from .devices import STARTED

# ----------------------------------------------------------------------------
# Rules of loops, branches, calls and barriers.


@rule(*hlo_names("while"))
def while_(op: OperationReading) -> Results:
    """The loop state is the state in the text, followed by the outer values that the regions use."""
    op.expect_regions(2)
    condition, body = op.operation.regions
    for region in (condition, body):
        if len(region.arguments) != len(op.operands):
            op.fail(
                "arity_mismatch",
                f"expected one region argument for each operand, got {len(region.arguments)} arguments and "
                f"{len(op.operands)} operands",
            )
    captured = Captures(op.scope, op.operation.regions)
    test = read_state_region(op, condition, "condition", condition.arguments, captured, False)
    step = read_state_region(op, body, "body", body.arguments, captured, True)
    values = (*op.operands, *captured.values)
    made = op.record_result("while", pack_values(op, values), condition=test, body=step)
    return made if len(values) == 1 else op.elements(made)


@rule(*hlo_names("if"))
def if_(op: OperationReading) -> Results:
    op.expect_regions(2)
    return _conditional(op, ("true", "false"))


@rule(*hlo_names("case"))
def case(op: OperationReading) -> Results:
    return _conditional(op, tuple(f"branch.{number}" for number in range(len(op.operation.regions))))


def _conditional(op: OperationReading, roles: tuple[str, ...]) -> Results:
    """The operand of a branch holds the outer values that the branch uses."""
    (index,) = op.expect_operands(1)
    operands: list[Instruction] = []
    branches = []
    for role, region in zip(roles, op.operation.regions, strict=True):
        captured = Captures(op.scope, (region,))
        branches.append(read_state_region(op, region, role, (), captured, False))
        operands.append(pack_values(op, tuple(captured.values)))
    made = op.record_result("conditional", index, tuple(operands), branch_computations=tuple(branches))
    return op.one_or_elements(made)


@rule("func.call", "mhlo.call")
def call(op: OperationReading) -> Results:
    return op.one_or_elements(
        op.record_result("call", op.operands, to_apply=op.scope.reader.function(op, op.symbol("callee")))
    )


@rule(*hlo_names("composite"))
def composite(op: OperationReading) -> Results:
    """A call of its decomposition; XLA's frontend attributes hold its name and attributes."""
    callee = op.scope.reader.function(op, op.symbol("decomposition"))
    made = op.record_result("call", op.operands, to_apply=callee)
    pairs = dict(made.annotations.get("frontend_attributes", {}))
    pairs["composite.attributes"] = Raw(attribute_text(op.get("composite_attributes", Record("", {}, "{}"))))
    pairs[COMPOSITE_NAME] = op.text("name")
    pairs["composite.version"] = str(op.integer("version", 0))
    op.annotate(made, is_composite=Raw("true"), frontend_attributes=pairs)
    return op.one_or_elements(made)


@rule(*hlo_names("optimization_barrier"))
def optimization_barrier(op: OperationReading) -> Results:
    if len(op.operands) == 1:
        return op.record_result("opt_barrier", op.operands[0])
    return op.elements(op.record_result("opt_barrier", pack_values(op, op.operands)))


@rule(*hlo_names("map"))
def map_(op: OperationReading) -> Results:
    dims = op.integers("dimensions")
    return op.record_result("map", op.operands, to_apply=op.region(0, "to_apply", len(op.operands)), dimensions=dims)


# ----------------------------------------------------------------------------
# Rules of async_start and async_done: collectives with a start of their own, and calls of a computation.


@rule(*hlo_names("async_start"))
def async_start(op: OperationReading) -> Results:
    """The start of the region's only collective, or an async-start of the region."""
    op.expect_regions(1)
    inner = _sole_operation(op)
    opcode = inner.name.partition(".")[2] if inner else ""
    if inner is not None and opcode in STARTED:
        attributes = STARTED[opcode](OperationReading(op.scope, inner, op.operands))
        return op.record_result(f"{opcode}_start", op.operands, **attributes)
    return op.record_result("async_start", op.operands, calls=op.region(0, "wrapped", len(op.operands)))


def _sole_operation(op: OperationReading) -> ParsedOperation | None:
    """The only operation of the region besides its return, if its operands are the arguments in order."""
    region = op.operation.regions[0]
    if len(region.operations) != 2 or len(region.arguments) != len(op.operands):
        return None
    inner = region.operations[0]
    names = tuple(argument.name for argument in region.arguments)
    return inner if inner.operands == names and region.operations[1].operands == inner.results else None


@rule(*hlo_names("async_done"))
def async_done(op: OperationReading) -> Results:
    (start,) = op.expect_operands(1)
    if not start.opcode.endswith("_start"):
        op.fail(
            "invalid_operand", f"expected a start op as operand, got {start.opcode.replace('_', '-')} %{start.name}"
        )
    return op.one_or_elements(op.record_result(start.opcode.replace("_start", "_done"), start))
