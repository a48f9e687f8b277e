"""Rules of windows: strides, dilations of both sides, padding of both signs, reversal, groups, ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate

from ..numeric import Case, check

SUMS = {
    "plain": "size=3",
    "stride": "size=3 stride=2",
    "stride that leaves a rest": "size=2 stride=3",
    "padded": "size=3 stride=2 pad=2_1",
    "cropped": "size=2 pad=-1_-2",
    "padded and cropped": "size=3 stride=2 pad=3_-2",
    "window with holes": "size=3 rhs_dilate=2 pad=1_1",
    "base with holes": "size=3 lhs_dilate=2 pad=0_1",
    "all of it": "size=3 stride=2 pad=1_2 lhs_dilate=3 rhs_dilate=2",
    "no place": "size=30",
}
PLACES = {
    **SUMS,
    "whole": "size=8",
    "padding alone": "size=2 stride=2 pad=4_4",
}


def logaddexp(a: Any, b: Any) -> Any:
    return xb.log(xb.exp(a) + xb.exp(b))


def windowed(word: str, reducer: Any, init: float) -> list[Case]:
    def case(name: str, window: str) -> Case:
        return Case(
            f"{word} {name}",
            lambda x: xb.ops.reduce_window(
                (x,), (xb.constant(x.builder, init, xb.f64),), to_apply=reducer, window=window
            ),
            [xb.f64[8]],
        )

    return [case(name, window) for name, window in PLACES.items()]


def convolved(name: str, lhs: Any, rhs: Any, roles: str, window: str, **attributes: Any) -> Case:
    dtype = attributes.pop("dtype", xb.f64)

    def function(x: Any, kernel: Any) -> Any:
        return xb.ops.convolution(x, kernel, window=window, dimension_numbers=roles, **attributes)

    return Case(f"convolution {name}", function, [dtype[lhs], dtype[rhs]])


def with_init(word: str, reducer: Any, given: float) -> Case:
    function = lambda x, init: xb.ops.reduce_window(  # noqa: E731
        (x,), (init,), to_apply=reducer, window="size=2x3 stride=1x2 pad=1_0x0_2"
    )
    return Case(f"{word} with an init value", function, [xb.f64[4, 5], xb.f64[()]], {1: given})


def selected(name: str, direction: str, window: str) -> Case:
    def function(x: Any, source: Any, init: Any) -> Any:
        select = lambda a, b: xb.compare(a, b, direction=direction)  # noqa: E731
        return xb.ops.select_and_scatter(x, source, init, select=select, scatter=xb.add, window=window)

    dims = (6,) if len(PLACES_OF[window]) == 1 else (4, 6)
    return Case(f"select {name}", function, [xb.f64[dims], xb.f64[PLACES_OF[window]], xb.f64[()]])


PLACES_OF = {"size=2 stride=2": (3,), "size=3": (4,), "size=2x3 stride=1x2 pad=1_1x2_1": (5, 4)}

CASES = [
    *windowed("sum", xb.add, 0.0),
    *windowed("greatest", xb.maximum, float("-inf")),
    *windowed("least", xb.minimum, float("inf")),
    *windowed("product", xb.multiply, 1.0),
    *windowed("sum of exponentials", logaddexp, float("-inf")),
    with_init("sum", xb.add, 0.5),
    with_init("greatest", xb.maximum, 0.3),
    with_init("least", xb.minimum, -0.3),
    with_init("product", xb.multiply, 1.5),
    Case(
        "sum in two dimensions",
        lambda x: xb.reduce_window(x, 0.0, xb.add, (2, 3), (2, 1), "SAME"),
        [xb.f64[5, 6]],
    ),
    Case(
        "sums of two operands",
        lambda x, y: xb.reduce_window(
            (x, y), (0.0, 0.0), lambda a, b, c, d: (a + c, xb.maximum(b, d)), (2,), (1,), "VALID"
        ),
        [xb.f64[5], xb.f64[5]],
    ),
    selected("greatest apart", "GE", "size=2 stride=2"),
    selected("last greatest, overlapping", "GT", "size=3"),
    selected("least, with padding", "LE", "size=2x3 stride=1x2 pad=1_1x2_1"),
    convolved("plain", (2, 3, 8), (4, 3, 3), "bf0_oi0->bf0", "size=3"),
    convolved("stride and padding", (2, 3, 8), (4, 3, 3), "bf0_oi0->bf0", "size=3 stride=3 pad=2_1"),
    convolved("cropped", (2, 3, 8), (4, 3, 2), "bf0_oi0->bf0", "size=2 stride=2 pad=-2_-1"),
    convolved("cropped and padded", (2, 3, 8), (4, 3, 2), "bf0_oi0->bf0", "size=2 stride=2 pad=5_-3"),
    convolved("dilated", (2, 3, 8), (4, 3, 3), "bf0_oi0->bf0", "size=3 pad=1_0 lhs_dilate=2 rhs_dilate=3"),
    convolved(
        "dilated with strides",
        (2, 3, 8),
        (4, 3, 3),
        "bf0_oi0->bf0",
        "size=3 stride=2 pad=4_3 lhs_dilate=3 rhs_dilate=2",
    ),
    convolved("reversed", (2, 3, 8), (4, 3, 3), "bf0_oi0->bf0", "size=3 stride=2 pad=1_2 rhs_reversal=1"),
    convolved(
        "all of it, reversed",
        (2, 3, 7),
        (4, 3, 3),
        "bf0_oi0->bf0",
        "size=3 stride=2 pad=4_-2 lhs_dilate=3 rhs_dilate=2 rhs_reversal=1",
    ),
    convolved("two dimensions", (2, 6, 7, 3), (3, 2, 3, 4), "b01f_01io->b01f", "size=3x2 stride=2x1 pad=1_1x0_1"),
    convolved("odd roles", (6, 2, 3, 7), (4, 2, 3, 3), "0bf1_o1i0->f1b0", "size=3x2 rhs_reversal=1x0"),
    convolved(
        "groups of features", (2, 6, 8), (4, 3, 3), "bf0_oi0->bf0", "size=3 stride=2 pad=1_1", feature_group_count=2
    ),
    convolved("every feature apart", (2, 8, 4), (3, 1, 8), "b0f_0io->b0f", "size=3", feature_group_count=4),
    convolved(
        "groups of the batch", (6, 3, 8), (4, 3, 3), "bf0_oi0->bf0", "size=3 stride=2 pad=1_1", batch_group_count=2
    ),
    convolved(
        "groups of the batch, odd roles",
        (8, 3, 6),
        (3, 3, 6),
        "0fb_i0o->0bf",
        "size=3 rhs_dilate=2",
        batch_group_count=3,
    ),
    convolved("of no spatial dimension", (2, 3), (4, 3), "bf_oi->bf", ""),
    convolved("complex", (2, 3, 5), (4, 3, 2), "bf0_oi0->bf0", "size=2 pad=1_0", dtype=xb.c128),
    convolved("of nothing", (0, 3, 5), (4, 3, 2), "bf0_oi0->bf0", "size=2"),
    convolved("with no place", (2, 3, 1), (4, 3, 2), "bf0_oi0->bf0", "size=2"),
    convolved("preferring complex", (2, 3, 5), (4, 3, 2), "bf0_oi0->bf0", "size=2", preferred_element_type=xb.c128),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cotangents_are_those_of_numeric_derivatives(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    ("x", "wanted"), [([1.0, 1.0, 2.0, 2.0], [1, 0, 1, 0]), ([1.0, 2.0, 2.0, 2.0], [0, 1, 1, 0])], ids=str
)
def test_the_first_greatest_element_takes_all(x: list[float], wanted: list[int]) -> None:
    program = xb.computation(xb.f64[4])(lambda x: xb.reduce_window(x, float("-inf"), xb.maximum, (2,), (2,)))
    (found,) = evaluate(xb.vjp(program), x, [1.0, 1.0])
    np.testing.assert_array_equal(found, wanted)


def test_an_init_value_that_ties_takes_the_cotangent_of_its_windows() -> None:
    program = xb.computation(xb.f64[4], xb.f64[()])(lambda x, init: xb.reduce_window(x, init, xb.maximum, (2,), (2,)))
    x_ct, init_ct = evaluate(xb.vjp(program), [1.0, 3.0, 0.0, 2.0], 2.0, [10.0, 20.0])
    np.testing.assert_array_equal(x_ct, [0.0, 10.0, 0.0, 0.0])
    assert init_ct == 20.0


def test_other_windows_are_refused_with_the_reason() -> None:
    program = xb.computation(xb.f64[4])(lambda x: xb.reduce_window(x, 1.0, lambda a, b: a - b, (2,)))
    with pytest.raises(xb.XbuildError, match="only if it computes a sum") as caught:
        xb.vjp(program)
    assert caught.value.kind == "not_differentiable"
    assert "reduce-window" in str(caught.value)
    assert "test_windows" in str(caught.value)


def test_values_that_are_not_added_where_they_are_selected_are_refused() -> None:
    program = xb.computation(xb.f64[4], xb.f64[2])(
        lambda x, s: xb.select_and_scatter(x, xb.ge, (2,), (2,), "VALID", s, 1.0, xb.multiply)
    )
    with pytest.raises(xb.XbuildError, match="only a scatter that adds"):
        xb.vjp(program)
