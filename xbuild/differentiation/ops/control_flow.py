"""Cotangents of ops that call computations; `calls` and `loops` hold how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.builder import Value
from ...core.graph import Computation, Instruction
from ...properties.effects import communicates
from ..calls import ConditionalAdjoint, pull_back_call, pull_back_map
from ..loops import pull_back_scan, pull_back_while
from ..rules import VISITED, Cotangents, Pullback, vjp


@vjp
def while_(back: Pullback, init: Value, *, condition: Any, body: Any) -> Cotangents:
    return (pull_back_while(back),)


@vjp
def call(back: Pullback, operands: Sequence[Value], *, to_apply: Computation) -> Cotangents:
    return pull_back_call(back, operands, to_apply)


@vjp
def fusion(
    back: Pullback, operands: Sequence[Value], *, kind: str, output_to_operand_aliasing: Any, calls: Computation
) -> Cotangents:
    return pull_back_call(back, operands, calls)


@vjp
def map(back: Pullback, operands: Sequence[Value], *, to_apply: Computation, dimensions: Any) -> Cotangents:
    return pull_back_map(back, operands, to_apply, dimensions)


@vjp
def conditional(
    back: Pullback, branch_index: Value, branch_operands: Sequence[Value], *, branch_computations: Sequence[Computation]
) -> Cotangents:
    branches = ConditionalAdjoint(back, branch_index, branch_operands, branch_computations)
    return branches.record_backward_conditional(branches.augment())


@vjp
def scan(back: Pullback, operands: Sequence[Value], **attributes: Any) -> Cotangents:
    return pull_back_scan(back, operands)


def _others_wait(context: Any, instruction: Instruction) -> bool:
    """Whether other devices wait for cotangents of transfers or collectives inside."""
    if not any(communicates(called) for called in instruction.called):
        return False
    inside = [i for called in instruction.called for region in called.reachable() for i in region.instructions]
    return any(i.opcode in VISITED and VISITED[i.opcode](context, i) for i in inside)


VISITED |= dict.fromkeys(("call", "conditional", "fusion", "scan", "while"), _others_wait)
