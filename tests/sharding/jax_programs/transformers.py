"""Transformer layers whole: forward and gradient, fully sharded, sequence parallel, in a scan, on images."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .attention import CUT_HEADS, HEADS, X, attention
from .layers import BOTH, CUBE, norm
from .record import Program, f32

WEIGHTS = (*HEADS, f32(32, 64), f32(64, 32))
CUT = [*CUT_HEADS, [None, "model"], ["model"]]
FULL = [*[["data", "model"]] * 3, ["model", None, "data"], ["data", "model"], ["model", "data"]]
"""Weights cut over data, too."""


def block(x: Any, q: Any, k: Any, v: Any, o: Any, a: Any, b: Any) -> Any:
    x = x + attention(norm(x), q, k, v, o)
    return x + jnp.einsum("bsf,fd->bsd", jax.nn.relu(jnp.einsum("bsd,df->bsf", norm(x), a)), b)


def block_loss(*args: Any) -> Any:
    return jnp.mean(block(*args))


def step(x: Any, *weights: Any) -> Any:
    """A step of training: every weight less its gradient."""
    found = jax.grad(lambda each: jnp.mean(block(x, *each) ** 2))(weights)
    return tuple(w - 0.1 * g for w, g in zip(weights, found, strict=True))


def sequence_parallel(mesh: Any, x: Any, q: Any, k: Any, v: Any, o: Any, a: Any, b: Any) -> Any:
    """The block with the sequence cut outside of its two halves, as Megatron has it."""

    def cut(y: Any) -> Any:
        return lax.with_sharding_constraint(y, NamedSharding(mesh, P("data", "model")))

    def gathered(y: Any) -> Any:
        return lax.with_sharding_constraint(y, NamedSharding(mesh, P("data")))

    x = cut(x + cut(attention(gathered(cut(norm(x))), q, k, v, o)))
    hidden = jax.nn.relu(gathered(cut(norm(x))) @ a)
    return cut(x + cut(hidden @ b))


def sequence_parallel_loss(mesh: Any, weights: Any, x: Any) -> Any:
    return jnp.mean(sequence_parallel(mesh, x, *weights) ** 2)


def sequence_parallel_gradient(mesh: Any, x: Any, *weights: Any) -> Any:
    return jax.grad(sequence_parallel_loss, 1)(mesh, weights, x)


def stack(x: Any, *weights: Any) -> Any:
    """Layers in a scan, each recomputed on the way back; the gradient of the weights."""

    def total(weights: Any) -> Any:
        found, _ = lax.scan(jax.checkpoint(lambda y, each: (block(y, *each), None)), x, weights)
        return jnp.mean(found**2)

    return jax.grad(total)(weights)


def vision(image: Any, patches: Any, positions: Any, *weights: Any) -> Any:
    """Patches of an image, their embedding, a block, and the mean over the patches."""
    y = lax.conv_general_dilated(image, patches, (4, 4), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = y.reshape(y.shape[0], -1, y.shape[-1]) + positions
    *inner, head = weights
    return block(y, *inner).mean(1) @ head


STACKED = tuple(f32(3, *each.shape) for each in WEIGHTS)
CUT_STACKED = [[None, *each] for each in CUT]
VISION = (f32(4, 16, 16, 3), f32(4, 4, 3, 32), f32(16, 32), *WEIGHTS, f32(32, 12))

PROGRAMS = [
    Program("transformer block, three axes", block, (X, *WEIGHTS), CUBE, [["data", "seq"], *CUT]),
    Program("transformer block, data", block, (X, *WEIGHTS), {"data": 4}, [["data"], *[None] * 6]),
    Program(
        "transformer gradient", jax.grad(block_loss, (1, 5)), (X, *WEIGHTS), BOTH, [["data"], *CUT], [CUT[0], CUT[4]]
    ),
    Program("transformer step, data and model", step, (X, *WEIGHTS), BOTH, [["data"], *CUT], CUT),
    Program(
        "transformer step, fully sharded",
        step,
        (X, *WEIGHTS),
        {"data": 4},
        [["data"], *[["data"]] * 3, [None, None, "data"], ["data"], ["data"]],
        [*[["data"]] * 3, [None, None, "data"], ["data"], ["data"]],
    ),
    Program("transformer step, fully sharded and model", step, (X, *WEIGHTS), BOTH, [["data"], *FULL], FULL),
    Program(
        "transformer block, sequence parallel",
        sequence_parallel,
        (X, *WEIGHTS),
        BOTH,
        [["data", "model"], *CUT],
        [["data", "model"]],
        takes_mesh=True,
    ),
    Program(
        "transformer gradient, sequence parallel",
        sequence_parallel_gradient,
        (X, *WEIGHTS),
        BOTH,
        [["data", "model"], *CUT],
        CUT,
        takes_mesh=True,
    ),
    Program(
        "transformer layers in a scan, gradient",
        stack,
        (X, *STACKED),
        BOTH,
        [["data"], *CUT_STACKED],
        CUT_STACKED,
        scale=0.3,
    ),
    Program("vision transformer", vision, VISION, BOTH, [["data"], None, None, *CUT, None]),
]
