"""Recurrent nets and state spaces: loops over time, and associative scans."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .layers import BOTH, CUBE
from .record import Program, f32


def rnn(x: Any, w: Any, u: Any) -> Any:
    def step(h: Any, each: Any) -> Any:
        h = jnp.tanh(each @ w + h @ u)
        return h, h

    return lax.scan(step, jnp.zeros((x.shape[1], u.shape[0])), x)[1]


def lstm(x: Any, w: Any, u: Any) -> Any:
    """Weights [features, gates, hidden], so that the hidden units of all gates are cut alike."""

    def step(state: Any, each: Any) -> Any:
        h, c = state
        gates = jnp.einsum("bf,fgh->gbh", each, w) + jnp.einsum("bi,igh->gbh", h, u)
        c = jax.nn.sigmoid(gates[0]) * c + jax.nn.sigmoid(gates[1]) * jnp.tanh(gates[2])
        h = jax.nn.sigmoid(gates[3]) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((x.shape[1], u.shape[-1]))
    return lax.scan(step, (zeros, zeros), x)[1]


def state_space(x: Any, kernel: Any, a: Any, b: Any, c: Any) -> Any:
    """A block of Mamba: a causal convolution over time, then a scan of linear steps; x is [batch, time, features]."""
    width = kernel.shape[0]
    padded = jnp.pad(x, ((0, 0), (width - 1, 0), (0, 0)))
    y = jax.nn.silu(sum(padded[:, n : n + x.shape[1]] * kernel[n] for n in range(width)))
    decay = jnp.exp(-jax.nn.softplus(y[..., None] * a))
    drive = y[..., None] * b

    def joined(one: Any, other: Any) -> Any:
        return one[0] * other[0], other[0] * one[1] + other[1]

    _, h = lax.associative_scan(joined, (decay, drive), axis=1)
    return (h * c).sum(-1)


def linear_attention(q: Any, k: Any, v: Any) -> Any:
    """A state [batch, heads, features, features] that grows by an outer product at each time."""

    def step(state: Any, each: Any) -> Any:
        query, key, value = each
        state = 0.9 * state + key[..., :, None] * value[..., None, :]
        return state, jnp.einsum("bhe,bhef->bhf", query, state)

    start = jnp.zeros((*k.shape[1:], v.shape[-1]))
    return lax.scan(step, start, (q, k, v))[1]


QKV = (f32(6, 4, 2, 8),) * 3

PROGRAMS = [
    Program(
        "recurrent net", rnn, (f32(6, 8, 16), f32(16, 32), f32(32, 32)), BOTH, [[None, "data"], [None, "model"], None]
    ),
    Program(
        "lstm",
        lstm,
        (f32(6, 8, 16), f32(16, 4, 32), f32(32, 4, 32)),
        BOTH,
        [[None, "data"], [None, None, "model"], [None, None, "model"]],
        [[None, "data", "model"]],
    ),
    Program(
        "state space",
        state_space,
        (f32(4, 8, 16), f32(4, 16), f32(16, 4), f32(16, 4), f32(16, 4)),
        BOTH,
        [["data", None, "model"], [None, "model"], ["model"], ["model"], ["model"]],
        [["data", None, "model"]],
    ),
    Program(
        "state space, sequence",
        state_space,
        (f32(4, 8, 16), f32(4, 16), f32(16, 4), f32(16, 4), f32(16, 4)),
        CUBE,
        [["data", "seq", "model"], [None, "model"], ["model"], ["model"], ["model"]],
        [["data", "seq", "model"]],
    ),
    Program("linear attention", linear_attention, QKV, BOTH, [[None, "data", "model"]] * 3),
]
