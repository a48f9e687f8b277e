"""Comfortable forms of sort and topk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shape_inference.dims import array

from .. import ops
from ..builder import Value
from ..graph import Computation
from .arguments import as_list, dtype_of, shape_of
from .dressing import dressed

__all__ = ["sort", "top_k"]


@dressed
def sort(
    operands: Any,
    comparator: Computation | Callable[..., Any] | Value | None = None,
    dimension: int = -1,
    is_stable: bool = False,
    *,
    name: str | None = None,
) -> Value:
    """The elements along a dimension (the last, where none is named) in order, all operands (one, or a list) alike.

    Without a comparator they ascend by the first operand: floats in their total order, so that NaN is last and -0
    comes before 0. `sort(keys, values)` is `sort((keys, values))`.
    Raises: as xb.ops.sort.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> evaluate(xb.computation(xb.f32[3])(xb.sort), [3.0, 1.0, 2.0])
    array([1., 2., 3.], dtype=float32)
    >>> evaluate(xb.computation(xb.s32[2], xb.s32[2])(lambda keys, values: xb.sort(keys, values)), [3, 1], [42, 50])
    (array([1, 3], dtype=int32), array([50, 42], dtype=int32))

    Source: Operation Semantics, Sort; xla_builder.h, Sort.
    """
    values = tuple(as_list(operands))
    if isinstance(comparator, Value):
        values = (*values, comparator)
        comparator = None
    rank = array("operand", shape_of(values[0])).rank if values else 0
    place = dimension + rank if -rank <= dimension < 0 else dimension
    return ops.sort(
        values,
        to_apply=comparator or _ascending,
        dimension=place,
        is_stable=is_stable,
        name=name,
    )


def _ascending(first: Value, second: Value, *rest: Value) -> Value:
    """The comparator of an ascending order by the first operand."""
    dtype = dtype_of(first)
    is_float = dtype is not None and dtype.is_float
    return ops.compare(first, second, direction="LT", type="TOTALORDER" if is_float else None)


def top_k(operand: Value, k: int, largest: bool = True, *, name: str | None = None) -> Value:
    """The `k` largest (or smallest) elements of each row (the last dimension) in order, and their places.

    Raises: as xb.ops.topk.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> @xb.computation(xb.f32[4])
    ... def best(x):
    ...     values, places = xb.top_k(x, 2)
    ...     return places
    >>> evaluate(best, [1.0, 3.0, 2.0, 4.0])
    array([3, 1], dtype=int32)

    Source: xla_builder.h, TopK.
    """
    return ops.topk(operand, k=k, largest=largest, name=name)
