"""Which element of each window is selected, as its number among all elements, and arrays read or added there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from shape_inference.types import Shape
from shape_inference.windows import Window

from ... import ops
from ...core.builder import Value
from ..rules import full
from .arrays import array_of, compared, numbered, reshaped, selected

Preference: TypeAlias = Callable[[Value, Value], Value]

_NOTHING = -1


def winners(operand: Value, window: Window, prefers: Preference) -> Value:
    """For each place of the window the number of the element that it selects, -1 where it covers none.

    Of two elements that comes first which the window reads first; it stays where `prefers(first, second)` holds.
    """
    numbers = numbered(operand.builder, array_of(operand).dims)
    dtype = array_of(numbers).dtype

    def chosen(a: Value, i: Value, b: Value, j: Value) -> tuple[Value, Value]:
        nothing = ops.constant(a.builder, literal=np.asarray(_NOTHING, dtype.dtype))
        in_order = compared(i, j, "LT")
        stays = ops.select(in_order, prefers(a, b), ops.not_(prefers(b, a)))
        stays = ops.or_(ops.and_(stays, compared(i, nothing, "NE")), compared(j, nothing, "EQ"))
        return ops.select(stays, a, b), ops.select(stays, i, j)

    inits = tuple(full(operand.builder, value, array_of(each).dtype[()]) for value, each in
                  ((0, operand), (_NOTHING, numbers)))  # fmt: skip
    found = ops.reduce_window((operand, numbers), inits, to_apply=chosen, window=window)
    return ops.get_tuple_element(found, index=1)


def read_at(values: Value, places: Value, is_everywhere: bool) -> Value:
    """The element at each of these places, zeros where a place is none."""
    shape, rank = array_of(values), array_of(places).rank
    found = ops.gather(
        reshaped(values, (shape.size,)),
        places,
        offset_dims=(),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=rank,
        slice_sizes=(1,),
    )
    if is_everywhere:
        return found
    return selected(compared(places, full(places.builder, 0, array_of(places)), "GE"), found)


def added_at(values: Value, places: Value, shape: Shape) -> Value:
    """The values added at these places of zeros, left out where a place is none."""
    flat = ops.scatter(
        (full(values.builder, 0, array_of(values).dtype[(shape.size,)]),),
        places,
        (values,),
        to_apply=ops.add,
        update_window_dims=(),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=array_of(places).rank,
    )
    return reshaped(flat, shape.dims)
