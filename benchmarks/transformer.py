"""One training step of a transformer in JAX: attention, layer norm, MLP, cross-entropy, their gradients, and Adam."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from attrs import frozen

Tree = Any


@frozen
class Sizes:
    """The sizes of the model; every layer is unrolled, so the program grows with `layers`."""

    layers: int = 24
    width: int = 32
    heads: int = 4
    tokens: int = 16
    batch: int = 2
    vocabulary: int = 64


def parameters(sizes: Sizes, seed: int = 0) -> Tree:
    """Weights from a seed."""
    rng = np.random.default_rng(seed)

    def normal(*dims: int) -> Any:
        return (rng.standard_normal(dims) / np.sqrt(dims[0])).astype(np.float32)

    def norm() -> Tree:
        return {"scale": np.ones(sizes.width, np.float32), "shift": 0.1 * normal(sizes.width)}

    def layer() -> Tree:
        width = sizes.width
        weights = {"qkv": normal(width, 3 * width), "out": normal(width, width), "up": normal(width, 4 * width)}
        return {**weights, "down": normal(4 * width, width), "before": norm(), "between": norm()}

    return {
        "embedding": normal(sizes.vocabulary, sizes.width),
        "place": normal(sizes.tokens, sizes.width),
        "layers": [layer() for _ in range(sizes.layers)],
        "last": norm(),
    }


def _norm(x: Any, weights: Tree) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * weights["scale"] + weights["shift"]


def _attention(x: Any, weights: Tree, heads: int) -> Any:
    batch, tokens, width = x.shape
    split = (x @ weights["qkv"]).reshape(batch, tokens, 3, heads, width // heads)
    query, key, value = (split[:, :, part].swapaxes(1, 2) for part in range(3))
    scores = query @ key.swapaxes(2, 3) / np.sqrt(width // heads).astype(np.float32)
    past = np.tril(np.ones((tokens, tokens), bool))
    chances = jax.nn.softmax(jnp.where(past, scores, -1e9), axis=-1)
    return (chances @ value).swapaxes(1, 2).reshape(batch, tokens, width) @ weights["out"]


def loss(weights: Tree, words: Any, heads: int) -> Any:
    """The mean cross-entropy of the next word."""
    x = weights["embedding"][words[:, :-1]] + weights["place"]
    for layer in weights["layers"]:
        x = x + _attention(_norm(x, layer["before"]), layer, heads)
        x = x + jax.nn.gelu(_norm(x, layer["between"]) @ layer["up"]) @ layer["down"]
    logits = _norm(x, weights["last"]) @ weights["embedding"].T
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), words[:, 1:, None], axis=-1)
    return -chosen.mean()


def step(weights: Tree, first: Tree, second: Tree, count: Any, words: Any, heads: int) -> Tree:
    """The weights, moments and count after one step of Adam, and the loss before it."""
    value, gradients = jax.value_and_grad(loss)(weights, words, heads)
    count = count + 1.0
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    rate = 1e-3 * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    weights = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-4), weights, first, second)
    return weights, first, second, count, value


def arguments(sizes: Sizes, seed: int = 0) -> tuple[Any, ...]:
    """The arguments of the first step: weights, zero moments, and words."""
    weights = parameters(sizes, seed)
    zeros = jax.tree.map(np.zeros_like, weights)
    words = np.random.default_rng(seed + 1).integers(0, sizes.vocabulary, (sizes.batch, sizes.tokens + 1), np.int32)
    return weights, zeros, jax.tree.map(np.zeros_like, weights), np.float32(0), words


def lowered(sizes: Sizes) -> Any:
    """The step, lowered by JAX for arguments of these sizes."""
    return jax.jit(step, static_argnums=5, keep_unused=True).lower(*arguments(sizes), sizes.heads)


def leaves(sizes: Sizes, seed: int = 0) -> list[Any]:
    """The arguments in the order of the program's parameters."""
    return list(jax.tree.leaves(arguments(sizes, seed)))
