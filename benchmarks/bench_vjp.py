"""The gradient of a transformer's loss by xb.value_and_grad, against JAX's gradient, both run here."""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from benchmarks.conftest import Row, SideBySide
from interpreter import evaluate

transformer = pytest.importorskip("benchmarks.transformer")
jax = pytest.importorskip("jax")

SIZES = transformer.Sizes(layers=4, width=64, tokens=32, batch=8)
MOST = 1.15  # of JAX's instructions


def count(module: xb.Module) -> int:
    """The number of instructions of a program, including the parameters of called computations."""
    return sum(len(computation.instructions) for computation in module.computations)


def test_gradient(side_by_side: SideBySide, rows: list[Row]) -> None:
    """The time to build it, its length, and the time of a run; the results are compared first."""
    weights, *_, words = transformer.arguments(SIZES)
    loss = functools.partial(transformer.loss, heads=SIZES.heads)
    given = [np.asarray(leaf) for leaf in jax.tree.leaves((weights, words))]
    forward = xb.from_jax(loss, weights, words)
    start = time.perf_counter()
    gradient = xb.value_and_grad(forward, range(len(given) - 1))
    made = time.perf_counter() - start
    ours = xb.eliminate_dead_code(gradient)
    theirs = xb.eliminate_dead_code(xb.from_jax(jax.value_and_grad(loss), weights, words))
    value, found = evaluate(ours.entry, *given)
    _compare([value, *found], evaluate(theirs.entry, *given))
    lengths = count(ours), count(theirs)
    assert lengths[0] <= MOST * lengths[1]
    rows += [
        Row(f"gradient of {count(forward)} instructions: made", made),
        Row("gradient of a transformer: instructions (reference: JAX's)", *map(float, lengths), unit="  "),
    ]
    side_by_side(
        "gradient of a transformer: run (reference: JAX's, read)",
        lambda: evaluate(ours.entry, *given),
        lambda: evaluate(theirs.entry, *given),
        rounds=25,
    )


def _compare(ours: Any, theirs: Any) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert np.linalg.norm(one - other) <= 1e-5 * max(np.linalg.norm(other), 1e-3)
