"""Training on any number of replicas, one epoch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import xbuild as xb
from examples.digits import data, model


class Progress(NamedTuple):
    """The state after an epoch."""

    epoch: int
    loss: float
    accuracy: float
    parameters: list[np.ndarray[Any, Any]]


def program(replicas: int, steps: int, dtype: xb.PrimitiveType = xb.f32) -> xb.Module:
    """The training of one epoch as one program for all replicas."""
    return xb.Module("digits", model.train_epoch(steps, data.BATCH // replicas, dtype), num_replicas=replicas)


def train(replicas: int, epochs: int, dtype: xb.PrimitiveType = xb.f32) -> Iterator[Progress]:
    """Train from the same start on the same batches for any number of replicas; yields the state after each epoch."""
    digits, held_back = data.load(dtype.dtype)
    module = program(replicas, len(digits.images) // data.BATCH, dtype)
    parameters = model.initial_parameters(dtype.dtype)
    velocities = [np.zeros_like(p) for p in parameters]
    for number in range(1, epochs + 1):
        shares = data.epoch(digits, replicas, seed=number)
        results = xb.execute(module, [[*parameters, *velocities, *share] for share in shares])
        *state, loss = results[0]
        parameters, velocities = list(state[:4]), list(state[4:])
        yield Progress(number, float(loss), accuracy(parameters, held_back, dtype), parameters)


def accuracy(parameters: list[np.ndarray[Any, Any]], digits: data.Digits, dtype: xb.PrimitiveType = xb.f32) -> float:
    """The fraction of the digits whose largest logit is their label."""
    scores = xb.evaluate(model.predict(len(digits.images), dtype), *parameters, digits.images)
    return float(np.mean(scores.argmax(axis=1) == digits.labels.argmax(axis=1)))
