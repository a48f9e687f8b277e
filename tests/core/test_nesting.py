"""Programs whose computations call each other hundreds of levels deep."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate, execute, trace
from xbuild.pages import page_text
from xbuild.process.limits import DEEPEST, depth


def nested(levels: int, innermost: str) -> xb.Module:
    """A program whose entry reaches an op through so many calls."""
    lines = [
        "HloModule deep, replica_count=2",
        "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = add(a, b) }",
    ]
    lines.append(f"level0 {{ x = f32[2] parameter(0) ROOT y = f32[2] {innermost} }}")
    lines += [
        f"level{n} {{ x = f32[2] parameter(0) ROOT y = f32[2] call(x), to_apply=level{n - 1} }}"
        for n in range(1, levels)
    ]
    lines.append(f"ENTRY main {{ x = f32[2] parameter(0) ROOT y = f32[2] call(x), to_apply=level{levels - 1} }}")
    return xb.parse_hlo("\n".join(lines))


INPUTS = [[np.ones(2, np.float32)], [np.full(2, 2, np.float32)]]


@pytest.mark.parametrize("innermost", ["negate(x)", "all-reduce(x), replica_groups={}, to_apply=add"])
def test_calls_may_be_nested_deep(innermost: str) -> None:
    before = sys.getrecursionlimit()
    module = nested(DEEPEST - 1, innermost)
    wanted = [3.0, 3.0] if "all-reduce" in innermost else [-1.0, -1.0]
    assert xb.check(module).kind == "ok"
    assert execute(module, INPUTS)[0].tolist() == wanted
    assert execute(module, INPUTS, strict=True)[0].tolist() == wanted
    assert "level0" in page_text(trace(module, INPUTS))
    assert sys.getrecursionlimit() == before


def test_a_computation_of_one_device_may_be_nested_deep() -> None:
    assert evaluate(nested(DEEPEST, "negate(x)").entry, [1.0, 2.0]).tolist() == [-1.0, -2.0]


def test_deeper_is_refused() -> None:
    module = nested(DEEPEST + 1, "negate(x)")
    assert depth(module.entry) == DEEPEST + 1
    message = f"computations call each other {DEEPEST + 1} levels deep; at most {DEEPEST} levels are allowed"
    for use in (lambda: xb.check(module), lambda: execute(module, INPUTS, check=False)):
        with pytest.raises(xb.BuildError, match=message) as raised:
            use()
        assert raised.value.kind == "nested_too_deep"
