"""Cotangents of ops that call computations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.builder import Value
from ...core.graph import Computation, Instruction
from ...properties.effects import communicates
from ..regions.calls import Branches, call_of, map_of
from ..regions.loops import while_of
from ..regions.scans import scan_of
from ..rules import VISITED, Cotangents, Pullback, vjp


@vjp
def while_(back: Pullback, init: Value, *, condition: Any, body: Any) -> Cotangents:
    return (while_of(back),)


@vjp
def call(back: Pullback, operands: Sequence[Value], *, to_apply: Computation) -> Cotangents:
    return call_of(back, operands, to_apply)


@vjp
def fusion(
    back: Pullback, operands: Sequence[Value], *, kind: str, output_to_operand_aliasing: Any, calls: Computation
) -> Cotangents:
    return call_of(back, operands, calls)


@vjp
def map(back: Pullback, operands: Sequence[Value], *, to_apply: Computation, dimensions: Any) -> Cotangents:
    return map_of(back, operands, to_apply, dimensions)


@vjp
def conditional(
    back: Pullback, branch_index: Value, branch_operands: Sequence[Value], *, branch_computations: Sequence[Computation]
) -> Cotangents:
    branches = Branches(back, branch_index, branch_operands, branch_computations)
    return branches.back_conditional(branches.augment())


@vjp
def scan(back: Pullback, operands: Sequence[Value], **attributes: Any) -> Cotangents:
    return scan_of(back, operands)


def _others_wait(context: Any, each: Instruction) -> bool:
    """Whether other devices wait for cotangents of what is sent, or meets, inside."""
    if not any(communicates(called) for called in each.called):
        return False
    inside = [i for called in each.called for region in called.reachable() for i in region.instructions]
    return any(i.opcode in VISITED and VISITED[i.opcode](context, i) for i in inside)


VISITED |= dict.fromkeys(("call", "conditional", "fusion", "scan", "while"), _others_wait)
