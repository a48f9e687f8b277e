"""Decompositions: properties of their factors, and comparison with LAPACK where it makes the same choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.linalg

import xbuild as xb
from interpreter import evaluate
from shape_inference import primitive_type
from tests.support.compare import assert_same

Array = np.ndarray[Any, Any]
TYPES = (np.float32, np.float64, np.complex64, np.complex128)
WIDE = (np.float32, np.complex128)  # for every shape; the others for the first
SHAPES = ((4, 4), (5, 3), (3, 5), (2, 3, 4, 4), (1, 1), (7, 1), (1, 7), (30, 21), (0, 3), (3, 0), (0, 2, 2))

SQUARES = ((4, 4), (5, 5), (2, 3, 4, 4), (1, 1), (2, 2), (3, 3), (24, 24), (0, 0), (0, 2, 2))


def apply(function: Callable[..., Any], *arguments: Array) -> Any:
    shapes = [primitive_type(argument.dtype)[argument.shape] for argument in arguments]
    return evaluate(xb.computation(*shapes)(function), *arguments)


def random(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    numbers = np.random.default_rng(seed)
    found = numbers.normal(size=shape)
    return (found + 1j * numbers.normal(size=shape) if np.issubdtype(dtype, np.complexfloating) else found).astype(
        dtype
    )


def adjoint(a: Array) -> Array:
    return np.conj(np.swapaxes(a, -1, -2))


def error(found: Array, wanted: Array, a: Array) -> float:
    """The largest difference, in (m + n) eps of the largest element of a."""
    if not found.size:
        return 0.0
    largest = float(np.abs(a).max(initial=0)) or 1.0
    return float(np.abs(found - wanted).max()) / (float(np.finfo(a.dtype).eps) * sum(a.shape[-2:]) * largest)


def are_orthonormal(columns: Array) -> bool:
    product = adjoint(columns) @ columns
    limit = 16 * float(np.finfo(columns.dtype).eps) * max(columns.shape[-2], 1)
    return bool((np.abs(product - np.eye(columns.shape[-1])) <= limit).all())


@pytest.mark.parametrize(("shape", "dtype"), [(s, d) for s in SHAPES for d in TYPES if d in WIDE or s is SHAPES[0]])
def test_qr(shape: tuple[int, ...], dtype: Any) -> None:
    a = random(shape, dtype)
    rows, least = shape[-2], min(shape[-2:])
    for width, full in ((rows, True), (least, False)):
        q, r = apply(lambda a, full=full: xb.qr(a, full_matrices=full), a)
        assert (q.shape[-1], r.shape[-2]) == (width, width)
        assert error(q @ r, a, a) < 8
        assert are_orthonormal(q)
        assert not np.tril(r, -1).any()


@pytest.mark.parametrize("dtype", TYPES)
def test_packed_qr_is_that_of_lapack(dtype: Any) -> None:
    a = random((6, 4), dtype)
    packed, taus = apply(xb.qr_decomposition, a)
    geqrf, orgqr = scipy.linalg.get_lapack_funcs(("geqrf", "orgqr" if a.dtype.kind == "f" else "ungqr"), (a,))
    wanted, wanted_taus, *_ = geqrf(a)
    assert error(packed, wanted, a) < 8
    assert error(taus, wanted_taus, a) < 8
    q = apply(xb.product_of_elementary_householder_reflectors, packed, taus)
    assert error(q, orgqr(wanted, wanted_taus)[0], a) < 8
    first = apply(xb.product_of_elementary_householder_reflectors, packed, taus[:2])
    assert error(first[:, :2], q[:, :2], a) < 8


@pytest.mark.parametrize(("shape", "dtype"), [(s, d) for s in SHAPES for d in TYPES if d in WIDE or s is SHAPES[0]])
def test_lu(shape: tuple[int, ...], dtype: Any) -> None:
    a = random(shape, dtype)
    rows, least = shape[-2], min(shape[-2:])
    packed, pivots, permutation = apply(xb.lu, a)
    lower = np.tril(packed[..., :least], -1) + np.eye(rows, least)
    upper = np.triu(packed[..., :least, :])
    taken = np.take_along_axis(a, permutation[..., None].astype(int), -2)
    assert error(lower @ upper, taken, a) < 8
    assert (pivots.dtype, pivots.shape) == (np.int32, (*shape[:-2], least))
    assert (permutation.dtype, permutation.shape) == (np.int32, shape[:-1])
    order = np.broadcast_to(np.arange(rows), shape[:-1]).copy()
    for step in range(least):
        for place in np.ndindex(shape[:-2]):
            row = order[place]
            row[[step, pivots[place][step]]] = row[[pivots[place][step], step]]
    assert_same(permutation, order.astype(np.int32))


@pytest.mark.parametrize("dtype", TYPES)
def test_lu_is_that_of_lapack(dtype: Any) -> None:
    a = random((9, 9), dtype)
    packed, pivots, _ = apply(xb.lu, a)
    wanted, wanted_pivots = scipy.linalg.lu_factor(a)
    assert_same(pivots, wanted_pivots.astype(np.int32))
    assert error(packed, wanted, a) < 8


def test_lu_without_a_pivot_leaves_the_column() -> None:
    packed, pivots, permutation = apply(xb.lu, np.array([[0, 1], [0, 2]], np.float32))
    assert_same(packed, np.array([[0, 1], [0, 2]], np.float32))
    assert (pivots.tolist(), permutation.tolist()) == ([0, 1], [0, 1])


@pytest.mark.parametrize(("shape", "dtype"), [(s, d) for s in SQUARES for d in TYPES if d in WIDE or s is SQUARES[0]])
@pytest.mark.parametrize("lower", [True, False])
def test_eigh(shape: tuple[int, ...], dtype: Any, lower: bool) -> None:
    a = random(shape, dtype)
    a = a + adjoint(a)
    spoilt = np.tril(a) if lower else np.triu(a)  # the other triangle is not to be read
    vectors, values = apply(lambda a: xb.eigh(a, lower), spoilt)
    assert values.dtype == a.real.dtype
    assert error(a @ vectors, vectors * values[..., None, :], a) < 8
    assert are_orthonormal(vectors)
    assert error(values, np.linalg.eigvalsh(a), a) < 8
    assert (np.diff(values) >= 0).all()


def test_eigh_unsorted_has_the_same_pairs() -> None:
    a = random((5, 5), np.float64)
    a = a + a.T
    vectors, values = apply(lambda a: xb.eigh(a, sort_eigenvalues=False), a)
    assert error(a @ vectors, vectors * values, a) < 8
    assert error(np.sort(values), np.linalg.eigvalsh(a), a) < 8


def test_eigh_with_few_sweeps_or_a_coarse_limit_stops_early() -> None:
    a = random((12, 12), np.float64)
    a = a + a.T
    none, some, all_ = (apply(lambda a, n=n: xb.eigh(a, max_iter=n, sort_eigenvalues=False), a)[1] for n in (0, 2, 30))
    wanted = np.linalg.eigvalsh(a)
    assert_same(none, np.diag(a), 2)
    assert 1e-12 < np.abs(np.sort(some) - wanted).max() < 1
    assert np.abs(np.sort(all_) - wanted).max() < 1e-13
    coarse = apply(lambda a: xb.eigh(a, epsilon=1e-2), a)[1]
    assert 1e-12 < np.abs(coarse - wanted).max() < 0.1


@pytest.mark.parametrize(("shape", "dtype"), [(s, d) for s in SHAPES for d in TYPES if d in WIDE or s is SHAPES[0]])
def test_svd(shape: tuple[int, ...], dtype: Any) -> None:
    a = random(shape, dtype)
    least = min(shape[-2:])
    for full in (True, False):
        u, d, v = apply(lambda a, full=full: xb.svd(a, full_matrices=full), a)
        assert (u.shape[-1], v.shape[-1]) == (shape[-2:] if full else (least, least))
        assert d.dtype == a.real.dtype
        assert error((u[..., :least] * d[..., None, :]) @ adjoint(v[..., :least]), a, a) < 16
        assert are_orthonormal(u)
        assert are_orthonormal(v)
        assert (d >= 0).all()
        assert (np.diff(d) <= 0).all()
        if a.size:
            assert error(d, np.linalg.svd(a, compute_uv=False), a) < 16


AWKWARD = {
    "zero": np.zeros((4, 3)),
    "rank-one": np.outer([1.0, 2, 3, 4], [1.0, -1, 2]),
    "repeated": np.eye(4),
    "graded": np.diag([1e8, 1, 1e-8]) @ np.array([[1.0, 1, 1], [1, 2, 3], [1, 4, 9]]),
    "tiny": np.array([[1e-30, 2e-30], [3e-30, -1e-30]]),
    "huge": np.array([[1e30, 2e30], [3e30, -1e30]]),
    "largest": np.array([[2.0, 1], [1, 0]]) * 0.9 * 2.0**126,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_matrices(name: str, dtype: Any) -> None:
    a = AWKWARD[name].astype(dtype)
    least = min(a.shape)
    u, d, v = apply(xb.svd, a)
    assert error((u[:, :least] * d) @ v[:, :least].T, a, a) < 16
    assert are_orthonormal(u)
    assert are_orthonormal(v)
    q, r = apply(xb.qr, a)
    assert error(q @ r, a, a) < 8
    assert are_orthonormal(q)
    symmetric = (a[:least, :least] + a[:least, :least].T) / 2
    vectors, values = apply(xb.eigh, symmetric)
    assert error(symmetric @ vectors, vectors * values, symmetric) < 8
    assert are_orthonormal(vectors)


@pytest.mark.parametrize("function", [xb.qr, xb.svd, xb.eigh, xb.lu])
def test_nan_comes_to_an_end(function: Any) -> None:
    a = random((4, 4), np.float32)
    a[2, 1] = np.nan
    assert all(np.isnan(part).any() for part in apply(function, a) if part.dtype == np.float32)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_rounded_once(dtype: Any) -> None:
    a = random((4, 3), np.float32).astype(dtype)
    wide = apply(lambda a: xb.svd(a), a.astype(np.float32))
    for narrow, exact in zip(apply(xb.svd, a), wide, strict=True):
        assert_same(narrow, exact.astype(dtype))


def test_program_is_small() -> None:
    text = str(xb.computation(xb.f32[50, 50])(xb.svd))
    assert len(text.splitlines()) < 700


@pytest.mark.parametrize(("call", "kind"), [
    (lambda a: xb.qr(xb.convert(a, xb.s32)), "element_type_unsupported"),
    (lambda a: xb.lu(xb.slice(a, (0, 0), (1, 1))[0, 0]), "rank_too_small"),
    (lambda a: xb.eigh(a), "dimension_mismatch"),
    (lambda a: xb.eigh(xb.slice(a, (0, 0), (3, 3)), max_iter=-1), "invalid_attribute"),
    (lambda a: xb.svd(a, epsilon=-1.0), "invalid_attribute"),
    (lambda a: xb.svd(xb.tuple_(a, a)), "not_array"),
    (lambda a: xb.qr(xb.set_dimension_size(a, 2, 0)), "dimension_mismatch"),
    (lambda a: xb.product_of_elementary_householder_reflectors(a, a[:, 0]), "dimension_mismatch"),
    (lambda a: xb.product_of_elementary_householder_reflectors(a, xb.convert(a[0], xb.f64)), "element_type_mismatch"),
])  # fmt: skip
def test_refusals(call: Any, kind: str) -> None:
    a = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4, 3])
    with pytest.raises(xb.XbuildError) as caught:
        call(a)
    assert caught.value.kind == kind, str(caught.value)
    assert "test_decompositions.py" in str(caught.value)


@pytest.mark.slow
@pytest.mark.oracle
def test_real_xla_runs_the_same_programs() -> None:
    pytest.importorskip("jaxlib")
    from tests.oracle import Failure, Job, run

    a = random((2, 5, 4), np.float32)
    symmetric = a[:, :4] + adjoint(a[:, :4])
    calls = [(xb.qr, a), (xb.lu, a), (xb.svd, a), (xb.eigh, symmetric), (xb.svd, random((3, 4), np.complex64))]
    programs = [xb.computation(primitive_type(given.dtype)[given.shape])(function) for function, given in calls]
    jobs = [Job(xb.Module("m", c).to_hlo(), [[given]]) for c, (_, given) in zip(programs, calls, strict=True)]
    for (function, given), program, outcome in zip(calls, programs, run(jobs), strict=True):
        assert not isinstance(outcome, Failure), outcome
        for theirs, ours in zip(outcome[0], evaluate(program, given), strict=True):
            np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-4, err_msg=function.__name__)
