"""Rules of those ops of CHLO that are one op of HLO."""

from __future__ import annotations

from shape_inference import Shape

from ..reading.operation import Reading
from ..reading.rules import Results, rule
from ..spelling.op_names import OPCODES
from .contraction import integers_of, precision, preferred


@rule("chlo.tan")
def tan(op: Reading) -> Results:
    op.ignore("result_accuracy")
    return op.result("tan", *op.wants(1))


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


@rule("chlo.top_k")
def top_k(op: Reading) -> Results:
    return op.elements(op.result(OPCODES["chlo.top_k"], *op.wants(1), k=op.integer("k")))
