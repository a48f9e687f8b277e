"""A transformer block for one device, and four shardings of the block, each of which annotates a few of its values.

`xbuild shard examples/sharding/block.py:data --compare tensor sequence full` compares the four shardings.
"""

from __future__ import annotations

import xbuild as xb

BATCH, LENGTH, WIDTH, HEADS, HEAD, HIDDEN = 4, 8, 16, 4, 8, 48
SHAPES = {
    "x": xb.f32[BATCH, LENGTH, WIDTH],
    "query": xb.f32[WIDTH, HEADS, HEAD],
    "key": xb.f32[WIDTH, HEADS, HEAD],
    "value": xb.f32[WIDTH, HEADS, HEAD],
    "out": xb.f32[HEADS, HEAD, WIDTH],
    "up": xb.f32[WIDTH, HIDDEN],
    "down": xb.f32[HIDDEN, WIDTH],
}


def normed(x: xb.Value) -> xb.Value:
    """Divide every position by its root mean square."""
    square = xb.reduce(x * x, 0.0, xb.add, (2,)) / float(WIDTH)
    return x * xb.broadcast_in_dim(xb.rsqrt(square + 1e-5), x.shape.dims, (0, 1))


def attention(x: xb.Value, query: xb.Value, key: xb.Value, value: xb.Value, out: xb.Value) -> xb.Value:
    """Each position takes a weighted mean of the values of all positions, with separate weights for each head."""
    q = xb.dot_general(x, query, [2], [0], name="q")  # batch, position, head, part of a head
    k = xb.dot_general(x, key, [2], [0], name="k")
    v = xb.dot_general(x, value, [2], [0], name="v")
    scores = xb.dot_general(q, k, [3], [3], [0, 2], [0, 2], name="scores")  # batch, head, position, position
    weights = xb.exp(scores / float(HEAD) ** 0.5)
    total = xb.reduce(weights, 0.0, xb.add, (3,))
    shares = weights / xb.broadcast_in_dim(total, weights.shape.dims, (0, 1, 2))
    heads = xb.dot_general(shares, v, [3], [1], [0, 1], [0, 2], name="heads")  # batch, head, position, part of a head
    return xb.dot_general(heads, out, [1, 3], [0, 1], name="attended")


def perceptron(x: xb.Value, up: xb.Value, down: xb.Value) -> xb.Value:
    """Two products with a function between them, computed for each position separately."""
    hidden = xb.tanh(xb.dot_general(x, up, [2], [0], name="hidden"))
    return xb.dot_general(hidden, down, [2], [0], name="narrow")


def result_of(x: xb.Value, *weights: xb.Value) -> xb.Value:
    """The result of the block, from its input and its weights."""
    middle = xb.add(x, attention(normed(x), *weights[:4]), name="middle")
    return xb.add(middle, perceptron(normed(middle), *weights[4:]), name="result")


def block() -> xb.Module:
    """The block for one device."""
    builder = xb.Builder("block")
    values = [xb.parameter(builder, number=n, shape=s, name=name) for n, (name, s) in enumerate(SHAPES.items())]
    return xb.Module("block", builder.build(result_of(*values)))


def data() -> xb.Module:
    """Data parallel: the examples are sharded, and every device has all weights."""
    return xb.shard.annotated(block(), {"x": xb.P("data")}, mesh=xb.Mesh(data=4))


def tensor() -> xb.Module:
    """Tensor parallel: heads and hidden units are sharded, and every device has all examples."""
    heads, columns = xb.P(None, "model"), xb.P(None, "model")
    specs = {"query": heads, "key": heads, "value": heads, "up": columns}
    return xb.shard.annotated(block(), specs, mesh=xb.Mesh(model=4))


def sequence() -> xb.Module:
    """Sequence parallel: the positions are sharded, and every device has all weights."""
    return xb.shard.annotated(block(), {"x": xb.P(None, "seq")}, mesh=xb.Mesh(seq=4))


def full() -> xb.Module:
    """Fully sharded: the examples and the weights are sharded, and each weight is gathered before its use."""
    mesh = xb.Mesh(data=4)
    weights = dict.fromkeys([*SHAPES][1:], later(mesh, "data"))
    return xb.shard.annotated(xb.shard.annotated(block(), {"x": xb.P("data")}, mesh=mesh), weights)


def later(mesh: xb.Mesh, axis: str) -> xb.shard.Sharding:
    """Shard the first dimension along an axis, with a priority that lets the shardings of examples propagate first."""
    first = xb.shard.by_spec(mesh, xb.P(axis)).dim(0)
    return xb.shard.Sharding(mesh, (xb.shard.DimSharding(first.axes, priority=1),))
