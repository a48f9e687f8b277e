"""Dimensions that index vectors do not name: of them the first elements are taken, by the devices that hold these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .... import ops
from ....core.builder import Value
from ...planning.record import constant, dims_of, spread
from .frame import Frame
from .tables import Cut, Operands, finishing


def indexed(dims: Sequence[int], named: Sequence[int]) -> list[int]:
    """The dimensions among these that index vectors name."""
    return [dim for dim in dims if dim in named]


def spread_to(value: Value, dims: Sequence[int]) -> Value:
    """A value of these extents; a scalar is spread to them."""
    return value if dims_of(value) else spread(value, dims)


def first_alone(frame: Frame, cut: Cut, dims: Sequence[int]) -> Value | None:
    """pred[]: whether the device holds the first elements along these dimensions; None where there are none."""
    sharding = cut.operands[0]
    if not dims or sharding is None:
        return None
    axes = tuple(axis for dim in dims for axis in sharding.dim(dim).axes)
    return ops.compare(frame.recorder.place(axes), constant(frame.builder, np.int32(0)), direction="EQ")


@finishing
def scatter(frame: Frame, cut: Cut, operands: Operands, value: Value) -> Value:
    """Updates fall to the first elements, on the devices that hold these."""
    attributes, sharding = cut.instruction.attributes, cut.operands[0]
    assert sharding is not None
    chosen = [dim for dim in attributes.inserted_window_dims if sharding.dim(dim).axes]
    named = indexed(chosen, attributes.scatter_dims_to_operand_dims)
    is_first = first_alone(frame, cut, [dim for dim in chosen if dim not in named])
    if is_first is None:
        return value
    if len(cut.results) == 1:
        return ops.select(spread(is_first, dims_of(value)), value, operands[0])
    made = (ops.get_tuple_element(value, index=number) for number in range(len(cut.results)))
    pairs = zip(made, operands, strict=False)
    return ops.tuple_(tuple(ops.select(spread(is_first, dims_of(one)), one, other) for one, other in pairs))
