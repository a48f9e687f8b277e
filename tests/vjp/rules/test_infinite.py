"""Factors that are infinite, in branches that a select leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np

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
