"""Rules of elementwise ops, of comparisons and of conversions."""

from __future__ import annotations

from ...core.op import OPS
from ...text.spelling.notes import Raw
from ..reading.notes import shown
from ..reading.operation import Reading
from ..reading.rules import Results, both, rule
from ..spelling.choices import COMPARE_TYPES, DIRECTIONS
from ..spelling.op_names import OPCODES
from ..syntax.attributes import Record

PLAIN = tuple(
    name
    for name, opcode in OPCODES.items()
    if OPS[opcode].is_flat and not OPS[opcode].names and OPS[opcode].properties.elements == "same_place"
)
"""The MLIR ops that are elementwise and have no attributes."""


@rule(*PLAIN, *(f"mhlo.{name.partition('.')[2]}" for name in PLAIN))
def plain(op: Reading) -> Results:
    op.ignore("result_accuracy")
    opcode = op.operation.name.partition(".")[2]
    made = op.result(opcode, *op.wants(len(OPS[opcode].operands)))
    accuracy = op.attributes.get("result_accuracy")
    if isinstance(accuracy, Record) and accuracy.fields:
        op.note(made, result_accuracy=Raw(_accuracy(accuracy)))
    return made


def _accuracy(record: Record) -> str:
    """XLA's spelling: a mode, or the tolerances."""
    words = {key: getattr(value, "word", value) for key, value in record.fields.items()}
    mode = str(words.get("mode", "TOLERANCE")).lower()
    if mode != "tolerance":
        return f"{{mode={mode}}}"
    tolerances = [f"{key}={shown(words[key])}" for key in ("atol", "rtol", "ulps") if key in words]
    return f"{{tolerance={{{', '.join(tolerances)}}}}}"


@rule(*both("compare"))
def compare(op: Reading) -> Results:
    direction, type_ = op.word("comparison_direction"), op.word("compare_type", None)
    if direction not in DIRECTIONS:
        op.fail("invalid_attribute", f"{direction!r} is no direction; there are {', '.join(DIRECTIONS)}")
    if type_ not in (None, "NOTYPE", *COMPARE_TYPES):
        op.fail("invalid_attribute", f"{type_!r} is no order; there are {', '.join(COMPARE_TYPES)}")
    return op.result("compare", *op.wants(2), direction=direction, type=None if type_ == "NOTYPE" else type_)


@rule(*both("convert"))
def convert(op: Reading) -> Results:
    return op.result("convert", *op.wants(1), new_element_type=op.array_shape.dtype)


@rule(*both("bitcast_convert"))
def bitcast_convert(op: Reading) -> Results:
    return op.result("bitcast_convert", *op.wants(1), new_element_type=op.array_shape.dtype)


@rule(*both("reduce_precision"))
def reduce_precision(op: Reading) -> Results:
    bits = {key: op.integer(key) for key in ("exponent_bits", "mantissa_bits")}
    return op.result("reduce_precision", *op.wants(1), **bits)
