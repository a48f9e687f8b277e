"""The seconds of propagating and partitioning a program of 10,000 instructions on a mesh of three axes."""

from __future__ import annotations

import time

import xbuild as xb
from benchmarks.conftest import Row
from xbuild.sharding.sharding import get_axis, shard_dims
from xbuild.sharding.stated_shardings import annotated

INSTRUCTIONS = 10_000
MESH = xb.Mesh(data=4, model=4, sequence=2)


def layers(count: int) -> xb.Module:
    """Layers of two products with residuals, sharded by data, sequence and model like transformers."""
    data, model, sequence = (get_axis(MESH, name) for name in MESH.axes)
    builder = xb.Builder("layers")
    x = xb.parameter(builder, number=0, shape=xb.f32[16, 64, 128])
    shardings = {x.name: shard_dims(MESH, [[data], [sequence], []])}
    number = 1
    while len(builder.recorded) < count:
        up = xb.parameter(builder, number=number, shape=xb.f32[128, 256])
        down = xb.parameter(builder, number=number + 1, shape=xb.f32[256, 128])
        shardings |= {up.name: shard_dims(MESH, [[], [model]]), down.name: shard_dims(MESH, [[model], []])}
        number += 2
        x = _layer(x, up, down)
    return annotated(xb.Module("layers", builder.build(x)), shardings)


def _layer(x: xb.Value, up: xb.Value, down: xb.Value) -> xb.Value:
    hidden = xb.tanh(xb.ops.dot(x, up, lhs_contracting_dims=(2,), rhs_contracting_dims=(0,)))
    hidden = xb.maximum(hidden * hidden, xb.negate(hidden))
    y = x + xb.ops.dot(hidden, down, lhs_contracting_dims=(2,), rhs_contracting_dims=(0,))
    mean = xb.reduce(y, 0.0, xb.ops.add, [2])
    y = y - xb.ops.broadcast(mean, sizes=y.shape.dims, dimensions=(0, 1))
    return xb.exp(xb.negate(xb.abs(y)))


def test_ten_thousand_instructions(rows: list[Row]) -> None:
    module = layers(INSTRUCTIONS)
    start = time.perf_counter()
    propagated = xb.shard.propagate(module)
    middle = time.perf_counter()
    found = xb.shard.partition(propagated.module, propagate=False)
    end = time.perf_counter()
    rows.append(Row("propagation of 10,000 instructions", middle - start, unit="s"))
    rows.append(Row("partition of them", end - middle, unit="s"))
    assert {each.opcode for each in found.communications} == {"all_reduce"}
