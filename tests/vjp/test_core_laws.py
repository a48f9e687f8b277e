"""Laws over random programs: forward and backward are transposes, and agree with numeric derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb

from .numeric import Case, check
from .transposes import check_transposes

V, M = xb.f64[3], xb.f64[2, 3]

UNARY = (
    xb.tanh, xb.sin, xb.cos, xb.exp, xb.logistic, xb.negate, xb.abs, lambda x: xb.log(x * x + 1.0),
    lambda x: xb.sqrt(x * x + 1.0), lambda x: xb.reverse(x, [0]), lambda x: xb.concatenate([x, x * 2.0], 0)[1:4],
    lambda x: xb.pad(x, 0.5, [(1, -1, 0)]), lambda x: xb.dynamic_slice(xb.concatenate([x, x], 0), [2], [3]),
    lambda x: xb.reduce(xb.broadcast(x, [4]), 0.0, xb.add, [0]), lambda x: x * xb.reduce(x, 0.0, xb.add),
    lambda x: xb.select(x > 0.1, x * x, xb.sin(x)), lambda x: x / xb.reduce(x * x + 1.0, -np.inf, xb.maximum),
    lambda x: xb.while_((0, x), lambda s: s[0] < 2, lambda s: (s[0] + 1, xb.sin(s[1])))[1],
)  # fmt: skip
BINARY = (
    xb.add, xb.subtract, xb.multiply, xb.maximum, xb.minimum, lambda x, y: x / (y * y + 1.0), xb.atan2,
    lambda x, y: xb.dot(xb.reshape(x, [3, 1]), xb.reshape(y, [1, 3]))[1],
    lambda x, y: xb.conditional(xb.reduce(x, 0.0, xb.add) > 0.0, (x, y), lambda t: t[0] * t[1], y, xb.tanh),
)  # fmt: skip

steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(range(len(UNARY))), st.integers(0, 7), st.none()),
        st.tuples(st.sampled_from(range(len(BINARY))), st.integers(0, 7), st.integers(0, 7)),
    ),
    min_size=1,
    max_size=8,
)


def program(chosen: Any) -> Any:
    """A function that applies steps to its parameters and to what came of them, and gives the last two values."""

    def function(x: xb.Value, y: xb.Value) -> Any:
        values = [x, y]
        for op, first, second in chosen:
            one = values[first % len(values)]
            made = UNARY[op](one) if second is None else BINARY[op](one, values[second % len(values)])
            values.append(made)
        return values[-1], values[-2]

    return function


@settings(max_examples=60, deadline=None)
@given(steps, st.integers(0, 2**31))
def test_forward_and_backward_are_transposes(chosen: Any, seed: int) -> None:
    check_transposes(Case("random", program(chosen), [V, V]), seed)


@settings(max_examples=20, deadline=None)
@given(steps)
def test_twice_forward_and_backward(chosen: Any) -> None:
    """The law for the program of the cotangents itself."""
    back = xb.vjp(xb.computation(V, V)(program(chosen)))
    check_transposes(Case("random", lambda *values: xb.call(values, back), [p.shape for p in back.parameters]), 3)


@pytest.mark.parametrize("seed", range(20))
def test_against_numeric_derivatives(seed: int) -> None:
    chance = np.random.default_rng(seed)
    chosen = [
        (int(chance.integers(len(UNARY))), int(chance.integers(8)), None)
        if chance.random() < 0.5
        else (int(chance.integers(len(BINARY))), int(chance.integers(8)), int(chance.integers(8)))
        for _ in range(6)
    ]
    check(Case("random", program(chosen), [V, V]))
