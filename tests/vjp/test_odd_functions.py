"""Slopes at 0 of functions that are written with the sign and the absolute value of the same number."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate

HEAD = """HloModule m

ENTRY main {
  x = DTYPE[5] parameter(0)
  s = DTYPE[5] sign(x)
  a = DTYPE[5] abs(x)
  two = DTYPE[] constant(2)
  c = DTYPE[5] broadcast(two), dimensions={}
  l = DTYPE[5] log-plus-one(a)
"""
X = np.asarray([-1.0, -0.0, 0.0, 1.0, 3.0])
_LOG = 1 / (1 + np.abs(X))
ODD = {
    "sign(x) * log1p(abs(x))": ("ROOT r = DTYPE[5] multiply(s, l)", _LOG),
    "log1p(abs(x)) * sign(x)": ("ROOT r = DTYPE[5] multiply(l, s)", _LOG),
    "sign(x) * abs(x)": ("ROOT r = DTYPE[5] multiply(s, a)", np.ones(5)),
    "2 * sign(x) * log1p(abs(x))": ("t = DTYPE[5] multiply(c, s)\n  ROOT r = DTYPE[5] multiply(t, l)", 2 * _LOG),
    "-sign(x) / 2 * log1p(abs(x))": (
        "n = DTYPE[5] negate(s)\n  t = DTYPE[5] divide(n, c)\n  ROOT r = DTYPE[5] multiply(t, l)",
        -_LOG / 2,
    ),
    "sign(x) / (1 + abs(x)), which jumps": (
        "e = DTYPE[5] add(a, c)\n  ROOT r = DTYPE[5] divide(s, e)",
        -1 / (2 + np.abs(X)) ** 2,
    ),
    "odd, times x": (
        "o = DTYPE[5] multiply(s, l)\n  ROOT r = DTYPE[5] multiply(o, x)",
        np.sign(X) * np.log1p(np.abs(X)) + X * _LOG,
    ),
    "a select of odd ones": (
        "o = DTYPE[5] multiply(s, l)\n  i = DTYPE[5] multiply(s, a)\n  p = pred[5] compare(a, c), direction=GE\n"
        "  ROOT r = DTYPE[5] select(p, o, i)",
        np.where(np.abs(X) >= 2, _LOG, 1),
    ),
    "odd + 2 x": (
        "o = DTYPE[5] multiply(s, l)\n  t = DTYPE[5] multiply(c, x)\n  ROOT r = DTYPE[5] add(o, t)",
        _LOG + 2,
    ),
}
OTHERS = {
    "abs(x)": ("ROOT r = DTYPE[5] negate(a)", -np.sign(X)),
    "odd + abs(x)": (
        "o = DTYPE[5] multiply(s, l)\n  ROOT r = DTYPE[5] add(o, a)",
        _LOG + np.sign(X),
    ),
    "sign(x) * (abs(x) + x), which has a kink": (
        "e = DTYPE[5] add(a, x)\n  ROOT r = DTYPE[5] multiply(s, e)",
        np.abs(np.sign(X)) + np.sign(X),
    ),
    "sign(x) * x": ("ROOT r = DTYPE[5] multiply(s, x)", np.sign(X)),
}
DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
TOLERANCE = {"f64": 1e-12, "f32": 1e-6, "f16": 2e-3}


def slopes(entry: xb.Computation, x: np.ndarray) -> list[np.ndarray]:
    """The slopes by xb.vjp and by xb.jvp, of a function of each element alone."""
    ones = np.ones_like(x)
    return [np.asarray(evaluate(made, x, ones)[0]) for made in (xb.vjp(entry), xb.jvp(entry))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*ODD, *OTHERS])
def test_an_odd_function_has_the_slope_of_its_sides_at_0(name: str, dtype: str) -> None:
    text, expected = (ODD | OTHERS)[name]
    module = xb.parse_hlo((HEAD + "  " + text + "\n}\n").replace("DTYPE", dtype))
    for found in slopes(module.entry, X.astype(DTYPES[dtype])):
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("name", ["sign(x) * log1p(abs(x))", "2 * sign(x) * log1p(abs(x))"])
def test_the_slope_of_an_even_derivative_with_a_corner_is_the_middle(name: str) -> None:
    module = xb.parse_hlo((HEAD + "  " + ODD[name][0] + "\n}\n").replace("DTYPE", "f64"))
    ones, zeros = np.ones(5), np.zeros(5)
    found = evaluate(xb.jvp(xb.vjp(module.entry)), X, ones, ones, zeros)[0]
    scale = 2 if name.startswith("2") else 1
    np.testing.assert_allclose(found, -scale * np.sign(X) * _LOG**2, atol=1e-12)


def test_the_second_derivative_of_softplus_at_0_is_a_quarter() -> None:
    """The first one is a step and an odd function that jumps back by it."""
    text = """HloModule m

ENTRY main {
  x = f64[5] parameter(0)
  bad = pred[5] compare(x, x), direction=NE
  zero = f64[] constant(0)
  z = f64[5] broadcast(zero), dimensions={}
  m = f64[5] maximum(x, z)
  a = f64[5] abs(x)
  n = f64[5] negate(a)
  e = f64[5] exponential(n)
  l = f64[5] log-plus-one(e)
  s = f64[5] add(m, l)
  ROOT r = f64[5] select(bad, x, s)
}
"""
    first = xb.vjp(xb.parse_hlo(text).entry)
    ones, zeros = np.ones(5), np.zeros(5)
    sigmoid = 1 / (1 + np.exp(-X))
    np.testing.assert_allclose(evaluate(first, X, ones)[0], sigmoid, atol=1e-12)
    for found in (evaluate(xb.jvp(first), X, ones, ones, zeros)[0], evaluate(xb.vjp(first), X, ones, ones)[0]):
        np.testing.assert_allclose(found, sigmoid * (1 - sigmoid), atol=1e-12)


EVEN = {
    "exp(-abs(x)) * abs(x)": (
        "n = f64[5] negate(a)\n  e = f64[5] exponential(n)\n  ROOT r = f64[5] multiply(e, a)",
        -2,
    ),
    "cosh(abs(x))": ("ROOT r = f64[5] cosh(a)", 1),
    "log1p(abs(x)) * exp(abs(x))": ("e = f64[5] exponential(a)\n  ROOT r = f64[5] multiply(e, l)", 1),
    "exp(abs(x)) / (1 + abs(x))": (
        "e = f64[5] exponential(a)\n  q = f64[5] add(a, o)\n  ROOT r = f64[5] divide(e, q)",
        1,
    ),
}


@pytest.mark.parametrize("name", EVEN)
def test_second_derivatives_of_even_functions_are_the_same_in_all_ways(name: str) -> None:
    """The slopes of the parts cancel or do not at 0; the second derivative is that of both sides."""
    text, expected = EVEN[name]
    one = "  u = f64[] constant(1)\n  o = f64[5] broadcast(u), dimensions={}\n"
    entry = xb.parse_hlo(HEAD.replace("DTYPE", "f64") + one + "  " + text + "\n}\n").entry
    back, along = xb.vjp(entry), xb.jvp(entry)
    ones, zeros = np.ones(5), np.zeros(5)
    for found in (
        evaluate(xb.jvp(back), X, ones, ones, zeros)[0],
        evaluate(xb.jvp(along), X, ones, ones, zeros)[0],
        evaluate(xb.vjp(back), X, ones, ones)[0],
        evaluate(xb.vjp(along), X, ones, ones)[0],
    ):
        np.testing.assert_allclose(found[1:3], [expected] * 2, atol=1e-12)
