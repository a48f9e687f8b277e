"""Cotangents of ops that act on each element alone."""

from __future__ import annotations

from ...core.builder import Value
from ..rules import Pullback, vjp

Cotangents = tuple[Value | None, ...]


@vjp
def add(back: Pullback, lhs: Value, rhs: Value) -> Cotangents:
    return back.ct, back.ct


@vjp
def multiply(back: Pullback, lhs: Value, rhs: Value) -> Cotangents:
    return back.ct * rhs, back.ct * lhs
