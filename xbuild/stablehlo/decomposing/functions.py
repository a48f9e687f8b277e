"""Rules of functions that CHLO or StableHLO has, and HLO has not: atan, conj, and cbrt of complex numbers."""

from __future__ import annotations

from ... import ops, special_functions
from ...core.builder import Value
from ...core.graph import Instruction
from ...derived.elementwise import atan2, power
from ..reading.compositions import composed
from ..reading.operation import Reading
from ..reading.rules import RULES, Results, both, rule


def _is_complex(operand: Instruction) -> bool:
    dtype = getattr(operand.shape, "dtype", None)
    return dtype is not None and dtype.kind == "complex"


@rule("chlo.atan")
def atan(op: Reading) -> Results:
    op.ignore("result_accuracy")
    if _is_complex(*op.wants(1)):
        return composed(op, special_functions.atan)
    return composed(op, lambda x: atan2(x, 1.0))


def _conj(x: Value) -> Value:
    return ops.complex(ops.real(x), ops.negate(ops.imag(x)))


@rule("chlo.conj")
def conj(op: Reading) -> Results:
    (operand,) = op.wants(1)
    return composed(op, _conj) if _is_complex(operand) else operand


_real_cbrt = RULES["stablehlo.cbrt"]


@rule(*both("cbrt"))
def cbrt(op: Reading) -> Results:
    """Of complex numbers the principal root."""
    if not _is_complex(*op.wants(1)):
        return _real_cbrt(op)
    op.ignore("result_accuracy")
    return composed(op, lambda x: power(x, 1 / 3))
