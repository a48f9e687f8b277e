"""Convenience forms of tuple, get_tuple_element, add_dependency, after_all and optimization_barrier."""

from __future__ import annotations

from typing import Any

from .. import ops
from ..core.builder import Builder, Value
from .support import dressed, pack_operands

__all__ = ["add_dependency", "after_all", "create_token", "get_tuple_element", "optimization_barrier", "tuple_"]


@dressed
def tuple_(*elements: Any, builder: Builder | None = None, name: str | None = None) -> Value:
    """Return the arguments, or the elements of a single list, as one tuple.

    Lists inside the list become tuples. Numbers and arrays become constants of their own type.
    Raises: no_builder (BuildError) if no argument is a value and `builder` is missing.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[10])
    >>> xb.tuple_(x, 5, [x, x]).shape
    (f32[10], s32[], (f32[10], f32[10]))

    Source: Operation Semantics, Tuple.
    """
    listed = elements[0] if len(elements) == 1 and isinstance(elements[0], tuple | list) else elements
    return pack_operands(tuple(listed), builder, name=name)


def get_tuple_element(operand: Value, index: int, *, name: str | None = None) -> Value:
    """Return the element of a tuple at an index that is fixed when the program is built.

    `operand[index]` does the same.
    Raises: not_tuple or index_out_of_range.

    >>> import xbuild as xb
    >>> t = xb.parameter(xb.Builder("b"), number=0, shape=xb.TupleShape((xb.f32[10], xb.s32[()])))
    >>> xb.get_tuple_element(t, 1).shape
    s32[]

    Source: Operation Semantics, GetTupleElement.
    """
    return ops.get_tuple_element(operand, index=index, name=name)


def add_dependency(operand: Value, token: Value, *, name: str | None = None) -> Value:
    """Return the operand unchanged, once everything before `token` is done.

    Raises: the same errors as xb.ops.add_dependency.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[10])
    >>> xb.add_dependency(x, xb.outfeed(x)).shape
    f32[10]

    Source: xla_builder.h, AddDependency.
    """
    return ops.add_dependency(operand, token, name=name)


@dressed
def after_all(*operands: Value, builder: Builder | None = None, name: str | None = None) -> Value:
    """Return a token that follows all arguments, or all elements of a single list; without arguments, a new token.

    Raises: token_expected; no_builder (BuildError) if there is no token and `builder` is missing.

    >>> import xbuild as xb
    >>> token = xb.after_all(builder=xb.Builder("b"))
    >>> xb.after_all(token, token).shape
    token[]

    Source: xla_builder.h, AfterAll.
    """
    tokens = operands[0] if len(operands) == 1 and isinstance(operands[0], tuple | list) else operands
    return ops.after_all(tuple(tokens), builder=builder, name=name)


def create_token(builder: Builder, *, name: str | None = None) -> Value:
    """Return a new token: after_all without operands.

    >>> import xbuild as xb
    >>> xb.create_token(xb.Builder("b")).shape
    token[]

    Source: xla_builder.h, CreateToken.
    """
    return ops.after_all((), builder=builder, name=name)


@dressed
def optimization_barrier(operand: Any, *, builder: Builder | None = None, name: str | None = None) -> Value:
    """Return the operand unchanged; a compiler must not move instructions across this op. A list becomes a tuple.

    Raises: the same errors as xb.tuple_.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[10])
    >>> y, z = xb.optimization_barrier((x, x))
    >>> y.shape
    f32[10]

    Source: xla_builder.h, OptimizationBarrier.
    """
    return ops.opt_barrier(pack_operands(operand, builder), name=name)
