"""Numerical programs: stencils, Fourier transforms, solvers, iterations."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .layers import BOTH, DATA, MODEL, X
from .record import Program, f32

GRID = {"h": 4, "w": 2}


def stencil(x: Any) -> Any:
    p = jnp.pad(x, 1)
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x


def nine(x: Any) -> Any:
    """The 3 x 3 neighbours, weighted."""
    p = jnp.pad(x, 1)
    h, w = x.shape
    weights = ((1, 4, 1), (4, -20, 4), (1, 4, 1))
    return sum(weights[i][j] * p[i : i + h, j : j + w] for i in range(3) for j in range(3)) / 6.0


def heat(x: Any) -> Any:
    """Steps of the heat equation on a torus, in a loop."""

    def step(_: Any, u: Any) -> Any:
        around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
        return u + 0.1 * (around - 4 * u)

    return lax.fori_loop(0, 5, step, x)


def smoothed(x: Any) -> Any:
    """Steps of Jacobi's method with fixed borders, by a convolution, in a loop."""
    kernel = jnp.array([[0.0, 0.25, 0.0], [0.25, 0.0, 0.25], [0.0, 0.25, 0.0]])[:, :, None, None]

    def step(_: Any, u: Any) -> Any:
        return lax.conv_general_dilated(
            u[None, :, :, None], kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )[0, :, :, 0]

    return lax.fori_loop(0, 5, step, x)


def roll(x: Any) -> Any:
    return jnp.roll(x, 1, 0) + jnp.concatenate([x[1:], x[:1]], 0)


def power(a: Any, v: Any) -> Any:
    return lax.fori_loop(0, 10, lambda i, w: (a @ w) / jnp.sqrt((w * w).sum()), v)


def kmeans(x: Any, c: Any) -> Any:
    def trip(state: Any) -> Any:
        c, i = state
        d = ((x[:, None] - c[None]) ** 2).sum(-1)
        hot = (d.argmin(-1)[:, None] == jnp.arange(c.shape[0])).astype(jnp.float32)
        return hot.T @ x / (hot.sum(0)[:, None] + 1.0), i + 1

    return lax.while_loop(lambda s: s[1] < 5, trip, (c, 0))[0]


def conjugate_gradients(a: Any, b: Any) -> Any:
    """Ten steps towards the x of (a a^T / n + 1) x = b, whose rows are cut."""

    def times(x: Any) -> Any:
        return a @ (a.T @ x) / a.shape[0] + x

    def step(_: Any, state: Any) -> Any:
        x, r, p, old = state
        q = times(p)
        alpha = old / (p @ q)
        x, r = x + alpha * p, r - alpha * q
        new = r @ r
        return x, r, r + (new / old) * p, new

    return lax.fori_loop(0, 10, step, (jnp.zeros_like(b), b, b, b @ b))[0]


def regression(x: Any, y: Any) -> Any:
    """Linear regression by the normal equations and their Cholesky decomposition."""
    a = x.T @ x + 0.1 * jnp.eye(x.shape[1])
    factor = lax.linalg.cholesky(a)
    z = lax.linalg.triangular_solve(factor, x.T @ y, left_side=True, lower=True)
    return lax.linalg.triangular_solve(factor, z, left_side=True, lower=True, transpose_a=True)


def principal(x: Any) -> Any:
    """Covariances of features that are cut over examples."""
    centred = x - x.mean(0)
    return centred.T @ centred / (x.shape[0] - 1)


COMPLEX = jax.ShapeDtypeStruct((8, 16), jnp.complex64)

PROGRAMS = [
    Program("stencil", stencil, (f32(16, 16),), GRID, [["h", "w"]]),
    Program("stencil of nine", nine, (f32(16, 16),), GRID, [["h", "w"]], [["h", "w"]]),
    Program("heat equation", heat, (f32(16, 16),), GRID, [["h", "w"]], [["h", "w"]]),
    Program("jacobi by convolution", smoothed, (f32(16, 16),), GRID, [["h", "w"]], [["h", "w"]]),
    Program("rolled", roll, (X,), BOTH, [["data", "model"]]),
    Program("power iteration", power, (f32(16, 16), f32(16)), MODEL, [["model", None], None]),
    Program("k-means", kmeans, (f32(64, 8), f32(4, 8)), BOTH, [["data", None], None]),
    Program("conjugate gradients", conjugate_gradients, (f32(32, 16), f32(32)), DATA, [["data"], ["data"]], [["data"]]),
    Program("linear regression", regression, (f32(64, 8), f32(64, 2)), DATA, [["data"], ["data"]], [None]),
    Program("covariance", principal, (f32(64, 8),), BOTH, [["data", "model"]]),
    Program("fft", jnp.fft.fft, (COMPLEX,), BOTH, [["data", None]]),
    Program("fft in two dimensions", jnp.fft.fft2, (COMPLEX,), DATA, [["data", None]], [["data", None]]),
    Program(
        "cholesky of batches",
        lambda a: lax.linalg.cholesky(a, symmetrize_input=False),
        (f32(8, 4, 4),),
        DATA,
        [["data"]],
        is_positive=True,
    ),
]
