"""Pipelines of stages: weights cut by stage, and a buffer of all stages that is shifted at each step."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .record import Program, f32

STAGES = 4


def stages(x: Any, w: Any) -> Any:
    return jax.vmap(lambda each, own: jnp.tanh(each @ own))(x, w)


def pipeline(mesh: Any, x: Any, w: Any) -> Any:
    """Small batches [number, batch, features] through stages of [stage, features, features], as GSPMD has pipelines."""
    number = x.shape[0]

    def placed(value: Any) -> Any:
        return lax.with_sharding_constraint(value, NamedSharding(mesh, P("stage")))

    def step(state: Any, each: Any) -> Any:
        state = placed(jnp.roll(state, 1, 0).at[0].set(each))
        state = placed(jax.vmap(lambda y, own: jnp.tanh(y @ own))(state, w))
        return state, state[-1]

    padded = jnp.concatenate([x, jnp.zeros((STAGES - 1, *x.shape[1:]), x.dtype)])
    found = lax.scan(step, jnp.zeros((STAGES, *x.shape[1:])), padded)[1]
    return found[STAGES - 1 :][:number]


def pipeline_gradient(mesh: Any, x: Any, w: Any) -> Any:
    return jax.grad(lambda each: jnp.mean(pipeline(mesh, x, each) ** 2))(w)


def ring_pipeline(mesh: Any, x: Any, w: Any) -> Any:
    """The same with a manual region: each device runs its stage and hands on what it has."""

    def on_device(x: Any, w: Any) -> Any:
        stage = lax.axis_index("stage")
        ahead = [(each, (each + 1) % STAGES) for each in range(STAGES)]

        def step(held: Any, each: Any) -> Any:
            held = jnp.where(stage == 0, each, held)
            held = jnp.tanh(held @ w[0])
            return lax.ppermute(held, "stage", ahead), held

        padded = jnp.concatenate([x, jnp.zeros((STAGES - 1, *x.shape[1:]), x.dtype)])
        start = lax.pcast(jnp.zeros(x.shape[1:]), "stage", to="varying")
        found = lax.scan(step, start, padded)[1][STAGES - 1 :]
        return lax.psum(jnp.where(stage == STAGES - 1, found, 0.0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage")), out_specs=P())(x, w)


SMALL, WEIGHTS, MESH = f32(6, 8, 16), f32(STAGES, 16, 16), {"stage": STAGES}

PROGRAMS = [
    Program("stages", stages, (f32(4, 8, 16), WEIGHTS), MESH, [["stage"], ["stage"]]),
    Program("pipeline", pipeline, (SMALL, WEIGHTS), MESH, [None, ["stage"]], [None], takes_mesh=True),
    Program(
        "pipeline, data",
        pipeline,
        (SMALL, WEIGHTS),
        {"stage": 4, "data": 2},
        [[None, "data"], ["stage"]],
        [[None, "data"]],
        takes_mesh=True,
    ),
    Program(
        "pipeline gradient", pipeline_gradient, (SMALL, WEIGHTS), MESH, [None, ["stage"]], [["stage"]], takes_mesh=True
    ),
    Program("pipeline, manual", ring_pipeline, (SMALL, WEIGHTS), MESH, [None, ["stage"]], [None], takes_mesh=True),
]
