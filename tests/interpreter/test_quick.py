"""Direct evaluation gives what a run on the grid gives: values, ownership of memory, errors, reports."""

from __future__ import annotations

import platform
import resource
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import ArgumentError, Limits, Stopped, evaluate, execute
from interpreter.compiler.plan import plan_of
from interpreter.kernels.elementwise import BINARY
from xbuild.core.callbacks import CALLBACKS


def _square(x: xb.Value) -> xb.Value:
    return x * x


def _pair() -> xb.Computation:
    return xb.computation(xb.f32[3], xb.s32[()])(lambda x, n: xb.tuple_((x + xb.convert(n, xb.f32), n * 2)))


def _run(computation: xb.Computation, *arguments: Any) -> Any:
    (result,) = execute(xb.Module("m", computation), [arguments])
    return result


GIVEN: list[tuple[Any, ...]] = [
    (np.float32([1, 2, 3]), np.int32(4)),
    ([1, 2, 3], 4),
    (np.float32([1, 2, 3]).astype(">f4"), np.array(4, np.int32)),
    (np.zeros(6, np.float32)[::2], np.int64(4)),
    (np.float64([1, 2, 3]), 4),
    (np.zeros((3, 1), np.float32), 4),
    (np.zeros(3, np.float32), "4"),
    (np.zeros(3, np.float32),),
    (np.zeros(3, np.float32), 1, 2),
    (np.ma.masked_array(np.zeros(3, np.float32)), 1),
]


@pytest.mark.parametrize("arguments", GIVEN, ids=str)
def test_arguments_are_read_as_for_any_run(arguments: tuple[Any, ...]) -> None:
    results, errors = [], []
    for run in (evaluate, _run):
        try:
            results.append(run(_pair(), *arguments))
        except ArgumentError as error:
            errors.append(str(error))
    assert len(errors) in (0, 2)
    assert len(set(errors)) == bool(errors)
    if results:
        np.testing.assert_equal(*results)


WHOSE: dict[str, Callable[..., Any]] = {
    "itself": lambda x: x,
    "a view": lambda x: xb.reshape(x, (3, 1)),
    "a constant": lambda x: xb.constant(x.builder, literal=np.float32([1, 2])),
    "its own": _square,
    "twice": lambda x: xb.tuple_((x * 2, x * 2, x)),
    "one value twice": lambda x: (lambda y: xb.tuple_((y, y)))(x * 2),
}


@pytest.mark.parametrize("name", WHOSE)
def test_a_result_is_the_memory_of_nobody_else(name: str) -> None:
    computation = xb.computation(xb.f32[3])(WHOSE[name])
    given = np.arange(3, dtype=np.float32)
    wanted = evaluate(computation, given)
    for _ in range(2):
        found = evaluate(computation, given)
        np.testing.assert_equal(found, wanted)
        arrays = found if isinstance(found, tuple) else (found,)
        for array in arrays:
            array[:] = 7.0
        assert not any(np.shares_memory(array, given) for array in arrays)
    np.testing.assert_equal(given, np.arange(3))


def _deep() -> xb.Computation:
    """An op in a loop asks for more memory than there is."""

    @xb.computation(xb.f32[()])
    def program(x: xb.Value) -> xb.Value:
        def body(v: xb.Value) -> xb.Value:
            return xb.reduce(xb.iota(v.builder, shape=xb.f32[2**50], iota_dimension=0), v, xb.add, (0,))

        return xb.while_(x, condition=lambda v: xb.lt(v, 1.0), body=body)

    return program


def test_a_run_that_ends_early_says_where() -> None:
    """No value is too large by the limit of bytes, which would be told before."""
    limits = Limits(bytes=None)
    computation = _deep()
    with pytest.raises(Stopped) as slow:
        evaluate(computation, 0.0, limits=limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("interpreter.runtime.run.Limits", lambda: limits)
        with pytest.raises(Stopped) as quick:
            evaluate(computation, 0.0)
    reports = [each.value.report for each in (slow, quick)]
    assert reports[0] == reports[1]
    assert "iota" in str(reports[1])
    assert "trip 1" in str(reports[1])
    with pytest.raises(Stopped, match="limit_bytes"):
        evaluate(_deep(), 0.0)


def test_the_limits_of_a_run_are_not_those_of_one_inside() -> None:
    @xb.computation(xb.s32[()])
    def counted(n: xb.Value) -> xb.Value:
        return xb.while_(n, condition=lambda v: xb.lt(v, 50), body=lambda v: v + 1)

    @xb.custom_call_target("quick.inside")
    def inside(n: Any) -> Any:
        return evaluate(counted, n)

    try:
        call = lambda n: xb.custom_call([n], shape=xb.s32[()], custom_call_target="quick.inside")  # noqa: E731
        outer = xb.Module("outer", xb.computation(xb.s32[()])(call))
        assert execute(outer, [[np.int32(0)]], limits=Limits(trips=5)) == [50]
    finally:
        CALLBACKS.pop("quick.inside")


@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
@pytest.mark.parametrize("constant", [0.0, -0.0, 0.5, np.nan, -np.inf])
def test_zeros_that_may_meet_are_told_apart(opcode: str, constant: float) -> None:
    x = np.float32([0.0, -0.0, 1.0, -1.0, np.nan])
    computation = xb.computation(xb.f32[5])(lambda v: getattr(xb, opcode)(v, np.float32(constant)))
    np.testing.assert_array_equal(
        np.signbit(evaluate(computation, x)), np.signbit(BINARY[opcode]["f"](x, np.float32(constant)))
    )
    bound = plan_of(computation).function.__globals__.values()
    assert any(each is getattr(np, opcode) for each in bound) == (constant != 0)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have other thresholds")
def test_freed_memory_is_used_again() -> None:
    computation = xb.computation(xb.f32[1_000_000])(lambda v: (v + 1.0) * v - 2.0)
    x = np.zeros(1_000_000, np.float32)
    faults = [_page_faults_of_runs(computation, x) for _ in range(3)][-1]
    assert faults < 400, faults  # returned memory costs 1,000 faults for each array


def _page_faults_of_runs(computation: xb.Computation, x: Any) -> float:
    start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        evaluate(computation, x)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - start) / 5
