"""The network and its gradient, written in the ops of XLA: 64 pixels, 48 tanh units, 10 logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import xbuild as xb
from examples.digits.data import BATCH

HIDDEN = 48
LEARNING_RATE = 0.3
MOMENTUM = 0.9


def initial_parameters(dtype: Any = np.float32) -> list[np.ndarray[Any, Any]]:
    """Weights and biases of the two layers."""
    rng = np.random.default_rng(1)
    return [
        (rng.standard_normal((64, HIDDEN)) / 8).astype(dtype),
        np.zeros(HIDDEN, dtype),
        (rng.standard_normal((HIDDEN, 10)) / np.sqrt(HIDDEN)).astype(dtype),
        np.zeros(10, dtype),
    ]


def logits(parameters: Sequence[xb.Value], images: xb.Value) -> tuple[xb.Value, xb.Value]:
    """The hidden layer and the logits of each image."""
    w1, b1, w2, b2 = parameters
    hidden = xb.tanh(xb.add(xb.dot(images, w1), b1, broadcast_dimensions=[1]))
    return hidden, xb.add(xb.dot(hidden, w2), b2, broadcast_dimensions=[1])


def loss(*arguments: xb.Value) -> xb.Value:
    """This replica's share of the mean cross entropy of a batch: (parameters, images, labels) -> number."""
    *parameters, images, labels = arguments
    with xb.scope("loss"):
        _, scores = logits(parameters, images)
        shifted = xb.subtract(scores, xb.reduce(scores, -np.inf, xb.maximum, [1]), broadcast_dimensions=[0])
        normalizer = xb.log(xb.reduce(xb.exp(shifted), 0.0, xb.add, [1]))
        log_probability = xb.subtract(shifted, normalizer, broadcast_dimensions=[0])
        return xb.reduce(labels * log_probability, 0.0, xb.add) / -float(BATCH)


def gradients(parameters: Sequence[xb.Value], images: xb.Value, labels: xb.Value) -> tuple[xb.Value, list[xb.Value]]:
    """The loss and its derivatives with respect to the parameters, from xb.value_and_grad."""
    given = [*parameters, images, labels]
    value, found = xb.call(given, xb.value_and_grad(loss, argnums=range(4))(*(each.shape for each in given)))
    return value, list(found)


def train_epoch(steps: int, share: int, dtype: xb.PrimitiveType = xb.f32) -> xb.Computation:
    """A pass over the batches as a While: (parameters, velocities, batches) -> (parameters, velocities, loss)."""
    shapes = [dtype[p.shape] for p in initial_parameters()]

    @xb.computation(*shapes, *shapes, dtype[steps, share, 64], dtype[steps, share, 10])
    def epoch(*arguments: xb.Value) -> list[xb.Value]:
        state = xb.while_(
            [xb.constant(arguments[0].builder, 0), *arguments, xb.constant(arguments[0].builder, 0.0, dtype)],
            condition=lambda state: state[0] < steps,
            body=_step,
        )
        return [*list(state)[1:9], state[11] / float(steps)]

    return epoch


def _step(state: xb.Value) -> list[xb.Value]:
    """Train on one batch: gradients are summed over the replicas, so all replicas take the same step."""
    count, *rest = state
    parameters, velocities, (images, labels, total) = rest[:4], rest[4:8], rest[8:]
    loss, found = gradients(parameters, _batch(images, count), _batch(labels, count))
    with xb.scope("all_reduce"):
        found = [xb.cross_replica_sum(gradient) for gradient in found]
        loss = xb.cross_replica_sum(loss)
    with xb.scope("update"):
        velocities = [MOMENTUM * v - LEARNING_RATE * g for v, g in zip(velocities, found, strict=True)]
        parameters = [p + v for p, v in zip(parameters, velocities, strict=True)]
    return [count + 1, *parameters, *velocities, images, labels, total + loss]


def _batch(rows: xb.Value, number: xb.Value) -> xb.Value:
    """The rows of one batch out of [steps, share, width]."""
    _, share, width = rows.shape.dims
    return xb.reshape(xb.dynamic_slice(rows, [number, 0, 0], [1, share, width]), [share, width])


def predict(count: int, dtype: xb.PrimitiveType = xb.f32) -> xb.Computation:
    """The logits of `count` images: (parameters, images) -> logits."""
    shapes = [dtype[p.shape] for p in initial_parameters()]
    return xb.computation(*shapes, dtype[count, 64])(lambda *given: logits(given[:4], given[4])[1])
