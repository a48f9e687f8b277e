"""The 1,797 digits of scikit-learn, 8x8 pixels each, split into the batches of the replicas."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from examples.extras import wanted

HELD_BACK = 360
BATCH = 64


class Digits(NamedTuple):
    """Images as rows of 64 numbers in 0..1, labels as one-hot rows of 10."""

    images: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any]


def load(dtype: Any = np.float32) -> tuple[Digits, Digits]:
    """The digits for training and the held-back digits, the same on every call."""
    with wanted("demo"):
        from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.data))
    images = (found.data[order] / 16).astype(dtype)
    labels = np.eye(10, dtype=dtype)[found.target[order]]
    return Digits(images[HELD_BACK:], labels[HELD_BACK:]), Digits(images[:HELD_BACK], labels[:HELD_BACK])


def epoch(digits: Digits, replicas: int, seed: int) -> list[Digits]:
    """Each replica's share of every batch of a shuffled pass: images [steps, share, 64], labels [steps, share, 10]."""
    steps = len(digits.images) // BATCH
    order = np.random.default_rng(seed).permutation(len(digits.images))[: steps * BATCH]

    def shares(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return rows[order].reshape(steps, replicas, BATCH // replicas, -1)

    images, labels = shares(digits.images), shares(digits.labels)
    return [Digits(images[:, replica], labels[:, replica]) for replica in range(replicas)]
