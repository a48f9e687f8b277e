"""Forward mode: the transposes of all rules, what jvp takes and gives, and what it does where reverse mode cannot."""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate

from . import rules
from .numeric import Case
from .transposes import check_transposes

MODULES = [importlib.import_module(f"{rules.__name__}.{each.name}") for each in pkgutil.iter_modules(rules.__path__)]
CASES = list({
    str(case): case for module in MODULES for case in getattr(module, "CASES", ()) if isinstance(case, Case)
}.values())  # fmt: skip
EACH = 4  # one case of so many is looked at here


@pytest.mark.parametrize("case", CASES[::EACH], ids=str)
def test_forward_and_backward_are_transposes(case: Case) -> None:
    check_transposes(case)


def test_parameters_and_result() -> None:
    pair = xb.TupleShape((xb.f32[3], xb.s32[2]))

    @xb.computation(pair, xb.f64[()])
    def mixed(pair: xb.Value, y: xb.Value) -> xb.Value:
        x, n = pair
        return xb.tuple_(x * 2.0, n, y * y)

    forward = xb.jvp(mixed)
    assert [p.shape for p in forward.parameters] == [pair, xb.f64[()], xb.f32[3], xb.f64[()]]
    assert forward.root.shape == xb.TupleShape((xb.f32[3], xb.f64[()]))
    assert [p.name for p in forward.parameters[2:]] == ["tangent", "tangent.1"]


def test_nothing_is_recorded_that_the_tangents_do_not_need() -> None:
    forward = xb.jvp(xb.computation(xb.f32[3])(lambda x: xb.reverse(x * 3.0, [0])))
    assert forward is xb.eliminate_dead_code(forward)
    assert [i.opcode for i in forward.instructions] == [
        "parameter", "parameter", "constant", "broadcast", "multiply", "reverse", "tuple"
    ]  # fmt: skip


def test_names_tell_the_instruction() -> None:
    forward = xb.jvp(lambda x: xb.tanh(x, name="squash"))(xb.f32[()])
    made = [i for i in forward.instructions if i.name.startswith("squash.jvp")]
    assert made
    assert {i.annotations["metadata"]["op_name"] for i in made} == {"jvp(squash)"}


def test_forward_over_reverse_and_reverse_over_forward_give_one_hessian() -> None:
    @xb.computation(xb.f64[3])
    def program(x: xb.Value) -> xb.Value:
        return xb.reduce(xb.sin(x) * xb.reduce(x * x, 0.0, xb.add), 0.0, xb.add)

    x, v = np.array([0.3, -0.5, 0.7]), np.array([1.0, 0.25, -2.0])
    (over_reverse,) = evaluate(xb.jvp(xb.grad(program)), x, v)
    along = xb.computation(xb.f64[3], xb.f64[3])(lambda x, v: xb.call((x, v), xb.jvp(program))[0])
    np.testing.assert_allclose(over_reverse, evaluate(xb.grad(along), x, v), rtol=1e-12)
