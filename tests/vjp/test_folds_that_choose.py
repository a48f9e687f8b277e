"""Folds whose reducer chooses an element, or is one associative function: their derivatives in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate

X = np.asarray([[0.5, 2.0, 2.0, -1.0], [1.5, 0.25, 1.5, 1.5], [-3.0, -3.0, 4.0, 0.0]], np.float32)
M = xb.f32[3, 4]


def _by_first(a: Any, i: Any, b: Any, j: Any) -> tuple[Any, Any]:
    keeps = xb.ge(a, b)
    return xb.select(keeps, a, b), xb.select(keeps, i, j)


def _by_last(a: Any, i: Any, b: Any, j: Any) -> tuple[Any, Any]:
    keeps = xb.gt(a, b)
    return xb.select(keeps, a, b), xb.select(keeps, i, j)


def _logaddexp(a: Any, b: Any) -> Any:
    apart = a - b
    whole = xb.maximum(a, b) + xb.log1p(xb.exp(-xb.abs(apart)))
    return xb.select(xb.ne(apart, apart), a + b, whole)


def _numbers(x: Any, dimension: int) -> Any:
    return xb.iota(x.builder, shape=xb.s32[3, 4], iota_dimension=dimension)


def _spread_numbers(x: Any) -> Any:
    return xb.broadcast(xb.iota(x.builder, shape=xb.s32[4], iota_dimension=0), (3, 4), (1,))


def pairs(
    reducer: Callable[..., Any], numbers: Callable[[Any], Any], dimensions: tuple[int, ...], init: float = -np.inf
):  # type: ignore[no-untyped-def]
    def function(x: Any) -> Any:
        inits = (xb.constant(x.builder, np.float32(init)), xb.constant(x.builder, np.int32(0)))
        return xb.ops.get_tuple_element(
            xb.ops.reduce((x, numbers(x)), inits, to_apply=reducer, dimensions=dimensions), index=0
        )

    return function


def _at(*places: tuple[int, int]) -> np.ndarray[Any, Any]:
    found = np.zeros(X.shape, np.float32)
    for place in places:
        found[place] = 1
    return found


@pytest.mark.parametrize(
    ("function", "winners"),
    [
        (pairs(_by_first, _spread_numbers, (1,)), _at((0, 1), (1, 0), (2, 2))),
        (pairs(_by_last, _spread_numbers, (1,)), _at((0, 2), (1, 3), (2, 2))),
        (pairs(_by_first, lambda x: _numbers(x, 1), (1,)), _at((0, 1), (1, 0), (2, 2))),
        (pairs(_by_first, lambda x: _numbers(x, 0), (1,)), _at((0, 1), (1, 0), (2, 2))),
        (pairs(_by_first, lambda x: _numbers(x, 0), (0,)), _at((1, 0), (0, 1), (2, 2), (1, 3))),
        (pairs(_by_first, _spread_numbers, (0, 1)), _at((2, 2))),
        (pairs(_by_first, _spread_numbers, (1,), 3.0), _at((2, 2))),
    ],
)
def test_what_is_chosen_has_the_derivative(function: Any, winners: np.ndarray[Any, Any]) -> None:
    program = xb.computation(M)(function)
    result = evaluate(program, X)
    ct = np.ones(np.shape(result), np.float32)
    np.testing.assert_array_equal(evaluate(xb.vjp(program), X, ct)[0], winners)
    tangent = np.arange(12, dtype=np.float32).reshape(3, 4)
    pushed = evaluate(xb.jvp(program), X, tangent)[0]
    np.testing.assert_allclose(np.sum(pushed), np.sum(tangent * winners))


@pytest.mark.parametrize("dimensions", [(0,), (1,), (0, 1)])
def test_a_fold_by_an_associative_function_has_that_of_the_function(dimensions: tuple[int, ...]) -> None:
    def fold(x: Any) -> Any:
        return xb.ops.reduce(
            (x,), (xb.constant(x.builder, np.float32(-np.inf)),), to_apply=_logaddexp, dimensions=dimensions
        )

    program = xb.computation(M)(fold)
    sizes = np.exp(X.astype(np.float64))
    weights = sizes / sizes.sum(dimensions, keepdims=True)
    ct = np.ones(np.shape(evaluate(program, X)), np.float32)
    np.testing.assert_allclose(evaluate(xb.vjp(program), X, ct)[0], weights, rtol=1e-5)
    tangent = np.ones((3, 4), np.float32)
    np.testing.assert_allclose(evaluate(xb.jvp(program), X, tangent)[0], ct, rtol=1e-5)


@pytest.mark.parametrize("derivative", [xb.vjp, xb.jvp])
def test_a_branch_that_is_left_out_adds_nothing(derivative: Any) -> None:
    def function(x: Any) -> Any:
        root = xb.sqrt(x)
        return xb.select(xb.gt(x, 0.0), root * xb.log(x), x * 3.0) + xb.select(xb.gt(x, 1.0), 1.0 / root, x)

    program = xb.computation(xb.f32[2])(function)
    found = evaluate(derivative(program), np.zeros(2, np.float32), np.ones(2, np.float32))[0]
    np.testing.assert_array_equal(found, [4, 4])


@pytest.mark.parametrize("dtype", [xb.f32, xb.bf16, xb.f64], ids=str)
@pytest.mark.parametrize("derivative", [xb.vjp, xb.grad])
def test_a_fold_that_is_associative_for_small_numbers_alone_is_refused(derivative: Any, dtype: Any) -> None:
    def limited(a: Any, b: Any) -> Any:
        limit = xb.constant(a.builder, np.asarray(1000, dtype.dtype))
        return xb.select(xb.maximum(a, b) > limit, a + b, xb.maximum(a, b))

    def function(x: Any) -> Any:
        init = xb.constant(x.builder, np.asarray(-np.inf, dtype.dtype))
        return xb.ops.reduce((x,), (init,), to_apply=limited, dimensions=(0,))

    with pytest.raises(xb.XbuildError, match="derivative"):
        derivative(xb.computation(dtype[6])(function))
