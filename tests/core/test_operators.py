"""Operators of Python on values, computed in a run: equality, floor division, and shifts give what NumPy gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate


def test_equality_is_computed_with_the_values_of_the_run() -> None:
    @xb.computation(xb.f32[3])
    def entry(x: xb.Value) -> Any:
        return xb.select(x == 0, x, 1.0), x != np.float32([1, 2, 3]), x == x

    chosen, differs, same = evaluate(entry, np.float32([0, np.nan, 3]))
    assert chosen.tolist() == [0, 1, 1]
    assert differs.tolist() == [True, True, False]
    assert same.tolist() == [True, False, True]


INTEGERS = [-128, -9, -8, -7, -1, 0, 1, 6, 7, 8, 127]
FLOATS = [-np.inf, -7.5, -2.0, -0.25, -0.0, 0.0, 1e-3, 0.1, 1.0, 2.5, 7.0, 1e30, np.inf, np.nan]


def pairs(numbers: list[Any], dtype: Any) -> Iterator[Any]:
    return (each.ravel() for each in np.meshgrid(np.array(numbers, dtype), np.array(numbers, dtype)))


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.float16, np.float32, np.float64])
def test_floor_division_rounds_down(dtype: Any) -> None:
    """NumPy's, but for integers divided by zero, which it leaves undefined, and for the sign of a zero."""
    numbers = [n for n in INTEGERS if n >= np.iinfo(dtype).min] if np.issubdtype(dtype, np.integer) else FLOATS
    left, right = pairs([n for n in numbers if dtype is not np.float16 or abs(n) != 1e30], dtype)
    if np.issubdtype(dtype, np.integer):
        left, right = left[right != 0], right[right != 0]
    shape = xb.primitive_type(dtype)[left.shape]
    result = evaluate(xb.computation(shape, shape)(lambda x, y: x // y), left, right)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(result, left // right, strict=True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_a_right_shift_keeps_the_sign_of_signed_integers(dtype: Any) -> None:
    numbers = np.array([-128, -3, 5, 127], np.int8).view(dtype)
    entry = xb.computation(xb.primitive_type(dtype)[numbers.shape])(lambda x: (x >> 1, x << 1))
    for result, expected in zip(evaluate(entry, numbers), (numbers >> 1, numbers << 1), strict=True):
        np.testing.assert_array_equal(result, expected, strict=True)
