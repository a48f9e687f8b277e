"""Ops that make and take apart tuples, and join tokens."""

from __future__ import annotations

from ..builder import Value, Values
from ..op import op


@op
def tuple_(operands: Values) -> Value:
    """The operands as one value.

    Shapes: any number of values of any shapes; no operand gives the empty tuple (name the builder with `builder=`).

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[10])
    >>> xb.tuple_(x, x).shape
    (f32[10], f32[10])

    Source: Operation Semantics, Tuple.
    """
    ...


@op
def get_tuple_element(operand: Value, *, index: int) -> Value:
    """The element of a tuple at a place that is known when the program is built.

    Raises: not_tuple; index_out_of_range.

    >>> import xbuild as xb
    >>> t = xb.parameter(xb.Builder("b"), number=0, shape=xb.TupleShape((xb.f32[10], xb.s32[()])))
    >>> xb.get_tuple_element(t, index=1)
    %get-tuple-element.2: s32[]

    Source: Operation Semantics, GetTupleElement.
    """
    ...


@op
def after_all(tokens: Values) -> Value:
    """A token that comes after all of these; without operands, a fresh one (name the builder with `builder=`).

    Raises: token_expected.

    >>> import xbuild as xb
    >>> xb.after_all(builder=xb.Builder("b"))
    %after-all.1: token[]

    Source: xla_builder.h, AfterAll; StableHLO, after_all.
    """
    ...
