"""Rules of factors, solvers, transforms and normalization, for stacks, complex numbers, and every attribute."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate

from ..numeric import Case, check

SOLVERS = [
    Case(
        f"solve {dtype} {'left' if left else 'right'} {'lower' if lower else 'upper'} {'unit' * unit} {form}",
        lambda a, b, left=left, lower=lower, unit=unit, form=form: xb.triangular_solve(
            with_diagonal(a, 3), b, left, lower, unit, form
        ),
        [dtype[2, 3, 3], dtype[2, 3, 2] if left else dtype[2, 2, 3]],
    )
    for dtype, left, lower, unit, form in product(
        (xb.f64, xb.c128), (True, False), (True, False), (True, False), ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
    )
]


def with_diagonal(x: Any, value: float) -> Any:
    """A matrix, or a stack of them, with this added to its diagonal."""
    return x + np.broadcast_to(value * np.eye(3), x.shape.dims).astype(x.shape.dtype.dtype)


def positive(x: Any) -> Any:
    """A Hermitian matrix with positive eigenvalues, of any."""
    rank = x.shape.rank
    batch = list(range(rank - 2))
    conjugated = xb.conj(x) if x.shape.dtype is xb.c128 else x
    product = xb.dot_general(x, conjugated, [rank - 1], [rank - 1], batch, batch)
    return with_diagonal(product, 2)


def batch_norm(op: Any, **attributes: Any) -> Any:
    def function(*operands: Any) -> Any:
        *others, last = operands
        is_variance = op is not xb.ops.batch_norm_training
        if op is xb.ops.batch_norm_inference:
            return op(*others, last * last + 0.5, **attributes)
        if is_variance:
            x, scale, mean, variance, g = operands
            return op(x, scale, mean, variance * variance + 0.5, g, **attributes)
        return op(*operands, **attributes)

    return function


def normalized(name: str, op: Any, extents: tuple[int, ...], feature: int, vectors: int, arrays: int = 0) -> Case:
    vector = [xb.f64[extents[feature]]] * vectors
    shapes = [xb.f64[extents], *vector, *[xb.f64[extents]] * arrays]
    return Case(name, batch_norm(op, epsilon=1e-2, feature_index=feature), shapes)


def transformed(kind: str, extents: tuple[int, ...], lengths: Any) -> Case:
    dtype = xb.f64 if kind == "RFFT" else xb.c128
    return Case(f"{kind} of {lengths} over {extents}", lambda x: xb.fft(x, kind, lengths), [dtype[extents]])


CASES = [
    *SOLVERS,
    Case("solve nothing", lambda a, b: xb.triangular_solve(a, b), [xb.f64[0, 0], xb.f64[0, 2]]),
    *(
        Case(f"factor {dtype} {low} {extents}", lambda x, low=low: xb.cholesky(positive(x), low), [dtype[extents]])
        for dtype, low, extents in product((xb.f64, xb.c128), (True, False), ((3, 3), (2, 3, 3)))
    ),
    Case("factor of nothing", lambda x: xb.cholesky(x), [xb.f64[2, 0, 0]]),
    *(transformed(kind, (2, 6), 6) for kind in ("FFT", "IFFT", "RFFT")),
    *(transformed(kind, (5, 2, 3), (5, 2, 3)) for kind in ("FFT", "IFFT", "RFFT")),
    *(transformed("RFFT", (2, n), n) for n in (1, 2, 5)),
    *(transformed("IRFFT", (2, n // 2 + 1), n) for n in (1, 2, 5, 6)),
    *(transformed("IRFFT", (3, 4, n // 2 + 1), (4, n)) for n in (3, 6)),
    transformed("IRFFT", (2, 3, 4, 3), (3, 4, 5)),
    transformed("FFT", (0, 4), 4),
    normalized("training", xb.ops.batch_norm_training, (4, 3, 2), 1, 2),
    normalized("training of vectors", xb.ops.batch_norm_training, (5, 3), 1, 2),
    normalized("training, features first", xb.ops.batch_norm_training, (3, 5), 0, 2),
    normalized("inference", xb.ops.batch_norm_inference, (4, 3, 2), 1, 4),
    normalized("inference, features last", xb.ops.batch_norm_inference, (4, 3), 1, 4),
    normalized("gradient of normalization", xb.ops.batch_norm_grad, (4, 3, 2), 1, 3, 1),
    normalized("gradient of normalization, features first", xb.ops.batch_norm_grad, (3, 5), 0, 3, 1),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cotangents_are_those_of_numeric_derivatives(case: Case) -> None:
    check(case)


def test_the_cotangent_of_a_factored_matrix_is_symmetric() -> None:
    program = xb.computation(xb.f64[2, 2])(xb.cholesky)
    (found,) = evaluate(xb.vjp(program), [[4.0, 2.0], [2.0, 5.0]], [[1.0, 0.0], [0.5, 2.0]])
    np.testing.assert_allclose(found, found.T)


@pytest.mark.parametrize("element", [0, 1, 2])
def test_each_result_of_normalization_has_a_derivative_alone(element: int) -> None:
    def function(x: Any, scale: Any, offset: Any) -> Any:
        return xb.batch_norm_training(x, scale, offset, 1e-2, 1)[element]

    check(Case("one", function, [xb.f64[4, 3], xb.f64[3], xb.f64[3]]))


def test_numbers_that_are_drawn_have_no_derivative() -> None:
    def function(a: Any) -> Any:
        return xb.ops.rng(a, a, shape=xb.f64[3], distribution="rng_uniform")

    with pytest.raises(xb.XbuildError, match="draw them with constants") as caught:
        xb.vjp(xb.computation(xb.f64[()])(function))
    assert caught.value.kind == "not_differentiable"
