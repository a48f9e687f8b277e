"""Products: partial sums are added, and padding of contracted dimensions is zero on both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from attrs import evolve

from shape_inference import Shape
from shape_inference.types import Dims
from shape_inference.windows import WindowDimension

from .... import ops
from ....core.graph import Instruction
from ...factors import Factor, FactorKind, ShardingRule
from ...rules.windows import is_whole
from ..parts.frame import Frame
from ..parts.masks import masked, neutral
from ..parts.tables import Cut, Operands, adapted, joining, local_attributes, preparing


@joining
def dot(instruction: Instruction) -> Callable[..., Any] | None:
    return added(instruction)


@joining
def convolution(instruction: Instruction) -> Callable[..., Any] | None:
    return added(instruction)


Spatial: TypeAlias = "tuple[int, int, int, WindowDimension]"
"""A spatial dimension: its number in the input, the kernel and the result, and the window."""


def spatial(instruction: Instruction) -> Iterator[Spatial]:
    """The spatial dimensions, but those that one window covers, whose sum over parts is the sum."""
    numbers = instruction.attributes.dimension_numbers
    lhs, rhs, out = (_dims(each) for each in (*instruction.operands, instruction))
    several = zip(
        numbers.input_spatial_dimensions,
        numbers.kernel_spatial_dimensions,
        numbers.output_spatial_dimensions,
        instruction.attributes.window,
        strict=True,
    )
    for given, kernel, made, window in several:
        if not is_whole(window, lhs[given], out[made], rhs[kernel]):
            yield given, kernel, made, window


def _dims(instruction: Instruction) -> Dims:
    assert isinstance(instruction.shape, Shape)
    return instruction.shape.dims


@adapted
def convolution_(instruction: Instruction, rule: ShardingRule) -> ShardingRule:
    """A spatial dimension of the input is cut as the windows are, and the kernel is wanted whole along it.

    Where a window has more places than there are windows, as in the gradient of a kernel, it is cut as the kernel is:
    each device sums over its part of the window.
    """
    maps = [[*each] for each in (*rule.operands, *rule.results)]
    factors = [*rule.factors]
    for given, kernel, made, window in spatial(instruction):
        size, many = _dims(instruction.operands[1])[kernel], _dims(instruction)[made]
        is_summed = size > many and not window.window_reversal
        kinds: tuple[FactorKind, FactorKind] = ("need_replication", "reduction" if is_summed else "permutation")
        maps[0][given], maps[1][kernel], maps[2][made] = (
            (len(factors) + 1,), (len(factors) + is_summed,), (len(factors) + (not is_summed),),
        )  # fmt: skip
        factors += [Factor(many if is_summed else size, kinds[0]), Factor(size if is_summed else many, kinds[1])]
    return ShardingRule(tuple(factors), tuple(map(tuple, maps[:2])), (tuple(maps[2]),))


def added(instruction: Instruction) -> Callable[..., Any] | None:
    """Sums, of truth values `or`; None for a type without a zero."""
    shape = instruction.shape
    assert isinstance(shape, Shape)
    if any(neutral("add", each.shape.dtype) is None for each in instruction.operands):  # type: ignore[union-attr]
        return None
    return ops.or_ if shape.dtype.kind == "pred" else ops.add


def zeroed(frame: Frame, cut: Cut, operands: Operands) -> Operands:
    """The operands with zeros in the padding of reduced dimensions."""
    uneven = {*cut.uneven_reductions()}
    if not uneven:
        return operands
    found = []
    for number, (value, dims) in enumerate(zip(operands, cut.site.rule.operands, strict=True)):
        shape, sharding = cut.instruction.operands[number].shape, cut.operands[number]
        places = [dim for dim, factors in enumerate(dims) if uneven & {*factors}]
        assert isinstance(shape, Shape)
        assert sharding is not None
        found.append(masked(frame, value, sharding, shape, places, neutral("add", shape.dtype)))
    return found


def grouped(cut: Cut) -> dict[str, Any]:
    """The window on the part of the kernel, and the groups of features, or of the batch, that a device has."""
    attributes, numbers = cut.instruction.attributes, cut.instruction.attributes.dimension_numbers
    lhs, rhs, out = cut.operand_dims(0), cut.operand_dims(1), cut.result_dims()
    sizes = (rhs[dim] for dim in numbers.kernel_spatial_dimensions)
    found: dict[str, Any] = {
        "window": tuple(evolve(each, size=size) for each, size in zip(attributes.window, sizes, strict=True))
    }
    if attributes.feature_group_count > 1 and rhs[numbers.kernel_input_feature_dimension]:
        ratio = lhs[numbers.input_feature_dimension] // rhs[numbers.kernel_input_feature_dimension]
        found["feature_group_count"] = max(ratio, 1)
    if attributes.batch_group_count > 1 and out[numbers.output_batch_dimension]:
        found["batch_group_count"] = max(lhs[numbers.input_batch_dimension] // out[numbers.output_batch_dimension], 1)
    return found


local_attributes.enter("convolution", grouped)
preparing.enter("dot", zeroed)
preparing.enter("convolution", zeroed)
