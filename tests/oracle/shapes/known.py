"""Where real XLA and the shape rules are known to judge differently, and why the rule stays as it is."""

from __future__ import annotations

import re

from attrs import field, frozen

from .program import Program

EVERY = ".*"


@frozen
class Known:
    """For ops, and words of the side that refuses: what real XLA does."""

    opcodes: re.Pattern[str] = field(converter=re.compile)
    words: re.Pattern[str] = field(converter=re.compile)
    why: str


XLA_ACCEPTS = (
    Known("outfeed", "outfeed_shape", "StableHLO has no outfeed_shape, and what is written is lost"),
    Known("bitcast", "a bitcast (cannot|must)", "a bitcast is converted to the shape that is written"),
    Known("batch_norm", "epsilon", "epsilon is not looked at"),
    Known(
        "(all_to_all|all_gather|reduce_scatter|async)",
        "split_count|shard_count|split_dimension is missing|has size|groups of sizes",
        "a count that HLO text does not spell, or one beside groups of one",
    ),
    Known("dynamic_reshape", "entr(y|ies)|a scalar|must be s32", "HLO text spells no flags; sizes are not looked at"),
    Known("sort", "dimension=-", "a negative dimension is not looked at"),
    Known("fft", "fft_length", "of a complex transform the lengths are not looked at"),
    Known("topk", "element type", "complex numbers are refused only where two are compared"),
    Known("(dot|convolution|ragged_dot|scaled_dot)", "element types|preferred", "types that mix are converted"),
    Known("complex", "element types", "an empty or tiny array of another float is converted"),
    Known(
        "stochastic_convert",
        "integer or floating-point new_element_type",
        "the element type of the result is not looked at",
    ),
    Known("scan", "length=|expected an array|dimension", "length is not looked at, nor is a result beside the carries"),
    Known(EVERY, "<=", "comparisons of shapes leave bounds out"),
    Known(EVERY, "[(\\[ ][us]1[\\[ ,]", "s1 and u1 are pred in StableHLO"),
    Known("broadcast", "maps dimension", "on the way to StableHLO an extent of 1 stretches"),
    Known("compare", "expected type", "the type of a comparison is not looked at"),
    Known("pad", "padding must have .* got 0|element types", "of padding that is not written nothing is looked at"),
    Known(
        "(reduce|reduce_window|select_and_scatter|scatter|map|sort|all_reduce|reduce_scatter)",
        "signature_mismatch",
        "precisions of floats that mix, and parameters that are not used, are not looked at",
    ),
    Known("(fusion|call|async|scan|conditional|while)", "signature_mismatch", "a tuple of one is its element"),
    Known("ragged_all_to_all", "dimension_mismatch|rank_mismatch|invalid_group", "rows are not looked at"),
)
XLA_REFUSES = (
    Known("custom_call", "RET_CHECK|shape equal", "Sharding is known to XLA, and gives its operand"),
    Known("convolution", "Dynamic output feature", "a kernel with a dynamic number of features is not supported"),
    Known("fusion", "Non-root instruction", "a fused computation must use its parameters"),
    Known("scan", "Mismatching scan|Slice dim size", "no dynamic dimension is scanned, and no empty one"),
    Known("sort", "Inputs must have the same shape", "types of less than a byte are not sorted beside others"),
    Known("stochastic_convert", "same", "StableHLO compares bounds there"),
    Known("scatter", "pred\\[|scatter_simplifier|hlo_computation", "no index vectors without entries"),
    Known("all_reduce", "does not have a layout", "an array is reduced twice at once"),
    Known(EVERY, "i1|pred", "s1 and u1 are pred in StableHLO"),
    Known("(reduce|reduce_window|map|scatter)", "precisions|promotable", "precisions mix, and not on the CPU"),
    Known("(copy|constant)", "one consumer|out of range", "a start has one done only; a complex maximum is rounded up"),
    Known("all_reduce_(start|done)", "shape equal", "between halves a reducer of a wider type is not known"),
    Known("(all_to_all|async)", "non-empty replica groups", "on the way to StableHLO groups must be named"),
    Known("async", "async", "the text names the op of a wrapped computation alone"),
)
ANOTHER = (
    Known("pad", EVERY, "of a scalar the padding value is not looked at"),
    Known("map", EVERY, "the first operand alone says which dimensions are dynamic"),
    Known(
        "scatter", EVERY, "of a wider computation HLO's inference takes the operand's type, StableHLO's the wider one"
    ),
)


def explanation(ours: Program, message: str, outcome: str) -> str | None:
    """Why they differ, where that is known."""
    opcode = ours.subject.opcode
    if outcome == "another shape":
        rows, words = ANOTHER, ""
    elif ours.refusal:
        rows, words = XLA_ACCEPTS, f"{ours.refusal.kind}: {ours.refusal}"
    else:
        rows, words = XLA_REFUSES, message
    return next((row.why for row in rows if row.opcodes.match(opcode) and row.words.search(words)), None)
