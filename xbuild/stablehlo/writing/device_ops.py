"""Rules of the StableHLO printer for ops that involve other devices, the host, or functions behind a name.

Sections:

    Collectives
    Asynchronous ops: a collective in progress is a future; anything else is computed at its start
    Transfers, feeds and custom calls
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from shape_inference import AnyShape, Shape, TupleShape, leaves
from shape_inference.escaping import mlir_string
from shape_inference.trees import unflatten

from ... import ops
from ...core.builder import Value
from ...core.graph import Computation, Instruction
from ...properties.effects import origin, wrapped_in
from ..spelling import (
    API_VERSIONS,
    DEVICE_TO_DEVICE,
    DEVICE_TO_HOST,
    HOST_TO_DEVICE,
    OP_NAMES,
    dictionary,
    fields,
    flag,
    generic,
    listed,
    symbol,
)
from ..syntax.forms import constant_text, function_text, printer_of
from .writer import (
    TOKEN,
    FunctionWriter,
    Line,
    Tree,
    form_line,
    generic_line,
    groups_text,
    indented_lines,
    leaf_types,
    lines,
    matrix_text,
    notes_of,
    notes_text,
    refuse,
    region_text,
    transfer_notes,
    type_text,
    values,
    widen_operands,
    write_decomposition,
    write_inline,
)

# ----------------------------------------------------------------------------
# Collectives

Properties: TypeAlias = dict[str, str | None]


def channel_properties(instruction: Instruction, kind: int = 0) -> Properties:
    """The channel handle, if there is a channel."""
    number = instruction.attributes.channel_id
    handle = f"#stablehlo.channel_handle<handle = {number}, type = {kind}>"
    return {} if number is None else {"channel_handle": handle}


def _group_properties(instruction: Instruction) -> Properties:
    a = instruction.attributes
    flags = {"use_global_device_ids": None} if getattr(a, "use_global_device_ids", False) else {}
    return {**channel_properties(instruction), "replica_groups": groups_text(a.replica_groups), **flags}


def _all_gather_properties(instruction: Instruction) -> Properties:
    return {"all_gather_dim": f"{instruction.attributes.all_gather_dimension} : i64", **_group_properties(instruction)}


def _reduce_scatter_properties(instruction: Instruction) -> Properties:
    return {**_group_properties(instruction), "scatter_dimension": f"{instruction.attributes.scatter_dimension} : i64"}


def _all_to_all_properties(instruction: Instruction) -> Properties:
    """Groups are always written out: XLA's conversion from MLIR rejects an empty list here."""
    a = instruction.attributes
    concat = a.split_dimension if a.concat_dimension is None else a.concat_dimension
    return {
        "concat_dimension": f"{concat} : i64",
        **channel_properties(instruction),
        "replica_groups": groups_text(a.replica_groups or (tuple(range(a.split_count)),)),
        "split_count": f"{a.split_count} : i64",
        "split_dimension": f"{a.split_dimension} : i64",
    }


def _permute_properties(instruction: Instruction) -> Properties:
    return {
        **channel_properties(instruction),
        "source_target_pairs": matrix_text(instruction.attributes.source_target_pairs, 2),
    }


PROPERTIES: dict[str, Callable[[Instruction], Properties]] = {
    "all_gather": _all_gather_properties,
    "all_reduce": _group_properties,
    "all_to_all": _all_to_all_properties,
    "collective_broadcast": _group_properties,
    "collective_permute": _permute_properties,
    "reduce_scatter": _reduce_scatter_properties,
}
"""The properties of each collective."""


def collective_head(writer: FunctionWriter, instruction: Instruction, operands: Sequence[str]) -> str:
    """The text of a collective, or of the one that a start begins, up to its annotations."""
    opcode = instruction.opcode.removesuffix("_start")
    if getattr(instruction.attributes, "slice_sizes", ()):
        refuse(instruction, "it writes slices in place, which stablehlo.collective_permute cannot do")
    properties, reducer = PROPERTIES[opcode](instruction), getattr(instruction.attributes, "to_apply", None)
    regions = () if reducer is None else (region_text(writer, reducer),)
    return generic(OP_NAMES[opcode], operands, properties, *regions)


def _collective_line(writer: FunctionWriter, instruction: Instruction) -> Line:
    """One op exchanges all operands."""
    names, types = widen_operands(writer, instruction)
    return collective_head(writer, instruction, names), function_text(types, writer.types((instruction,)))


for _opcode in ("all_gather", "all_reduce", "reduce_scatter", "collective_broadcast"):
    lines.enter(_opcode, _collective_line)


@values
def collective_permute(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """Becomes one op for each operand."""
    found: list[str] = []
    notes = notes_text(writer, instruction)
    shapes = instruction.shape.elements if isinstance(instruction.shape, TupleShape) else (instruction.shape,)
    if instruction.attributes.slice_sizes:
        collective_head(writer, instruction, ())
    for operand, shape in zip(instruction.operands, shapes, strict=True):
        name = writer.name(operand)
        types = function_text([writer.type(operand.shape)], [writer.type(shape)])
        text = f"{collective_head(writer, instruction, [name])}{notes} : {types}"
        found.append(writer.emit(instruction.name, text, instruction))
    return tuple(found) if isinstance(instruction.shape, TupleShape) else found[0]


@values
def all_to_all(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """The form with one array for each member becomes a single exchange of the stacked arrays."""
    if instruction.attributes.split_dimension is None:
        return write_decomposition(writer, instruction, _exchange_stacked)
    writer.define(instruction, *_collective_line(writer, instruction))
    return writer.names[instruction]


def _exchange_stacked(operands: tuple[Value, ...], **attributes: Any) -> Value:
    """Stack the operands along a new first dimension and exchange along it."""
    dims: tuple[int, ...] = operands[0].shape.dims  # type: ignore[union-attr]
    joined = ops.concatenate([ops.reshape(each, new_sizes=(1, *dims)) for each in operands], dimension=0)
    attributes |= {"split_dimension": 0, "concat_dimension": 0, "split_count": len(operands)}
    moved = ops.all_to_all(joined, **attributes)
    zeros = (0,) * len(dims)
    parts = [ops.slice(moved, start_indices=(n, *zeros), limit_indices=(n + 1, *dims)) for n in range(len(operands))]
    return ops.tuple_([ops.reshape(part, new_sizes=dims) for part in parts])


@values
def ragged_all_to_all(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """Becomes `stablehlo.custom_call @ragged_all_to_all`, which XLA reads as this op; channel 0 means no channel."""
    a = instruction.attributes
    words = fields({"channel_id": f"{a.channel_id or 0} : i64", "replica_groups": groups_text(a.replica_groups)})
    config = f"{{api_version = 4 : i32, backend_config = {{{words}}}}}"
    head, types = form_line(writer, instruction, {"call_target_name": "ragged_all_to_all"}, "stablehlo.custom_call")
    return writer.emit(instruction.name, f"{head} {config} : {types}", instruction)


# ----------------------------------------------------------------------------
# Asynchronous ops: a collective in progress is a future; anything else is computed at its start


def _write_starts(
    writer: FunctionWriter,
    start: Instruction,
    collective: Instruction,
    operands: Sequence[Instruction],
    results: AnyShape,
) -> Tree:
    """One future per operand of a collective: XLA rejects a future of several values."""
    several = isinstance(results, TupleShape)
    shapes = results.elements if isinstance(results, TupleShape) else (results,)
    futures = [
        _write_start(writer, start, collective, operand, shape) for operand, shape in zip(operands, shapes, strict=True)
    ]
    return tuple(futures) if several else futures[0]


def _write_start(
    writer: FunctionWriter, start: Instruction, collective: Instruction, operand: Instruction, shape: AnyShape
) -> str:
    given, result = writer.type(operand.shape), writer.type(shape)
    argument = writer.fresh("operand")
    with indented_lines(writer) as written:
        text = f"{collective_head(writer, collective, [argument])} : {function_text([given], [result])}"
        name = writer.emit(collective.name, text)
        writer.line(f"stablehlo.return {name} : {result}")
    inside = "\n".join([f"{writer.indent}^bb0({argument}: {given}):", *written])
    head = generic("stablehlo.async_start", [writer.name(operand)], None, f"{{\n{inside}\n{writer.indent}}}")
    future = f"!stablehlo.future<{result}>"
    text = f"{head}{notes_text(writer, start)} : {function_text([given], [future])}"
    found = writer.emit(start.name, text, start)
    writer.futures[found] = future
    return found


def _write_done(writer: FunctionWriter, done: Instruction, future: str, shape: AnyShape) -> str:
    result = writer.type(shape)
    types = function_text([f"!stablehlo.future<{result}>"], [result])
    text = f"{generic('stablehlo.async_done', [future])}{notes_text(writer, done)} : {types}"
    return writer.emit(done.name, text, done)


def _collective_result(instruction: Instruction) -> AnyShape:
    """The shape of the result of the collective that a start begins."""
    shape = instruction.shape
    if instruction.opcode == "all_reduce_start" or not isinstance(shape, TupleShape):
        return shape
    return shape.elements[1]


def _collective_start(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """Becomes one `stablehlo.async_start` for each operand."""
    return _write_starts(writer, instruction, instruction, instruction.operands, _collective_result(instruction))


def _collective_done(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """Becomes one `stablehlo.async_done` for each operand."""
    futures, shape = writer.names[instruction.operands[0]], instruction.shape
    if isinstance(futures, str):
        return _write_done(writer, instruction, futures, shape)
    assert isinstance(shape, TupleShape)
    pairs = zip(futures, shape.elements, strict=True)
    return tuple([_write_done(writer, instruction, str(future), each) for future, each in pairs])


for _opcode in ("all_gather", "all_reduce", "collective_permute"):
    values.enter(f"{_opcode}_start", _collective_start)
    values.enter(f"{_opcode}_done", _collective_done)


def _wrapped_collective(start: Instruction | None) -> Instruction | None:
    """The collective that an async-start wraps, if `stablehlo.async_start` accepts it."""
    wrapped = wrapped_in(start) if start is not None and start.opcode == "async_start" else None
    if wrapped is None or wrapped.opcode not in PROPERTIES or wrapped.operands != _wrapped_parameters(start):
        return None
    return None if wrapped.opcode == "all_to_all" and wrapped.attributes.split_dimension is None else wrapped


def _wrapped_parameters(start: Instruction | None) -> tuple[Instruction, ...]:
    called: Computation = start.attributes.calls  # type: ignore[union-attr]
    return called.parameters


@values
def async_start(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """A collective gets one `stablehlo.async_start` for each operand; any other op is computed at its start."""
    collective = _wrapped_collective(instruction)
    if collective is None:
        return write_inline(writer, instruction.attributes.calls, [writer.names[each] for each in instruction.operands])
    return _write_starts(writer, instruction, collective, instruction.operands, collective.shape)


@values
def async_update(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """No op is written; an update becomes its start."""
    return writer.names[instruction.operands[0]]


@values
def async_done(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """A collective gets one `stablehlo.async_done` for each operand."""
    if _wrapped_collective(origin(instruction)) is None:
        return writer.names[instruction.operands[0]]
    return _collective_done(writer, instruction)


@values
def copy_start(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """No op is written; a copy becomes its operand."""
    return writer.names[instruction.operands[0]]


@values
def copy_done(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """No op is written; the result is the operand of the start."""
    return writer.names[instruction.operands[0]]


# ----------------------------------------------------------------------------
# Transfers, feeds and custom calls

_DICTIONARY = re.compile(r"\s*\{\s*(?:\}|[A-Za-z_][\w.$]*\s*[=,}]|\"[^\"]*\"\s*=)")


def _transfer_properties(instruction: Instruction, to_host: int) -> dict[str, str | None]:
    is_host = instruction.attributes.is_host_transfer
    return {
        **channel_properties(instruction, to_host if is_host else DEVICE_TO_DEVICE),
        "is_host_transfer": flag(is_host),
    }


@values
def send(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """One op starts the transfer and waits for it. As in HLO, its results are operand, context and token."""
    operand, _ = instruction.operands
    types = function_text(writer.types(instruction.operands), [TOKEN])
    head = generic(
        "stablehlo.send", writer.leaf_names(instruction.operands), _transfer_properties(instruction, DEVICE_TO_HOST)
    )
    token = writer.emit(instruction.name, f"{head}{transfer_notes(instruction)} : {types}", instruction)
    number = () if instruction in writer.awaited else _emit_context(writer, instruction)
    return (writer.names[operand], number, token)


@values
def send_done(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """No op is written; the result is the token of the send."""
    return writer.names[instruction.operands[0]][2]


@values
def recv(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """If the recv-done is in the same computation, the op is written at the position of the recv-done."""
    if instruction in writer.awaited:
        return writer.names[instruction.operands[0]]
    *parts, token = _emit_recv(writer, instruction)
    return (unflatten(instruction.attributes.shape, parts), _emit_context(writer, instruction), token)


@values
def recv_done(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """Becomes `stablehlo.recv`, unless that op is already written at the position of the recv."""
    begun = instruction.operands[0]
    if begun not in writer.awaited:
        tree = writer.names[begun]
        return (tree[0], tree[2])
    *parts, token = _emit_recv(writer, begun, instruction)
    return (unflatten(begun.attributes.shape, parts), token)


def _emit_context(writer: FunctionWriter, instruction: Instruction) -> str:
    return writer.emit(f"{instruction.name}.context", constant_text("", "dense<0>", "tensor<ui32>"))


def _emit_recv(writer: FunctionWriter, instruction: Instruction, done: Instruction | None = None) -> list[str]:
    """The op has the sharding of the done, which has the same results."""
    types = [*map(writer.type, leaves(instruction.attributes.shape)), TOKEN]
    head = generic(
        "stablehlo.recv", [writer.name(instruction.operands[0])], _transfer_properties(instruction, HOST_TO_DEVICE)
    )
    text = f"{head}{transfer_notes(instruction, done)} : {function_text([TOKEN], types)}"
    return writer.emit_pack(instruction.name, len(types), text, instruction)


@lines
def infeed(writer: FunctionWriter, instruction: Instruction) -> Line:
    return generic_line(writer, instruction, {"infeed_config": mlir_string(instruction.attributes.infeed_config)})


@lines
def outfeed(writer: FunctionWriter, instruction: Instruction) -> Line:
    return generic_line(writer, instruction, {"outfeed_config": mlir_string(instruction.attributes.outfeed_config)})


@values
def custom_call(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """A result that is a tuple of one value or of tuples remains a tuple, and its elements are extracted."""
    a = instruction.attributes
    operands = [_operand_name(writer, each) for each in instruction.operands]
    shape = instruction.shape
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    is_flat = not isinstance(shape, TupleShape) or (
        len(parts) != 1 and not any(isinstance(each, TupleShape) for each in parts)
    )
    entries = [*_custom_call_entries(writer, instruction), *notes_of(instruction)]
    notes = f" {dictionary(entries)}" if entries else ""
    row = printer_of("stablehlo.custom_call")
    head = f"{row.head(operands, {'call_target_name': a.custom_call_target})}{notes}"
    types = [type_text(each.shape) for each in instruction.operands]
    if is_flat:
        return writer.write_results(instruction, f"{head} : {row.types(types, writer.types((instruction,)))}")
    whole = writer.emit(instruction.name, f"{head} : {row.types(types, [type_text(shape)])}", instruction)
    return _emit_elements(writer, whole, shape)


def _operand_name(writer: FunctionWriter, operand: Instruction) -> str:
    """The name of an operand; a tuple is packed first."""
    if not isinstance(operand.shape, TupleShape):
        return writer.name(operand)
    return _emit_tuple(writer, writer.names[operand], operand.shape)


def _emit_tuple(writer: FunctionWriter, tree: Tree, shape: AnyShape) -> str:
    if not isinstance(shape, TupleShape):
        return str(tree)
    names = [_emit_tuple(writer, part, each) for part, each in zip(tree, shape.elements, strict=True)]
    text = printer_of("stablehlo.tuple").text(names, leaf_types(shape), [type_text(shape)])
    return writer.emit("tuple", text)


def _emit_elements(writer: FunctionWriter, name: str, shape: AnyShape) -> Tree:
    if not isinstance(shape, TupleShape):
        return name
    row, types = printer_of("stablehlo.get_tuple_element"), [type_text(shape)]
    texts = [row.text([name], types, [type_text(each)], index=n) for n, each in enumerate(shape.elements)]
    pairs = zip(texts, shape.elements, strict=True)
    return tuple([_emit_elements(writer, writer.emit("element", text), each) for text, each in pairs])


def _custom_call_entries(writer: FunctionWriter, instruction: Instruction) -> Iterator[tuple[str, str]]:
    """The attributes of a custom call that differ from the defaults."""
    a = instruction.attributes
    if a.api_version != "API_VERSION_ORIGINAL":
        yield "api_version", f"{API_VERSIONS[a.api_version]} : i32"
    if a.backend_config:
        is_typed = a.api_version == "API_VERSION_TYPED_FFI"
        if is_typed and not _DICTIONARY.match(a.backend_config):
            refuse(
                instruction,
                "the backend_config of a typed FFI call must be an MLIR dictionary, such as {key = 1 : i32}",
            )
        yield "backend_config", a.backend_config if is_typed else mlir_string(a.backend_config)
    if a.called_computations:
        yield "called_computations", listed(symbol(writer.function_symbol(each)) for each in a.called_computations)
    if a.custom_call_has_side_effect:
        yield "has_side_effect", "true"
    if a.operand_layout_constraints is not None and not _has_tuples(instruction):
        yield "operand_layouts", listed(map(_layout_text, a.operand_layout_constraints))
        yield "result_layouts", listed(map(_layout_text, leaves(instruction.shape)))
    if a.output_to_operand_aliasing:
        yield "output_operand_aliases", listed(map(_alias_text, a.output_to_operand_aliasing))
    if a.schedule != "SCHEDULE_NONE":
        yield "mhlo.schedule", mlir_string(a.schedule)


def _has_tuples(instruction: Instruction) -> bool:
    """Whether an operand or an element of the result is a tuple; MLIR then accepts no layouts."""
    shape = instruction.shape
    parts = shape.elements if isinstance(shape, TupleShape) else ()
    return any(isinstance(each, TupleShape) for each in (*parts, *(o.shape for o in instruction.operands)))


def _layout_text(shape: AnyShape) -> str:
    """The dimensions of an array, minor to major."""
    rank = shape.rank if isinstance(shape, Shape) else 0
    layout = shape.layout.minor_to_major if isinstance(shape, Shape) and shape.layout else range(rank)[::-1]
    return f"dense<{listed(layout) if rank else ''}> : tensor<{rank}xindex>"


def _alias_text(alias: tuple[tuple[int, ...], int, tuple[int, ...]]) -> str:
    output, number, index = alias
    places = {"output_tuple_indices": listed(output), "operand_index": str(number)}
    return f"#stablehlo.output_operand_alias<{fields({**places, 'operand_tuple_indices': listed(index)})}>"
