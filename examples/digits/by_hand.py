"""The gradient of the network with a backward pass written by hand, to compare with xb.value_and_grad."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import xbuild as xb
from examples.digits.data import BATCH
from examples.digits.model import logits


def gradients(parameters: Sequence[xb.Value], images: xb.Value, labels: xb.Value) -> tuple[xb.Value, list[xb.Value]]:
    """This replica's share of the mean cross entropy of a batch, and its derivatives with respect to the parameters."""
    w2 = parameters[2]
    with xb.scope("forward"):
        hidden, scores = logits(parameters, images)
        shifted = xb.subtract(scores, xb.reduce(scores, -np.inf, xb.maximum, [1]), broadcast_dimensions=[0])
        normalizer = xb.log(xb.reduce(xb.exp(shifted), 0.0, xb.add, [1]))
        log_probability = xb.subtract(shifted, normalizer, broadcast_dimensions=[0])
        loss = xb.reduce(labels * log_probability, 0.0, xb.add) / -float(BATCH)
    with xb.scope("backward"):
        d_scores = (xb.exp(log_probability) - labels) / float(BATCH)
        d_hidden = xb.dot_general(d_scores, w2, [1], [1]) * (1.0 - hidden * hidden)
        return loss, [
            xb.dot_general(images, d_hidden, [0], [0]),
            xb.reduce(d_hidden, 0.0, xb.add, [0]),
            xb.dot_general(hidden, d_scores, [0], [0]),
            xb.reduce(d_scores, 0.0, xb.add, [0]),
        ]
