"""Programs that the gallery draws."""

from __future__ import annotations

from pathlib import Path

import xbuild as xb

CORPUS = Path(__file__).parents[2] / "tests" / "data" / "hlo"


def example() -> xb.Module:
    """The first program of the README."""
    builder = xb.Builder("mean_of_replicas")
    x = xb.parameter(builder, number=0, shape=xb.f32[4], name="x")
    total = xb.cross_replica_sum(x * 2.0, name="total")
    return xb.Module("example", builder.build(xb.divide(total, 2.0, name="mean")), num_replicas=2)


def loop() -> xb.Module:
    """Ten steps, in each of which all replicas take the mean of their values."""
    builder = xb.Builder("loop")
    x = xb.parameter(builder, number=0, shape=xb.f32[8], name="x")

    def step(state: xb.Value) -> list[xb.Value]:
        mean = xb.cross_replica_sum(state[1], name="total") / 4.0
        return [state[0] + 1, xb.tanh(mean)]

    final = xb.while_([xb.constant(builder, 0), x], condition=lambda state: state[0] < 10, body=step)
    return xb.Module("loop", builder.build(final[1]), num_replicas=4)


def groups() -> xb.Module:
    """Sums within pairs of replicas, then across them: two ways to group four replicas."""
    builder = xb.Builder("groups")
    x = xb.parameter(builder, number=0, shape=xb.f32[4, 4], name="x")
    rows = xb.cross_replica_sum(x, replica_groups=[(0, 1), (2, 3)], name="rows")
    columns = xb.cross_replica_sum(xb.exponential(rows), replica_groups=[(0, 2), (1, 3)], name="columns")
    parts = xb.all_gather(columns, all_gather_dimension=0, shard_count=4, name="parts")
    return xb.Module("groups", builder.build(parts), num_replicas=4)


def attention() -> xb.Module:
    """Attention as JAX lowers it, unoptimized."""
    return xb.parse_hlo((CORPUS / "attention_0.hlo").read_text())


def attention_grad() -> xb.Module:
    """The gradient of attention, at a different size."""
    return xb.parse_hlo((CORPUS / "attention_grad_0.hlo").read_text())


def tower(layers: int = 24) -> xb.Module:
    """A deep network and its gradients, with a scope for every layer: a picture large enough to be folded."""
    builder = xb.Builder("tower")
    x = xb.parameter(builder, number=0, shape=xb.f32[32, 64], name="x")
    weights = [xb.parameter(builder, number=1 + n, shape=xb.f32[64, 64], name=f"w{n}") for n in range(layers)]
    kept = []
    for number, weight in enumerate(weights):
        with xb.scope("forward"), xb.scope(f"layer{number}"):
            inner = xb.dot(x, weight)
            wide = xb.exponential(xb.minimum(inner, 4.0)) * 0.1
            kept.append((x, inner))
            x = xb.tanh(inner + wide * 0.01) * 0.9 + inner * 0.1
    summed = []
    for number in reversed(range(layers)):
        with xb.scope("backward"), xb.scope(f"layer{number}"):
            before, inner = kept[number]
            slope = xb.tanh(inner)
            x = x * (1.0 - slope * slope) * 0.9 + x * 0.1
            gradient = xb.dot(xb.transpose(before, [1, 0]), x)
            summed.append(xb.cross_replica_sum(gradient))
            x = xb.dot(x, xb.transpose(weights[number], [1, 0]))
    return xb.Module("tower", builder.build(xb.tuple_(summed)), num_replicas=8)


def layer() -> xb.Module:
    """Two products for one device, with shardings of their inputs on a 2 by 2 mesh."""
    builder = xb.Builder("layer")
    x = xb.parameter(builder, number=0, shape=xb.f32[8, 16], name="x")
    up = xb.parameter(builder, number=1, shape=xb.f32[16, 32], name="up")
    down = xb.parameter(builder, number=2, shape=xb.f32[32, 16], name="down")
    module = xb.Module("layer", builder.build(xb.dot(xb.tanh(xb.dot(x, up)), down)))
    specs = {"x": xb.P("data"), "up": xb.P(None, "model"), "down": xb.P("model")}
    return xb.shard.annotated(module, specs, mesh=xb.Mesh(data=2, model=2))


def uneven() -> xb.Module:
    """An array whose extents are not divisible by the mesh axes."""
    twice = xb.computation(xb.f32[5, 14])(lambda x: x + x)
    return xb.shard.annotated(xb.Module("uneven", twice), {0: xb.P("a", "b")}, mesh=xb.Mesh(a=2, b=4))
