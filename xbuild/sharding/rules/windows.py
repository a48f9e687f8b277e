"""Rules of windows: dimensions over which a window slides want elements of neighbours."""

from __future__ import annotations

from shape_inference.windows import WindowDimension

from ...core.graph import Instruction
from ..factors import FactorKind, ShardingRule
from .builder import FactorBuilder
from .table import sharding_rule

_STILL = WindowDimension(1)


def kind_of_window(window: WindowDimension) -> FactorKind:
    """pass_through of a window of one element that stays with its element, else permutation."""
    still = (window.size, window.stride, window.padding_low, window.padding_high, window.base_dilation)
    return "pass_through" if still == (1, 1, 0, 0, 1) else "permutation"


@sharding_rule
def reduce_window(instruction: Instruction) -> ShardingRule:
    """A factor of each dimension, whose size is the number of windows; initial values have no dimensions."""
    builder = FactorBuilder(instruction)
    for dim, window in enumerate(instruction.attributes.window or [_STILL] * len(builder.results[0])):
        builder.alike(dim, builder.results[0][dim], kind_of_window(window))
    return builder.rule()


@sharding_rule
def select_and_scatter(instruction: Instruction) -> ShardingRule:
    """A factor of each dimension; the source is wanted whole where it has another extent than the operand."""
    builder = FactorBuilder(instruction)
    base, source = builder.operands[:2]
    for dim, window in enumerate(instruction.attributes.window or [_STILL] * len(base)):
        is_apart = base[dim] != source[dim]
        builder.add(base[dim], (dim, None if is_apart else dim), (dim,), kind_of_window(window))
        if is_apart:
            builder.add(source[dim], (None, dim), (), "need_replication")
    return builder.rule()


@sharding_rule
def convolution(instruction: Instruction) -> ShardingRule:
    """Batch, groups and output features pass; input features are reductions; spatial dimensions see `_spatial`."""
    builder, attributes = FactorBuilder(instruction), instruction.attributes
    numbers, (_, kernel), out = attributes.dimension_numbers, builder.operands, builder.results[0]
    groups, batches = attributes.feature_group_count, attributes.batch_group_count
    batch, features = numbers.output_batch_dimension, numbers.output_feature_dimension
    inner, outer = numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension
    if batches > 1:
        builder.add(batches, (numbers.input_batch_dimension, outer), (features,))
    builder.add(out[batch], (numbers.input_batch_dimension, None), (batch,))
    _spatial(builder, instruction)
    if groups > 1:
        builder.add(groups, (numbers.input_feature_dimension, outer), (features,))
    builder.add(kernel[inner], (numbers.input_feature_dimension, inner), (), "reduction")
    builder.add(out[features] // (groups * batches), (None, outer), (features,))
    return builder.rule()


def _spatial(builder: FactorBuilder, instruction: Instruction) -> None:
    """Of each spatial dimension of the input a factor for the windows, and one for places inside a window.

    The larger of the two stands outside; the input has both as far as its extent goes, and one of size 1 is left out.
    """
    numbers, (base, kernel) = instruction.attributes.dimension_numbers, builder.operands
    dims = zip(
        numbers.input_spatial_dimensions,
        numbers.kernel_spatial_dimensions,
        numbers.output_spatial_dimensions,
        instruction.attributes.window,
        strict=True,
    )
    for left, right, result, window in dims:
        room, many, size = base[left], builder.results[0][result], kernel[right]
        for is_inside in (False, True) if many >= size else (True, False):
            factor = min(room, size if is_inside else many)
            if factor <= 1:
                continue
            if is_inside:
                kind: FactorKind = "reduction" if is_whole(window, base[left], many, size) else "permutation"
                builder.add(factor, (left, right), (), kind)
            else:
                builder.add(factor, (left, None), (result,), "permutation")
            room //= factor


def is_whole(window: WindowDimension, extent: int, places: int, size: int) -> bool:
    """Whether one window covers the whole dimension, so that a sum over parts of it is the sum."""
    return places == 1 and extent == size and window == WindowDimension(size, stride=window.stride)
