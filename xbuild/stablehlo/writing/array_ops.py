"""Rules of the StableHLO printer for ops on arrays.

Sections:

    Elementwise ops
    Conversions, copies and bitcasts
    Leaves: constants, iota, ids of the device
    Shapes: ops that rearrange elements, and dimension sizes
    Computed places: dynamic slices, gather, scatter, sort, topk
    Reductions and maps
    Windows, except convolution
    Products: dot, ragged dot, scaled dot, convolution
    Linear algebra, Fourier transforms, batch normalization
    Random numbers
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import numpy as np

from shape_inference import AnyShape, PrimitiveType, Shape, f32, leaves, pred, s32, u8
from shape_inference.dims import wider
from shape_inference.elided import ElidedArray
from shape_inference.trees import flatten, unflatten
from shape_inference.windows import Window

from ... import ops
from ...core.builder import Value
from ...core.graph import Instruction
from ...core.op import OPS
from ...text.expansion import ONE_PRECISION, one_precision
from ..literals import dense_text
from ..spelling import (
    ALGORITHMS,
    DISTRIBUTIONS,
    OP_NAMES,
    PRECISIONS,
    UNNAMED,
    dictionary,
    fields,
    flag,
    generic,
    listed,
)
from ..syntax.forms import constant_text, function_text, printer_of, reduce_text, reducer_text
from .writer import (
    REFUSED,
    FunctionWriter,
    Line,
    Tree,
    block_text,
    form_line,
    generic_line,
    integers_text,
    lines,
    matrix_text,
    name_parameters,
    notes_of,
    notes_text,
    op_name,
    plain_line,
    reducer_op,
    refuse,
    region_text,
    values,
    widen_operands,
    write_decomposition,
)

# ----------------------------------------------------------------------------
# Elementwise ops


@lines
def add(writer: FunctionWriter, instruction: Instruction) -> Line:
    """An add of pred becomes `stablehlo.or`."""
    return same_type(writer, instruction, op_name(instruction))


def same_type(writer: FunctionWriter, instruction: Instruction, name: str = "") -> Line:
    # The docstring of a rule is its remark in docs/stablehlo.md; ordinary ops have none.
    line = form_line(writer, instruction, name=name)
    if line[1][0] == "(" and instruction.opcode in ONE_PRECISION:  # of several types
        last = in_one_precision(writer, instruction)
        if last is not instruction:
            return same_type(writer, last)
    return line


def in_one_precision(writer: FunctionWriter, instruction: Instruction) -> Instruction:
    """Write conversions to the widest type of the operands, and return the op on the converted operands."""
    *before, last = one_precision(instruction)
    for each in before:
        writer.define(each, *(same_type if each.opcode == "convert" else lines[each.opcode])(writer, each))
    return last


for _opcode, _schema in OPS.items():
    if (
        _schema.properties.elements == "same_place"
        and _schema.properties.depends_on == "operands"
        and _opcode not in UNNAMED
        and not _schema.regions
        and _opcode not in ("add", "compare", "convert", "select")
    ):
        lines.enter(_opcode, same_type)


@lines
def compare(writer: FunctionWriter, instruction: Instruction) -> Line:
    last = in_one_precision(writer, instruction) if instruction.opcode in ONE_PRECISION else instruction
    a = last.attributes
    kind = a.type or usual_order(last.operands[0].shape)
    return form_line(writer, last, {"comparison_direction": a.direction, "compare_type": kind})


def usual_order(shape: AnyShape) -> str:
    """The default type of a comparison, which follows from its operands."""
    kind = shape.dtype.kind if isinstance(shape, Shape) else "float"
    return {"signed": "SIGNED", "unsigned": "UNSIGNED", "pred": "UNSIGNED"}.get(kind, "FLOAT")


@values
def select(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """A select of tuples becomes one select for each leaf."""
    last = in_one_precision(writer, instruction)
    which, *chosen = last.operands
    found = []
    row, notes = printer_of("stablehlo.select"), notes_text(writer, instruction)
    parts = [list(zip(flatten(writer.names[each]), writer.types((each,)), strict=True)) for each in chosen]
    for leaf, *pairs in zip(leaves(last.shape), *parts, strict=True):
        names, types = zip((writer.name(which), writer.type(which.shape)), *pairs, strict=True)
        text = f"{row.head(names, {})}{notes} : {row.types(types, [writer.type(leaf)])}"
        found.append(writer.emit(instruction.name, text, instruction))
    tree: Tree = unflatten(instruction.shape, found)
    return tree


# ----------------------------------------------------------------------------
# Conversions, copies and bitcasts


@values
def copy(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """No op is written; a copy becomes its operand."""
    return writer.names[instruction.operands[0]]


@values
def convert(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """A complex number other than 0 becomes true; StableHLO's convert tests only the real part."""
    source, target = instruction.operands[0].shape, instruction.attributes.new_element_type
    assert isinstance(source, Shape)
    if source.dtype.kind == "complex" and target is pred:
        return write_decomposition(writer, instruction, lambda operand, *, new_element_type: _is_not_zero(operand))
    writer.define(instruction, *same_type(writer, instruction))
    return writer.names[instruction]


@values
def bitcast_convert(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """A conversion from or to pred passes through u8, because HLO's pred is a byte and MLIR's i1 is a bit."""
    source, target = instruction.operands[0].shape, instruction.attributes.new_element_type
    assert isinstance(source, Shape)
    if (source.dtype is pred) != (target is pred):
        return write_decomposition(writer, instruction, bitcast_without_pred)
    writer.define(instruction, *form_line(writer, instruction))
    return writer.names[instruction]


def bitcast_without_pred(operand: Value, *, new_element_type: PrimitiveType) -> Value:
    """A bitcast_convert from or to pred, through u8."""
    if _dtype(operand) is pred:
        operand = ops.convert(operand, new_element_type=u8)
    if new_element_type is not pred:
        same = _dtype(operand) is new_element_type
        return operand if same else ops.bitcast_convert(operand, new_element_type=new_element_type)
    octets = operand if _dtype(operand) is u8 else ops.bitcast_convert(operand, new_element_type=u8)
    return _is_not_zero(octets)


def _is_not_zero(operand: Value) -> Value:
    zero = ops.constant(operand.builder, literal=_dtype(operand).dtype.type(0))
    zeros = ops.broadcast(zero, sizes=operand.shape.dims, dimensions=())  # type: ignore[union-attr]
    return ops.compare(operand, zeros, direction="NE")


def _dtype(value: Value) -> PrimitiveType:
    assert isinstance(value.shape, Shape)
    return value.shape.dtype


@values
def bitcast(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """Becomes transposes, reshapes and a `stablehlo.bitcast_convert`, which order the elements by the layouts."""
    source, target = instruction.operands[0].shape, instruction.shape
    assert isinstance(source, Shape)
    assert isinstance(target, Shape)
    if source.plain() == target.plain() and _major_to_minor(source) == _major_to_minor(target):
        return writer.names[instruction.operands[0]]
    kinds = {source.dtype, target.dtype}
    if source.is_dynamic or (len(kinds) > 1 and any(each.bit_width < 8 or each.kind == "complex" for each in kinds)):
        refuse(instruction, f"StableHLO has no op that reads the bytes of {source} as {target}")
    return write_decomposition(writer, instruction, lambda operand, *, shape: _bitcast_by_layout(operand, target))


def _major_to_minor(shape: Shape) -> tuple[int, ...]:
    """The dimensions of a shape, major to minor."""
    return shape.layout.minor_to_major[::-1] if shape.layout else tuple(range(shape.rank))


def _bitcast_by_layout(operand: Value, target: Shape) -> Value:
    source = operand.shape
    assert isinstance(source, Shape)
    if _major_to_minor(source) != tuple(range(source.rank)):
        operand = ops.transpose(operand, permutation=_major_to_minor(source))
    if source.dtype is not target.dtype:
        operand = _bitcast_row(operand, target.dtype)
    order = _major_to_minor(target)
    operand = ops.reshape(operand, new_sizes=tuple(target.dims[dim] for dim in order))
    if order == tuple(range(target.rank)):
        return operand
    return ops.transpose(operand, permutation=tuple(order.index(dim) for dim in range(target.rank)))


def _bitcast_row(operand: Value, dtype: PrimitiveType) -> Value:
    """A row of elements, reinterpreted as another type."""
    source = operand.shape
    assert isinstance(source, Shape)
    ratio = max(dtype.bit_width // source.dtype.bit_width, 1)
    row = (source.size,) if ratio == 1 else (source.size // ratio, ratio)
    found = bitcast_without_pred(ops.reshape(operand, new_sizes=row), new_element_type=dtype)
    return ops.reshape(found, new_sizes=(math.prod(found.shape.dims),))  # type: ignore[union-attr]


def _refuse_opcode(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """xbuild refuses the op: StableHLO has no counterpart, and its value depends on the implementation."""
    refuse(instruction, "StableHLO has no such op, and the value of the op depends on the implementation")


for _opcode in ("stochastic_convert", "rng_get_and_update_state"):
    values.enter(_opcode, _refuse_opcode)
    REFUSED.add(_opcode)


# ----------------------------------------------------------------------------
# Leaves: constants, iota, ids of the device


@values
def constant(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """The text lists the annotations before the literal."""
    array = instruction.attributes.literal
    if isinstance(array, ElidedArray):
        refuse(instruction, "the HLO text elides its elements as {...}")
    text = constant_text(notes_text(writer, instruction), dense_text(array), writer.type(instruction.shape))
    return writer.emit(instruction.name, text, instruction)


for _opcode in ("iota", "partition_id", "replica_id"):
    lines.enter(_opcode, plain_line)


# ----------------------------------------------------------------------------
# Shapes: ops that rearrange elements, and dimension sizes

for _opcode in ("get_dimension_size", "reshape", "reverse", "set_dimension_size", "slice", "transpose"):
    lines.enter(_opcode, plain_line)


@lines
def broadcast(writer: FunctionWriter, instruction: Instruction) -> Line:
    return form_line(writer, instruction, {"broadcast_dimensions": instruction.attributes.dimensions})


@lines
def concatenate(writer: FunctionWriter, instruction: Instruction) -> Line:
    return form_line(writer, in_one_precision(writer, instruction))


@lines
def pad(writer: FunctionWriter, instruction: Instruction) -> Line:
    last = in_one_precision(writer, instruction)
    sides = ("low", "high", "interior")
    low, high, interior = ([getattr(dim, side) for dim in last.attributes.padding] for side in sides)
    return form_line(writer, last, {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior})


@lines
def dynamic_reshape(writer: FunctionWriter, instruction: Instruction) -> Line:
    """The sizes are scalars in HLO and a single vector in StableHLO."""
    operand, *sizes = instruction.operands
    one, name = "tensor<1xi32>", instruction.name
    reshaped, joined = printer_of("stablehlo.reshape"), printer_of("stablehlo.concatenate")
    parts = [writer.emit(f"{name}.size", reshaped.text([writer.name(each)], ["tensor<i32>"], [one])) for each in sizes]
    vector = f"tensor<{len(parts)}xi32>"
    text = f"stablehlo.constant dense<> : {vector}"
    if parts:
        text = joined.text(parts, [one] * len(parts), [vector], dimension=0)
    shape = writer.emit(f"{name}.sizes", text)
    head = printer_of("stablehlo.dynamic_reshape").head([writer.name(operand), shape], {})
    return head, function_text([writer.type(operand.shape), vector], [writer.type(instruction.shape)])


# ----------------------------------------------------------------------------
# Computed places: dynamic slices, gather, scatter, sort, topk


def _with_scalar_starts(writer: FunctionWriter, instruction: Instruction, fixed: int, **attributes: Any) -> Line:
    """An op whose start indices are scalars; a vector of indices is sliced into scalars first."""
    row = printer_of(OP_NAMES[instruction.opcode])
    names, types = writer.leaf_names(instruction.operands), writer.types(instruction.operands)
    starts = instruction.operands[fixed:]
    first = starts[0].shape if len(starts) == 1 else None
    if isinstance(first, Shape) and first.rank == 1:
        scalar, whole, part = (writer.type(Shape(first.dtype, dims)) for dims in ((), first.dims, (1,)))
        names, types = names[:fixed], types[:fixed]
        for n in range(first.dims[0]):
            ranges = {"start_indices": (n,), "limit_indices": (n + 1,), "strides": ()}
            sliced = printer_of("stablehlo.slice").text([writer.name(starts[0])], [whole], [part], **ranges)
            text = printer_of("stablehlo.reshape").text([writer.emit(instruction.name, sliced)], [part], [scalar])
            names, types = [*names, writer.emit(instruction.name, text)], [*types, scalar]
    return row.head(names, attributes), row.types(types, writer.types((instruction,)))


@lines
def dynamic_slice(writer: FunctionWriter, instruction: Instruction) -> Line:
    return _with_scalar_starts(writer, instruction, 1, slice_sizes=instruction.attributes.dynamic_slice_sizes)


@lines
def dynamic_update_slice(writer: FunctionWriter, instruction: Instruction) -> Line:
    last = in_one_precision(writer, instruction)
    if last.opcode != instruction.opcode:
        return same_type(writer, last)
    return _with_scalar_starts(writer, last, 2)


def _index_dimensions(a: Any, *names: str) -> str:
    """Dimension numbers, without empty lists and without an index_vector_dim of 0, which MLIR omits."""
    given = ((name, getattr(a, name)) for name in (*names, "index_vector_dim"))
    return fields({name: listed(value) if isinstance(value, tuple) else str(value) for name, value in given if value})


@lines
def gather(writer: FunctionWriter, instruction: Instruction) -> Line:
    a = instruction.attributes
    numbers = _index_dimensions(
        a, "offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims",
        "start_index_map",
    )  # fmt: skip
    properties = {
        "dimension_numbers": f"#stablehlo.gather<{numbers}>",
        "indices_are_sorted": flag(a.indices_are_sorted),
        "slice_sizes": integers_text(a.slice_sizes),
    }
    return generic_line(writer, instruction, properties)


@lines
def scatter(writer: FunctionWriter, instruction: Instruction) -> Line:
    a = instruction.attributes
    numbers = _index_dimensions(
        a, "update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
        "scatter_dims_to_operand_dims",
    )  # fmt: skip
    names, types = widen_operands(writer, instruction, with_updates=True)
    properties = {
        "indices_are_sorted": flag(a.indices_are_sorted),
        "unique_indices": flag(a.unique_indices),
        "scatter_dimension_numbers": f"#stablehlo.scatter<{numbers}>",
    }
    head = generic("stablehlo.scatter", names, properties, region_text(writer, a.to_apply))
    return head, function_text(types, writer.types((instruction,)))


@lines
def sort(writer: FunctionWriter, instruction: Instruction) -> Line:
    a = instruction.attributes
    properties = {"dimension": f"{a.dimension} : i64", "is_stable": flag(a.is_stable)}
    return generic_line(writer, instruction, properties, region_text(writer, a.to_apply))


@values
def topk(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """CHLO's top_k finds only the largest elements; the smallest are taken from the start of a sort."""
    if not instruction.attributes.largest:
        return write_decomposition(writer, instruction, _k_smallest)
    writer.define(instruction, *form_line(writer, instruction))
    return writer.names[instruction]


def _k_smallest(operand: Value, *, k: int, largest: bool) -> Value:
    shape = operand.shape
    assert isinstance(shape, Shape)
    places = ops.iota(operand.builder, shape=shape.with_dtype(s32), iota_dimension=shape.rank - 1)
    ordered = ops.sort(
        (operand, places),
        to_apply=lambda a, b, i, j: ops.compare(
            a, b, direction="LT", type="TOTALORDER" if shape.dtype.is_float else None
        ),
        dimension=shape.rank - 1,
        is_stable=True,
    )
    zeros, ends = (0,) * shape.rank, (*shape.dims[:-1], k)
    parts = [ops.get_tuple_element(ordered, index=n) for n in (0, 1)]
    return ops.tuple_([ops.slice(part, start_indices=zeros, limit_indices=ends) for part in parts])


# ----------------------------------------------------------------------------
# Reductions and maps


@values
def reduce(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """A reducer with one op on one type is written as the op's name; any other reducer is written as a region."""
    a = instruction.attributes
    operands, inits = instruction.arguments()
    pairs = [(writer.name(x), writer.name(init)) for x, init in zip(operands, inits, strict=True)]
    op = reducer_op(a.to_apply, _element_types(instruction)) if len(operands) == 1 else None
    notes, types = notes_text(writer, instruction), writer.signature(instruction)
    text = reduce_text(pairs, op or "", a.dimensions, notes, types)
    return writer.write_results(
        instruction, text if op else f"{text}\n{_reducer_region(writer, instruction, len(operands))}"
    )


def _element_types(instruction: Instruction) -> set[PrimitiveType]:
    """The element types of operands and result."""
    found = (leaf for value in (*instruction.operands, instruction) for leaf in leaves(value.shape))
    return {leaf.dtype for leaf in found if isinstance(leaf, Shape)}


def _reducer_region(writer: FunctionWriter, instruction: Instruction, count: int) -> str:
    """The reducer as a region, with each pair of arguments in parentheses."""
    to_apply = instruction.attributes.to_apply
    parameters = list(name_parameters(writer, to_apply))
    typed = [text for _, texts in parameters for text in texts]
    inside = block_text(writer, to_apply, [tree for tree, _ in parameters])
    return f"{writer.indent} {reducer_text([(typed[n], typed[n + count]) for n in range(count)], inside)}"


@lines
def map_(writer: FunctionWriter, instruction: Instruction) -> Line:
    a = instruction.attributes
    return generic_line(
        writer, instruction, {"dimensions": integers_text(a.dimensions)}, region_text(writer, a.to_apply)
    )


# ----------------------------------------------------------------------------
# Windows, except convolution


def _window_properties(window: Window) -> dict[str, str]:
    return {
        "padding": matrix_text([(dim.padding_low, dim.padding_high) for dim in window], 2),
        "window_dimensions": integers_text(dim.size for dim in window),
        "window_strides": integers_text(dim.stride for dim in window),
    }


@lines
def reduce_window(writer: FunctionWriter, instruction: Instruction) -> Line:
    a = instruction.attributes
    properties = {
        **_window_properties(a.window),
        "base_dilations": integers_text(dim.base_dilation for dim in a.window),
        "window_dilations": integers_text(dim.window_dilation for dim in a.window),
    }
    return generic_line(writer, instruction, dict(sorted(properties.items())), region_text(writer, a.to_apply))


@lines
def select_and_scatter(writer: FunctionWriter, instruction: Instruction) -> Line:
    a = instruction.attributes
    if any(dim.window_dilation != 1 or dim.base_dilation != 1 for dim in a.window):
        refuse(instruction, "its window is dilated, but stablehlo.select_and_scatter does not support dilation")
    regions = region_text(writer, a.select), region_text(writer, a.scatter)
    return generic_line(writer, instruction, _window_properties(a.window), *regions)


# ----------------------------------------------------------------------------
# Products: dot, ragged dot, scaled dot, convolution


_SPLIT = re.compile(r"dot_([a-z0-9]+)_([a-z0-9]+)_([a-z0-9]+?)(?:_x(\d))?(_fast_accum)?")


def algorithm_text(instruction: Instruction) -> str:
    """The algorithm that HLO names, spelled out; empty if none is named or StableHLO cannot spell it.

    Source: xla_data.proto, PrecisionConfig.Algorithm; StableHLO, dot_general (algorithm).
    """
    named = _SPLIT.fullmatch(str(instruction.annotations.get("algorithm", "")))
    if named is None:
        return ""
    lhs, rhs, accumulation, operations, fast = named.groups()
    words = {
        "lhs_precision_type": lhs,
        "rhs_precision_type": rhs,
        "accumulation_type": accumulation,
        "lhs_component_count": "1",
        "rhs_component_count": "1",
        "num_primitive_operations": operations or "1",
        "allow_imprecise_accumulation": "true" if fast else "false",
    }
    return f"<{fields(words)}>"


def _precisions(instruction: Instruction) -> list[str]:
    given = instruction.attributes.operand_precision or ("default", "default")
    return [PRECISIONS[each] for each in given]


@lines
def dot(writer: FunctionWriter, instruction: Instruction) -> Line:
    a, algorithm = instruction.attributes, algorithm_text(instruction)
    is_stated = algorithm or not {"default"}.issuperset(a.operand_precision)
    precisions = ["DEFAULT"] * 2 if algorithm else _precisions(instruction) if is_stated else ()
    stated = {**_dot_dimensions(instruction), "precision_config": precisions, "algorithm": algorithm}
    return form_line(writer, instruction, stated)


def _dot_dimensions(instruction: Instruction) -> dict[str, tuple[int, ...]]:
    a = instruction.attributes
    return {
        "lhs_batching_dimensions": a.lhs_batch_dims,
        "rhs_batching_dimensions": a.rhs_batch_dims,
        "lhs_contracting_dimensions": a.lhs_contracting_dims,
        "rhs_contracting_dimensions": a.rhs_contracting_dims,
    }


@lines
def ragged_dot(writer: FunctionWriter, instruction: Instruction) -> Line:
    a = instruction.attributes
    ragged = {"lhs_ragged_dimensions": a.lhs_ragged_dims, "rhs_group_dimensions": a.rhs_group_dims}
    numbers = fields({key: listed(dims) for key, dims in {**_dot_dimensions(instruction), **ragged}.items()})
    properties = {
        "ragged_dot_dimension_numbers": f"#chlo.ragged_dot<{numbers}>",
        "precision_config": listed(f"#chlo<precision {each}>" for each in _precisions(instruction)),
    }
    return generic_line(writer, instruction, properties)


@values
def scaled_dot(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """Becomes a dot of the scaled operands; each scale is repeated over its block and multiplied with the operand."""
    return write_decomposition(writer, instruction, _scaled_dot)


def _scaled_dot(
    lhs: Value,
    rhs: Value,
    lhs_scale: Value,
    rhs_scale: Value,
    *,
    preferred_element_type: PrimitiveType | None,
    **attributes: Any,
) -> Value:
    result = ops.dot(_apply_scale(lhs, lhs_scale), _apply_scale(rhs, rhs_scale), **attributes)
    return ops.convert(result, new_element_type=preferred_element_type or wider(_dtype(lhs), _dtype(rhs)))


def _apply_scale(operand: Value, scale: Value) -> Value:
    """The operand in f32 or f64, multiplied by the scale of each block."""
    wide = functools.reduce(wider, (_dtype(operand), _dtype(scale), f32))
    extents, blocks = operand.shape.dims, scale.shape.dims  # type: ignore[union-attr]
    each = [size for extent, count in zip(extents, blocks, strict=False) for size in (count, extent // max(count, 1))]
    factors = ops.convert(scale, new_element_type=wide)
    if blocks:
        repeated = ops.broadcast(factors, sizes=tuple(each), dimensions=tuple(range(0, len(each), 2)))
        factors = ops.reshape(repeated, new_sizes=extents)
    else:
        factors = ops.broadcast(factors, sizes=extents, dimensions=())
    return ops.multiply(ops.convert(operand, new_element_type=wide), factors)


@values
def convolution(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """The op's attribute dictionary contains the annotations; operands of two precisions are converted first."""
    a = instruction.attributes
    last = in_one_precision(writer, instruction)
    window = {
        "dimension_numbers": a.dimension_numbers,
        "window_strides": [dim.stride for dim in a.window],
        "padding": [[dim.padding_low, dim.padding_high] for dim in a.window],
        "lhs_dilation": [dim.base_dilation for dim in a.window],
        "rhs_dilation": [dim.window_dilation for dim in a.window],
        "window_reversal": [flag(dim.window_reversal) for dim in a.window],
    }
    head, types = form_line(writer, last, window)
    entries = [
        ("batch_group_count", f"{a.batch_group_count} : i64"),
        ("feature_group_count", f"{a.feature_group_count} : i64"),
        ("precision_config", listed(f"#stablehlo<precision {each}>" for each in _precisions(instruction))),
        *notes_of(instruction),
    ]
    return writer.emit(instruction.name, f"{head} {dictionary(entries)} : {types}", instruction)


# ----------------------------------------------------------------------------
# Linear algebra, Fourier transforms, batch normalization


@lines
def triangular_solve(writer: FunctionWriter, instruction: Instruction) -> Line:
    a = instruction.attributes
    properties = {
        "left_side": flag(a.left_side),
        "lower": flag(a.lower),
        "transpose_a": f"#stablehlo<transpose {a.transpose_a}>",
        "unit_diagonal": flag(a.unit_diagonal),
    }
    return generic_line(writer, instruction, properties)


def _normalization(writer: FunctionWriter, instruction: Instruction) -> Line:
    a = instruction.attributes
    epsilon = dense_text(np.asarray(a.epsilon, np.float32))[len("dense<") : -1]
    return generic_line(
        writer, instruction, {"epsilon": f"{epsilon} : f32", "feature_index": f"{a.feature_index} : i64"}
    )


for _opcode in ("batch_norm_grad", "batch_norm_inference", "batch_norm_training"):
    lines.enter(_opcode, _normalization)

for _opcode in ("cholesky", "fft"):
    lines.enter(_opcode, plain_line)


# ----------------------------------------------------------------------------
# Random numbers


@lines
def rng(writer: FunctionWriter, instruction: Instruction) -> Line:
    """A constant operand states the extents of the result."""
    a, row = instruction.attributes, printer_of("stablehlo.rng")
    vector = f"tensor<{a.shape.rank}xi64>"
    literal = listed(a.shape.dims) if a.shape.dims else ""
    sizes = writer.emit(f"{instruction.name}.sizes", constant_text("", f"dense<{literal}>", vector))
    operands, types = writer.leaf_names(instruction.operands), writer.types(instruction.operands)
    head = row.head([*operands, sizes], {"rng_distribution": DISTRIBUTIONS[a.distribution]})
    return head, row.types([*types, vector], writer.types((instruction,)))


@lines
def rng_bit_generator(writer: FunctionWriter, instruction: Instruction) -> Line:
    return form_line(writer, instruction, {"rng_algorithm": ALGORITHMS[instruction.attributes.algorithm]})
