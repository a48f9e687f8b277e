"""Conditions of `xbuild step` on values and on summaries, which say where they cannot decide."""

from __future__ import annotations

import io
import itertools
import time
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import trace
from xbuild.stepping import Shell
from xbuild.stepping.conditions import ConditionError, condition, expression
from xbuild.traces import Trace
from xbuild.traces.summary import summary

TEXTS = [
    "any(isnan(v))", "all(isfinite(v))", "any(isinf(v))", "isnan(v)", "not any(isnan(v))", "max(v) > 3", "min(v) < -1",
    "v > 3", "v >= 2", "v < 0", "v <= -2", "v == 2", "v != 2", "3 < v", "all(v > -1)", "all(v < 5)", "all(v == 2)",
    "any(v == 0.5)", "abs(v) > 2", "max(abs(v)) < 2.5", "min(abs(v)) == 0", "all(abs(v) < 9)", "0 < min(v) < 3",
    "any(isnan(v)) or max(v) > 1", "any(isnan(v)) and any(isinf(v))", "not all(isfinite(v))", "mean(v) > 100",
    "any(v != 2)", "all(v != 7)", "v > 1e30", "v == 1e400", "sum(v) > 0", "v + 1 > 2", "v[0] > 1",
]  # fmt: skip
PARTS = [0.0, 2.0, -2.0, 5.0, np.nan, np.inf, -np.inf]
ARRAYS = [np.array(each, np.float32) for count in (1, 2, 3) for each in itertools.product(PARTS, repeat=count)]


@pytest.mark.parametrize("text", TEXTS)
def test_a_summary_decides_what_the_whole_value_would(text: str) -> None:
    """Whatever is decided is so; and what the figures tell is decided."""
    holds = condition(text)
    decided = 0
    for array in ARRAYS:
        told = holds(summary(array))
        assert told in (None, holds(array)), (text, array)
        decided += told is not None
    counted = any(word in text for word in ("isnan", "isfinite", "isinf")) and "max" not in text
    assert decided == len(ARRAYS) if counted else decided >= 0
    finite = [array for array in ARRAYS if np.isfinite(array).all()]
    if not any(word in text for word in ("==", "!=", "sum", "+", "[", "min(abs", "mean")):
        assert all(holds(summary(array)) is not None for array in finite), text


@pytest.mark.parametrize(
    "text",
    [
        "abs(v, v)", "abs(v, out=v)", "max(v, 0)", "max(*v)", "max(**v)", "abs()", "v.fill(0)", "v.__class__",
        "abs.__self__", "(lambda: v)()", "[v for v in v]", "{v}", "(x for x in v)", "9**9**9", "'a' * 10**9", "b'a'",
        "(1,) * 1000000000", "(v, v)", "[v] * 9", "v if v else v", "f'{v}'", "v @ v", "v << 99", "~v", "v is v",
        "v in v", "(v := 1)", "await v", "yield", "__import__('os')", "open", "abs", "abs(abs)", "v[abs]", "...",
        "None", "True", "1j", "99999999999999999999999", "v[...]", "v[None]", "v[::v]", "max(v)(v)", "print(v)",
        "(" * 300 + "v" + ")" * 300, "v" * 2000, "1 " * 900, "\x00", "v\nv", "import os",
    ],
)  # fmt: skip
def test_what_is_no_condition_is_refused_and_changes_nothing(text: str) -> None:
    value = np.array([[1.0, -2.0], [3.0, -4.0]], np.float32)
    before, begin = value.copy(), time.perf_counter()
    with pytest.raises(ConditionError):
        expression(text)(value)
    assert time.perf_counter() - begin < 2
    np.testing.assert_array_equal(value, before)
    assert value.flags.writeable


@pytest.mark.parametrize("text", ["v[v]", "v[v[v]]", "v[v[v[v]]]", "v[v, v]", "v[v > 1, 0]"])
def test_no_value_grows_by_its_own_elements(text: str) -> None:
    with pytest.raises(ConditionError, match="an index must be a number"):
        expression(text)(np.zeros((64, 64), np.int32))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("v", [[1, 2], [3, 4]]), ("v[0]", [1, 2]), ("v[0, 1:2]", [2]), ("v[::-1, 0]", [3, 1]), ("v[v > 2]", [3, 4]),
        ("v[-1][0]", 3), ("-v + 1", [[0, -1], [-2, -3]]), ("(v > 1) * 2", [[0, 2], [2, 2]]),
        ("-" * 900 + "v", [[1, 2], [3, 4]]), ("v % 2 == 0", [[0, 1], [0, 1]]),
        ("sum(v) // 3", 3), ("max(v) / 2", 2.0), ("1 < max(v) < 9", True), ("+v", [[1, 2], [3, 4]]),
    ],
)  # fmt: skip
def test_what_a_text_makes_of_a_value(text: str, wanted: Any) -> None:
    np.testing.assert_array_equal(expression(text)(np.array([[1, 2], [3, 4]])), wanted)


def large_trace(**options: Any) -> Trace:
    """The first NaN is in an array of 5,000 elements, which is kept as a summary."""

    @xb.computation(xb.f32[5000])
    def program(x: xb.Value) -> xb.Value:
        risen = xb.add(x, 1.0, name="risen")
        logged = xb.log(risen, name="logged")
        return xb.reduce(xb.exp(logged, name="last"), np.float32(0), xb.add, (0,), name="total")

    x = np.linspace(1, 2, 5000, dtype=np.float32)
    x[77] = -5.0
    return trace(xb.Module("large", program), [[x]], **options)


def said(found: Trace, *lines: str) -> str:
    out = io.StringIO()
    Shell(found, io.StringIO("\n".join((*lines, ""))), out).cmdloop()
    return out.getvalue()


def test_the_first_nan_of_a_large_value_is_found() -> None:
    found = large_trace()
    assert not any(isinstance(found.values[n], np.ndarray) and found.values[n].size > 4096 for n in found.values)
    lines = said(found, "until any(isnan(v))").splitlines()
    assert any("logged = f32[5000]" in line for line in lines)
    assert not any("undecided" in line for line in lines)
    assert "risen = f32[5000]" in said(found, "until min(v) < -3")


def test_what_cannot_be_decided_is_told() -> None:
    told = said(large_trace(), "until sum(v) == 12345")
    assert "undecided for 4 values in between that are not fully recorded: the first is" in told
    assert "no value on this device after this place satisfies sum(v) == 12345" in told
    told = said(large_trace(), "until logged sum(v) > 3")
    assert "for 1 value in between" in told
    told = said(large_trace(bytes=0), "until any(isnan(v))")
    assert "undecided for" in told
    assert "'sum(v)' is undecided: the trace holds only a summary of the value" in said(
        large_trace(), "to end", "print logged sum(v)"
    )
    assert "logged any(isnan(v)) = True" in said(large_trace(), "to end", "print logged any(isnan(v))")
