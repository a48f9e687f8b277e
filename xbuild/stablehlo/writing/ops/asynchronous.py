"""Asynchronous ops: collectives under way are futures; what else is begun is computed where it begins."""

from __future__ import annotations

from collections.abc import Sequence

from shape_inference import AnyShape, TupleShape

from ....core.graph import Computation, Instruction
from ....properties.async_pairs import origin, wrapped_in
from ..support.blocks import inlined, nested
from ..support.notes import notes_text
from ..support.tables import values
from ..support.writer import Tree, Writer
from .collectives import FORMS, form


def _begun(
    writer: Writer, start: Instruction, collective: Instruction, operands: Sequence[Instruction], results: AnyShape
) -> Tree:
    """A future for each operand of a collective: a future of several is not taken by XLA."""
    several = isinstance(results, TupleShape)
    shapes = results.elements if isinstance(results, TupleShape) else (results,)
    futures = [
        _future(writer, start, collective, operand, shape) for operand, shape in zip(operands, shapes, strict=True)
    ]
    return tuple(futures) if several else futures[0]


def _future(writer: Writer, start: Instruction, collective: Instruction, operand: Instruction, shape: AnyShape) -> str:
    given, result = writer.type(operand.shape), writer.type(shape)
    argument = writer.fresh("operand")
    with nested(writer) as written:
        text = f"{form(writer, collective, argument)} : ({given}) -> {result}"
        name = writer.emit(collective.name, text)
        writer.line(f"stablehlo.return {name} : {result}")
    inside = "\n".join([f"{writer.indent}^bb0({argument}: {given}):", *written])
    head = f'"stablehlo.async_start"({writer.name(operand)}) ({{\n{inside}\n{writer.indent}}})'
    types = f"({given}) -> !stablehlo.future<{result}>"
    return writer.emit(start.name, f"{head}{notes_text(writer, start)} : {types}", start)


def _awaited(writer: Writer, done: Instruction, future: str, shape: AnyShape) -> str:
    result = writer.type(shape)
    text = f'"stablehlo.async_done"({future}){notes_text(writer, done)} : (!stablehlo.future<{result}>) -> {result}'
    return writer.emit(done.name, text, done)


def _result(instruction: Instruction) -> AnyShape:
    """The shape of what the collective of a start gives."""
    shape = instruction.shape
    if instruction.opcode == "all_reduce_start" or not isinstance(shape, TupleShape):
        return shape
    return shape.elements[1]


def _start(writer: Writer, instruction: Instruction) -> Tree:
    """`stablehlo.async_start`, one for each operand."""
    return _begun(writer, instruction, instruction, instruction.operands, _result(instruction))


def _done(writer: Writer, instruction: Instruction) -> Tree:
    """`stablehlo.async_done`, one for each operand."""
    futures, shape = writer.names[instruction.operands[0]], instruction.shape
    if isinstance(futures, str):
        return _awaited(writer, instruction, futures, shape)
    assert isinstance(shape, TupleShape)
    pairs = zip(futures, shape.elements, strict=True)
    return tuple([_awaited(writer, instruction, str(future), each) for future, each in pairs])


for _opcode in ("all_gather", "all_reduce", "collective_permute"):
    values.enter(f"{_opcode}_start", _start)
    values.enter(f"{_opcode}_done", _done)


def _collective(start: Instruction | None) -> Instruction | None:
    """The collective that an async-start begins in a form that async_start takes."""
    wrapped = wrapped_in(start) if start is not None and start.opcode == "async_start" else None
    if wrapped is None or wrapped.opcode not in FORMS or wrapped.operands != _parameters(start):
        return None
    return None if wrapped.opcode == "all_to_all" and wrapped.attributes.split_dimension is None else wrapped


def _parameters(start: Instruction | None) -> tuple[Instruction, ...]:
    called: Computation = start.attributes.calls  # type: ignore[union-attr]
    return called.parameters


@values
def async_start(writer: Writer, instruction: Instruction) -> Tree:
    """Of a collective, one for each operand; what else is begun is computed where it begins."""
    collective = _collective(instruction)
    if collective is None:
        return inlined(writer, instruction.attributes.calls, [writer.names[each] for each in instruction.operands])
    return _begun(writer, instruction, collective, instruction.operands, collective.shape)


@values
def async_update(writer: Writer, instruction: Instruction) -> Tree:
    """The start itself; no op is written."""
    return writer.names[instruction.operands[0]]


@values
def async_done(writer: Writer, instruction: Instruction) -> Tree:
    """Of a collective, one for each operand."""
    if _collective(origin(instruction)) is None:
        return writer.names[instruction.operands[0]]
    return _done(writer, instruction)


@values
def copy_start(writer: Writer, instruction: Instruction) -> Tree:
    """The copy is the operand itself; no op is written."""
    return writer.names[instruction.operands[0]]


@values
def copy_done(writer: Writer, instruction: Instruction) -> Tree:
    """The operand of the start; no op is written."""
    return writer.names[instruction.operands[0]]
