"""A training step in which a replica with an empty batch skips the all-reduce."""

from __future__ import annotations

import numpy as np

import xbuild as xb


def program(replicas: int = 4) -> xb.Module:
    @xb.computation(xb.f32[3], xb.f32[3], xb.s32[()])
    def step(weights: xb.Value, gradient: xb.Value, examples: xb.Value) -> xb.Value:
        loss = xb.all_reduce(gradient, xb.add, name="loss")
        return xb.conditional(
            xb.gt(examples, 0),
            (xb.tuple_([weights, loss]), xb.tuple_([weights, loss])),
            branch_computations=(
                lambda state: state[0] - 0.1 * xb.all_reduce(state[1], xb.add, name="gradients"),
                lambda state: state[0],
            ),
        )

    return xb.Module("step", step, num_replicas=replicas)


def main() -> str:
    """The report of a run in which replica 2 has no examples."""
    weights, gradient = np.zeros(3, np.float32), np.ones(3, np.float32)
    counts = (8, 8, 0, 8)
    try:
        xb.execute(program(), [[weights, gradient, np.int32(count)] for count in counts])
    except xb.Stopped as stopped:
        return str(stopped)
    return "it ran"


if __name__ == "__main__":
    print(xb.check(program()))
    print(main())
