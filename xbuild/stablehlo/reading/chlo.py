"""Rules of those ops of CHLO that are one op of HLO."""

from __future__ import annotations

from ..spelling.op_names import OPCODES
from .operation import Reading
from .rules import Results, rule

_UNARY = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh", "tan")


@rule(*(f"chlo.{name}" for name in _UNARY))
def unary(op: Reading) -> Results:
    op.ignore("result_accuracy")
    return op.result(op.operation.name.partition(".")[2], *op.wants(1))


@rule("chlo.top_k")
def top_k(op: Reading) -> Results:
    return op.elements(op.result(OPCODES["chlo.top_k"], *op.wants(1), k=op.integer("k")))
