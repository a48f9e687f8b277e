"""Cotangents of tuples, element by element, and of ops that return their operand unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.builder import Value
from ..rules import Pullback, vjp, zero_derivative

zero_derivative("after_all")


@vjp
def tuple_(back: Pullback, operands: Sequence[Value]) -> Sequence[Any]:
    return back.ct  # type: ignore[no-any-return]


@vjp
def get_tuple_element(back: Pullback, operand: Value, *, index: int) -> Sequence[Any]:
    count = len(operand.shape)  # type: ignore[arg-type]
    return (tuple([back.ct if n == index else None for n in range(count)]),)


@vjp
def opt_barrier(back: Pullback, operand: Value) -> Sequence[Any]:
    return (back.ct,)


@vjp
def domain(back: Pullback, operand: Value, *, kind: str, entry: str, exit: str) -> Sequence[Any]:
    return (back.ct,)


@vjp
def add_dependency(back: Pullback, operand: Value, token: Value) -> Sequence[Any]:
    return back.ct, None
