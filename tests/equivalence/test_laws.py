"""Pairs of programs that are the same function, and pairs that are not, or of which no law says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from tests.equivalence import expressions

f = xb.f32
V, M = f[8], f[4, 6]


def dot(a: Any, b: Any) -> Any:
    return xb.dot_general(a, b, [1], [0])


def turned(x: Any) -> Any:
    return xb.transpose(x, [1, 0])


def largest(x: Any) -> Any:
    return xb.reduce(x, -np.inf, xb.maximum, (0,))


def total(x: Any, *dims: int) -> Any:
    return xb.reduce(x, 0.0, xb.add, dims or None)


def spread(x: Any, like: Any, *dims: int) -> Any:
    return xb.broadcast_in_dim(x, like.shape.dims, dims)


def parts(x: Any) -> Any:
    return total(x[:2], 0) + total(x[2:], 0)


def softmax(x: Any, divide: Callable[[Any, Any], Any]) -> Any:
    weights = xb.exp(x)
    return divide(weights, spread(total(weights, 1), x, 0))


def loop(x: Any, count: int) -> Any:
    def body(state: Any) -> Any:
        return xb.tuple_([state[0] + np.int32(1), state[1] * state[1] + state[2], state[2]])

    return xb.while_((np.int32(0), x, x), lambda state: state[0] < np.int32(count), body, builder=x.builder)[1]


EQUAL: dict[str, tuple[list[Any], Callable[..., Any], Callable[..., Any]]] = {
    "commutative": ([V, V], lambda x, y: x + y, lambda x, y: y + x),
    "associative": ([V, V, V], lambda x, y, z: (x + y) + z, lambda x, y, z: x + (z + y)),
    "distributive": ([V, V, V], lambda x, y, z: x * (y + z), lambda x, y, z: x * z + x * y),
    "parts of a sum": ([M], lambda x: total(x, 0), parts),
    "transposed dot": ([M, f[6, 3]], dot, lambda x, y: turned(dot(turned(y), turned(x)))),
    "dot as a sum": ([M, f[6]], dot, lambda x, y: total(x * spread(y, x, 1), 1)),
    "associative dot": ([M, f[6, 5], f[5, 2]], lambda x, y, z: dot(dot(x, y), z), lambda x, y, z: dot(x, dot(y, z))),
    "blocks of a dot": ([M, f[6, 3]], dot, lambda x, y: dot(x[:, :2], y[:2]) + dot(x[:, 2:], y[2:])),
    "quotient": ([V, V], lambda x, y: x / y, lambda x, y: x * (1.0 / y)),
    "softmax": ([M], lambda x: softmax(x, lambda a, b: a / b), lambda x: softmax(x, lambda a, b: a * (1.0 / b))),
    "maximum": ([V, V], xb.max, lambda x, y: xb.select(x > y, x, y)),
    "relu": ([V], xb.relu, lambda x: xb.select(x > 0.0, x, x * 0.0)),
    "minimum": ([V, V], xb.min, lambda x, y: -xb.max(-x, -y)),
    "maximum of parts": ([M], largest, lambda x: xb.max(largest(x[:1]), largest(x[1:]))),
    "odd": ([V], lambda x: xb.tanh(-x), lambda x: -xb.tanh(x)),
    "even": ([V], lambda x: xb.cos(-x), xb.cos),
    "powers": ([V], lambda x: x * x * x, lambda x: xb.pow(x, 3.0)),
    "square root": ([V], xb.sqrt, lambda x: 1.0 / xb.rsqrt(x)),
    "expm1": ([V], xb.expm1, lambda x: xb.exp(x) - 1.0),
    "precision": ([V], lambda x: x * 0.1, lambda x: xb.convert(xb.convert(x, xb.bf16) * 0.1, xb.f32)),
    "zeros of exp": ([V], lambda x: xb.exp(x * 0.0), lambda x: x * 0.0 + 1.0),
    "masked by minus infinity": ([V], lambda x: total(xb.exp(x[:4])),
                                 lambda x: total(xb.exp(xb.pad(x[:4], -np.inf, [(0, 4)])))),
    "unrolled loop": ([V], lambda x: loop(x, 2), lambda x: (x * x + x) * (x * x + x) + x),
    "sort is a permutation": ([V], total, lambda x: total(xb.sort(x))),
    "sorted maximum": ([V], lambda x: xb.reduce(x, -np.inf, xb.maximum), lambda x: xb.reshape(xb.sort(x)[7:], [])),
    "integers as floats": ([xb.s32[8]], lambda n: xb.convert(n, f) * 2.0, lambda n: xb.convert(n + n, f)),
    "complex": ([V, V], lambda x, y: xb.real(xb.complex(x, y) * xb.complex(x, y)), lambda x, y: x * x - y * y),
}  # fmt: skip

UNEQUAL: dict[str, tuple[list[Any], Callable[..., Any], Callable[..., Any]]] = {
    "sign": ([V, V], lambda x, y: x - y, lambda x, y: y - x),
    "another operand": ([V, V], lambda x, y: x * x + y, lambda x, y: x * y + y),
    "one element": ([M], lambda x: total(x, 0), lambda x: total(x[1:], 0)),
    "a number": ([V], lambda x: x * 0.5, lambda x: x * 0.25),
    "another function": ([V], xb.tanh, xb.sin),
    "order of a dot": ([f[4, 4], f[4, 4]], dot, lambda x, y: dot(y, x)),
    "axis": ([f[4, 4]], lambda x: total(x, 0), lambda x: total(x, 1)),
    "trips": ([V], lambda x: loop(x, 2), lambda x: loop(x, 3)),
    "maximum or sum": ([V, V], xb.max, lambda x, y: x + y),
    "integers": ([xb.s32[8]], lambda n: n + n, lambda n: n * n),
    "halves of numbers": ([xb.s32[8]], lambda n: n / np.int32(2), lambda n: n >> np.int32(1)),
}  # fmt: skip

OPEN: dict[str, tuple[list[Any], Callable[..., Any], Callable[..., Any]]] = {
    "sine of twice": ([V], lambda x: xb.sin(x + x), lambda x: 2.0 * xb.sin(x) * xb.cos(x)),
    "scaled maximum in blocks": ([V], lambda x: largest(x + x), lambda x: 2.0 * xb.max(largest(x[:3]), largest(x[3:]))),
    "sine and cosine": ([V], lambda x: xb.sin(x) * xb.sin(x) + xb.cos(x) * xb.cos(x), lambda x: x * 0.0 + 1.0),
}  # fmt: skip


def verdict(case: tuple[list[Any], Callable[..., Any], Callable[..., Any]]) -> Any:
    shapes, left, right = case
    return xb.equivalent(*(xb.computation(*shapes)(each) for each in (left, right)))


@pytest.mark.parametrize("name", EQUAL)
def test_equal_programs_are_accepted(name: str) -> None:
    found = verdict(EQUAL[name])
    assert found, str(found)
    assert found.log2_error < -60


@pytest.mark.parametrize("name", UNEQUAL)
def test_unequal_programs_are_refused(name: str) -> None:
    found = verdict(UNEQUAL[name])
    assert found.kind == "different"
    assert found.difference is not None


@pytest.mark.parametrize("name", OPEN)
def test_laws_of_functions_are_left_open_and_named(name: str) -> None:
    found = verdict(OPEN[name])
    assert found.kind == "undecided"
    assert found.undecided


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(6)), st.integers(1, 5))
def test_sums_in_any_order_and_grouping_are_equal(order: list[int], cut: int) -> None:
    def grouped(*xs: Any) -> Any:
        left, right = ([xs[n] for n in part] for part in (order[:cut], order[cut:]))
        return sum(left[1:], left[0]) + sum(right[1:], right[0])

    def lacking(*xs: Any) -> Any:
        return grouped(*xs) - xs[order[0]]

    plain = xb.computation(*[V] * 6)(lambda *xs: sum(xs[1:], xs[0]))
    assert xb.equivalent(plain, xb.computation(*[V] * 6)(grouped))
    assert xb.equivalent(plain, xb.computation(*[V] * 6)(lacking)).kind == "different"


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_what_is_found_equal_has_the_same_values(seed: int) -> None:
    pair = expressions.pair(seed)
    if pair.verdict():
        assert pair.apart() <= 1e-6
