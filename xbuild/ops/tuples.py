"""Ops on tuples and tokens."""

from __future__ import annotations

from ..core.builder import Value, Values
from ..core.op import op
from ..core.properties import Properties

__all__ = ["add_dependency", "after_all", "domain", "get_tuple_element", "opt_barrier", "tuple_"]


@op(Properties("whole", is_view=True))
def tuple_(operands: Values) -> Value:
    """Return the operands as one tuple.

    Shapes: takes any number of values of any shape. Without operands it returns the empty tuple and needs `builder=`.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[10])
    >>> xb.tuple_(x, x).shape
    (f32[10], f32[10])

    Source: Operation Semantics, Tuple.
    """
    ...


@op(Properties("whole", is_view=True))
def get_tuple_element(operand: Value, *, index: int) -> Value:
    """Return the element of a tuple at an index that is fixed when the program is built.

    Raises: not_tuple or index_out_of_range.

    >>> import xbuild as xb
    >>> t = xb.parameter(xb.Builder("b"), number=0, shape=xb.TupleShape((xb.f32[10], xb.s32[()])))
    >>> xb.get_tuple_element(t, index=1)
    %get-tuple-element.2: s32[]

    Source: Operation Semantics, GetTupleElement.
    """
    ...


@op(Properties("whole"))
def after_all(tokens: Values) -> Value:
    """Return a token that follows all given tokens; without operands, a new token (pass `builder=`).

    Raises: token_expected.

    >>> import xbuild as xb
    >>> xb.after_all(builder=xb.Builder("b"))
    %after-all.1: token[]

    Source: xla_builder.h, AfterAll; StableHLO, after_all.
    """
    ...


@op(Properties("whole", is_identity=True))
def opt_barrier(operand: Value) -> Value:
    """Return the operand unchanged; a compiler must not move instructions across this op.

    Shapes: takes a value of any shape. The result has the same shape.
    Raises: no errors of its own.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2])(xb.ops.opt_barrier), [1.0, 2.5])
    array([1. , 2.5], dtype=float32)

    Source: xla_builder.h, OptimizationBarrier; StableHLO, optimization_barrier.
    """
    ...


@op(Properties("whole", is_identity=True))
def domain(operand: Value, *, kind: str = "sharding", entry: str, exit: str) -> Value:
    """Mark the boundary between two metadata domains and return the operand unchanged; the metadata is kept as text.

    Shapes: takes a value of any shape. The result has the same shape.
    Raises: no errors of its own.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2])
    ... def moved(x):
    ...     return xb.ops.domain(x, entry="{maximal device=0}", exit="{maximal device=1}")
    >>> xb.evaluate(moved, [1.0, 2.5])
    array([1. , 2.5], dtype=float32)

    Source: HloOpcode, domain.
    """
    ...


@op(Properties("whole", is_identity=True))
def add_dependency(operand: Value, token: Value) -> Value:
    """Return the operand unchanged, once everything before `token` is done.

    Shapes: takes a value of any shape and a token. The result has the shape of the value.
    Raises: token_expected.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2])
    ... def printed(x):
    ...     return xb.add_dependency(x, xb.outfeed(x))
    >>> xb.evaluate(printed, [1.0, 2.5])
    array([1. , 2.5], dtype=float32)

    Source: HloOpcode, add-dependency.
    """
    ...
