"""The program: a step of linear regression whose gradient is summed over the replicas of all processes."""

from __future__ import annotations

from typing import Any

import numpy as np

import xbuild as xb

PROCESSES, DEVICES_EACH = 2, 2
REPLICAS = PROCESSES * DEVICES_EACH
ROWS, FEATURES = 8, 3


def program() -> xb.Module:
    """The program that computes new weights from the weights and each replica's own rows."""

    @xb.computation(xb.f32[FEATURES], xb.f32[ROWS, FEATURES], xb.f32[ROWS])
    def step(weights: xb.Value, rows: xb.Value, wanted: xb.Value) -> xb.Value:
        wrong = xb.subtract(rows @ weights, wanted)
        gradient = xb.cross_replica_sum(wrong @ rows)
        return weights - gradient * (0.5 / (REPLICAS * ROWS))

    return xb.Module("step", step, num_replicas=REPLICAS)


def inputs() -> dict[int, list[Any]]:
    """The weights and the own rows of each replica, drawn from a seed that every process has."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((REPLICAS, ROWS, FEATURES), np.float32)
    wanted = rows @ np.float32([1.0, -2.0, 3.0])
    return {replica: [np.zeros(FEATURES, np.float32), rows[replica], wanted[replica]] for replica in range(REPLICAS)}
