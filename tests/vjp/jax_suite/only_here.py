"""Ops that JAX does not lower to on this machine, recorded here, beside functions of JAX that compute the same."""

from __future__ import annotations

from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

import xbuild as xb

from .entry import Entry, both, cplx, normal, positive, within

EPSILON = 2.0**-10  # a number of f32, as the op has it


def moments(x: Any) -> Any:
    mean = x.mean((0, 2))
    return mean, ((x - mean[:, None]) ** 2).mean((0, 2))


def training(x: Any, scale: Any, offset: Any) -> Any:
    mean, variance = moments(x)
    return inference(x, scale, offset, mean, variance), mean, variance


def inference(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    along = lambda v: v[:, None]  # noqa: E731
    return (x - along(mean)) / jnp.sqrt(along(variance) + EPSILON) * along(scale) + along(offset)


def gradient(x: Any, scale: Any, mean: Any, variance: Any, g: Any) -> Any:
    centred, inverse = x - mean[:, None], 1 / jnp.sqrt(variance + EPSILON)
    slope = (g * centred).mean((0, 2)) * inverse**2
    rest = g - g.mean((0, 2))[:, None] - slope[:, None] * centred
    return (scale * inverse)[:, None] * rest, (g * centred).sum((0, 2)) * inverse, g.sum((0, 2))


def triangular(draw: Any, left: bool, lower: bool, unit: bool, form: str) -> Entry:
    words = f"triangular-solve {'complex ' * (draw is cplx)}{left=} {lower=} {unit=} {form}"
    diagonal = np.broadcast_to(4 * np.eye(3), (2, 3, 3))
    solve = lambda a, b: xb.triangular_solve(  # noqa: E731
        a + diagonal.astype(a.shape.dtype.dtype), b, left, lower, unit, form
    )
    of_jax = lambda a, b: lax.linalg.triangular_solve(  # noqa: E731
        a + diagonal, b, left_side=left, lower=lower, unit_diagonal=unit, transpose_a=form != "NO_TRANSPOSE",
        conjugate_a=form == "ADJOINT",
    )  # fmt: skip
    return both(words, solve, of_jax, draw(2, 3, 3), draw(2, 3, 2) if left else draw(2, 2, 3))


def definite(a: Any) -> Any:
    """A Hermitian matrix with positive eigenvalues, of any, here."""
    conjugated = xb.conj(a) if a.shape.dtype.kind == "complex" else a
    found = xb.dot_general(a, conjugated, [2], [2], [0], [0])
    return found + np.broadcast_to(2 * np.eye(3), (2, 3, 3)).astype(a.shape.dtype.dtype)


def factored(draw: Any, lower: bool) -> Entry:
    name = f"cholesky {'complex ' * (draw is cplx)}{lower=}"

    def of_jax(a: Any) -> Any:
        whole = a @ jnp.conj(jnp.swapaxes(a, -1, -2)) + 2 * jnp.eye(3)
        found = jnp.linalg.cholesky(whole)
        return found if lower else jnp.conj(jnp.swapaxes(found, -1, -2))

    return both(name, lambda a: xb.cholesky(definite(a), lower), of_jax, draw(2, 3, 3))


def scaled(a: Any, b: Any, s: Any, t: Any) -> Any:
    return (a * jnp.repeat(s, 2, 1)) @ (b * jnp.repeat(t, 4, 1)).T


def reversed_kernel(x: Any, k: Any) -> Any:
    return lax.conv_general_dilated(x, k[:, :, ::-1], (2,), [(1, 2)])


def contracted_runs(a: Any, b: Any) -> Any:
    return jnp.stack([a[:, :2] @ b[:2], a[:, 2:4] @ b[2:4]])


FUNCTIONS: list[Entry] = [
    both("batch_norm_training", lambda *v: xb.batch_norm_training(*v, EPSILON, 1), training,
         normal(3, 2, 4), normal(2), normal(2)),
    both("batch_norm_inference", lambda *v: xb.batch_norm_inference(*v, EPSILON, 1), inference,
         normal(3, 2, 4), normal(2), normal(2), normal(2), positive(2)),
    both("batch_norm_grad", lambda *v: xb.batch_norm_grad(*v, EPSILON, 1), gradient,
         normal(3, 2, 4), normal(2), normal(2), positive(2), normal(3, 2, 4)),
    *(triangular(normal, *forms) for forms in product(
        (True, False), (True, False), (True, False), ("NO_TRANSPOSE", "TRANSPOSE"))),
    *(triangular(cplx, left, lower, False, form) for left, lower, form in product(
        (True, False), (True, False), ("TRANSPOSE", "ADJOINT"))),
    *(factored(draw, lower) for draw, lower in product((normal, cplx), (True, False))),
    both("scaled_dot", lambda a, b, s, t: xb.scaled_dot(a, b, s, t, ((1,), (1,))), scaled,
         normal(2, 4), normal(3, 4), normal(2, 2), normal(3, 1)),
    both("convolution with a reversed kernel", lambda x, k: xb.ops.convolution(
        x, k, window="size=3 stride=2 pad=1_2 rhs_reversal=1", dimension_numbers="bf0_oi0->bf0"), reversed_kernel,
        normal(2, 3, 8), normal(4, 3, 3)),
    both("ragged_dot with contracted runs", lambda a, b: xb.ragged_dot(
        a, b, np.array([2, 2], np.int32), (((1,), (0,)), ((), ())), (1,)), contracted_runs, normal(3, 5), normal(5, 2)),
    both("map of two arrays", lambda x, y: xb.map((x, y), lambda a, b: xb.sin(a) * b, (0, 1)),
         lambda x, y: jnp.sin(x) * y, normal(2, 3), normal(2, 3)),
    both("window of products", lambda x: xb.reduce_window(x, 1.0, xb.multiply, (3,), (2,)),
         lambda x: jnp.stack([x[n] * x[n + 1] * x[n + 2] for n in (0, 2, 4)]), [2.0, 0.0, 3.0, 0.0, 0.0, 5.0, 0.5]),
    both("reduce of products", lambda x: xb.reduce(x, 1.5, xb.multiply, (1,)), lambda x: 1.5 * x.prod(1), normal(2, 4)),
    both("scatter of products, repeated", lambda x, u: xb.scatter(
        x, [[1], [1], [0]], u, xb.multiply, update_window_dims=(), inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,)), lambda x, u: jnp.stack([x[0] * u[2], x[1] * u[0] * u[1], x[2]]),
        normal(3), [0.0, 2.0, 3.0]),
    both("erf", xb.erf, lax.erf, normal(5)),
    both("acos", xb.acos, jnp.arccos, within(-0.9, 0.9, 5)),
    both("asinh", xb.asinh, jnp.arcsinh, normal(5)),
    both("square root of complex numbers", xb.sqrt, jnp.sqrt, cplx(4)),
]  # fmt: skip
