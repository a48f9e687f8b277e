"""Rules of functions: those of CHLO that are special functions or short for a few ops, and cbrt of complex numbers."""

from __future__ import annotations

from collections.abc import Callable

from ...core.builder import Value
from ...derived.elementwise import add, atan2, eq, multiply, power, select
from ...ops.elementwise import abs as abs_
from ...ops.elementwise import and_, imag, is_finite, negate, real, subtract
from ...ops.elementwise import complex as complex_
from ...special_functions import (
    atan,
    bessel_i1e,
    digamma,
    erf_inv,
    erfc,
    is_inf,
    is_neg_inf,
    is_pos_inf,
    lgamma,
    next_after,
    polygamma,
    zeta,
)
from ..reading.operation import Reading
from ..reading.rules import Results, Rule, around, both, rule
from .composed import composed


def _conj(x: Value) -> Value:
    return complex_(real(x), negate(imag(x)))


def _square(x: Value) -> Value:
    """Of a complex number by (a - b)(a + b) and 2ab, as XLA has it, so that no infinities cancel."""
    a, b = real(x), imag(x)
    is_even = and_(is_finite(a), eq(abs_(a), abs_(b)))
    return complex_(select(is_even, 0, multiply(subtract(a, b), add(a, b))), multiply(multiply(a, b), 2))


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "atan": lambda x: atan2(x, 1.0),
    "bessel_i1e": bessel_i1e,
    "conj": _conj,
    "digamma": digamma,
    "erf_inv": erf_inv,
    "erfc": erfc,
    "is_inf": is_inf,
    "is_neg_inf": is_neg_inf,
    "is_pos_inf": is_pos_inf,
    "lgamma": lgamma,
    "next_after": next_after,
    "polygamma": polygamma,
    "square": _square,
    "zeta": zeta,
}


@rule(*(f"chlo.{name}" for name in _FUNCTIONS))
def function(op: Reading) -> Results:
    op.ignore("result_accuracy")
    name = op.operation.name.partition(".")[2]
    operands = op.wants(2 if name in ("next_after", "polygamma", "zeta") else 1)
    if name == "square" and operands[0].shape.dtype.kind != "complex":  # type: ignore[union-attr]
        return op.result("multiply", *operands, *operands)
    if name == "atan" and operands[0].shape.dtype.kind == "complex":  # type: ignore[union-attr]
        return composed(op, name, atan, *operands)
    if name == "conj" and operands[0].shape.dtype.kind != "complex":  # type: ignore[union-attr]
        return operands[0]
    return composed(op, name, _FUNCTIONS[name], *operands)


@around(*both("cbrt"))
def cbrt(op: Reading, of_reals: Rule) -> Results:
    """Of complex numbers the principal root, which HLO has no op for."""
    (operand,) = op.wants(1)
    if getattr(operand.shape, "dtype", None) is None or operand.shape.dtype.kind != "complex":  # type: ignore[union-attr]
        return of_reals(op)
    op.ignore("result_accuracy")
    return composed(op, "cbrt", lambda x: power(x, 1 / 3), operand)
