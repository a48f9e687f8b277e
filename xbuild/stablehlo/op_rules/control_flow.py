"""Rules of loops, branches, calls and barriers."""

from __future__ import annotations

from ...core.graph import Instruction
from ...text.spelling.notes import Raw
from ..reading.notes import shown
from ..reading.operation import Reading
from ..reading.regions import Captured, packed, state_region
from ..reading.rules import Results, both, rule
from ..syntax.attributes import Record


@rule(*both("while"))
def while_(op: Reading) -> Results:
    """The state is that of the text, and after it what the regions use from outside."""
    op.wants_regions(2)
    condition, body = op.operation.regions
    for region in (condition, body):
        if len(region.arguments) != len(op.operands):
            op.fail("arity_mismatch", f"{len(region.arguments)} arguments of a region for {len(op.operands)} values")
    captured = Captured(op.scope, op.operation.regions)
    test = state_region(op, condition, "condition", condition.arguments, captured, False)
    step = state_region(op, body, "body", body.arguments, captured, True)
    values = (*op.operands, *captured.values)
    made = op.result("while", packed(op, values), condition=test, body=step)
    return made if len(values) == 1 else op.elements(made)


@rule(*both("if"))
def if_(op: Reading) -> Results:
    op.wants_regions(2)
    return _branches(op, ("true", "false"))


@rule(*both("case"))
def case(op: Reading) -> Results:
    return _branches(op, tuple(f"branch.{number}" for number in range(len(op.operation.regions))))


def _branches(op: Reading, roles: tuple[str, ...]) -> Results:
    """Each branch is given what it uses from outside."""
    (chooser,) = op.wants(1)
    operands: list[Instruction] = []
    branches = []
    for role, region in zip(roles, op.operation.regions, strict=True):
        captured = Captured(op.scope, (region,))
        branches.append(state_region(op, region, role, (), captured, False))
        operands.append(packed(op, tuple(captured.values)))
    made = op.result("conditional", chooser, tuple(operands), branch_computations=tuple(branches))
    return op.one_or_elements(made)


@rule("func.call", "mhlo.call")
def call(op: Reading) -> Results:
    return op.one_or_elements(
        op.result("call", op.operands, to_apply=op.scope.reader.function(op, op.symbol("callee")))
    )


@rule(*both("composite"))
def composite(op: Reading) -> Results:
    """A call of its decomposition; the name and the attributes are kept as XLA has them."""
    callee = op.scope.reader.function(op, op.symbol("decomposition"))
    made = op.result("call", op.operands, to_apply=callee)
    pairs = dict(made.annotations.get("frontend_attributes", {}))
    pairs["composite.attributes"] = Raw(shown(op.get("composite_attributes", Record("", {}, "{}"))))
    pairs["composite.name"] = op.text("name")
    pairs["composite.version"] = str(op.integer("version", 0))
    op.note(made, is_composite=Raw("true"), frontend_attributes=pairs)
    return op.one_or_elements(made)


@rule(*both("optimization_barrier"))
def optimization_barrier(op: Reading) -> Results:
    if len(op.operands) == 1:
        return op.result("opt_barrier", op.operands[0])
    return op.elements(op.result("opt_barrier", packed(op, op.operands)))


@rule(*both("map"))
def map_(op: Reading) -> Results:
    dims = op.integers("dimensions")
    return op.result("map", op.operands, to_apply=op.region(0, "to_apply", len(op.operands)), dimensions=dims)
