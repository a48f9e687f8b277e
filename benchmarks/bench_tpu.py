"""Replicated computations: what `replicate` adds to `execute` of the same module, and what tracing once saves."""

from __future__ import annotations

from typing import Any

import numpy as np

import xbuild as xb
from interpreter import execute
from xbuild import tpu

REPLICAS, SHARE, WIDTH, HIDDEN = 8, 64, 256, 256


def step(images: xb.Value, labels: xb.Value, *weights: xb.Value) -> list[xb.Value]:
    """A training step of two layers, with gradients by xb.grad that are summed over the replicas."""

    def loss_of(*values: xb.Value) -> xb.Value:
        x, y, first, second = values
        error = xb.dot(xb.tanh(xb.dot(x, first)), second) - y
        return xb.reduce(error * error, 0.0, xb.add)

    shapes = [value.shape for value in (images, labels, *weights)]
    gradients = xb.call((images, labels, *weights), xb.grad(loss_of, argnums=(2, 3))(*shapes))
    return [w - 1e-6 * tpu.cross_replica_sum(g) for w, g in zip(weights, gradients, strict=True)]


def inputs() -> list[list[np.ndarray[Any, Any]]]:
    """A batch for each replica, and the same weights for all."""
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal(shape).astype(np.float32) / 16 for shape in ((WIDTH, HIDDEN), (HIDDEN, 10)))
    rows = []
    for _ in range(REPLICAS):
        batch = rng.standard_normal((SHARE, WIDTH)).astype(np.float32)
        rows.append([batch, batch[:, :10].copy(), first, second])
    return rows


def test_a_step_by_replicate_against_execute(side_by_side: Any) -> None:
    rows = inputs()
    module = tpu.replicate.program(step, rows).module
    for a, b in zip(tpu.replicate(step, rows), execute(module, rows), strict=True):
        assert all(map(np.array_equal, a, b))
    side_by_side("a training step of 8 replicas, replicate and execute", lambda: tpu.replicate(step, rows),
                 lambda: execute(module, rows), rounds=30)  # fmt: skip


def test_a_step_with_variables_and_an_infeed_against_execute(side_by_side: Any) -> None:
    rows = inputs()
    weights = [tpu.Variable(array, f"w{n}") for n, array in enumerate(rows[0][2:])]
    whole = [np.concatenate([row[n] for row in rows]) for n in (0, 1)]
    queue = tpu.InfeedQueue(tuple_types=[xb.f32] * 2, tuple_shapes=[each.shape for each in whole])

    def with_state(images: xb.Value, labels: xb.Value) -> Any:
        after = step(images, labels, *(w.value() for w in weights))
        return [w.assign(value) for w, value in zip(weights, after, strict=True)]

    program = tpu.replicate.program(with_state, [[]] * REPLICAS, queue)
    parts = [(row[0], row[1]) for row in rows]
    values = [[w.numpy() for w in weights]] * REPLICAS

    def ours() -> Any:
        queue.enqueue(*whole)
        return program.run()

    def reference() -> Any:
        """Also with a new batch for each replica, since a queue copies its items."""
        return execute(program.module, values, infeed=[[tuple(each.copy() for each in part)] for part in parts])

    side_by_side("the same with variables and an infeed queue, run and execute", ours, reference, rounds=30)


def test_a_call_that_traces_nothing_against_one_that_does(side_by_side: Any) -> None:
    rows = [[np.ones(8, np.float32)] for _ in range(REPLICAS)]
    traced = []

    def computation(x: xb.Value) -> xb.Value:
        traced.append(x.name)
        for _ in range(50):
            x = xb.tanh(x) + 1.0
        return tpu.cross_replica_sum(x)

    def anew() -> Any:
        return tpu.replicate(lambda x: computation(x), rows)

    tpu.replicate(computation, rows)
    count = len(traced)
    tpu.replicate(computation, rows)
    assert len(traced) == count
    side_by_side("a call of a signature that is known, and a new function", lambda: tpu.replicate(computation, rows),
                 anew, rounds=15)  # fmt: skip
