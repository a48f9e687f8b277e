"""Cotangents of ops that call computations."""

from __future__ import annotations

from typing import Any

from ...core.builder import Value
from ..loops import while_of
from ..rules import Cotangents, Pullback, vjp


@vjp
def while_(back: Pullback, init: Value, *, condition: Any, body: Any) -> Cotangents:
    return (while_of(back),)
