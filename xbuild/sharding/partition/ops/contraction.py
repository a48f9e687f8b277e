"""Products: partial sums are added, and padding of contracted dimensions is zero on both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve

from shape_inference import Shape

from .... import ops
from ....core.graph import Instruction
from ..parts.frame import Frame
from ..parts.masks import masked, neutral
from ..parts.tables import Cut, Operands, joining, local_attributes, preparing


@joining
def dot(instruction: Instruction) -> Callable[..., Any] | None:
    return added(instruction)


@joining
def convolution(instruction: Instruction) -> Callable[..., Any] | None:
    return added(instruction)


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
