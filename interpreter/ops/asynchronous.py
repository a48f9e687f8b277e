"""Code of asynchronous ops: a collective makes a request at start and at done; other ops compute at start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shape_inference import AnyShape, Shape, TupleShape, array_shape, u32
from xbuild.checking.dataflow.analysis import spread
from xbuild.core.graph import Instruction
from xbuild.properties.effects import collective_in, start_of

from ..compiler.requests import request_text
from ..kernels.values import zeros
from ..rules.lines import Path
from ..rules.tables import planned

if TYPE_CHECKING:
    from ..compiler.emit import Emitter
    from ..compiler.expressions import Expr

_MEETING = array_shape(u32, ())  # any scalar shape: the meeting is held in one variable


def _started(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    """The result of a start, every leaf of which is the meeting that the grid returns."""
    collective = collective_in(instruction)
    assert collective is not None
    if collective is not instruction:  # the collective's operands are parameters of the called computation
        operands = [operands[parameter.attributes.number] for parameter in collective.operands]
    meeting = emitter.evaluated(_MEETING, request_text(emitter, instruction, operands, path), path)
    return spread(meeting, instruction.shape)  # type: ignore[no-any-return]


def _finished(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    from ..compiler.expressions import flat

    if start_of(instruction) is None:
        raise ValueError(f"%{instruction.name} completes nothing that was started")
    meeting: list[Expr] = [*flat(operands[0])[:1]]
    return emitter.evaluated(instruction.shape, request_text(emitter, instruction, meeting, path), path)


@planned
def async_start(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    if collective_in(instruction) is not None:
        return _started(emitter, instruction, operands, path)
    attributes = instruction.attributes
    contexts = [_context(emitter, shape) for shape in attributes.context_shapes]
    return (tuple(operands), emitter.called(attributes.calls, operands, path), *contexts)


@planned
def async_update(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return operands[0]


@planned
def async_done(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    start = start_of(instruction)
    if start is not None and collective_in(start) is None:
        return operands[0][1]
    return _finished(emitter, instruction, operands, path)


@planned
def copy_start(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return (operands[0], operands[0], _context(emitter, _MEETING))


@planned
def copy_done(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return operands[0][0]


def _context(emitter: Emitter, shape: AnyShape) -> Expr:
    """The context that is passed from start to done, which is all zeros here."""
    if isinstance(shape, TupleShape):
        return tuple(_context(emitter, element) for element in shape.elements)
    return emitter.bind("k", zeros(shape)) if isinstance(shape, Shape) else "None"


for _opcode in ("all_gather_start", "all_reduce_start", "collective_permute_start"):
    planned.enter(_opcode, _started)
for _opcode in ("all_gather_done", "all_reduce_done", "collective_permute_done"):
    planned.enter(_opcode, _finished)
