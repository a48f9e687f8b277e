"""Predicates on values that recognise each known deviation of XLA:CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shape_inference.dims import limits
from shape_inference.types import f4e2m1fn, f8e5m2fnuz, f8e8m0fnu

from .chance import flushed
from .instance import Instance, leaves

Array = np.ndarray[Any, Any]
Leaves = Sequence[Array]


def _at(instance: Instance, wrong: Leaves) -> list[Array]:
    """The elements of the operands where a result is wrong; of an operand of another shape all."""
    (mask,) = wrong
    return [o[mask] if o.shape == mask.shape else o for o in leaves(instance.operands)]


def indices_are_empty(instance: Instance, *_: Leaves) -> bool:
    return bool(instance.operands[1].size == 0)


def has_no_nan(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """Zeros of either sign in the one type without NaN and infinity."""
    pairs = zip(ours, theirs, wrong, strict=True)
    return all(a.dtype == f4e2m1fn.dtype and not (a[w].astype(bool) | b[w].astype(bool)).any() for a, b, w in pairs)


def is_extreme(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """Complex operands with a part that is not finite, or beyond what the function or its inner steps can hold."""
    if instance.dtype.kind != "complex":
        return False
    parts = [np.stack([np.abs(o.real), np.abs(o.imag)]) for o in _at(instance, wrong)]
    with np.errstate(all="ignore"):
        large = 6 if instance.opcode == "power" else 40
        return bool(np.all(np.any([~((p == 0) | ((p > 1e-6) & (p < large))).all(axis=0) for p in parts], axis=0)))


def is_one_of_both(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    operands = _at(instance, wrong)
    if instance.dtype.kind != "complex":
        return False
    found = theirs[0][wrong[0]]
    return bool(np.logical_or.reduce([(found == each) | np.isnan(found) & np.isnan(each) for each in operands]).all())


def counts_eight_bits(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """As if the negative number had been widened to s8 first."""
    (operand,) = _at(instance, wrong)
    counted = np.bitwise_count(operand.astype(np.int8).view(np.uint8))
    return instance.dtype.name in ("s2", "s4") and bool((counted.astype(operand.dtype) == theirs[0][wrong[0]]).all())


def reads_six_bits(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
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


def is_passed_over(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """Wrong are only NaN of ours, from a combiner that keeps the greater or the smaller one."""
    word = getattr(instance.attributes.get("to_apply"), "__name__", "")
    return word in ("maximum", "minimum") and all(np.isnan(a[w]).all() for a, w in zip(ours, wrong, strict=True))


def is_beyond_six(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """6 and -6 of f4e2m1fn, its ends."""
    return instance.dtype is f4e2m1fn and all(
        (np.abs(o.astype(np.float32)) == 6).all() for o in _at(instance, wrong)[:1]
    )


def is_neighbour(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """Of a float of 8 bits and fewer a whole number beside it; of 6 and -6 of f4e2m1fn an end of the type."""
    target = instance.attributes["new_element_type"]
    if instance.dtype.bits > 8 or not target.is_integer:
        return False
    low, high = limits(target)
    numbers = np.nan_to_num(_at(instance, wrong)[0].astype(np.float64), posinf=high, neginf=low)
    found = theirs[0][wrong[0]].astype(np.float64)
    whole = np.trunc(numbers)
    beside = (found == np.clip(whole, low, high)) | (found == np.clip(whole + np.sign(numbers), low, high))
    is_end = (instance.dtype is f4e2m1fn) & (np.abs(numbers) == 6) & ((found <= low) | (found >= high))
    return bool((beside | is_end).all())


def has_subnormals(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """An operand that XLA takes for zero at one step and not at the next."""
    near = _at(instance, wrong)
    return bool(np.logical_or.reduce([np.asarray(flushed(o) != o) & ~np.isnan(o) for o in near]).all())


def is_power_of_nan(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """1 of XLA's where a NaN meets the base 1 or the exponent 0, which only a signalling NaN does not give here."""
    return bool(instance.dtype.is_float and np.isnan(ours[0][wrong[0]]).all() and (theirs[0][wrong[0]] == 1).all())


def has_no_mantissa(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """NaN in a format without a mantissa: infinity here."""
    a, b = ours[0][wrong[0]], theirs[0][wrong[0]]
    return instance.attributes["mantissa_bits"] == 0 and bool(np.isinf(a).all() and np.isnan(b).all())


def is_on_a_cut(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """Operands on the real axis, and of their results the conjugates."""
    if instance.dtype.kind != "complex":
        return False
    operand, *_ = _at(instance, wrong)
    a, b = ours[0][wrong[0]], theirs[0][wrong[0]]
    return bool((operand.imag == 0).all() and np.allclose(a, np.conj(b), rtol=1e-5, equal_nan=True))


def is_true_log(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
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


def overflows(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """exp(-x) is more than f16 holds, in which f16 and the types of 8 bits are computed."""
    is_f16 = instance.dtype.is_float and instance.dtype.name != "bf16" and instance.dtype.bits <= 16
    return is_f16 and all((o.astype(np.float32) < -11).all() for o in _at(instance, wrong))


def is_small_of_e5m2fnuz(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """Wrong by a factor of at most two, where numbers are near the least normal one, 2^-15."""
    if instance.dtype is not f8e5m2fnuz:
        return False
    of = zip(ours, theirs, wrong, strict=True)
    pairs = [(abs(a[w].astype(np.float32)), abs(b[w].astype(np.float32))) for a, b, w in of]
    return all((x <= 2**-14).all() and (y <= 2**-14).all() and (y <= 2 * x).all() for x, y in pairs)


def is_least(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """2^-127 of f8e8m0fnu is a subnormal number of the f32 that XLA computes in, and becomes zero.

    It is at each place that is wrong, in a result or an operand, or in an operand of which all may count.
    """
    if instance.dtype is not f8e8m0fnu:
        return False
    if len(wrong) != 1:
        return any(_has_least(each).any() for each in leaves(instance.operands))
    (mask,) = wrong
    if any(o.shape != mask.shape and _has_least(o).any() for o in leaves(instance.operands)):
        return True
    arrays = [*ours, *theirs, *leaves(instance.operands)]
    places = [each[mask] for each in arrays if each.shape == mask.shape and each.dtype == f8e8m0fnu.dtype]
    return bool(places) and bool(np.logical_or.reduce(list(map(_has_least, places))).all())


def _has_least(array: Array) -> Array:
    if array.dtype != f8e8m0fnu.dtype:
        return np.zeros(array.shape, bool)
    return np.asarray(np.ascontiguousarray(array).view(np.uint8) == 0)


def is_cancelled(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """Results below 1, each within 32 units in the last place of 1: what is left of a logarithm near 1."""
    a, b = ours[0][wrong[0]], theirs[0][wrong[0]]
    if instance.dtype.kind != "complex":
        return False
    unit = np.finfo(a.real.dtype).eps
    return bool((np.abs(a) < 1).all() and (np.abs(a - b) <= 32 * unit).all())


def is_nan_throughout(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """A complex number of which one part is NaN; both parts of XLA's are."""
    a, b = ours[0][wrong[0]], theirs[0][wrong[0]]
    return instance.dtype.kind == "complex" and bool((np.isnan(a) & np.isnan(b.real) & np.isnan(b.imag)).all())


def are_keys_of_nan(instance: Instance, ours: Leaves, theirs: Leaves, wrong: Leaves) -> bool:
    """Wrong are only what goes along with keys of 8 bits that are NaN."""
    are_nan = np.isnan(ours[0]) & np.isnan(theirs[0])
    return instance.dtype.bits <= 8 and instance.dtype.is_float and all(are_nan[each].all() for each in wrong)


def has_reciprocal(instance: Instance, *_: Leaves) -> bool:
    """A diagonal with 4 in f4e2m1fn, in which 1/4 is 0."""
    (a, _b), diagonal = instance.operands, instance.attributes["unit_diagonal"]
    found = np.abs(np.diagonal(a, axis1=-2, axis2=-1).astype(np.float32)) == 4
    return instance.dtype is f4e2m1fn and not diagonal and bool(found.any())
