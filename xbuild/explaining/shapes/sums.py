"""Why results of reductions, products, convolutions and windows have their shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shape_inference.windows import WindowDimension

from ...core.graph import Instruction
from .table import Lines, dims_of, entered, reasons, row


@reasons
def reduce(instruction: Instruction) -> Lines:
    operand, folded = instruction.arguments()[0][0], instruction.attributes.dimensions
    dims = dims_of(operand.shape)
    kept = [dim for dim in range(len(dims)) if dim not in folded]
    for dim, source in enumerate(kept):
        yield row(dim, dims[source], f"dimension {source} of {operand.name}")
    gone = ", ".join(f"{dim} (of {dims[dim]})" for dim in folded)
    yield f"folded into one element each: dimension{'s' * (len(folded) != 1)} {gone or 'none'} of {operand.name}"
    yield from _results(len(instruction.arguments()[0]))


def _results(count: int) -> Lines:
    if count > 1:
        yield f"a tuple of {count} such arrays, one for each operand"


@entered(("dot", "scaled_dot"))
def dot(instruction: Instruction) -> Lines:
    lhs, rhs = instruction.operands[:2]
    given = instruction.attributes
    extents = iter(enumerate(dims_of(instruction.shape)))
    for left, right in zip(given.lhs_batch_dims, given.rhs_batch_dims, strict=True):
        yield row(*next(extents), f"batch: dimension {left} of {lhs.name} and {right} of {rhs.name}")
    yield from _free(extents, lhs, (*given.lhs_batch_dims, *given.lhs_contracting_dims))
    yield from _free(extents, rhs, (*given.rhs_batch_dims, *given.rhs_contracting_dims))
    for left, right in zip(given.lhs_contracting_dims, given.rhs_contracting_dims, strict=True):
        yield (
            f"contracted, summed over {dims_of(lhs.shape)[left]}: dimension {left} of {lhs.name} "
            f"with {right} of {rhs.name}"
        )


def _free(extents: Iterator[tuple[int, int]], operand: Instruction, taken: Sequence[int]) -> Lines:
    for dim in range(len(dims_of(operand.shape))):
        if dim not in taken:
            yield row(*next(extents), f"free: dimension {dim} of {operand.name}")


@reasons
def ragged_dot(instruction: Instruction) -> Lines:
    lhs, rhs, sizes = instruction.operands[:3]
    yield "the batch dimensions, then the free ones of both operands:"
    yield f"{lhs.name} is {lhs.shape}, {rhs.name} is {rhs.shape}"
    (ragged,) = instruction.attributes.lhs_ragged_dims
    yield f"dimension {ragged} of {lhs.name} is cut into the groups whose sizes {sizes.name} has"
    if ragged in instruction.attributes.lhs_contracting_dims:
        yield f"it is contracted group by group: dimension 0 is the {dims_of(sizes.shape)[-1]} groups"


@reasons
def convolution(instruction: Instruction) -> Lines:
    lhs, rhs = instruction.operands
    given, numbers = instruction.attributes, instruction.attributes.dimension_numbers
    places = {dim: number for number, dim in enumerate(numbers.output_spatial_dimensions)}
    for dim, extent in enumerate(dims_of(instruction.shape)):
        if dim == numbers.output_batch_dimension:
            yield _batch(dim, extent, lhs, numbers.input_batch_dimension, given.batch_group_count)
        elif dim == numbers.output_feature_dimension:
            yield row(dim, extent, f"features: dimension {numbers.kernel_output_feature_dimension} of {rhs.name}")
        else:
            number = places[dim]
            source = numbers.input_spatial_dimensions[number]
            yield _positions(dim, dims_of(lhs.shape)[source], given.window[number], extent, f"{source} of {lhs.name}")
    inner = dims_of(rhs.shape)[numbers.kernel_input_feature_dimension]
    yield f"summed over {inner} input features and the window"


def _batch(dim: int, extent: int, lhs: Instruction, source: int, groups: int) -> str:
    whole = dims_of(lhs.shape)[source]
    text = extent if groups == 1 else f"{whole} / {groups} = {extent}"
    return row(dim, text, f"batch: dimension {source} of {lhs.name}{', by batch_group_count' * (groups != 1)}")


def _positions(dim: int, extent: int, window: WindowDimension, result: int, of: str) -> str:
    """The line of a dimension along which a window slides."""
    base = str(extent) if window.base_dilation == 1 else f"({extent} - 1) * {window.base_dilation} + 1"
    span = str(window.size) if window.window_dilation == 1 else f"(({window.size} - 1) * {window.window_dilation} + 1)"
    padding = "".join(f" {'-+'[pad > 0]} {abs(pad)}" for pad in (window.padding_low, window.padding_high) if pad)
    rounded = " rounded down" * bool((window.places(extent) - 1) * window.stride != _room(window, extent))
    text = f"({base}{padding} - {span}) / {window.stride} + 1{rounded} = {result}" if result else "0"
    words = [f"dimension {of}", "padding" * bool(padding), f"a window of {window.size}", f"stride {window.stride}"]
    if not result:
        words.append("the window is longer than what it slides over")
    return row(dim, text, ", ".join(filter(None, words)))


def _room(window: WindowDimension, extent: int) -> int:
    return window.padding_low + window.base(extent) + window.padding_high - window.span


@reasons
def reduce_window(instruction: Instruction) -> Lines:
    operands = instruction.arguments()[0]
    given = zip(dims_of(operands[0].shape), instruction.attributes.window, strict=True)
    for dim, (extent, window) in enumerate(given):
        yield _positions(dim, extent, window, window.places(extent), f"{dim} of {operands[0].name}")
    yield "each window is folded into one element"
    yield from _results(len(operands))


@entered(("batch_norm_training", "batch_norm_grad", "batch_norm_inference"))
def batch_norm(instruction: Instruction) -> Lines:
    operand, feature = instruction.operands[0], instruction.attributes.feature_index
    yield f"the dimensions of {operand.name}, {operand.shape}"
    if instruction.opcode != "batch_norm_inference":
        count = dims_of(operand.shape)[feature]
        yield f"behind it in a tuple two vectors of {count}: one number for each feature (dimension {feature})"
