"""Times the last Python XlaBuilder on the ops named by its input; runs where jaxlib 0.6.0 is installed."""

import sys
import time

import numpy as np
from jaxlib import xla_client

ops = xla_client.ops


def adder():
    builder = xla_client.XlaBuilder("add")
    scalar = xla_client.Shape.array_shape(np.dtype(np.float32), ())
    return builder.build(ops.Add(ops.Parameter(builder, 0, scalar), ops.Parameter(builder, 1, scalar)))


def record(kind, count, to_apply):
    builder = xla_client.XlaBuilder("mix")
    x = ops.Parameter(builder, 0, xla_client.Shape.array_shape(np.dtype(np.float32), (4, 4)))
    zero = ops.Parameter(builder, 1, xla_client.Shape.array_shape(np.dtype(np.float32), ()))
    contracted = xla_client.DotDimensionNumbers()
    contracted.lhs_contracting_dimensions.append(1)
    contracted.rhs_contracting_dimensions.append(0)
    calls = {
        "add": lambda: ops.Add(x, x),
        "reduce": lambda: ops.Reduce(builder, [x], [zero], to_apply, [1]),
        "dot": lambda: ops.DotGeneral(x, x, contracted),
        "broadcast": lambda: ops.BroadcastInDim(zero, [4, 4], []),
    }
    call = calls[kind]
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def main():
    """For each line of input (a kind of op and a count), print the seconds per op."""
    to_apply = adder()
    for line in sys.stdin:
        kind, count = line.split()
        print(record(kind, int(count), to_apply), flush=True)


if __name__ == "__main__":
    main()
