"""Code of control flow: a call becomes the lines of its callee, a while or scan a loop, a conditional an `if`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_inference import Dims
from xbuild.core.attributes import Array
from xbuild.core.graph import Computation, Instruction

from ..compiler.scanning import emit_scan
from ..kernels.applying import applied
from ..rules.lines import Path, Place
from ..rules.region import Region
from ..rules.tables import compute, planned

if TYPE_CHECKING:
    from ..compiler.emit import Emitter
    from ..compiler.expressions import Expr


@compute
def map(operands: Sequence[Array], *, to_apply: Region, dimensions: Dims) -> Any:
    return applied(to_apply, [np.asarray(operand) for operand in operands])[0]


@planned
def call(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return emitter.called(instruction.attributes.to_apply, operands, path)


@planned
def fusion(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return emitter.called(instruction.attributes.calls, operands, path)


@planned
def while_(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    from ..compiler.expressions import spell

    attributes, trip = instruction.attributes, emitter.counter()
    state = emitter.variables(instruction.shape)
    emitter.assign(state, operands[0], path)
    inside = (*path[:-1], Place(instruction, trip))
    emitter.lines.add(f"for {trip} in trips():", inside)
    with emitter.lines.block():
        emitter.depth += 1
        holds = spell(emitter.called(attributes.condition, [state], inside))
        emitter.lines.add(f"if not {holds}: break", inside)
        emitter.assign(state, emitter.called(attributes.body, [state], inside), inside)
        emitter.depth -= 1
    return state


@planned
def conditional(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    from ..compiler.expressions import spell

    branches: tuple[Computation, ...] = instruction.attributes.branch_computations
    result = emitter.variables(instruction.shape)
    for number, branch in enumerate(branches):
        emitter.lines.add(_test(spell(operands[0]), instruction, number, len(branches)), path)
        inside = (*path[:-1], Place(instruction, branch=number))
        with emitter.lines.block():
            emitter.lines.add("pass", inside)
            emitter.assign(result, emitter.called(branch, [operands[1 + number]], inside), inside)
    return result


def _test(index: str, instruction: Instruction, number: int, count: int) -> str:
    """The `if` line of a branch; the last branch takes every index out of range."""
    if number == count - 1:
        return "else:" if number else "if True:"
    holds = index if instruction.operands[0].shape.dtype.kind == "pred" else f"{index} == {number}"  # type: ignore[union-attr]
    return f"{'el' * bool(number)}if {holds}:"


planned.enter("scan", emit_scan)
