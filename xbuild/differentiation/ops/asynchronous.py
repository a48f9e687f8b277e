"""Cotangents of ops in two halves: a done passes its cotangent to its start, which applies the rule of the whole op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from ... import ops
from ...core.builder import Value
from ...core.graph import Computation
from ..calls import pull_back_inline
from ..rules import Cotangents, Pullback, vjp
from .collectives import all_gather, all_reduce, collective_permute


def _as_element(operand: Value, index: int, ct: Any) -> tuple[Any, ...]:
    """A cotangent as that of one element of a start's result."""
    return tuple([ct if n == index else None for n in range(len(operand.shape))])  # type: ignore[arg-type]


@vjp
def all_reduce_done(back: Pullback, start: Value) -> Cotangents:
    return (back.ct,)


@vjp
def all_reduce_start(back: Pullback, operands: Sequence[Value], **attributes: Any) -> Cotangents:
    return all_reduce(back, operands, **attributes)


@vjp
def all_gather_done(back: Pullback, start: Value) -> Cotangents:
    return (_as_element(start, 1, back.ct),)


@vjp
def all_gather_start(back: Pullback, operands: Sequence[Value], **attributes: Any) -> Cotangents:
    return all_gather(_whole_op(back), operands, **attributes)


@vjp
def collective_permute_done(back: Pullback, start: Value) -> Cotangents:
    return (_as_element(start, 1, back.ct),)


@vjp
def collective_permute_start(
    back: Pullback, operands: Sequence[Value], *, context_shapes: Any, **attributes: Any
) -> Cotangents:
    return collective_permute(_whole_op(back), operands, **attributes)


def _whole_op(back: Pullback) -> Pullback:
    """The pullback for the rule of the whole op: the result and its cotangent are elements of the start."""
    ct = back.ct[1] if back.ct is not None else None
    return evolve(back, ct=ct, result=ops.get_tuple_element(back.result, index=1))


@vjp
def copy_done(back: Pullback, start: Value) -> Cotangents:
    return (_as_element(start, 0, back.ct),)


@vjp
def copy_start(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct[0],)


@vjp
def async_done(back: Pullback, start: Value) -> Cotangents:
    return (_as_element(start, 1, back.ct),)


@vjp
def async_update(back: Pullback, start: Value) -> Cotangents:
    return (back.ct,)


@vjp
def async_start(
    back: Pullback, operands: Sequence[Value], *, calls: Computation, context_shapes: Any, async_execution_thread: str
) -> Cotangents:
    return pull_back_inline(back, operands, calls, back.ct[1])
