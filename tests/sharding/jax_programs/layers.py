"""Layers of products: their gradients, norms, low-rank additions, and reshapes between them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .record import Program, f32

DATA, MODEL, BOTH = {"data": 8}, {"model": 8}, {"data": 4, "model": 2}
CUBE = {"data": 2, "seq": 2, "model": 2}
X, A, B = f32(16, 32), f32(32, 64), f32(64, 32)
LOW = tuple(jax.ShapeDtypeStruct(each.shape, jnp.bfloat16) for each in (X, A, B))
TENSOR = [["data", None], [None, "model"], ["model", None]]


def mlp(x: Any, a: Any, b: Any) -> Any:
    return jnp.tanh(x @ a) @ b


def loss(x: Any, a: Any, b: Any) -> Any:
    return jnp.mean(mlp(x, a, b) ** 2)


def norm(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def softmax(x: Any) -> Any:
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def mixed(x: Any, a: Any, b: Any) -> Any:
    """The loss in f32 of a net in bf16."""
    return jnp.mean(mlp(x, a, b).astype(jnp.float32) ** 2)


def lora(x: Any, w: Any, a: Any, b: Any) -> Any:
    return x @ w + (x @ a) @ b


def lora_loss(x: Any, w: Any, a: Any, b: Any) -> Any:
    return jnp.mean(jnp.tanh(lora(x, w, a, b)) ** 2)


def gated(x: Any, gate: Any, up: Any, down: Any) -> Any:
    """The gated layer of LLaMA with its norm and residual."""
    y = x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    return x + (jax.nn.silu(y @ gate) * (y @ up)) @ down


def merged(x: Any) -> Any:
    return x.reshape(4, 4, 32).transpose(1, 0, 2).reshape(16, 32)


def chunked(x: Any, w: Any) -> Any:
    return lax.map(lambda each: jnp.tanh(each @ w), x.reshape(4, -1, x.shape[-1])).reshape(x.shape[0], -1)


def scan_layers(x: Any, w: Any) -> Any:
    return lax.scan(lambda c, each: (jnp.tanh(c @ each), c.sum()), x, w)


def branch(x: Any, w: Any, which: Any) -> Any:
    return lax.cond(which > 0, lambda: jnp.tanh(x @ w), lambda: (x @ w) * 2.0)


GRADIENT = jax.grad(loss, (1, 2))

PROGRAMS = [
    Program("mlp, data", mlp, (X, A, B), DATA, [["data", None], None, None]),
    Program("mlp, model", mlp, (X, A, B), MODEL, [None, [None, "model"], ["model", None]]),
    Program("mlp, data and model", mlp, (X, A, B), BOTH, TENSOR),
    Program("mlp, fully sharded weights", mlp, (X, A, B), BOTH, [["data"], ["data", "model"], ["model", "data"]]),
    Program("mlp loss", loss, (X, A, B), BOTH, TENSOR),
    Program("mlp gradient, data", GRADIENT, (X, A, B), DATA, [["data", None], None, None], [None, None]),
    Program("mlp gradient, data and model", GRADIENT, (X, A, B), BOTH, TENSOR, TENSOR[1:]),
    Program("mlp gradient in bf16", jax.grad(mixed, (1, 2)), LOW, BOTH, TENSOR, TENSOR[1:]),
    Program(
        "gated layer",
        gated,
        (f32(4, 8, 32), A, A, B),
        BOTH,
        [["data"], [None, "model"], [None, "model"], ["model"]],
        [["data"]],
    ),
    Program("layer norm", norm, (f32(4, 8, 32),), CUBE, [["data", "seq", "model"]]),
    Program("layers in a scan", scan_layers, (X, f32(5, 32, 32)), BOTH, [["data", None], [None, None, "model"]]),
    Program("branches", branch, (X, A, jax.ShapeDtypeStruct((), jnp.int32)), BOTH, [["data"], [None, "model"], None]),
    Program("low rank", lora, (X, A, f32(32, 4), f32(4, 64)), BOTH, [["data"], [None, "model"], None, None]),
    Program(
        "low rank gradient",
        jax.grad(lora_loss, (2, 3)),
        (X, A, f32(32, 4), f32(4, 64)),
        BOTH,
        [["data"], [None, "model"], None, [None, "model"]],
        [None, [None, "model"]],
    ),
    Program("chunks in a loop", chunked, (X, A), BOTH, [["data"], [None, "model"]]),
    Program("split and merged dimension", merged, (X,), DATA, [["data"]]),
    Program("outer product", jnp.outer, (f32(16), f32(32)), DATA, [["data"], ["data"]]),
]
