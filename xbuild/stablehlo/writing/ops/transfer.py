"""Ops that pass values between devices, to the host, or to functions behind a name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shape_inference import AnyShape, Shape, TupleShape, leaves
from shape_inference.escaping import mlir_string

from ....core.graph import Instruction
from ...spelling.choices import API_VERSIONS, DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE
from ..support.notes import notes_of, transfer_notes
from ..support.refusals import refuse
from ..support.tables import lines, values
from ..support.types import TOKEN, several, type_text
from ..support.words import dictionary, flag, listed, symbol
from ..support.writer import Tree, Writer, shaped
from .collectives import channel

Line = tuple[str, str]
_DICTIONARY = re.compile(r"\s*\{\s*(?:\}|[A-Za-z_][\w.$]*\s*[=,}]|\"[^\"]*\"\s*=)")


def _words(instruction: Instruction, to_host: int) -> str:
    is_host = instruction.attributes.is_host_transfer
    handle = channel(instruction, to_host if is_host else DEVICE_TO_DEVICE)
    return f"<{{{', '.join([*handle, f'is_host_transfer = {flag(is_host)}'])}}}>"


@values
def send(writer: Writer, instruction: Instruction) -> Tree:
    """One op begins the transfer and awaits it; the context is the operand, a number without meaning, the token."""
    operand, _ = instruction.operands
    types = f"({', '.join(writer.types(instruction.operands))}) -> {TOKEN}"
    head = f'"stablehlo.send"({", ".join(writer.flat(instruction.operands))}) {_words(instruction, DEVICE_TO_HOST)}'
    token = writer.emit(instruction.name, f"{head}{transfer_notes(instruction)} : {types}", instruction)
    number = () if instruction in writer.awaited else _number(writer, instruction)
    return (writer.names[operand], number, token)


@values
def send_done(writer: Writer, instruction: Instruction) -> Tree:
    """Part of the send."""
    return writer.names[instruction.operands[0]][2]


@values
def recv(writer: Writer, instruction: Instruction) -> Tree:
    """The op stands where the value is awaited, if that is in the same computation."""
    if instruction in writer.awaited:
        return writer.names[instruction.operands[0]]
    *parts, token = _received(writer, instruction)
    return (shaped(instruction.attributes.shape, parts), _number(writer, instruction), token)


@values
def recv_done(writer: Writer, instruction: Instruction) -> Tree:
    """`stablehlo.recv`, unless the recv stands for both."""
    begun = instruction.operands[0]
    if begun not in writer.awaited:
        tree = writer.names[begun]
        return (tree[0], tree[2])
    *parts, token = _received(writer, begun, instruction)
    return (shaped(begun.attributes.shape, parts), token)


def _number(writer: Writer, instruction: Instruction) -> str:
    return writer.emit(f"{instruction.name}.context", "stablehlo.constant dense<0> : tensor<ui32>")


def _received(writer: Writer, instruction: Instruction, done: Instruction | None = None) -> list[str]:
    """The op has the sharding of the done, whose parts are those of its results."""
    types = [*map(writer.type, leaves(instruction.attributes.shape)), TOKEN]
    head = f'"stablehlo.recv"({writer.name(instruction.operands[0])}) {_words(instruction, HOST_TO_DEVICE)}'
    result = types[0] if len(types) == 1 else f"({', '.join(types)})"
    text = f"{head}{transfer_notes(instruction, done)} : ({TOKEN}) -> {result}"
    return writer.pack(instruction.name, len(types), text, instruction)


@lines
def infeed(writer: Writer, instruction: Instruction) -> Line:
    config = mlir_string(instruction.attributes.infeed_config)
    head = f'"stablehlo.infeed"({writer.name(instruction.operands[0])}) <{{infeed_config = {config}}}>'
    return head, writer.signature(instruction)


@lines
def outfeed(writer: Writer, instruction: Instruction) -> Line:
    config = mlir_string(instruction.attributes.outfeed_config)
    head = f'"stablehlo.outfeed"({", ".join(writer.flat(instruction.operands))}) <{{outfeed_config = {config}}}>'
    return head, writer.signature(instruction)


@values
def custom_call(writer: Writer, instruction: Instruction) -> Tree:
    """A result that is a tuple of one value, or of tuples, stays a tuple, and is taken apart."""
    a = instruction.attributes
    operands = [_operand(writer, each) for each in instruction.operands]
    shape = instruction.shape
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    is_flat = not isinstance(shape, TupleShape) or (
        len(parts) != 1 and not any(isinstance(each, TupleShape) for each in parts)
    )
    entries = [*_entries(writer, instruction), *notes_of(instruction)]
    notes = f" {dictionary(entries)}" if entries else ""
    head = f"stablehlo.custom_call {symbol(a.custom_call_target)}({', '.join(operands)}){notes}"
    types = f"({', '.join(type_text(each.shape) for each in instruction.operands)})"
    if is_flat:
        return writer.results(instruction, f"{head} : {types} -> {several(writer.types((instruction,)))}")
    whole = writer.emit(instruction.name, f"{head} : {types} -> {type_text(shape)}", instruction)
    return _parts(writer, whole, shape)


def _operand(writer: Writer, operand: Instruction) -> str:
    """The name of an operand; a tuple is put together."""
    if not isinstance(operand.shape, TupleShape):
        return writer.name(operand)
    return _whole(writer, writer.names[operand], operand.shape)


def _whole(writer: Writer, tree: Tree, shape: AnyShape) -> str:
    if not isinstance(shape, TupleShape):
        return str(tree)
    names = [_whole(writer, part, each) for part, each in zip(tree, shape.elements, strict=True)]
    return writer.emit("tuple", f"stablehlo.tuple{' ' * bool(names)}{', '.join(names)} : {type_text(shape)}")


def _parts(writer: Writer, name: str, shape: AnyShape) -> Tree:
    if not isinstance(shape, TupleShape):
        return name
    types = f"({type_text(shape)}) -> "
    return tuple(
        [
            _parts(
                writer,
                writer.emit("element", f"stablehlo.get_tuple_element {name}[{n}] : {types}{type_text(each)}"),
                each,
            )
            for n, each in enumerate(shape.elements)
        ]
    )


def _entries(writer: Writer, instruction: Instruction) -> Iterator[tuple[str, str]]:
    """The attributes of a custom call that are not the default."""
    a = instruction.attributes
    if a.api_version != "API_VERSION_ORIGINAL":
        yield "api_version", f"{API_VERSIONS[a.api_version]} : i32"
    if a.backend_config:
        is_typed = a.api_version == "API_VERSION_TYPED_FFI"
        if is_typed and not _DICTIONARY.match(a.backend_config):
            refuse(instruction, "the backend_config of a typed call is no dictionary of MLIR")
        yield "backend_config", a.backend_config if is_typed else mlir_string(a.backend_config)
    if a.called_computations:
        yield "called_computations", listed(symbol(writer.call(each)) for each in a.called_computations)
    if a.custom_call_has_side_effect:
        yield "has_side_effect", "true"
    if a.operand_layout_constraints is not None and not _has_tuples(instruction):
        yield "operand_layouts", listed(map(_layout, a.operand_layout_constraints))
        yield "result_layouts", listed(map(_layout, leaves(instruction.shape)))
    if a.output_to_operand_aliasing:
        yield "output_operand_aliases", listed(map(_alias, a.output_to_operand_aliasing))
    if a.schedule != "SCHEDULE_NONE":
        yield "mhlo.schedule", mlir_string(a.schedule)


def _has_tuples(instruction: Instruction) -> bool:
    """Whether an operand or an element of the result is a tuple, beside which no layouts are taken."""
    shape = instruction.shape
    parts = shape.elements if isinstance(shape, TupleShape) else ()
    return any(isinstance(each, TupleShape) for each in (*parts, *(o.shape for o in instruction.operands)))


def _layout(shape: AnyShape) -> str:
    """The order of an array's dimensions, minor to major."""
    rank = shape.rank if isinstance(shape, Shape) else 0
    layout = shape.layout.minor_to_major if isinstance(shape, Shape) and shape.layout else range(rank)[::-1]
    return f"dense<{listed(layout) if rank else ''}> : tensor<{rank}xindex>"


def _alias(alias: tuple[tuple[int, ...], int, tuple[int, ...]]) -> str:
    output, number, index = alias
    places = f"output_tuple_indices = {listed(output)}, operand_index = {number}"
    return f"#stablehlo.output_operand_alias<{places}, operand_tuple_indices = {listed(index)}>"
