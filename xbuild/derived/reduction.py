"""Convenience forms of reduce: all dimensions by default, numbers as init values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shape_inference import refuse
from shape_inference.dims import array

from .. import ops
from ..core.builder import Value
from ..core.diagnostics import describe
from ..core.graph import Computation
from .support import as_list, as_values, counted_all, dressed, dtype_of, rank_of, require_value, shape_of

__all__ = ["reduce", "reduce_all"]


@dressed
def reduce(
    operands: Value | Sequence[Value],
    init_values: Any,
    to_apply: Computation | Callable[..., Any],
    dimensions: int | Sequence[int] | None = None,
    *,
    name: str | None = None,
) -> Value:
    """Reduce dimensions of the operands (one, or a list) with `to_apply`, starting from `init_values`.

    By default all dimensions are reduced; negative dimensions count from the end. Init values that are numbers take
    their operand's element type. A function is traced with scalars: first the accumulators, then the elements.
    `xb.add`, `xb.maximum` and similar functions can be passed.
    Raises: the same errors as xb.ops.reduce.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2, 3])
    ... def sums(x):
    ...     return xb.reduce(x, 0.0, xb.add, 1), xb.reduce(x, 0.0, xb.add)
    >>> xb.evaluate(sums, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    (array([ 6., 15.], dtype=float32), np.float32(21.0))

    Source: Operation Semantics, Reduce.
    """
    values, inits = as_list(operands), as_list(init_values)
    if callable(init_values):
        refuse(
            "invalid_operand",
            f"expected the init value before the function, got {describe(init_values)} as init_values",
            "xb.reduce(x, 0.0, xb.add, dimensions) and x.sum(axis=...) compute sums",
        )
    if values and dimensions is None:
        dimensions = tuple(range(array("operand", shape_of(values[0])).rank))
    if len(inits) == len(values) and any(type(each) is not Value for each in inits):
        inits = as_values(inits, [dtype_of(value) for value in values], require_value(values[0]).builder)
    chosen = (dimensions,) if isinstance(dimensions, int) else dimensions
    chosen = counted_all(chosen, rank_of(values))
    return ops.reduce(
        tuple(values), tuple(inits), to_apply=to_apply, dimensions=() if chosen is None else chosen, name=name
    )


def reduce_all(
    operand: Value, init_value: Any, to_apply: Computation | Callable[..., Any], *, name: str | None = None
) -> Value:
    """Reduce all elements to one scalar.

    Raises: the same errors as xb.ops.reduce.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 3])
    >>> xb.reduce_all(x, 0.0, xb.add).shape
    f32[]

    Source: xla_builder.h, ReduceAll.
    """
    return reduce(operand, init_value, to_apply, name=name)
