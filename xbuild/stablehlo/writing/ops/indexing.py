"""Ops that read or write at computed places: dynamic slices, gather, scatter, sort, topk."""

from __future__ import annotations

from collections.abc import Iterable

from shape_inference import Shape, s32

from ....core.builder import Value
from ....core.graph import Instruction
from ....ops.elementwise import compare
from ....ops.leaves import iota
from ....ops.ordering import sort as _sorted
from ....ops.slicing import slice
from ....ops.tuples import get_tuple_element, tuple_
from ..support.accumulation import accumulated
from ..support.blocks import region
from ..support.decomposition import decomposed
from ..support.tables import lines, values
from ..support.types import several
from ..support.words import flag, integers, listed
from ..support.writer import Tree, Writer
from .elementwise import in_one_precision, same_type

Line = tuple[str, str]


def _with_scalars(writer: Writer, instruction: Instruction, fixed: int) -> tuple[list[str], str]:
    """Names of the operands, and the types; start indices in one vector are cut into scalars."""
    names, types = writer.flat(instruction.operands), writer.types(instruction.operands)
    starts = instruction.operands[fixed:]
    first = starts[0].shape if len(starts) == 1 else None
    if isinstance(first, Shape) and first.rank == 1:
        scalar, whole, part = (writer.type(Shape(first.dtype, dims)) for dims in ((), first.dims, (1,)))
        names, types = names[:fixed], types[:fixed]
        for n in range(first.dims[0]):
            cut = f"stablehlo.slice {writer.name(starts[0])} [{n}:{n + 1}] : ({whole}) -> {part}"
            text = f"stablehlo.reshape {writer.emit(instruction.name, cut)} : ({part}) -> {scalar}"
            names, types = [*names, writer.emit(instruction.name, text)], [*types, scalar]
    return names, f"({', '.join(types)}) -> {writer.type(instruction.shape)}"


@lines
def dynamic_slice(writer: Writer, instruction: Instruction) -> Line:
    names, types = _with_scalars(writer, instruction, 1)
    sizes = listed(instruction.attributes.dynamic_slice_sizes)
    return f"stablehlo.dynamic_slice {', '.join(names)}, sizes = {sizes}", types


@lines
def dynamic_update_slice(writer: Writer, instruction: Instruction) -> Line:
    last = in_one_precision(writer, instruction)
    if last.opcode != instruction.opcode:
        return same_type(writer, last)
    names, types = _with_scalars(writer, last, 2)
    return f"stablehlo.dynamic_update_slice {', '.join(names)}", types


def _numbers(entries: Iterable[tuple[str, object]]) -> str:
    """Dimension numbers: lists that are empty are left out, and so is an index vector in dimension 0."""
    kept = (f"{key} = {listed(value) if isinstance(value, tuple) else value}" for key, value in entries if value)
    return ", ".join(kept)


@lines
def gather(writer: Writer, instruction: Instruction) -> Line:
    a = instruction.attributes
    numbers = _numbers(
        (
            ("offset_dims", a.offset_dims),
            ("collapsed_slice_dims", a.collapsed_slice_dims),
            ("operand_batching_dims", a.operand_batching_dims),
            ("start_indices_batching_dims", a.start_indices_batching_dims),
            ("start_index_map", a.start_index_map),
            ("index_vector_dim", a.index_vector_dim),
        )
    )
    head = f'"stablehlo.gather"({", ".join(writer.flat(instruction.operands))})'
    words = f"indices_are_sorted = {flag(a.indices_are_sorted)}, slice_sizes = {integers(a.slice_sizes)}"
    return f"{head} <{{dimension_numbers = #stablehlo.gather<{numbers}>, {words}}}>", writer.signature(instruction)


@lines
def scatter(writer: Writer, instruction: Instruction) -> Line:
    a = instruction.attributes
    numbers = _numbers(
        (
            ("update_window_dims", a.update_window_dims),
            ("inserted_window_dims", a.inserted_window_dims),
            ("input_batching_dims", a.input_batching_dims),
            ("scatter_indices_batching_dims", a.scatter_indices_batching_dims),
            ("scatter_dims_to_operand_dims", a.scatter_dims_to_operand_dims),
            ("index_vector_dim", a.index_vector_dim),
        )
    )
    names, types = accumulated(writer, instruction, with_updates=True)
    head = f'"stablehlo.scatter"({", ".join(names)})'
    words = f"indices_are_sorted = {flag(a.indices_are_sorted)}, unique_indices = {flag(a.unique_indices)}"
    properties = f"<{{{words}, scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}>"
    results = writer.types((instruction,))
    return f"{head} {properties} ({region(writer, a.to_apply)})", f"({', '.join(types)}) -> {several(results)}"


@lines
def sort(writer: Writer, instruction: Instruction) -> Line:
    a = instruction.attributes
    head = f'"stablehlo.sort"({", ".join(writer.flat(instruction.operands))})'
    properties = f"<{{dimension = {a.dimension} : i64, is_stable = {flag(a.is_stable)}}}>"
    return f"{head} {properties} ({region(writer, a.to_apply)})", writer.signature(instruction)


@values
def topk(writer: Writer, instruction: Instruction) -> Tree:
    """CHLO's has the largest elements alone; the smallest are the first of a sort."""
    a = instruction.attributes
    if not a.largest:
        return decomposed(writer, instruction, _smallest)
    (operand,), results = writer.types(instruction.operands), writer.types((instruction,))
    head = f"chlo.top_k({writer.name(instruction.operands[0])}, k = {a.k})"
    writer.define(instruction, head, f"{operand} -> ({', '.join(results)})")
    return writer.names[instruction]


def _smallest(operand: Value, *, k: int, largest: bool) -> Value:
    shape = operand.shape
    assert isinstance(shape, Shape)
    places = iota(operand.builder, shape=shape.with_dtype(s32), iota_dimension=shape.rank - 1)
    ordered = _sorted(
        (operand, places),
        to_apply=lambda a, b, i, j: compare(a, b, direction="LT", type="TOTALORDER" if shape.dtype.is_float else None),
        dimension=shape.rank - 1,
        is_stable=True,
    )
    zeros, ends = (0,) * shape.rank, (*shape.dims[:-1], k)
    parts = [get_tuple_element(ordered, index=n) for n in (0, 1)]
    return tuple_([slice(part, start_indices=zeros, limit_indices=ends) for part in parts])
