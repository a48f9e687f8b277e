"""Programs that sort, count and select: top k, histograms, segments, beams, sums along a dimension."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .layers import BOTH, DATA, X
from .record import Program, f32, i32


def gcn(a: Any, x: Any, w: Any, u: Any) -> Any:
    return a @ jax.nn.relu(a @ x @ w) @ u


def messages(x: Any, sources: Any, targets: Any, w: Any) -> Any:
    """A layer of a net on a graph given by edges: messages are gathered, summed by target, and multiplied."""
    summed = jax.ops.segment_sum(x[sources], targets, x.shape[0])
    return jax.nn.relu(summed @ w)


def page_rank(sources: Any, targets: Any, rank: Any) -> Any:
    """Steps of PageRank over edges."""
    out = jnp.zeros_like(rank).at[sources].add(1.0)

    def step(_: Any, r: Any) -> Any:
        return 0.15 / r.shape[0] + 0.85 * jnp.zeros_like(r).at[targets].add((r / jnp.maximum(out, 1.0))[sources])

    return lax.fori_loop(0, 5, step, rank)


def histogram(x: Any) -> Any:
    """Counts of the values in 16 bins."""
    bins = jnp.clip(((x + 4.0) * 2.0).astype(jnp.int32), 0, 15)
    return jnp.zeros(16, jnp.int32).at[bins.reshape(-1)].add(1)


def beam_step(scores: Any, logits: Any) -> Any:
    """A step of beam search: the best 4 of all words of all beams, with scores [batch, beam]."""
    total = scores[..., None] + jax.nn.log_softmax(logits, -1)
    best, places = lax.top_k(total.reshape(total.shape[0], -1), 4)
    return best, places // logits.shape[-1], places % logits.shape[-1]


def sampled(logits: Any, key: Any) -> Any:
    """The word of each example by the largest of its logits and random numbers."""
    noise = -jnp.log(-jnp.log(jax.random.uniform(key, logits.shape) + 1e-6) + 1e-6)
    return (logits + noise).argmax(-1)


KEY = jax.ShapeDtypeStruct((2,), jnp.uint32)
EDGES = i32(32)

PROGRAMS = [
    Program(
        "graph convolution",
        gcn,
        (f32(16, 16), f32(16, 32), f32(32, 32), f32(32, 8)),
        BOTH,
        [["data", None], None, [None, "model"], None],
    ),
    Program(
        "messages along edges",
        messages,
        (f32(16, 32), EDGES, EDGES, f32(32, 32)),
        BOTH,
        [None, ["data"], ["data"], [None, "model"]],
        [[None, "model"]],
        most=16,
    ),
    Program("page rank", page_rank, (EDGES, EDGES, f32(16)), DATA, [["data"], ["data"], None], [None], most=16),
    Program("sort", lambda x: jnp.sort(x, 1), (X,), BOTH, [["data", "model"]]),
    Program("cumulative sum", lambda x: jnp.cumsum(x, 1), (X,), BOTH, [["data", None]]),
    Program(
        "cumulative sum, sharded", lambda x: jnp.cumsum(x, 1), (X,), BOTH, [["data", "model"]], [["data", "model"]]
    ),
    Program("arg max", lambda x: x.argmax(1), (X,), BOTH, [["data", "model"]]),
    Program("top k", lambda x: tuple(lax.top_k(x, 4)), (X,), BOTH, [["data", "model"]], [["data"], ["data"]]),
    Program("histogram", histogram, (f32(64, 8),), DATA, [["data"]], [None]),
    Program(
        "beam search", beam_step, (f32(8, 4), f32(8, 4, 32)), BOTH, [["data"], ["data", None, "model"]], [["data"]] * 3
    ),
    Program("sampled words", sampled, (f32(16, 64), KEY), BOTH, [["data", "model"], None], [["data"]]),
]
