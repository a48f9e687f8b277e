"""Derivatives of loops, branches, calls and scans: against numeric ones, twice, with recomputation, both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate

from .control_flow import CASES, V, squared
from .numeric import Case, check, drawn
from .transposes import check_transposes


@pytest.mark.parametrize("case", CASES, ids=str)
def test_against_numeric_derivatives(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_twice(case: Case) -> None:
    back = xb.vjp(xb.computation(*case.shapes)(case.function))
    shapes = [p.shape for p in back.parameters]
    check(Case(case.name, lambda *given: _inlined(back, given), shapes, case.given))


def _inlined(computation: xb.Computation, given: Any) -> xb.Value:
    return xb.call(given, computation)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward_and_backward_are_transposes(case: Case) -> None:
    check_transposes(case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_computed_again_is_the_same(case: Case) -> None:
    program = xb.computation(*case.shapes)(case.function)
    kept, again = xb.vjp(program), xb.vjp(program, checkpoint=True)
    chance = np.random.default_rng(1)
    arguments = [
        np.asarray(case.given[n]).astype(p.shape.dtype.dtype) if n in case.given else drawn(chance, p.shape)
        for n, p in enumerate(kept.parameters)
    ]
    for one, other in zip(evaluate(kept, *arguments), evaluate(again, *arguments), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_text_of_a_derivative_is_read_again(case: Case) -> None:
    module = xb.Module("m", xb.vjp(xb.computation(*case.shapes)(case.function)))
    assert xb.same_structure(module, xb.parse_hlo(str(module)))


def test_checkpoint_keeps_less() -> None:
    @xb.computation(V)
    def deep(x: xb.Value) -> xb.Value:
        state = xb.while_((0, x), lambda s: s[0] < 9, lambda s: (s[0] + 1, xb.sin(xb.cos(xb.tanh(s[1])))))
        return squared(state[1])

    whole, less = (_stacks(xb.grad(deep, checkpoint=chosen)) for chosen in (False, True))
    loop = next(i.name for i in deep.instructions if i.opcode == "while")
    assert (whole, less, _stacks(xb.grad(deep, checkpoint=[loop]))) == (2, 1, 1)


def _stacks(program: xb.Computation) -> int:
    """How many values a loop keeps for each trip."""
    first = next(i for i in program.instructions if i.opcode == "while")
    return sum(leaf.dims[:1] == (9,) for leaf in first.shape.elements)  # type: ignore[union-attr]


def _until(x: xb.Value) -> xb.Value:
    doubled = xb.while_(x, lambda s: squared(s) < 100.0, lambda s: s * 2.0 + xb.sin(s))
    return squared(doubled)


def test_loop_of_unknown_length_is_refused_with_its_line_and_ways_out() -> None:
    with pytest.raises(xb.ShapeError) as caught:
        xb.grad(xb.computation(V)(_until))
    text = str(caught.value)
    assert caught.value.kind == "not_differentiable"
    assert text.startswith("derivative of while %while")
    for part in ("its trip count is unknown", "max_trips=", "test_control_flow.py:"):
        assert part in text


@pytest.mark.parametrize(("most", "is_enough"), [(20, True), (3, True), (2, False)])
def test_loop_of_unknown_length_up_to_a_bound(most: int, is_enough: bool) -> None:
    program = xb.computation(V)(_until)
    x = np.array([0.3, 0.5, 0.7])
    found = evaluate(xb.grad(program, max_trips=most), x)
    if not is_enough:
        assert np.isnan(found).all()
        return
    numeric = [(evaluate(program, x + step) - evaluate(program, x - step)) / 2e-6 for step in np.eye(3) * 1e-6]
    np.testing.assert_allclose(found, numeric, rtol=1e-6)
    (tangent,) = evaluate(xb.jvp(program), x, np.array([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(tangent, found[0], rtol=1e-12)


def test_a_loop_adds_nothing_that_is_not_needed() -> None:
    """A loop that is linear in what varies keeps no values."""

    @xb.computation(V)
    def linear(x: xb.Value) -> xb.Value:
        state = xb.while_((0, x), lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 3.0))
        return xb.reduce(state[1], 0.0, xb.add)

    gradient = xb.grad(linear)
    assert sum(i.opcode == "while" for i in gradient.instructions) == 1
    np.testing.assert_array_equal(evaluate(gradient, np.ones(3)), 3.0**5 * np.ones(3))


def test_elements_of_a_state_that_the_gradient_does_not_need_are_left_out() -> None:
    def body(s: xb.Value) -> Any:
        i, x, log, other = s
        return i + 1, xb.sin(x), xb.dynamic_update_slice(log, xb.reshape(x, [1, 3]), [i, 0]), other * 2.0

    @xb.computation(V, xb.f64[5, 3], V)
    def logged(x: xb.Value, log: xb.Value, other: xb.Value) -> xb.Value:
        return squared(xb.while_((0, x, log, other), lambda s: s[0] < 5, body)[1])

    gradient = xb.grad(logged)
    states = [i.shape for i in gradient.instructions if i.opcode == "while"]
    assert [len(state) for state in states] == [3, 3]  # type: ignore[arg-type]
    x = np.array([0.3, 0.5, 0.7])
    found = evaluate(gradient, x, np.zeros((5, 3)), x)
    plain = xb.computation(V)(lambda y: squared(xb.sin(xb.sin(xb.sin(xb.sin(xb.sin(y)))))))
    np.testing.assert_allclose(found, evaluate(xb.grad(plain), x), rtol=1e-12)


@pytest.mark.parametrize("again", [False, True])
def test_a_long_body(again: bool) -> None:
    def body(s: xb.Value) -> Any:
        i, x = s
        for _ in range(1500):
            x = xb.sin(x)
        return i + 1, x

    program = xb.computation(V)(lambda x: squared(xb.while_((0, x), lambda s: s[0] < 2, body)[1]))
    x, step = np.array([0.3, 0.5, 0.7]), np.array([1e-5, 0.0, 0.0])
    numeric = (evaluate(program, x + step) - evaluate(program, x - step)) / 2e-5
    np.testing.assert_allclose(evaluate(xb.grad(program, checkpoint=again), x)[0], numeric, rtol=1e-6)
