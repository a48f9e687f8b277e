"""Where real XLA:CPU does otherwise, and the sentence that says what is right: instances that are counted apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference.types import f4e2m1fn, f8e5m2fnuz, f8e8m0fnu
from xbuild.op import OPS

from .chance import flushed
from .instance import Instance, leaves

Array = np.ndarray[Any, Any]
Leaves = Sequence[Array]


@frozen
class Deviation:
    """Which wrong elements it explains, what XLA does, and what the specification says."""

    opcodes: frozenset[str]
    explains: Callable[[Instance, Leaves, Leaves, Leaves], bool]
    what: str
    says: str


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _at(instance: Instance, wrong: Leaves) -> list[Array]:
    """The elements of the operands where a result is wrong; of an operand of another shape all."""
    (mask,) = wrong
    return [o[mask] if o.shape == mask.shape else o for o in leaves(instance.operands)]


def _indices_are_empty(instance: Instance, *_: Leaves) -> bool:
    return bool(instance.operands[1].size == 0)


def _has_no_nan(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """Zeros of either sign in the one type without NaN and infinity."""
    pairs = zip(ours, theirs, wrong, strict=True)
    return all(a.dtype == f4e2m1fn.dtype and not (a[w].astype(bool) | b[w].astype(bool)).any() for a, b, w in pairs)


def _is_extreme(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """Complex operands with a part that is not finite, or beyond what the function or its inner steps can hold."""
    if instance.dtype.kind != "complex":
        return False
    parts = [np.stack([np.abs(o.real), np.abs(o.imag)]) for o in _at(instance, wrong)]
    with np.errstate(all="ignore"):
        large = 6 if instance.opcode == "power" else 40
        return bool(np.all(np.any([~((p == 0) | ((p > 1e-6) & (p < large))).all(axis=0) for p in parts], axis=0)))


def _is_one_of_both(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    operands = _at(instance, wrong)
    if instance.dtype.kind != "complex":
        return False
    found = theirs[0][wrong[0]]
    return bool(np.logical_or.reduce([(found == each) | np.isnan(found) & np.isnan(each) for each in operands]).all())


def _counts_eight_bits(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """As if the negative number had been widened to s8 first."""
    (operand,) = _at(instance, wrong)
    counted = np.bitwise_count(operand.astype(np.int8).view(np.uint8))
    return instance.dtype.name in ("s2", "s4") and bool((counted.astype(operand.dtype) == theirs[0][wrong[0]]).all())


def _reads_six_bits(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """As if the exponent were only its six lowest bits, and signed."""
    if not instance.dtype.is_integer:
        return False
    triples = zip(*_at(instance, wrong), theirs[0][wrong[0]], strict=True)
    return all(_is_short_power(int(b), int(e), int(found), instance.dtype.bits) for b, e, found in triples)


def _is_short_power(base: int, exponent: int, found: int, bits: int) -> bool:
    whole = 1 << bits
    if exponent >> (bits - 1):
        wanted = 1 if base == 1 else (-1) ** (exponent % 2) if base in (-1, whole - 1) else 0
    else:
        wanted = pow(base, exponent % 64, whole)
    return (wanted - found) % whole == 0


def _is_passed_over(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """Wrong are only NaN of ours, from a combiner that keeps the greater or the smaller one."""
    word = getattr(instance.attributes.get("to_apply"), "__name__", "")
    return word in ("maximum", "minimum") and all(np.isnan(a[w]).all() for a, w in zip(ours, wrong, strict=True))


def _are_bits(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """The same bits in the unsigned type of the same width."""
    mask = np.uint8((1 << min(instance.dtype.bits, 8)) - 1)
    new, found = (np.ascontiguousarray(a).reshape(-1).view(np.uint8) & mask for a in (ours[1], theirs[1]))
    return np.array_equal(ours[0], theirs[0]) and np.array_equal(new, found)


def _is_beyond_six(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """6 and -6 of f4e2m1fn, its ends."""
    return instance.dtype is f4e2m1fn and all(
        (np.abs(o.astype(np.float32)) == 6).all() for o in _at(instance, wrong)[:1]
    )


def _is_tiny_type(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    return instance.dtype.bits <= 8


def _has_subnormals(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """An operand that XLA takes for zero at one step and not at the next."""
    near = _at(instance, wrong)
    return bool(np.logical_or.reduce([np.asarray(flushed(o) != o) & ~np.isnan(o) for o in near]).all())


def _is_power_of_nan(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """1 of XLA's where a NaN meets the base 1 or the exponent 0, which only a signalling NaN does not give here."""
    return bool(instance.dtype.is_float and np.isnan(ours[0][wrong[0]]).all() and (theirs[0][wrong[0]] == 1).all())


def _is_on_a_cut(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """Operands on the real axis, and of their results the conjugates."""
    if instance.dtype.kind != "complex":
        return False
    operand, *_ = _at(instance, wrong)
    a, b = ours[0][wrong[0]], theirs[0][wrong[0]]
    return bool((operand.imag == 0).all() and np.allclose(a, np.conj(b), rtol=1e-5, equal_nan=True))


def _is_true_log(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """Ours is within two units of the logarithm in extended precision, and XLA's within 256."""
    (operand,) = _at(instance, wrong)
    if operand.dtype not in (np.float64, np.complex128) or np.finfo(np.longdouble).eps > 1e-18:
        return False
    real = operand.real.astype(np.longdouble) + (instance.opcode == "log_plus_one")
    square = real * real + operand.imag.astype(np.longdouble) ** 2
    a, b = ours[0][wrong[0]], theirs[0][wrong[0]]
    unit = np.finfo(np.float64).eps * np.maximum(np.abs(a.real), np.abs(a.imag))
    truth = np.log(square) / 2
    return bool((np.abs(a.real - truth) <= 2 * unit).all() and (np.abs(b.real - truth) <= 256 * unit).all())


def _overflows(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """exp(-x) is more than f16 holds, in which f16 and the types of 8 bits are computed."""
    is_f16 = instance.dtype.is_float and instance.dtype.name != "bf16" and instance.dtype.bits <= 16
    return is_f16 and all((o.astype(np.float32) < -11).all() for o in _at(instance, wrong))


def _is_small_of_e5m2fnuz(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """Wrong by a factor of at most two, where numbers are near the least normal one, 2^-15."""
    if instance.dtype is not f8e5m2fnuz:
        return False
    of = zip(ours, theirs, wrong, strict=True)
    pairs = [(abs(a[w].astype(np.float32)), abs(b[w].astype(np.float32))) for a, b, w in of]
    return all((x <= 2**-14).all() and (y <= 2**-14).all() and (y <= 2 * x).all() for x, y in pairs)


def _is_least(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """2^-127 of f8e8m0fnu is a subnormal number of the f32 that XLA computes in, and becomes zero."""
    if instance.dtype is not f8e8m0fnu:
        return False
    near = [*leaves(instance.operands), *ours, *theirs]
    return any((each.view(np.uint8) == 0).any() for each in near if each.dtype == f8e8m0fnu.dtype)


COMPLEX_FUNCTIONS = _set(
    "abs atan2 call cosine divide exponential exponential_minus_one fusion log log_plus_one logistic map "
    "multiply power rsqrt sign sine sqrt tan tanh"
)

DEVIATIONS: dict[str, Deviation] = {
    "empty index vectors": Deviation(
        _set("scatter"),
        _indices_are_empty,
        "of many updates with an index vector of no entries one is applied",
        "StableHLO, scatter: exec for each update_index of index_space(updates[0])",
    ),
    "subnormal operands": Deviation(
        _set("atan2 cbrt divide power remainder"),
        _has_subnormals,
        "subnormal operands are zeros in some steps of a function",
        "left open: StableHLO states the mathematical function, and no flushing",
    ),
    "logarithms of doubles": Deviation(
        _set("log log_plus_one"),
        _is_true_log,
        "log(1 + x) in double precision is up to 128 units in the last place off for x from -0.6 to -0.2",
        "Operation Semantics, Element-wise unary functions: the natural logarithm (extended precision judges)",
    ),
    "logistic of f16": Deviation(
        _set("logistic"),
        _overflows,
        "exp(-x) overflows in f16, so that below -11 zero comes of it",
        "StableHLO, logistic: division(1, addition(1, exponential(negate(x))))",
    ),
    "small numbers of f8e5m2fnuz": Deviation(
        frozenset(OPS),
        _is_small_of_e5m2fnuz,
        "f8e5m2fnuz is read wrongly near its least normal number: loops move other values, sort has another order",
        "StableHLO, reverse: result[result_index] = operand[operand_index]",
    ),
    "signalling NaN": Deviation(
        _set("power"),
        _is_power_of_nan,
        "a signalling NaN to the power of 0, and 1 to its power, is 1; here it stays NaN",
        "left open: IEEE 754, 9.2.1 states pow(x, 0) = 1 for any x, even a quiet NaN",
    ),
    "complex extremes": Deviation(
        COMPLEX_FUNCTIONS,
        _is_extreme,
        "functions of complex numbers with parts that are huge, tiny or not finite overflow on the way, or do not",
        "left open: Annex G of C is not part of StableHLO, which states the mathematical function alone",
    ),
    "branch cuts": Deviation(
        _set("log log_plus_one power rsqrt sqrt"),
        _is_on_a_cut,
        "on the negative real axis the sign of a zero imaginary part is not looked at",
        "left open: StableHLO, sqrt: complex square root; here as in Annex G of C",
    ),
    "complex order": Deviation(
        _set("clamp maximum minimum"),
        _is_one_of_both,
        "complex numbers are compared by their real parts alone, and NaN is passed over",
        "StableHLO, maximum: for complex numbers: lexicographic maximum for the (real, imaginary) pair",
    ),
    "popcnt of s2 and s4": Deviation(
        _set("popcnt"),
        _counts_eight_bits,
        "the bits of a negative number are counted in s8",
        "StableHLO, popcnt: element-wise count of the number of bits set in the operand tensor",
    ),
    "large integer exponents": Deviation(
        _set("power"),
        _reads_six_bits,
        "only the six lowest bits of an integer exponent are read",
        "StableHLO, power: for integers: integer exponentiation",
    ),
    "NaN between devices": Deviation(
        _set("all_reduce reduce_scatter"),
        _is_passed_over,
        "maximum and minimum over devices pass over NaN",
        "StableHLO, maximum: for floats: maximum operation from IEEE-754, which gives NaN if either is",
    ),
    "parts of bytes between devices": Deviation(
        _set("all_gather all_to_all collective_permute reduce_scatter"),
        lambda instance, *_: instance.dtype.bits < 8,
        "elements of less than a byte are moved between devices as if they had one each",
        "StableHLO, all_gather: result@process is the concatenation of the operands@process of the group",
    ),
    "unsigned bits": Deviation(
        _set("rng_bit_generator"),
        _are_bits,
        "random bits come as an unsigned type, whichever is asked for",
        "Operation Semantics, RngBitGenerator: generates an output with a given shape filled with uniform random bits",
    ),
    "ends of f4e2m1fn": Deviation(
        _set("convert stochastic_convert"),
        _is_beyond_six,
        "6 and -6 of f4e2m1fn become the ends of every integer type",
        "Operation Semantics, ConvertElementType: an element-wise conversion by value",
    ),
    "stochastic rounding of 8 bits": Deviation(
        _set("stochastic_convert"),
        _is_tiny_type,
        "floats of 8 bits and fewer are rounded towards zero, whatever the random bits",
        "hlo_opcode.h and its evaluator: the random bits are compared with the fraction",
    ),
    "no NaN": Deviation(
        frozenset(OPS),
        _has_no_nan,
        "NaN becomes -0 in f4e2m1fn, here 0 or -0",
        "left open: the type has neither NaN nor infinity, and no document says what becomes of them",
    ),
    "least of f8e8m0fnu": Deviation(
        frozenset(OPS),
        _is_least,
        "2^-127 is computed with as zero",
        "left open, as subnormal numbers are: StableHLO states no flushing",
    ),
}


def apart(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> str | None:
    """The name of the deviation that explains all wrong elements, if one does."""
    for name, deviation in DEVIATIONS.items():
        if {instance.opcode, instance.whole} & deviation.opcodes and deviation.explains(instance, ours, theirs, wrong):
            return name
    return None
