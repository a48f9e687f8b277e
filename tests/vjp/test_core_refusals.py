"""Derivatives that are refused: each names the op or the parameter, its line, and a way out."""

from __future__ import annotations

from typing import Any

import pytest

import xbuild as xb

S, V, N = xb.f32[()], xb.f32[3], xb.s32[()]


def total(x: xb.Value) -> xb.Value:
    return xb.reduce(x, 0.0, xb.add)


def folded(x: xb.Value) -> xb.Value:
    return xb.reduce(x, 0.0, lambda a, b: xb.tanh(a) + b)  # not associative


def rounded(x: xb.Value) -> xb.Value:
    bits = xb.constant(x.builder, [1, 2, 3])
    return total(xb.ops.stochastic_convert(x, xb.convert(bits, new_element_type=xb.u32), new_element_type=xb.f32))


def fed(x: xb.Value) -> xb.Value:
    xb.outfeed(x, xb.after_all(builder=x.builder))
    return total(x)


@pytest.mark.parametrize(
    ("function", "parts"),
    [
        (folded, ["derivative of reduce %reduce", "to_apply is not recognized", "xb.scan"]),
        (rounded, ["derivative of stochastic-convert %stochastic-convert", "rounds at random", "argnums"]),
    ],
)
def test_ops_without_a_derivative(function: Any, parts: list[str]) -> None:
    program = xb.computation(V)(function)
    for derivative in (xb.grad, xb.vjp, xb.jvp):
        with pytest.raises(xb.ShapeError) as caught:
            derivative(program)
        assert caught.value.kind == "not_differentiable"
        for part in (*parts, f"{__name__.rpartition('.')[2]}.py:", "hint:"):
            assert part in str(caught.value)


def test_an_effect_beside_is_no_obstacle() -> None:
    assert xb.grad(xb.computation(V)(fed)).root.shape == V


@pytest.mark.parametrize(
    ("shapes", "function", "argnums", "kind", "words"),
    [
        ([V], lambda x: x, 0, "not_differentiable", r"is f32\[3\]; expected a real scalar.*xb.vjp"),
        ([xb.c64[()]], lambda x: x, 0, "not_differentiable", r"is c64\[\]; expected a real scalar"),
        ([S], lambda x: (x, x), 0, "not_differentiable", r"is \(f32\[\], f32\[\]\); expected a real scalar"),
        ([S, N], lambda x, n: x, 1, "not_differentiable", r"parameter 1 of .*, %parameter.2, is s32\[\].*argnums=1"),
        ([S, N], lambda x, n: x, (0, 1), "not_differentiable", r"is s32\[\].*omit it from argnums=\(0, 1\)"),
        ([S], lambda x: x, 1, "index_out_of_range", r"selects parameter 1, but .* has 1 parameters"),
        ([S], lambda x: x, -2, "index_out_of_range", r"selects parameter -2"),
    ],
)
def test_gradients_of_and_by_what_has_none(shapes: Any, function: Any, argnums: Any, kind: str, words: str) -> None:
    program = xb.computation(*shapes)(function)
    for derivative in (xb.grad, xb.value_and_grad):
        with pytest.raises(xb.ShapeError, match=f"(?s){words}") as caught:
            derivative(program, argnums)
        assert caught.value.kind == kind


@pytest.mark.parametrize("derivative", [xb.vjp, xb.jvp, xb.grad, xb.value_and_grad])
def test_what_is_no_program(derivative: Any) -> None:
    with pytest.raises(TypeError, match="or a function, got a list"):
        derivative([1, 2])
