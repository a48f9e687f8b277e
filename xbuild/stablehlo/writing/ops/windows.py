"""Ops that slide a window over an array, but for convolution."""

from __future__ import annotations

from shape_inference.windows import Window

from ....core.graph import Instruction
from ..support.blocks import region
from ..support.refusals import refuse
from ..support.tables import lines
from ..support.words import integers, matrix
from ..support.writer import Writer

Line = tuple[str, str]


def _padding(window: Window) -> str:
    return matrix([(dim.padding_low, dim.padding_high) for dim in window], 2)


def _sizes(window: Window) -> str:
    sizes, strides = integers(dim.size for dim in window), integers(dim.stride for dim in window)
    return f"window_dimensions = {sizes}, window_strides = {strides}"


@lines
def reduce_window(writer: Writer, instruction: Instruction) -> Line:
    a = instruction.attributes
    base = integers(dim.base_dilation for dim in a.window)
    dilations = integers(dim.window_dilation for dim in a.window)
    words = f"base_dilations = {base}, padding = {_padding(a.window)}, window_dilations = {dilations}"
    head = f'"stablehlo.reduce_window"({", ".join(writer.flat(instruction.operands))})'
    text = f"{head} <{{{words}, {_sizes(a.window)}}}> ({region(writer, a.to_apply)})"
    return text, writer.signature(instruction)


@lines
def select_and_scatter(writer: Writer, instruction: Instruction) -> Line:
    a = instruction.attributes
    if any(dim.window_dilation != 1 or dim.base_dilation != 1 for dim in a.window):
        refuse(instruction, "its window is dilated, and that of stablehlo.select_and_scatter is not")
    head = f'"stablehlo.select_and_scatter"({", ".join(writer.flat(instruction.operands))})'
    regions = f"{region(writer, a.select)}, {region(writer, a.scatter)}"
    return f"{head} <{{padding = {_padding(a.window)}, {_sizes(a.window)}}}> ({regions})", writer.signature(instruction)
