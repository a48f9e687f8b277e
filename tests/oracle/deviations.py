"""Known deviations of XLA:CPU, each with the sentence that says what is right; they are counted separately."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from xbuild.core.op import OPS

from . import explanations
from .explanations import Leaves
from .instance import Instance


@frozen
class Deviation:
    """Which wrong elements it explains, what XLA does, and what the specification says."""

    opcodes: frozenset[str]
    explains: Callable[[Instance, Leaves, Leaves, Leaves], bool]
    what: str
    says: str


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


COMPLEX_FUNCTIONS = _set(
    "abs atan2 call cosine divide exponential exponential_minus_one fusion log log_plus_one logistic map "
    "multiply power rsqrt sign sine sqrt tan tanh"
)

DEVIATIONS: dict[str, Deviation] = {
    "empty index vectors": Deviation(
        _set("scatter"),
        explanations.indices_are_empty,
        "of many updates with an index vector of no entries one is applied",
        "StableHLO, scatter: exec for each update_index of index_space(updates[0])",
    ),
    "subnormal operands": Deviation(
        _set("atan2 cbrt divide power remainder"),
        explanations.has_subnormals,
        "subnormal operands are zeros in some steps of a function",
        "left open: StableHLO states the mathematical function, and no flushing",
    ),
    "logarithms of doubles": Deviation(
        _set("log log_plus_one"),
        explanations.is_true_log,
        "log(1 + x) in double precision is up to 128 units in the last place off for x from -0.6 to -0.2",
        "Operation Semantics, Element-wise unary functions: the natural logarithm (extended precision judges)",
    ),
    "logistic of f16": Deviation(
        _set("logistic"),
        explanations.overflows,
        "exp(-x) overflows in f16, so that below -11 zero comes of it",
        "StableHLO, logistic: division(1, addition(1, exponential(negate(x))))",
    ),
    "small numbers of f8e5m2fnuz": Deviation(
        frozenset(OPS),
        explanations.is_small_of_e5m2fnuz,
        "f8e5m2fnuz is read wrongly near its least normal number: loops move other values, sort has another order",
        "StableHLO, reverse: result[result_index] = operand[operand_index]",
    ),
    "signalling NaN": Deviation(
        _set("power"),
        explanations.is_power_of_nan,
        "a signalling NaN to the power of 0, and 1 to its power, is 1; here it stays NaN",
        "left open: IEEE 754, 9.2.1 states pow(x, 0) = 1 for any x, even a quiet NaN",
    ),
    "complex extremes": Deviation(
        COMPLEX_FUNCTIONS,
        explanations.is_extreme,
        "functions of complex numbers with parts that are huge, tiny or not finite overflow on the way, or do not",
        "left open: Annex G of C is not part of StableHLO, which states the mathematical function alone",
    ),
    "branch cuts": Deviation(
        _set("log log_plus_one power rsqrt sqrt"),
        explanations.is_on_a_cut,
        "on the negative real axis the sign of a zero imaginary part is not looked at",
        "left open: StableHLO, sqrt: complex square root; here as in Annex G of C",
    ),
    "complex order": Deviation(
        _set("clamp maximum minimum"),
        explanations.is_one_of_both,
        "complex numbers are compared by their real parts alone, and NaN is passed over",
        "StableHLO, maximum: for complex numbers: lexicographic maximum for the (real, imaginary) pair",
    ),
    "popcnt of s2 and s4": Deviation(
        _set("popcnt"),
        explanations.counts_eight_bits,
        "the bits of a negative number are counted in s8",
        "StableHLO, popcnt: element-wise count of the number of bits set in the operand tensor",
    ),
    "large integer exponents": Deviation(
        _set("power"),
        explanations.reads_six_bits,
        "only the six lowest bits of an integer exponent are read",
        "StableHLO, power: for integers: integer exponentiation",
    ),
    "NaN between devices": Deviation(
        _set("all_reduce reduce_scatter"),
        explanations.is_passed_over,
        "maximum and minimum over devices pass over NaN",
        "StableHLO, maximum: for floats: maximum operation from IEEE-754, which gives NaN if either is",
    ),
    "NaN without a mantissa": Deviation(
        _set("reduce_precision"),
        explanations.has_no_mantissa,
        "compiled code keeps a NaN in a format without mantissa bits, where constant folding gives infinity, as here",
        "StableHLO, reduce_precision: a format of no mantissa bits has infinity and no NaN",
    ),
    "bits of NaN": Deviation(
        _set("sort topk"),
        explanations.are_keys_of_nan,
        "in the total order every NaN of a float of 8 bits is as great as every other of its sign",
        "left open: IEEE 754, 5.10: totalOrder of two NaN by their bits, as here, where these are comparable",
    ),
    "NaN in constants": Deviation(
        _set("constant"),
        explanations.is_nan_throughout,
        "of a complex number in the text that has one part NaN both are",
        "left open: no document says how HLO text is read; here each part is what is written",
    ),
    "cancelled angles": Deviation(
        _set("atan2"),
        explanations.is_cancelled,
        "of a complex angle near zero the logarithm of a number near 1 is taken, with its error and not the angle's",
        "left open: StableHLO, atan2: no formula of complex numbers is given",
    ),
    "reciprocals in f4e2m1fn": Deviation(
        _set("triangular_solve"),
        explanations.has_reciprocal,
        "a row is multiplied by the reciprocal of its diagonal, rounded to the type",
        "StableHLO, triangular_solve: solves op(a) * x = b",
    ),
    "ends of f4e2m1fn": Deviation(
        _set("convert stochastic_convert"),
        explanations.is_beyond_six,
        "6 and -6 of f4e2m1fn become the ends of every integer type",
        "Operation Semantics, ConvertElementType: an element-wise conversion by value",
    ),
    "stochastic rounding of 8 bits": Deviation(
        _set("stochastic_convert"),
        explanations.is_neighbour,
        "of floats of 8 bits and fewer, whose types do not reach 2^8, random bits do not tell which neighbour comes",
        "hlo_opcode.h and its evaluator: the random bits are compared with the fraction",
    ),
    "no NaN": Deviation(
        frozenset(OPS),
        explanations.has_no_nan,
        "NaN becomes -0 in f4e2m1fn in what is computed as here, and 0 or -0 elsewhere",
        "left open: the type has neither NaN nor infinity, and no document says what becomes of them",
    ),
    "least of f8e8m0fnu": Deviation(
        frozenset(OPS),
        explanations.is_least,
        "2^-127 is computed with as zero",
        "left open, as subnormal numbers are: StableHLO states no flushing",
    ),
}


@frozen
class OfDenormals:
    """For which types XLA:CPU does otherwise with denormal numbers, what it does, and why this project does not."""

    types: frozenset[str]
    what: str
    says: str


OF_DENORMALS: dict[str, OfDenormals] = {
    "cbrt": OfDenormals(
        _set("bf16 f32"),
        "the cube root of every denormal number of either sign is -5.6e-16",
        "StableHLO, cbrt: the cubic root; a flushed one is 0",
    ),
    "atan2": OfDenormals(
        _set("bf16 f32 f64"),
        "in single precision NaN comes of two denormal numbers, and the ordinate itself over 1; in double precision "
        "the angle of a denormal ordinate over a negative abscissa has the other sign",
        "left open: the ordinate is flushed, and over what is zero, or flushed, the angle is a right one",
    ),
    "power": OfDenormals(
        _set("bf16 f32 f64"),
        "a denormal base is normalized by a product that flushes it, so that powers of all are those of 2^-151",
        "StableHLO, power: exponentiation; the base is taken as it is, and a denormal result flushed",
    ),
    "select of compare": OfDenormals(
        _set("f32 f64"),
        "of select(compare(p, q), p, q) the compiler makes minimum, which is arithmetic and flushes",
        "StableHLO, select: result element is that of on_true or on_false, which moves it",
    ),
    "sort of more": OfDenormals(
        _set("bf16 f32 f64"),
        "more than nine elements of one operand are sorted stably by minima and maxima, which flush; unstably, with "
        "another order of equal ones from 17 elements on",
        "StableHLO, sort: the elements in another order",
    ),
}
"""By the name of the program in tests/interpreter/test_denormals.py."""


def apart(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> str | None:
    """The name of the deviation that explains all wrong elements, if one does."""
    for name, deviation in DEVIATIONS.items():
        if {instance.opcode, instance.whole} & deviation.opcodes and deviation.explains(instance, ours, theirs, wrong):
            return name
    return None
