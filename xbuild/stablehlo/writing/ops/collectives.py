"""Collectives: groups as a matrix of ids, the channel, the region of the reducer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shape_inference import TupleShape

from ....core.builder import Value
from ....core.graph import Instruction
from ....ops.collectives import all_to_all as _all_to_all_op
from ....ops.shaping import concatenate, reshape
from ....ops.slicing import slice as cut
from ....ops.tuples import tuple_
from ..support.accumulation import accumulated
from ..support.blocks import region
from ..support.decomposition import decomposed
from ..support.notes import notes_text
from ..support.refusals import refuse
from ..support.tables import lines, values
from ..support.types import several
from ..support.words import groups, matrix
from ..support.writer import Tree, Writer

Line = tuple[str, str]


def channel(instruction: Instruction, kind: int = 0) -> list[str]:
    """The handle of a channel, where there is one."""
    number = instruction.attributes.channel_id
    return [] if number is None else [f"channel_handle = #stablehlo.channel_handle<handle = {number}, type = {kind}>"]


def _grouped(instruction: Instruction) -> list[str]:
    a = instruction.attributes
    flags = ["use_global_device_ids"] if getattr(a, "use_global_device_ids", False) else []
    return [*channel(instruction), f"replica_groups = {groups(a.replica_groups)}", *flags]


def _text(name: str, operands: str, words: list[str], regions: str = "") -> str:
    return f'"stablehlo.{name}"({operands}) <{{{", ".join(words)}}}>{regions}'


def _all_reduce(writer: Writer, instruction: Instruction, operands: str) -> str:
    return _text("all_reduce", operands, _grouped(instruction), f" ({region(writer, instruction.attributes.to_apply)})")


def _all_gather(writer: Writer, instruction: Instruction, operands: str) -> str:
    dim = f"all_gather_dim = {instruction.attributes.all_gather_dimension} : i64"
    return _text("all_gather", operands, [dim, *_grouped(instruction)])


def _reduce_scatter(writer: Writer, instruction: Instruction, operands: str) -> str:
    a = instruction.attributes
    words = [*_grouped(instruction), f"scatter_dimension = {a.scatter_dimension} : i64"]
    return _text("reduce_scatter", operands, words, f" ({region(writer, a.to_apply)})")


def _all_to_all(writer: Writer, instruction: Instruction, operands: str) -> str:
    """All groups are written out, since XLA's conversion from MLIR does not take the empty list here."""
    a = instruction.attributes
    concat = a.split_dimension if a.concat_dimension is None else a.concat_dimension
    whole = groups(a.replica_groups or (tuple(range(a.split_count)),))
    words = [f"concat_dimension = {concat} : i64", *channel(instruction), f"replica_groups = {whole}"]
    split = f"split_count = {a.split_count} : i64, split_dimension = {a.split_dimension} : i64"
    return _text("all_to_all", operands, [*words, split])


def _collective_permute(writer: Writer, instruction: Instruction, operands: str) -> str:
    pairs = f"source_target_pairs = {matrix(instruction.attributes.source_target_pairs, 2)}"
    return _text("collective_permute", operands, [*channel(instruction), pairs])


def _collective_broadcast(writer: Writer, instruction: Instruction, operands: str) -> str:
    return _text("collective_broadcast", operands, _grouped(instruction))


FORMS: dict[str, Callable[[Writer, Instruction, str], str]] = {
    "all_gather": _all_gather,
    "all_reduce": _all_reduce,
    "all_to_all": _all_to_all,
    "collective_broadcast": _collective_broadcast,
    "collective_permute": _collective_permute,
    "reduce_scatter": _reduce_scatter,
}
"""The text of each collective up to its annotations, on operands of these names."""


def form(writer: Writer, instruction: Instruction, operands: str) -> str:
    """The text of a collective, or of one that a start begins."""
    opcode = instruction.opcode.removesuffix("_start")
    if getattr(instruction.attributes, "slice_sizes", ()):
        refuse(instruction, "it writes slices in place, and stablehlo.collective_permute does not")
    return FORMS[opcode](writer, instruction, operands)


def _together(writer: Writer, instruction: Instruction) -> Line:
    """One op for all operands."""
    names, types = accumulated(writer, instruction)
    results = several(writer.types((instruction,)))
    return form(writer, instruction, ", ".join(names)), f"({', '.join(types)}) -> {results}"


for _opcode in ("all_gather", "all_reduce", "reduce_scatter", "collective_broadcast"):
    lines.enter(_opcode, _together)


@values
def collective_permute(writer: Writer, instruction: Instruction) -> Tree:
    """An op for each operand."""
    found: list[str] = []
    notes = notes_text(writer, instruction)
    shapes = instruction.shape.elements if isinstance(instruction.shape, TupleShape) else (instruction.shape,)
    if instruction.attributes.slice_sizes:
        form(writer, instruction, "")
    for operand, shape in zip(instruction.operands, shapes, strict=True):
        name = writer.name(operand)
        types = f"({writer.type(operand.shape)}) -> {writer.type(shape)}"
        text = f"{form(writer, instruction, name)}{notes} : {types}"
        found.append(writer.emit(instruction.name, text, instruction))
    return tuple(found) if isinstance(instruction.shape, TupleShape) else found[0]


@values
def all_to_all(writer: Writer, instruction: Instruction) -> Tree:
    """The form with an array for each member becomes one exchange of all of them, side by side."""
    if instruction.attributes.split_dimension is None:
        return decomposed(writer, instruction, _exchanged)
    writer.define(instruction, *_together(writer, instruction))
    return writer.names[instruction]


def _exchanged(operands: tuple[Value, ...], **attributes: Any) -> Value:
    """The operands along a new first dimension, exchanged along it."""
    dims: tuple[int, ...] = operands[0].shape.dims  # type: ignore[union-attr]
    joined = concatenate([reshape(each, new_sizes=(1, *dims)) for each in operands], dimension=0)
    attributes |= {"split_dimension": 0, "concat_dimension": 0, "split_count": len(operands)}
    moved = _all_to_all_op(joined, **attributes)
    zeros = (0,) * len(dims)
    parts = [cut(moved, start_indices=(n, *zeros), limit_indices=(n + 1, *dims)) for n in range(len(operands))]
    return tuple_([reshape(part, new_sizes=dims) for part in parts])


@values
def ragged_all_to_all(writer: Writer, instruction: Instruction) -> Tree:
    """`stablehlo.custom_call @ragged_all_to_all`, which XLA reads as the op; channel 0 stands for none."""
    a = instruction.attributes
    words = [f"channel_id = {a.channel_id or 0} : i64", f"replica_groups = {groups(a.replica_groups)}"]
    config = f"{{api_version = 4 : i32, backend_config = {{{', '.join(words)}}}}}"
    head = f"stablehlo.custom_call @ragged_all_to_all({', '.join(writer.flat(instruction.operands))}) {config}"
    return writer.emit(instruction.name, f"{head} : {writer.signature(instruction)}", instruction)
