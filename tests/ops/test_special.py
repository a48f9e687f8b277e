"""The special functions against mpmath over wide ranges, in units in the last place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from attrs import frozen
from mpmath import mp, mpf

import xbuild as xb
from tests.ops.special_points import FLOATS, RANDOM, Array, apply, exactly, powers, rounded, uniform
from tests.support.compare import assert_same


@frozen
class Range:
    """A function on these arguments, its reference, and how many ulps, or ulps of `scale`, it may be off."""

    id: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    arguments: tuple[Array, ...]
    ulps: Callable[..., float]
    scale: Callable[..., float] | None = None


def erf_inv(x: Any) -> Any:
    """By Newton's method on the tail, where mpmath's own does not converge."""
    size, rest = abs(x), 1 - abs(x)
    if size < 0.9:
        return mp.erfinv(x)
    y = mp.sqrt(-mp.log(rest)) * 0.9
    for _ in range(60):
        y += (mp.erfc(y) - rest) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return mp.sign(x) * y


def bessel(order: int) -> Callable[[Any], Any]:
    return lambda x: mp.exp(-abs(x)) * mp.besseli(order, x)


def lower(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def upper(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def lower_by_a(a: Any, x: Any) -> Any:
    """Four points, so near each other that the digits that are left are enough."""
    with mp.workdps(150):
        h = a * mpf(10) ** -25
        difference = lower(a - 2 * h, x) - 8 * lower(a - h, x) + 8 * lower(a + h, x) - lower(a + 2 * h, x)
        return difference / (12 * h)


def variate_by_a(a: Any, x: Any) -> Any:
    return -lower_by_a(a, x) / mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))


def left_and_right(x: float, q: float) -> float:
    """The larger of the sums on both sides of zero."""
    part = q - math.floor(q)
    return float(max(mp.zeta(int(x), part), mp.zeta(int(x), 1 - part)))


def by_result(base: float, factor: float) -> Callable[[float], float]:
    return lambda result: base + factor * abs(math.log(result))


def fixed(ulps: float) -> Callable[[float], float]:
    return lambda result: ulps


SMALL_A, LARGE_A = powers(-3, 2), powers(2, 3.3, 40)
NEAR_A = LARGE_A * (1 + RANDOM.normal(size=40) * 0.08)
SHAPES = np.concatenate([SMALL_A, LARGE_A])
POINTS = np.concatenate([SMALL_A * powers(-1, 0.8), NEAR_A])
GRADIENTS = (np.concatenate([powers(-2, 2, 40), LARGE_A[:15]]), np.concatenate([np.zeros(40), NEAR_A[:15]]))
GRADIENTS[1][:40] = GRADIENTS[0][:40] * powers(-0.3, 0.3, 40)
BETAS = powers(-2, 2), powers(-2, 2), uniform(0.001, 0.999)
RANGES = [
    Range("erfc", xb.erfc, mp.erfc, (np.concatenate([uniform(-6, 9), powers(-10, 0)]),), fixed(8)),
    Range("erf_inv", xb.erf_inv, erf_inv, (np.concatenate([uniform(-0.99, 0.99), 1 - powers(-6.5, -1)]),), fixed(8)),
    Range("lgamma", xb.lgamma, mp.loggamma, (np.concatenate([uniform(0, 12), powers(-30, 30)]),), fixed(8)),
    Range("lgamma-near-zeros", xb.lgamma, mp.loggamma,
          (np.concatenate([1 + powers(-6, -1), 2 - powers(-6, -1)]),), fixed(8)),
    Range("lgamma-negative", xb.lgamma, lambda x: mp.log(abs(mp.gamma(x))), (-uniform(0, 60),), fixed(8),
          lambda x, _: max(1, abs(math.lgamma(-x)))),
    Range("digamma", xb.digamma, mp.digamma, (np.concatenate([uniform(0, 12), powers(-30, 30)]),), fixed(8)),
    Range("digamma-near-root", xb.digamma, mp.digamma, (1.46163 + RANDOM.normal(size=100) * 1e-4,), fixed(8)),
    Range("digamma-negative", xb.digamma, mp.digamma, (-uniform(0, 60),), fixed(8),
          lambda x, _: max(abs(scipy.special.digamma(-x)), abs(1 / x), abs(math.pi / math.tan(math.pi * x)))),
    Range("bessel_i0e", xb.bessel_i0e, bessel(0), (np.concatenate([uniform(-20, 20), powers(-20, 3)]),), fixed(8)),
    Range("bessel_i1e", xb.bessel_i1e, bessel(1), (np.concatenate([uniform(-20, 20), powers(-20, 3)]),), fixed(8)),
    Range("zeta", xb.zeta, mp.zeta, (1 + powers(-3, 1), powers(-2, 2)), fixed(8)),
    Range("zeta-negative", xb.zeta, lambda x, q: sum((q + k) ** -int(x) for k in range(40)) + mp.zeta(int(x), q + 40),
          (RANDOM.integers(2, 9, 60).astype(float), -uniform(0, 30, 60)), fixed(8),
          lambda x, q, _: left_and_right(x, q)),
    Range("polygamma", xb.polygamma, lambda n, x: mp.polygamma(int(n), x),
          (RANDOM.integers(0, 30, 100).astype(float), powers(-0.5, 1, 100)), fixed(16)),
    Range("igamma", xb.igamma, lower, (SHAPES, POINTS), by_result(16, 4)),
    Range("igammac", xb.igammac, upper, (SHAPES, POINTS), by_result(16, 4)),
    Range("beta", xb.regularized_incomplete_beta, lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True), BETAS,
          by_result(32, 8), lambda a, b, x, result: 1 if x > (a + 1) / (a + b + 2) else result),
]  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", RANGES, ids=lambda case: case.id)
def test_accuracy(case: Range, dtype: Any) -> None:
    arguments = [argument.astype(dtype) for argument in case.arguments]
    found, wanted = apply(case.function, *arguments), exactly(case.reference, *arguments)
    least = np.finfo(dtype).tiny * 2.0**60
    counted = 0
    for row in zip(found, wanted, *arguments, strict=True):
        result, exact, *given = row
        if not least < abs(exact) < np.finfo(dtype).max:
            continue
        size = abs(float(exact)) if case.scale is None else case.scale(*map(float, given), abs(float(exact)))
        off = float(abs(mpf(float(result)) - exact)) / float(np.spacing(dtype(size)))
        allowed = case.ulps(abs(float(exact)))
        assert off <= allowed, f"{given}: {result} came, {float(exact)} is wanted, {off:g} ulp, {allowed:g} are allowed"
        counted += 1
    assert counted > 0.7 * len(wanted)


@pytest.mark.parametrize(("function", "reference", "tolerances"), [
    (xb.igamma_grad_a, lower_by_a, (2e-5, 2e-14)), (xb.random_gamma_grad, variate_by_a, (1e-5, 2e-14)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients(function: Any, reference: Any, tolerances: tuple[float, float], dtype: Any) -> None:
    a, x = (argument.astype(dtype) for argument in GRADIENTS)
    wanted = rounded(exactly(reference, a, x), np.float64)
    inside = (p := scipy.special.gammainc(a.astype(float), x)) > 1e-10
    inside &= p < 1 - 1e-10
    assert inside.sum() > 40
    error = np.abs(apply(function, a, x) / wanted - 1)[inside]
    assert error.max() < tolerances[FLOATS.index(dtype)]


def test_complex_log_plus_one_near_the_unit_circle() -> None:
    """Where |1 + z| is near 1 the real part is as good as the rest; beside it, z of every size."""
    around = (1 + RANDOM.choice([0, 1e-16, 1e-12, 1e-8, -1e-9, 1e-3], 400)) * np.exp(1j * uniform(-3.1, 3.1, 400)) - 1
    others = (RANDOM.normal(size=400) + 1j * RANDOM.normal(size=400)) * powers(-100, 100, 400)
    z = np.concatenate([around, others])
    found = apply(xb.log_plus_one, z)
    with mp.workdps(300):
        wanted = [mp.log(1 + mp.mpc(each.real, each.imag)) for each in z]
    for each, exact in zip(found.real, map(mp.re, wanted), strict=True):
        # Twice the digits of 1 is what the squares are summed with.
        assert abs(mpf(float(each)) - exact) <= 8 * 2.0**-52 * abs(exact) + 2.0**-104
    assert_same(found.imag, rounded([mp.im(each) for each in wanted], np.float64), 2)
