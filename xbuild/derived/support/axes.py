"""Numbers of dimensions, negative ones counted from the last, and sizes of which one is -1, the extent that is left."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

from shape_inference import Dims, Shape, refuse
from shape_inference.dims import distinct

from ...core.attributes import reader
from ...core.builder import Value

_new_sizes = reader("new_sizes", Dims)


def rank_of(operand: Any) -> int | None:
    """The rank of an array value, or of the first of a list; None of anything else, which the op refuses."""
    if isinstance(operand, tuple | list):
        operand = operand[0] if operand else None
    shape = operand.shape if isinstance(operand, Value) else None
    return shape.rank if isinstance(shape, Shape) else None


def counted(dim: Any, rank: int | None) -> Any:
    """A dimension number counted from 0; one that no dimension has, or that is no int, stays for the op to refuse."""
    if type(dim) is bool or not hasattr(dim, "__index__") or isinstance(dim, Value) or rank is None:
        return dim
    number = operator.index(dim)
    return number + rank if -rank <= number < 0 else number


def counted_all(dims: Any, rank: int | None) -> Any:
    """A list of dimension numbers, each counted from 0; what is no list stays for the op to refuse."""
    if isinstance(dims, str | bytes | Value) or not isinstance(dims, Iterable):
        return dims
    return tuple([counted(dim, rank) for dim in dims])


def axes_of(axis: Any, shape: Shape) -> Dims:
    """NumPy's `axis` (None for all dimensions, an int, or a list) as ascending dimension numbers.

    Raises: dimension_out_of_range; duplicate_dimension; invalid_attribute for what is no int.
    """
    if axis is None:
        return tuple(range(shape.rank))
    given = (axis,) if hasattr(axis, "__index__") or not isinstance(axis, Iterable) else tuple(axis)
    found = [axis_of(each, shape) for each in given]
    distinct("axis", found)
    return tuple(sorted(found))


def axis_of(axis: Any, shape: Shape, *, rank: int | None = None) -> int:
    """One dimension number of an array, or of an array of this rank that is made of it, counted from 0."""
    count = shape.rank if rank is None else rank
    found = counted(axis, count)
    if type(found) is not int:
        refuse("invalid_attribute", f"axis={axis!r}: an int is wanted")
    if not 0 <= found < count:
        legal = f"legal are {-count}..{count - 1} for rank {count}" if count else "rank 0 has no dimension"
        refuse("dimension_out_of_range", f"axis={axis} names dimension {axis} of operand {shape}; {legal}")
    return found


def with_the_rest(operand: Value, new_sizes: Any) -> Any:
    """The sizes with the extent that is left in the place of one -1; others stay, and the op refuses them."""
    if isinstance(new_sizes, int) and not isinstance(new_sizes, bool):
        new_sizes = (new_sizes,)
    shape = operand.shape if isinstance(operand, Value) else None
    if not isinstance(shape, Shape) or isinstance(new_sizes, Value) or not isinstance(new_sizes, Iterable):
        return new_sizes
    sizes = _new_sizes(tuple(new_sizes))
    unknown = [place for place, size in enumerate(sizes) if size == -1]
    if not unknown:
        return sizes
    known = math.prod(size for size in sizes if size != -1)
    if len(unknown) > 1:
        refuse("invalid_attribute", f"new_sizes={list(sizes)} has {len(unknown)} sizes of -1; one can be found")
    if known <= 0 or shape.size % known:
        refuse(
            "element_count_mismatch",
            f"operand {shape} has {shape.size} elements, and the sizes beside -1 in new_sizes {list(sizes)} have "
            f"{known}, which does not divide it",
        )
    return (*sizes[: unknown[0]], shape.size // known, *sizes[unknown[0] + 1 :])
