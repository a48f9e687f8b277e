"""Mixtures of experts: all experts for all tokens, and tokens sent to the experts that a gate chooses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .layers import X, softmax
from .record import Program, f32

EXPERTS = 8
MESH = {"data": 2, "expert": 4}


def dense(x: Any, gate: Any, a: Any, b: Any) -> Any:
    y = jnp.einsum("td,edf->etf", x, a)
    return jnp.einsum("etf,efd,te->td", jax.nn.relu(y), b, softmax(x @ gate))


def routed(mesh: Any, x: Any, gate: Any, a: Any, b: Any) -> Any:
    """Two experts for each token, with a capacity: x is [group, token, features], groups are cut as experts are."""

    def cut(value: Any, *spec: Any) -> Any:
        return lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))

    capacity = x.shape[1] // 2
    weights, numbers = lax.top_k(softmax(x @ gate), 2)
    chosen = jax.nn.one_hot(numbers, EXPERTS)
    place = jnp.cumsum(chosen.reshape(x.shape[0], -1, EXPERTS), 1).reshape(chosen.shape) - 1.0
    kept = chosen * (place < capacity)
    slots = jax.nn.one_hot((place * kept).sum(-1).astype(jnp.int32), capacity)
    combine = jnp.einsum("gsk,gske,gskc->gsec", weights, kept, slots)
    dispatch = (combine > 0).astype(x.dtype)
    sent = cut(jnp.einsum("gsec,gsd->egcd", dispatch, x), "expert")
    y = jnp.einsum("egcf,efd->egcd", jax.nn.relu(jnp.einsum("egcd,edf->egcf", sent, a)), b)
    back = cut(y, None, "expert")
    return jnp.einsum("gsec,egcd->gsd", combine, back)


def routed_gradient(mesh: Any, x: Any, gate: Any, a: Any, b: Any) -> Any:
    return jax.grad(lambda *w: jnp.mean(routed(mesh, x, *w) ** 2), (0, 1, 2))(gate, a, b)


WEIGHTS = (f32(32, EXPERTS), f32(EXPERTS, 32, 64), f32(EXPERTS, 64, 32))
GROUPS = f32(8, 8, 32)

PROGRAMS = [
    Program(
        "experts",
        dense,
        (X, f32(32, 4), f32(4, 32, 64), f32(4, 64, 32)),
        MESH,
        [["data"], None, ["expert"], ["expert"]],
    ),
    Program(
        "routed experts",
        routed,
        (GROUPS, *WEIGHTS),
        {"expert": 4},
        [["expert"], None, ["expert"], ["expert"]],
        [["expert"]],
        takes_mesh=True,
    ),
    Program(
        "routed experts, gradient",
        routed_gradient,
        (GROUPS, *WEIGHTS),
        {"expert": 4},
        [["expert"], None, ["expert"], ["expert"]],
        [None, ["expert"], ["expert"]],
        takes_mesh=True,
    ),
]
