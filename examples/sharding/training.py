"""A training step of the block for one device: it computes new weights from examples, under the same four shardings.

`xbuild shard examples/sharding/training.py:data --compare tensor sequence full` compares the four shardings.
"""

from __future__ import annotations

import xbuild as xb
from examples.sharding.block import BATCH, LENGTH, SHAPES, WIDTH, later, result_of

WEIGHTS = [*SHAPES][1:]
RATE = 0.1


def loss(*values: xb.Value) -> xb.Value:
    """The mean squared difference between the block's result and the target."""
    error = result_of(*values[:-1]) - values[-1]
    return xb.reduce(error * error, 0.0, xb.add) / float(BATCH * LENGTH * WIDTH)


def step() -> xb.Module:
    """The new weights, computed on one device."""
    shapes = {**SHAPES, "wanted": SHAPES["x"]}
    gradient = xb.grad(xb.computation(*shapes.values())(loss), [*range(1, len(SHAPES))])
    builder = xb.Builder("step")
    values = [xb.parameter(builder, number=n, shape=s, name=name) for n, (name, s) in enumerate(shapes.items())]
    slopes = xb.call(values, gradient)
    return xb.Module("step", builder.build(xb.tuple_([w - slopes[n] * RATE for n, w in enumerate(values[1:-1])])))


def data() -> xb.Module:
    """Data parallel: the examples are sharded, so gradients are sums over devices."""
    return xb.shard.annotated(step(), {"x": xb.P("data"), "wanted": xb.P("data")}, mesh=xb.Mesh(data=4))


def tensor() -> xb.Module:
    """Tensor parallel: heads and hidden units are sharded."""
    heads, columns = xb.P(None, "model"), xb.P(None, "model")
    specs = {"query": heads, "key": heads, "value": heads, "up": columns}
    return xb.shard.annotated(step(), specs, mesh=xb.Mesh(model=4))


def sequence() -> xb.Module:
    """Sequence parallel: the positions are sharded."""
    positions = xb.P(None, "seq")
    return xb.shard.annotated(step(), {"x": positions, "wanted": positions}, mesh=xb.Mesh(seq=4))


def full() -> xb.Module:
    """Fully sharded: the examples and the weights are sharded; the shardings of weights propagate last."""
    mesh = xb.Mesh(data=4)
    module = xb.shard.annotated(step(), {"x": xb.P("data"), "wanted": xb.P("data")}, mesh=mesh)
    return xb.shard.annotated(module, dict.fromkeys(WEIGHTS, later(mesh, "data")))
