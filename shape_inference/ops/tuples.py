"""Shapes of the ops on tuples and tokens."""

from __future__ import annotations

from collections.abc import Sequence

from .. import dims
from ..rules import infer, refuse
from ..types import AnyShape, TokenShape, TupleShape, token


@infer
def tuple_(operands: Sequence[AnyShape]) -> TupleShape:
    return TupleShape(operands)


@infer
def get_tuple_element(operand: AnyShape, *, index: int) -> AnyShape:
    if not isinstance(operand, TupleShape):
        refuse("not_tuple", f"expected a tuple for operand, got {operand}")
    if not 0 <= index < len(operand):
        refuse(
            "index_out_of_range",
            f"index={index} is out of range for operand {operand}, a tuple of length {len(operand)}",
        )
    return operand.elements[index]


@infer
def after_all(tokens: Sequence[AnyShape]) -> TokenShape:
    for number, each in enumerate(tokens):
        dims.token(f"tokens[{number}]", each)
    return token


@infer
def opt_barrier(operand: AnyShape) -> AnyShape:
    return operand


@infer
def domain(operand: AnyShape, *, kind: str, entry: str, exit: str) -> AnyShape:
    return operand


@infer
def add_dependency(operand: AnyShape, token: AnyShape) -> AnyShape:
    dims.token("token", token)
    return operand
