"""Factors that are infinite, in branches that a select leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate


def guarded(x: Any) -> Any:
    """As XLA expands the inverse error function: infinite at the ends, something else in between."""
    infinite = x * xb.constant(x.builder, float("inf"), xb.f64)
    return xb.select(xb.eq(xb.abs(x), 1.0), infinite, x * x)


PROGRAM = xb.computation(xb.f64[3])(guarded)
POINTS = [0.5, -0.25, 0.75]


def test_a_branch_that_is_left_out_gives_no_nan() -> None:
    (found,) = evaluate(xb.vjp(PROGRAM), POINTS, [1.0, 1.0, 2.0])
    np.testing.assert_array_equal(found, [1.0, -0.5, 3.0])


def test_nor_do_tangents() -> None:
    (found,) = evaluate(xb.jvp(PROGRAM), POINTS, [1.0, 1.0, 2.0])
    np.testing.assert_array_equal(found, [1.0, -0.5, 3.0])


def test_what_is_taken_is_infinite() -> None:
    (found,) = evaluate(xb.vjp(PROGRAM), [1.0, -1.0, 0.5], [1.0, 2.0, 1.0])
    np.testing.assert_array_equal(found, [np.inf, np.inf, 1.0])


LEFT_OUT = {
    "a square": lambda x: xb.select(x < 1.0, x * x, 0.0),
    "a product": lambda x: xb.select(x < 1.0, x * (x * x + 1.0), 0.0),
    "a sine": lambda x: xb.select(x < 1.0, xb.sin(x), 0.0),
    "a branch in a branch": lambda x: xb.select(x < 1.0, xb.select(x < 0.0, x * x, xb.exp(x) * x), 0.0),
    "what two branches need": lambda x: xb.select(
        x < 0.0, xb.exp(x * x), xb.select(x < 1.0, xb.sin(x * x), xb.constant(x.builder, 0.0, xb.f64))
    ),
    "what is compared, too": lambda x: xb.select(x * x < 1.0, x * x, 0.0),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_infinite_operands_of_a_branch_that_is_left_out_give_no_nan(name: str) -> None:
    program = xb.computation(xb.f64[()])(LEFT_OUT[name])
    for point in (np.inf, np.nan):
        assert evaluate(xb.vjp(program), point, 1.0) == evaluate(xb.jvp(program), point, 1.0) == (0.0,)
    for derivative in (xb.vjp, xb.jvp):  # at a smooth point
        values = [evaluate(program, 0.5 + step) for step in (-1e-5, 1e-5)]
        np.testing.assert_allclose(
            evaluate(derivative(program), 0.5, 1.0)[0], (values[1] - values[0]) / 2e-5, rtol=1e-8
        )


def test_a_cotangent_that_happens_to_be_zero_keeps_its_derivative() -> None:
    """Both branches need the logarithm, whose cotangent is 0 at 1, and changes there."""

    def squared(x: xb.Value) -> xb.Value:
        log = xb.log(x)
        inner = xb.select(x > 2.0, log * log * log, xb.constant(x.builder, 0.0, xb.f64))
        return xb.select(x > 0.5, log * log, inner)

    first = xb.grad(xb.computation(xb.f64[()])(squared))
    assert evaluate(xb.grad(first), 1.0) == 2
    assert evaluate(xb.jvp(first), 1.0, 1.0) == (2.0,)
