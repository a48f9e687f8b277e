"""Plans that leave values out: they give the bits of plans that compute each value, and overwrite nothing of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from interpreter import Limits, Stopped, evaluate
from interpreter.compiler.emit import PlanOptions
from interpreter.compiler.plan import plan_of, plan_source
from shape_inference.trees import flatten

SHAPES = [(64, 96), (5, 1000), (96,), (8, 4, 40), (6, 8, 128)]
UNARY = [xb.negate, xb.abs, xb.tanh, xb.exponential, xb.floor]
BINARY = [xb.add, xb.subtract, xb.multiply, xb.divide, xb.maximum, xb.minimum]
TYPES = [xb.f32, xb.f64, xb.bf16, xb.s32, xb.f16]


def assert_as_observed(computation: xb.Computation, *arguments: Any) -> None:
    """A plan without an observer gives the bits of one with an observer, twice, and leaves its arguments alone."""
    copies = [np.array(each) for each in arguments]
    first = flatten(evaluate(computation, *arguments))
    kept = [np.array(each) for each in first]
    again = flatten(evaluate(computation, *arguments))
    seen = flatten(evaluate(computation, *arguments, observer=lambda *_: None))
    for results in (first, again, seen):
        assert [(each.dtype, each.tobytes()) for each in results] == [(each.dtype, each.tobytes()) for each in kept]
    assert [each.tobytes() for each in arguments] == [each.tobytes() for each in copies]


@st.composite
def programs(draw: st.DrawFn) -> tuple[xb.Computation, list[Any]]:
    """Chains of elementwise ops on values that stay in use, with broadcasts, views, reductions and products."""
    dims, dtype = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(TYPES))
    choices = draw(st.lists(st.tuples(*[st.integers(0, 99)] * 4), min_size=3, max_size=14))
    shape = dtype[dims]

    @xb.computation(shape, shape, dtype[dims[-1:]])
    def program(x: xb.Value, y: xb.Value, row: xb.Value) -> Any:
        values = [x, y]
        for kind, first, second, op in choices:
            a, b = values[first % len(values)], values[second % len(values)]
            values.append(_step(kind % 9, a, b, row, op))
        return tuple(values[-2:])

    rng = np.random.default_rng(draw(st.integers(0, 99)))
    numbers = [rng.integers(-3, 4, size).astype(dtype.dtype) for size in (dims, dims, dims[-1:])]
    if draw(st.booleans()) and len(dims) > 1:
        numbers[0] = np.asfortranarray(numbers[0])
    return program, numbers


def _step(kind: int, a: xb.Value, b: xb.Value, row: xb.Value, op: int) -> xb.Value:
    dims, dtype = a.shape.dims, a.shape.dtype
    binary = BINARY[op % len(BINARY)]
    if kind == 0:
        return binary(a, xb.broadcast_in_dim(row, dims, (len(dims) - 1,)))
    if kind == 1:
        return binary(a, xb.broadcast(xb.constant(a.builder, np.asarray(op % 5 - 1, dtype.dtype)), dims))
    if kind == 2:
        init = xb.constant(a.builder, np.asarray(op % 3 - 1, dtype.dtype))
        total = xb.reduce(a, init, to_apply=[xb.add, xb.maximum, xb.minimum][op % 3], dimensions=(len(dims) - 1,))
        return binary(xb.broadcast_in_dim(xb.reshape(total, (*dims[:-1], 1)), dims, tuple(range(len(dims)))), b)
    if kind == 3:
        number = xb.broadcast(xb.constant(a.builder, np.asarray(op % 3, dtype.dtype)), dims)
        return xb.select(xb.gt(a, b), a if op % 2 else number, number)
    if kind == 4 and len(dims) == 2:
        return xb.multiply(a, xb.transpose(xb.dot(xb.transpose(b, (1, 0)), xb.dot(b, xb.transpose(b, (1, 0)))), (1, 0)))
    if kind == 5:
        return xb.reshape(xb.reshape(a, (*dims, 1)), dims)
    if kind == 6 and dtype.kind == "float":
        return UNARY[op % len(UNARY)](a)
    return binary(a, b)


@settings(max_examples=60, deadline=None)
@given(programs())
def test_shortcuts_keep_every_bit(case: tuple[xb.Computation, list[Any]]) -> None:
    program, arguments = case
    assert_as_observed(program, *arguments)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("size", [16, 48, 112, 256, 784])
def test_a_product_of_transposes_has_the_bits_of_the_transpose(size: int, transposed: bool) -> None:
    dims = (size, 64) if transposed else (64, size)

    @xb.computation(xb.f32[dims], xb.f32[64, 512])
    def program(a: xb.Value, b: xb.Value) -> xb.Value:
        return xb.transpose(xb.dot_general(a, b, (int(transposed),), (0,)), (1, 0))

    rng = np.random.default_rng(size)
    arguments = rng.standard_normal(dims).astype("f"), rng.standard_normal((64, 512)).astype("f")
    assert_as_observed(program, *arguments)
    assert "transpose(" not in plan_source(program) or transposed
    assert evaluate(program, *arguments).flags.c_contiguous


def test_constants_are_broadcast_when_the_plan_is_made_and_no_result_shares_them() -> None:
    @xb.computation(xb.f32[8])
    def program(x: xb.Value) -> Any:
        ones = xb.broadcast(xb.constant(x.builder, np.float32(1)), (8,))
        return x + ones, ones

    assert "broadcast" not in plan_source(program)
    for _ in range(2):
        _, ones = evaluate(program, np.zeros(8, np.float32))
        np.testing.assert_array_equal(ones, np.ones(8))
        ones += 5


@pytest.mark.parametrize("start", [-3, 0, 9, 10, 20])
@pytest.mark.parametrize("is_read", [False, True])
def test_a_counted_loop_stops_where_its_condition_says(start: int, is_read: bool) -> None:
    @xb.computation(xb.s32[()], xb.f32[()])
    def program(n: xb.Value, x: xb.Value) -> Any:
        step = lambda s: (s[0] + 1, s[1] * 2.0 + (xb.convert(s[0], xb.f32) if is_read else 0.0))  # noqa: E731
        return xb.while_((n, x), condition=lambda s: xb.lt(s[0], 10), body=step)

    assert "trips(10" in plan_source(program)
    arguments = np.int32(start), np.float32(1)
    assert_as_observed(program, *arguments)
    for trips in (0, 1, 9, 10, 11, 12):
        reports = []
        for observer in (None, lambda *_: None):
            try:
                reports.append(str(evaluate(program, *arguments, limits=Limits(trips=trips), observer=observer)))
            except Stopped as stopped:
                reports.append(str(stopped))
        assert reports[0] == reports[1]


def test_an_array_is_written_again_only_after_its_last_use() -> None:
    @xb.computation(xb.f32[64, 64], xb.f32[64, 64])
    def program(x: xb.Value, y: xb.Value) -> Any:
        first = x * y
        second = first + y
        return second * first, xb.reshape(second, (4096,))

    rng = np.random.default_rng(0)
    assert_as_observed(program, *(rng.standard_normal((64, 64)).astype("f") for _ in range(2)))
    source = plan_source(program)
    assert "v3 = v2 + v1" in source
    assert "(v3, v2, out=v2)" in source


@pytest.mark.parametrize("rows", [1, 2, 5, 64])
@pytest.mark.parametrize("columns", [(), (3,), (2048,)])
def test_a_reduction_by_a_computation_overwrites_only_its_own_arrays(rows: int, columns: tuple[int, ...]) -> None:
    joined = lambda a, b: (a + b) - (a * b) * (a + b)  # noqa: E731
    program = xb.computation(xb.f32[(rows, *columns)])(lambda x: (xb.reduce(x, 0.0, joined, (0,)), x))
    x = (np.random.default_rng(rows).random((rows, *columns)) * 0.1).astype("f")
    assert_as_observed(program, x)
    (computation,) = (each for each in program.reachable() if each is not program)
    assert "-= " in plan_of(computation, PlanOptions(lifted=True)).source
