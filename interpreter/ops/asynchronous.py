"""Code of asynchronous ops: a collective makes a request at start and at done; other ops compute at start.

A fusion or call with collectives also runs at its start, so its device waits there and not at the done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shape_inference import AnyShape, Shape, array_shape, refuse, u32
from shape_inference.trees import fill, flatten, map_leaves
from xbuild.core.graph import Instruction
from xbuild.properties.effects import call_in, collective_in, grouped_in, start_of

from ..compiler.lines import Path
from ..compiler.requests import request_text
from ..kernels.values import zeros
from ..rules import planned

if TYPE_CHECKING:
    from ..compiler.emit import Emitter
    from ..compiler.requests import Expr

_MEETING = array_shape(u32, ())  # any scalar shape: the meeting is held in one variable


def _emit_start(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    """The result of a start, every leaf of which is the meeting that the grid returns."""
    collective = collective_in(instruction)
    assert collective is not None
    if collective is not instruction:  # the collective's operands are parameters of the called computation
        operands = [operands[parameter.attributes.number] for parameter in collective.operands]
    meeting = emitter.assign_result(_MEETING, request_text(emitter, instruction, operands, path), path)
    return fill(instruction.shape, meeting)  # type: ignore[no-any-return]


def _emit_done(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    if start_of(instruction) is None:
        raise ValueError(f"%{instruction.name} has no matching start")
    meeting: list[Expr] = flatten(operands[0])[:1]
    return emitter.assign_result(instruction.shape, request_text(emitter, instruction, meeting, path), path)


@planned
def async_start(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    if collective_in(instruction) is not None:
        return _emit_start(emitter, instruction, operands, path)
    if grouped_in(instruction) and call_in(instruction) is None:
        refuse(
            "invalid_attribute",
            f"%{instruction.name}: xbuild can read, check and draw an async-start of several collectives and "
            "transfers, but cannot run it",
            "start each collective or transfer separately",
        )
    attributes = instruction.attributes
    contexts = [_zero_context(emitter, shape) for shape in attributes.context_shapes]
    return (tuple(operands), emitter.emit_call(attributes.calls, operands, path), *contexts)


@planned
def async_update(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return operands[0]


@planned
def async_done(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    start = start_of(instruction)
    if start is not None and collective_in(start) is None:
        return operands[0][1]
    return _emit_done(emitter, instruction, operands, path)


@planned
def copy_start(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return (operands[0], operands[0], _zero_context(emitter, _MEETING))


@planned
def copy_done(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return operands[0][0]


def _zero_context(emitter: Emitter, shape: AnyShape) -> Expr:
    """The context that is passed from start to done, which is all zeros here."""
    return map_leaves(lambda leaf: emitter.bind("k", zeros(leaf)) if isinstance(leaf, Shape) else "None", shape)  # type: ignore[no-any-return]


for _opcode in ("all_gather_start", "all_reduce_start", "collective_permute_start"):
    planned.enter(_opcode, _emit_start)
for _opcode in ("all_gather_done", "all_reduce_done", "collective_permute_done"):
    planned.enter(_opcode, _emit_done)
