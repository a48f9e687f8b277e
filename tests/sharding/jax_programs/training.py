"""Steps of optimizers, their states cut over the data axis, losses, dropout, accumulated gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .layers import BOTH, DATA, TENSOR, A, B, X, loss
from .record import Program, f32, i32

KEY = jax.ShapeDtypeStruct((2,), jnp.uint32)


def cross_entropy(x: Any, w: Any, hot: Any) -> Any:
    logits = x @ w
    return -(hot * (logits - jax.nn.logsumexp(logits, -1, keepdims=True))).sum(-1).mean()


def chosen_entropy(x: Any, w: Any, labels: Any) -> Any:
    """The loss of labels by number, its gradient for features and the vocabulary."""
    logits = x @ w
    chosen = jnp.take_along_axis(logits, labels[:, None], 1)[:, 0]
    return (jax.nn.logsumexp(logits, -1) - chosen).mean()


def adam(w: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return w - 0.1 * m / (jnp.sqrt(v) + 1e-8), m, v


def adam_step(x: Any, a: Any, b: Any, ma: Any, mb: Any, va: Any, vb: Any) -> Any:
    """A step with the state of Adam cut over data (ZeRO-1): weights are whole before and after."""
    ga, gb = jax.grad(loss, (1, 2))(x, a, b)
    (a, ma, va), (b, mb, vb) = adam(a, ga, ma, va), adam(b, gb, mb, vb)
    return a, b, ma, mb, va, vb


def adafactor(w: Any, g: Any, rows: Any, columns: Any) -> Any:
    """A step with the mean squares of rows and columns of the gradient."""
    square = g * g + 1e-30
    rows, columns = 0.9 * rows + 0.1 * square.mean(1), 0.9 * columns + 0.1 * square.mean(0)
    update = g * lax.rsqrt(rows / rows.mean())[:, None] * lax.rsqrt(columns)[None]
    update = update / jnp.maximum(1.0, jnp.sqrt((update * update).mean()))
    return w - 0.1 * update, rows, columns


def clipped(x: Any, a: Any, b: Any) -> Any:
    """A step whose gradients are cut to a norm of 1 together."""
    found = jax.grad(loss, (1, 2))(x, a, b)
    size = jnp.sqrt(sum((each * each).sum() for each in found))
    scale = jnp.minimum(1.0, 1.0 / size)
    return a - scale * found[0], b - scale * found[1]


def accumulated(x: Any, a: Any, b: Any) -> Any:
    """Gradients of four small batches, summed in a loop: x is [batch, number, features]."""

    def add(sums: Any, each: Any) -> Any:
        found = jax.grad(loss, (1, 2))(each, a, b)
        return tuple(s + g for s, g in zip(sums, found, strict=True)), None

    zeros = (jnp.zeros_like(a), jnp.zeros_like(b))
    return lax.scan(add, zeros, x)[0]


def dropout(x: Any, key: Any) -> Any:
    return jnp.where(jax.random.bits(key, x.shape) > 2**30, x, 0.0)


ZERO = [["data"], None, None, *[["data"]] * 4]
VOCABULARY = (X, f32(32, 64), i32(16))

PROGRAMS = [
    Program(
        "cross entropy, vocabulary",
        cross_entropy,
        (X, f32(32, 64), f32(16, 64)),
        BOTH,
        [["data"], [None, "model"], None],
    ),
    Program(
        "cross entropy of labels", chosen_entropy, VOCABULARY, BOTH, [["data"], [None, "model"], ["data"]], most=64
    ),
    Program(
        "cross entropy gradient",
        jax.grad(chosen_entropy, (0, 1)),
        VOCABULARY,
        BOTH,
        [["data"], [None, "model"], ["data"]],
        [["data"], [None, "model"]],
        most=64,
    ),
    Program("adam", adam, (A,) * 4, BOTH, [["data", "model"], None, None, None]),
    Program("adam step, sharded states", adam_step, (X, A, B, A, B, A, B), DATA, ZERO, ZERO[1:]),
    Program(
        "adafactor",
        adafactor,
        (A, A, f32(32), f32(64)),
        BOTH,
        [["data", "model"], ["data", "model"], ["data"], ["model"]],
        [["data", "model"], ["data"], ["model"]],
    ),
    Program("step with clipped gradients", clipped, (X, A, B), BOTH, TENSOR, TENSOR[1:]),
    Program(
        "accumulated gradients",
        accumulated,
        (f32(4, 16, 32), A, B),
        BOTH,
        [[None, "data"], [None, "model"], ["model"]],
        TENSOR[1:],
    ),
    Program("dropout", dropout, (X, KEY), BOTH, [["data", "model"], None]),
]
