"""The special functions at the edges: what they give there, refuse, and round; and real XLA."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import xbuild as xb
from interpreter import evaluate
from tests.ops.special_points import FLOATS, INF, NAN, apply, uniform
from tests.support.compare import assert_same, difference, distance

EDGES = [
    (xb.erfc, [0, INF, -INF, NAN], [1, 0, 2, NAN]),
    (xb.erf_inv, [0, -0.0, 1, -1, 1.5, INF, NAN], [0, -0.0, INF, -INF, NAN, NAN, NAN]),
    (xb.lgamma, [0, -0.0, -1, -7, 1, 2, INF, -INF, NAN], [INF, INF, INF, INF, 0, 0, INF, INF, NAN]),
    (xb.digamma, [0, -0.0, -1, -7, INF, -INF, NAN], [NAN, NAN, NAN, NAN, INF, NAN, NAN]),
    (xb.bessel_i0e, [0, INF, -INF, NAN], [1, 0, 0, NAN]),
    (xb.bessel_i1e, [0, -0.0, INF, -INF, NAN], [0, -0.0, 0, -0.0, NAN]),
]  # fmt: skip
PAIRS = [
    (xb.igamma, [1, 1, 0, -1, INF, 2, INF, NAN, 1], [0, INF, 1, 1, 1, -1, INF, 1, NAN],
     [0, 1, NAN, NAN, 0, NAN, NAN, NAN, NAN]),
    (xb.igammac, [1, 1, 0, -1, INF, 2, INF, NAN, 1], [0, INF, 1, 1, 1, -1, INF, 1, NAN],
     [1, 0, NAN, NAN, 1, NAN, NAN, NAN, NAN]),
    (xb.igamma_grad_a, [1, 1, 0, 1, NAN], [0, INF, 1, -1, 1], [0, 0, NAN, NAN, NAN]),
    (xb.random_gamma_grad, [1, 1, 0, 1, NAN], [0, INF, 1, -1, 1], [0, 0, NAN, NAN, NAN]),
    (xb.zeta, [1, 0.5, 2, 2, 2.5, INF, INF, INF, NAN, 2, 2], [2, 2, 0, -3, -1.5, 2, 1, 0.5, 1, INF, NAN],
     [INF, NAN, INF, INF, NAN, 0, 1, INF, NAN, 0, NAN]),
    (xb.polygamma, [1.5, -1, NAN, 2], [1, 1, 1, NAN], [NAN, NAN, NAN, NAN]),
]  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_edges(dtype: Any) -> None:
    for function, given, wanted in EDGES:
        assert_same(apply(function, np.array(given, dtype)), np.array(wanted, dtype))
    for function, first, second, wanted in PAIRS:
        found = apply(function, np.array(first, dtype), np.array(second, dtype))
        assert difference(found, np.array(wanted, dtype)) is None, function.__name__
    a, b, x = np.array([[1, 1, 0, 2, INF, 2, 2, NAN], [1, 2, 1, 0, 1, 2, 2, 2], [0, 1, 0.5, 0.5, 0.5, -0.1, 1.1, 0.5]])
    found = apply(xb.regularized_incomplete_beta, a.astype(dtype), b.astype(dtype), x.astype(dtype))
    assert_same(found, np.array([0, 1] + [NAN] * 6, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_smallest_numbers_are_no_zeros(dtype: Any) -> None:
    least = np.array([np.finfo(dtype).smallest_subnormal, np.finfo(dtype).tiny])
    assert_same(apply(xb.erf_inv, least, denormals="keep"), scipy.special.erfinv(least).astype(dtype), 1)
    assert_same(apply(xb.lgamma, least, denormals="keep"), -np.log(least), 1)
    assert_same(apply(xb.lgamma, -least, denormals="keep"), -np.log(least), 1)
    assert_same(apply(xb.erfc, least, denormals="keep"), np.ones(2, dtype))


def test_next_after_is_every_next_number() -> None:
    for dtype in FLOATS:
        edges = np.array(
            [0, -0.0, 1, -1, INF, -INF, NAN, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal], dtype
        )
        start, end = (part.ravel().astype(dtype) for part in np.meshgrid(edges, edges))
        with np.errstate(over="ignore"):
            wanted = np.nextafter(start, end)
        assert_same(apply(xb.next_after, start, end, denormals="keep"), wanted)
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for end in (np.float16(INF), np.float16(-INF), np.float16(1)):
        with np.errstate(over="ignore"):
            wanted = np.nextafter(halves, end)
        assert_same(apply(lambda x, to=end: xb.next_after(x, to), halves), wanted)
    ones = np.array([1, -1, 0], ml_dtypes.bfloat16)
    assert apply(lambda x: xb.next_after(x, np.array(2, ml_dtypes.bfloat16)), ones).tolist() == [
        1.0078125, -0.99609375, 2.0**-133,
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("function", [xb.lgamma, xb.erfc, xb.digamma, xb.bessel_i0e, xb.erf_inv])
def test_narrow_floats_are_rounded_once(function: Any, dtype: Any) -> None:
    narrow = np.array([0.25, 0.75, 1.25, 3.5, -0.75]).astype(dtype)
    assert_same(apply(function, narrow), apply(function, narrow.astype(np.float32)).astype(dtype))


def test_operands_broadcast() -> None:
    x = np.array([[0.5, 1, 2]], np.float32)
    found = apply(lambda x: xb.igamma(2.0, x), x)
    assert found.shape == (1, 3)
    assert distance(found, scipy.special.gammainc(2.0, x).astype(np.float32)).max() <= 16


@pytest.mark.parametrize(("call", "kind"), [
    (lambda x: xb.lgamma(xb.convert(x, xb.s32)), "element_type_unsupported"),
    (lambda x: xb.zeta(x, xb.convert(x, xb.f64)), "element_type_mismatch"),
    (lambda x: xb.next_after(xb.convert(x, xb.f8e5m2), 1.0), "element_type_unsupported"),
    (lambda x: xb.erfc(xb.tuple_(x, x)), "not_array"),
    (lambda x: xb.is_nan(xb.convert(x, xb.s32)), "element_type_unsupported"),
    (lambda x: xb.igamma(x, xb.slice_in_dim(x, 0, 2)), "dimension_mismatch"),
])  # fmt: skip
def test_refusals(call: Any, kind: str) -> None:
    x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[3])
    with pytest.raises(xb.XbuildError) as caught:
        call(x)
    assert caught.value.kind == kind
    assert "test_special_edges.py" in str(caught.value)


def test_formula_is_traced_once_for_each_shape() -> None:
    builder = xb.Builder("b")
    x = xb.parameter(builder, number=0, shape=xb.f32[3])
    first, second = xb.lgamma(x), xb.lgamma(x + 1.0)
    assert first.instruction.called == second.instruction.called


@pytest.mark.slow
@pytest.mark.oracle
def test_real_xla_runs_the_same_programs() -> None:
    pytest.importorskip("jaxlib")
    from tests.oracle import Failure, Job, run

    p, q, r = (uniform(0.1, 0.9, 20).astype(np.float32) for _ in range(3))
    calls: list[tuple[Any, ...]] = [
        (xb.erfc, p), (xb.erf_inv, p), (xb.lgamma, p), (xb.digamma, p), (xb.bessel_i0e, p), (xb.bessel_i1e, p),
        (xb.zeta, 1 + p, q), (xb.next_after, p, q), (xb.igamma, 9 * p, 9 * q), (xb.random_gamma_grad, 9 * p, 9 * q),
        (xb.regularized_incomplete_beta, 9 * p, 9 * q, r), (xb.atan, p),
    ]  # fmt: skip
    programs = [xb.computation(*(xb.f32[a.shape] for a in given))(function) for function, *given in calls]
    jobs = [Job(xb.Module("m", c).to_hlo(), [given]) for c, (_, *given) in zip(programs, calls, strict=True)]
    for (function, *given), program, outcome in zip(calls, programs, run(jobs), strict=True):
        assert not isinstance(outcome, Failure), outcome
        ours = evaluate(program, *given)
        np.testing.assert_allclose(outcome[0][0], ours, rtol=2e-5, atol=1e-6, err_msg=function.__name__)
