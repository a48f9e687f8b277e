"""Rules of ops of CHLO: those that are one op of HLO, and special functions, which are compositions."""

from __future__ import annotations

from ... import special_functions
from ..spelling.op_names import OPCODES
from .compositions import composed
from .operation import Reading
from .rules import Results, rule

_UNARY = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh", "tan")


@rule(*(f"chlo.{name}" for name in _UNARY))
def unary(op: Reading) -> Results:
    op.ignore("result_accuracy")
    return op.result(op.operation.name.partition(".")[2], *op.wants(1))


_SPECIAL = {
    "bessel_i1e": special_functions.bessel_i1e,
    "digamma": special_functions.digamma,
    "erf_inv": special_functions.erf_inv,
    "erfc": special_functions.erfc,
    "is_inf": special_functions.is_inf,
    "is_neg_inf": special_functions.is_neg_inf,
    "is_pos_inf": special_functions.is_pos_inf,
    "lgamma": special_functions.lgamma,
    "next_after": special_functions.next_after,
    "polygamma": special_functions.polygamma,
    "zeta": special_functions.zeta,
}


@rule(*(f"chlo.{name}" for name in _SPECIAL))
def special(op: Reading) -> Results:
    return composed(op, _SPECIAL[op.operation.name.partition(".")[2]])


@rule("chlo.square")
def square(op: Reading) -> Results:
    (operand,) = op.wants(1)
    return op.result("multiply", operand, operand)


@rule("chlo.top_k")
def top_k(op: Reading) -> Results:
    return op.elements(op.result(OPCODES["chlo.top_k"], *op.wants(1), k=op.integer("k")))
