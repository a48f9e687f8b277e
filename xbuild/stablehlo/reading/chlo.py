"""Rules of ops of CHLO: those that are one op of HLO, and special functions, which are compositions."""

from __future__ import annotations

from shape_inference import Shape

from ... import special_functions
from ..spelling.op_names import OPCODES
from .compositions import composed
from .contraction import integers_of, precision, preferred
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


@rule("chlo.mulhi")
def mulhi(op: Reading) -> Results:
    return op.result("mulhi", *op.wants(2))


@rule("chlo.ragged_dot")
def ragged_dot(op: Reading) -> Results:
    lhs, rhs, sizes = op.wants(3)
    fields = op.fields("ragged_dot_dimension_numbers")
    dims = {
        ours: integers_of(op, fields, theirs)
        for ours, theirs in (
            ("lhs_batch_dims", "lhs_batching_dimensions"),
            ("rhs_batch_dims", "rhs_batching_dimensions"),
            ("lhs_contracting_dims", "lhs_contracting_dimensions"),
            ("rhs_contracting_dims", "rhs_contracting_dimensions"),
            ("lhs_ragged_dims", "lhs_ragged_dimensions"),
            ("rhs_group_dims", "rhs_group_dimensions"),
        )
    }
    return op.result("ragged_dot", lhs, rhs, sizes, **dims, **precision(op), **preferred(op, lhs, rhs))


@rule("chlo.scan")
def scan(op: Reading) -> Results:
    """The arrays, then the starts of what is carried; the outputs, then what is carried."""
    arrays, carried = op.integers("operandSegmentSizes")
    op.ignore("resultSegmentSizes")
    attributes = {
        "dimension": op.integer("dimension"),
        "num_carries": carried,
        "is_reverse": op.flag("is_reverse", False),
        "is_associative": op.flag("is_associative", False),
        "to_apply": op.region(0, "body", len(op.operands)),
    }
    outputs = op.shapes[: len(op.shapes) - carried]
    if not arrays and outputs and isinstance(outputs[0], Shape):
        attributes["length"] = outputs[0].dims[attributes["dimension"]]
    return op.one_or_elements(op.result("scan", op.operands, **attributes))


@rule("chlo.square")
def square(op: Reading) -> Results:
    (operand,) = op.wants(1)
    return op.result("multiply", operand, operand)


@rule("chlo.top_k")
def top_k(op: Reading) -> Results:
    return op.elements(op.result(OPCODES["chlo.top_k"], *op.wants(1), k=op.integer("k")))
