"""Embeddings: tables cut by vocabulary or by features, their gradients, rows that are added."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .layers import BOTH, A
from .record import Program, f32, i32


def embed(table: Any, ids: Any) -> Any:
    return table[ids]


def embed_hot(table: Any, ids: Any) -> Any:
    return (ids[..., None] == jnp.arange(table.shape[0])).astype(jnp.float32) @ table


def bag(table: Any, ids: Any, weights: Any) -> Any:
    """Weighted sums of rows, as recommenders have them."""
    return jnp.einsum("bn,bnf->bf", weights, table[ids])


def tied(table: Any, ids: Any, w: Any) -> Any:
    """A table for the words that come in and for the logits that go out; its gradient."""
    logits = jnp.tanh(table[ids] @ w) @ table.T
    return jnp.mean(jax.nn.logsumexp(logits, -1))


GRADIENT = jax.grad(lambda w, n: embed(w, n).sum())
SQUARED = jax.grad(lambda w, n: (embed(w, n) ** 2).sum())
TABLE, IDS = f32(64, 32), i32(4, 8)

PROGRAMS = [
    Program("embedding, vocabulary", embed, (TABLE, IDS), {"model": 8}, [["model"], None], most=64),
    Program("embedding, features and data", embed, (TABLE, IDS), BOTH, [[None, "model"], ["data"]], most=64),
    Program("embedding by a product", embed_hot, (TABLE, IDS), BOTH, [["model"], ["data"]], most=64),
    Program("embedding gradient", GRADIENT, (TABLE, IDS), BOTH, [["model"], ["data"]], [["model"]], most=64),
    Program(
        "embedding gradient, vocabulary", SQUARED, (TABLE, IDS), {"model": 8}, [["model"], None], [["model"]], most=64
    ),
    Program("bags of rows", bag, (TABLE, IDS, f32(4, 8)), BOTH, [["model"], ["data"], ["data"]], [["data"]], most=64),
    Program(
        "tied embedding, gradient",
        jax.grad(tied),
        (TABLE, IDS, f32(32, 32)),
        BOTH,
        [["model"], ["data"], None],
        [["model"]],
        most=64,
    ),
    Program(
        "scatter of rows",
        lambda x, n, u: x.at[n].add(u),
        (A, i32(8), f32(8, 64)),
        BOTH,
        [["data", "model"], None, None],
    ),
]
