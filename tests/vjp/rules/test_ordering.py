"""Rules of sort and topk: every dimension, several operands, ties by stability, places that are carried along."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate

from ..numeric import Case, check


def by_first(a: Any, b: Any, *rest: Any) -> Any:
    return a < b


def by_second(a: Any, b: Any, c: Any, d: Any) -> Any:
    return xb.gt(c, d)


CASES = [
    Case("sort a row", lambda x: xb.sort(x), [xb.f64[7]]),
    Case("sort the last dimension", lambda x: xb.sort(x), [xb.f64[3, 5]]),
    Case("sort the first dimension", lambda x: xb.sort(x, dimension=0), [xb.f64[4, 3]]),
    Case("sort the middle dimension, descending", lambda x: xb.sort(x, xb.gt, 1), [xb.f64[2, 4, 3]]),
    Case("sort values by keys", lambda k, x: xb.sort((k, x), by_first), [xb.s32[2, 5], xb.f64[2, 5]]),
    Case("sort by the second", lambda x, y: xb.sort((x, y), by_second, 0), [xb.f64[5, 2], xb.f64[5, 2]]),
    Case("sort nothing", lambda x: xb.sort(x), [xb.f64[3, 0]]),
    Case("sort single elements", lambda x: xb.sort(x), [xb.f64[3, 1]]),
    Case("sort a pair of single elements", lambda x, y: xb.sort((x, y), by_first), [xb.f64[3, 1], xb.f64[3, 1]]),
    Case("sort with places", lambda x: xb.sort((x, xb.iota(x.builder, xb.s32[3, 5], 1)), by_first), [xb.f64[3, 5]]),
    Case("greatest of a row", lambda x: xb.top_k(x, 3), [xb.f64[6]]),
    Case("least of rows", lambda x: xb.top_k(x, 2, largest=False), [xb.f64[2, 3, 5]]),
    Case("greatest, of none", lambda x: xb.top_k(x, 0), [xb.f64[2, 5]]),
    Case("approximately greatest", lambda x: xb.approx_top_k(x, 0.0, 2, 1, xb.gt), [xb.f64[3, 6]]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cotangents_are_those_of_numeric_derivatives(case: Case) -> None:
    check(case)


def test_of_equal_keys_the_first_comes_first() -> None:
    program = xb.computation(xb.f64[4], xb.f64[4])(lambda k, x: xb.sort((k, x), by_first)[1])
    _, found = evaluate(xb.vjp(program), [1.0, 0.0, 1.0, 1.0], [0.0] * 4, [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(found, [2.0, 1.0, 3.0, 4.0])


@pytest.mark.parametrize("count", [1, 2])
def test_a_value_and_its_gradient_need_one_sort(count: int) -> None:
    def function(*values: Any) -> Any:
        ordered = xb.sort(values, by_first)
        return xb.reduce_all(ordered[0] if count > 1 else ordered, 0.0, xb.add)

    program = xb.value_and_grad(xb.computation(*[xb.f64[5]] * count)(function))
    assert sum(i.opcode == "sort" for i in program.instructions) == 1
    x = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    value, slope = evaluate(program, *[x] * count)
    assert value == x.sum()
    np.testing.assert_array_equal(slope, np.ones(5))


def test_places_that_the_program_carries_along_are_used() -> None:
    program = xb.computation(xb.f64[5])(lambda x: xb.sort((x, xb.iota(x.builder, xb.s32[5], 0)), by_first))
    assert sum(i.opcode == "sort" for i in xb.vjp(program).instructions) == 1
