"""Options of derivatives of a wrong type, or that name nothing, are refused at the call; kept values are bounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate
from tests.support.hostile import doubling
from xbuild.differentiation import calls


@xb.computation(xb.f64[3])
def looped(x: Any) -> Any:
    start = xb.constant(x.builder, np.int32(0))
    return xb.reduce(xb.while_((start, x), lambda s: s[0] < 3, lambda s: (s[0] + 1, xb.sin(s[1])))[1], 0.0, xb.add)


LOOP = next(i.name for i in looped.instructions if i.opcode == "while")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint": 3}, "names of loops"),
        ({"checkpoint": LOOP}, "is a string, not a sequence of names"),
        ({"checkpoint": ["nothing"]}, rf"'nothing'.*the program has {LOOP}"),
        ({"max_trips": -1}, "must be an int that is 0 or more"),
        ({"max_trips": 2.5}, "must be an int that is 0 or more"),
        ({"max_trips": True}, "must be an int that is 0 or more"),
        ({"argnums": "x"}, "number of a parameter"),
        ({"argnums": None}, "number of a parameter"),
        ({"argnums": (0, 1.0)}, "number of a parameter"),
    ],
)
def test_refused(options: dict[str, Any], message: str) -> None:
    for program in (looped, xb.Module("looped", looped)):
        with pytest.raises(xb.XbuildError, match=message) as caught:
            xb.grad(program, **options)
        assert caught.value.kind == "invalid_attribute"


def test_a_loop_is_named() -> None:
    x = np.ones(3)
    np.testing.assert_array_equal(evaluate(xb.grad(looped, checkpoint=[LOOP]), x), evaluate(xb.grad(looped), x))


@pytest.mark.slow
def test_a_derivative_of_a_function_has_derivatives() -> None:
    second = xb.grad(xb.grad(lambda x: x * x * x))(xb.f64[()])
    assert evaluate(second, 2.0) == 12.0
    along = xb.jvp(xb.grad(lambda x: xb.reduce(x * x * x, 0.0, xb.add)))(xb.f64[2])
    np.testing.assert_array_equal(evaluate(along, [1.0, 2.0], [1.0, 1.0])[0], [6.0, 12.0])


@pytest.mark.parametrize("how", ["call", "fusion", "conditional"])
def test_a_call_that_would_keep_too_many_values_is_computed_again(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = xb.parse_hlo(doubling(how, 6, "cosine(x)")).entry
    whole = [evaluate(xb.grad(entry), x) for x in (-0.7, 0.3)]
    monkeypatch.setattr(calls, "MOST_KEPT", 3)
    again = xb.grad(entry)
    assert [evaluate(again, x) for x in (-0.7, 0.3)] == whole


@pytest.mark.parametrize("how", ["call", "fusion", "map", "conditional"])
@pytest.mark.parametrize("leaf", ["negate(x)", "sine(x)"])
def test_the_derivative_of_calls_that_double_is_as_small_as_they_are(how: str, leaf: str) -> None:
    """Each of 45 levels calls the one before twice: 2^45 executions of the leaf."""
    derivative = xb.grad(xb.parse_hlo(doubling(how, 45, leaf)).entry)
    assert sum(len(each.instructions) for each in derivative.reachable()) < 100_000
