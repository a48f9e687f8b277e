"""Functions of complex numbers on an axis, as XLA writes them: with a select that keeps infinity times 0 away."""

from __future__ import annotations

import cmath

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate

EXPONENTIAL = """HloModule m

ENTRY main {
  z = c128[4] parameter(0)
  x = f64[4] real(z)
  y = f64[4] imag(z)
  zero = f64[] constant(0)
  zeros = f64[4] broadcast(zero), dimensions={}
  e = f64[4] exponential(x)
  c = f64[4] cosine(y)
  s = f64[4] sine(y)
  re = f64[4] multiply(e, c)
  at = pred[4] compare(COMPARED), direction=DIRECTION
  product = f64[4] multiply(e, s)
  im = f64[4] select(at, SIDES)
  ROOT r = c128[4] complex(re, im)
}
"""
FORMS = {
    "equal": ("y, zeros", "EQ", "zeros, product"),
    "not equal": ("y, zeros", "NE", "product, zeros"),
    "0 first": ("zeros, y", "EQ", "zeros, product"),
}
Z = np.asarray([0, 1.5, -2, 0.5 + 2j])
T = np.asarray([1 + 0.5j, 2j, 1 - 3j, 1 + 1j])


@pytest.mark.parametrize("form", FORMS)
def test_the_exponential_is_its_own_derivative_on_the_real_axis(form: str) -> None:
    text = EXPONENTIAL
    for key, value in zip(("COMPARED", "DIRECTION", "SIDES"), FORMS[form], strict=True):
        text = text.replace(key, value)
    entry = xb.parse_hlo(text).entry
    expected = np.asarray([cmath.exp(z) for z in Z]) * T
    back, along = xb.vjp(entry), xb.jvp(entry)
    np.testing.assert_allclose(evaluate(back, Z, T)[0], expected, rtol=1e-12)
    np.testing.assert_allclose(evaluate(along, Z, T)[0], expected, rtol=1e-12)
    second = evaluate(xb.jvp(back), Z, T, np.ones(4, complex), np.zeros(4, complex))[0]
    np.testing.assert_allclose(second, expected, rtol=1e-12)


def test_sides_that_differ_on_the_axis_keep_their_own_derivatives() -> None:
    def chosen(z: xb.Value) -> xb.Value:
        return xb.select(xb.eq(xb.real(z), 0.0), z * 5.0, z * z)

    program = xb.computation(xb.c128[3])(chosen)
    for derivative in (xb.vjp, xb.jvp):
        np.testing.assert_allclose(evaluate(derivative(program), [1j, 2j, 1], np.ones(3, complex))[0], [5, 5, 2])
