"""Ops that sum products: dot, ragged dot, scaled dot, convolution."""

from __future__ import annotations

import functools
from typing import Any

from shape_inference import PrimitiveType, Shape, f32
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.dims import wider

from ....core.builder import Value
from ....core.graph import Instruction
from ....ops.contraction import dot as _dot
from ....ops.conversion import convert
from ....ops.elementwise import multiply
from ....ops.shaping import broadcast, reshape
from ...spelling.choices import PRECISIONS
from ..support.algorithms import algorithm_text
from ..support.decomposition import decomposed
from ..support.notes import notes_of
from ..support.tables import lines, values
from ..support.words import dictionary, flag, listed
from ..support.writer import Tree, Writer
from .elementwise import in_one_precision

Line = tuple[str, str]


def _precisions(instruction: Instruction) -> list[str]:
    given = instruction.attributes.operand_precision or ("default", "default")
    return [PRECISIONS[each] for each in given]


@lines
def dot(writer: Writer, instruction: Instruction) -> Line:
    a = instruction.attributes
    head = f"stablehlo.dot_general {', '.join(writer.flat(instruction.operands))}"
    if a.lhs_batch_dims:
        head += f", batching_dims = {listed(a.lhs_batch_dims)} x {listed(a.rhs_batch_dims)}"
    head += f", contracting_dims = {listed(a.lhs_contracting_dims)} x {listed(a.rhs_contracting_dims)}"
    algorithm = algorithm_text(instruction)
    if algorithm or set(a.operand_precision) - {"default"}:
        head += f", precision = {listed(['DEFAULT'] * 2 if algorithm else _precisions(instruction))}"
    return head + algorithm, writer.signature(instruction)


@lines
def ragged_dot(writer: Writer, instruction: Instruction) -> Line:
    a = instruction.attributes
    numbers = ", ".join(
        (
            f"lhs_batching_dimensions = {listed(a.lhs_batch_dims)}",
            f"rhs_batching_dimensions = {listed(a.rhs_batch_dims)}",
            f"lhs_contracting_dimensions = {listed(a.lhs_contracting_dims)}",
            f"rhs_contracting_dimensions = {listed(a.rhs_contracting_dims)}",
            f"lhs_ragged_dimensions = {listed(a.lhs_ragged_dims)}",
            f"rhs_group_dimensions = {listed(a.rhs_group_dims)}",
        )
    )
    precisions = listed(f"#chlo<precision {each}>" for each in _precisions(instruction))
    properties = f"ragged_dot_dimension_numbers = #chlo.ragged_dot<{numbers}>, precision_config = {precisions}"
    head = f'"chlo.ragged_dot"({", ".join(writer.flat(instruction.operands))}) <{{{properties}}}>'
    return head, writer.signature(instruction)


@values
def scaled_dot(writer: Writer, instruction: Instruction) -> Tree:
    """A dot of the operands times their scales, each repeated over its block."""
    return decomposed(writer, instruction, _scaled_dot)


def _scaled_dot(
    lhs: Value,
    rhs: Value,
    lhs_scale: Value,
    rhs_scale: Value,
    *,
    preferred_element_type: PrimitiveType | None,
    **attributes: Any,
) -> Value:
    result = _dot(_scaled(lhs, lhs_scale), _scaled(rhs, rhs_scale), **attributes)
    return convert(result, new_element_type=preferred_element_type or wider(_dtype(lhs), _dtype(rhs)))


def _dtype(value: Value) -> PrimitiveType:
    assert isinstance(value.shape, Shape)
    return value.shape.dtype


def _scaled(operand: Value, scale: Value) -> Value:
    """The operand in f32 or f64, times the scale of its block."""
    wide = functools.reduce(wider, (_dtype(operand), _dtype(scale), f32))
    extents, blocks = operand.shape.dims, scale.shape.dims  # type: ignore[union-attr]
    each = [size for extent, count in zip(extents, blocks, strict=False) for size in (count, extent // max(count, 1))]
    factors = convert(scale, new_element_type=wide)
    if blocks:
        repeated = broadcast(factors, sizes=tuple(each), dimensions=tuple(range(0, len(each), 2)))
        factors = reshape(repeated, new_sizes=extents)
    else:
        factors = broadcast(factors, sizes=extents, dimensions=())
    return multiply(convert(operand, new_element_type=wide), factors)


def _letters(words: str, dims: tuple[int, ...]) -> str:
    """The role of each dimension: a letter, or the number of a spatial one."""
    ordered = sorted(zip(dims, [*words, *range(len(dims) - 2)], strict=True))
    return listed(role for _, role in ordered)


def _numbers(numbers: ConvolutionDimensionNumbers) -> str:
    return f"{_letters('bf', numbers.lhs)}x{_letters('oi', numbers.rhs)}->{_letters('bf', numbers.output)}"


@values
def convolution(writer: Writer, instruction: Instruction) -> Tree:
    """Annotations stand in the dictionary of the op's own attributes; operands of two precisions are converted."""
    a = instruction.attributes
    last = in_one_precision(writer, instruction)
    window = ", ".join(
        (
            f"stride = {listed(dim.stride for dim in a.window)}",
            f"pad = {listed(listed((dim.padding_low, dim.padding_high)) for dim in a.window)}",
            f"lhs_dilate = {listed(dim.base_dilation for dim in a.window)}",
            f"rhs_dilate = {listed(dim.window_dilation for dim in a.window)}",
            f"reverse = {listed(flag(dim.window_reversal) for dim in a.window)}",
        )
    )
    entries = [
        ("batch_group_count", f"{a.batch_group_count} : i64"),
        ("feature_group_count", f"{a.feature_group_count} : i64"),
        ("precision_config", listed(f"#stablehlo<precision {each}>" for each in _precisions(instruction))),
        *notes_of(instruction),
    ]
    head = f"stablehlo.convolution({', '.join(writer.flat(last.operands))})"
    text = f"{head} dim_numbers = {_numbers(a.dimension_numbers)}, window = {{{window}}} {dictionary(entries)}"
    return writer.emit(instruction.name, f"{text} : {writer.signature(last)}", instruction)
