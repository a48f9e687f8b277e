"""A program as a user writes it, which type checkers must accept as it stands."""

from __future__ import annotations

import numpy as np

import xbuild as xb


def run_twice(computation: xb.Computation, x: float) -> xb.Trace:
    """Whatever runs a program comes from the one import."""
    assert xb.evaluate(computation, x, limits=xb.Limits(trips=3)) == x
    try:
        xb.execute(xb.Module("m", computation), [[x]], strict=True)
    except (xb.Stopped, xb.StrictFailure) as stopped:
        print(stopped.report)
    except xb.Refused as refused:
        print(refused.verdict)
    print(xb.engines.compare([], [], []))
    return xb.trace(xb.Module("m", computation), [[x]])


@xb.computation(xb.f32[()], xb.f32[()])
def larger(a: xb.Value, b: xb.Value) -> xb.Value:
    return xb.ops.maximum(a, b)


def normalised(x: xb.Value) -> xb.Value:
    lowest = xb.ops.constant(x.builder, literal=np.float32(-np.inf), name="lowest")
    peak = xb.ops.reduce([x], [lowest], to_apply=larger, dimensions=[1])
    single = xb.ops.reduce(x, lowest, to_apply=xb.ops.add, dimensions=(0, 1))
    total = xb.ops.all_reduce(peak, to_apply=lambda a, b: a + b, replica_groups=[[0, 1], [2, 3]])
    return xb.ops.tuple_((total, single), name="both")


def transferred(x: xb.Value, n: xb.Value) -> xb.Value:
    token = xb.ops.after_all((), builder=x.builder)
    sent = xb.ops.send(x, token, channel_id=1, source_target_pairs={0: 1})
    done = xb.ops.send_done(sent, channel_id=1)
    received = xb.ops.recv(done, shape=xb.f32[2, 3], channel_id=2, source_target_pairs=[(1, 0)])
    fed = xb.ops.infeed(done, shape=xb.TupleShape((xb.f32[2], xb.s32[()])))
    state = xb.ops.while_(n, condition=lambda s: s < 3, body=lambda s: s * 2)
    return xb.ops.tuple_([state, xb.ops.recv_done(received, channel_id=2), fed])


def comfortable(x: xb.Value) -> xb.Value:
    y = xb.add(x, 2.0) * x - np.ones(3, np.float32)
    z = xb.maximum(0, xb.exp(y), name="positive") / (1 + x)
    flat = xb.reshape(xb.broadcast(z, (2, 1)), (6,), name="flat")
    total = xb.reduce(flat, 0.0, xb.add, [0])
    first: xb.Value = xb.select((x == y) | (x != 0), x // 2, y)[0]
    return xb.tuple_(total, first, xb.cross_replica_sum(total))


def program() -> xb.Module:
    builder = xb.Builder("program")
    x = xb.ops.parameter(builder, number=0, shape=xb.f32[2, 3], name="x")
    n = xb.ops.parameter(builder, number=1, shape=xb.s32[()])
    chosen = xb.ops.compare(x, x, direction="LT", type="FLOAT")
    with xb.scope("inside"), xb.control(after=[x]):
        same: xb.Value = xb.ops.select(chosen, x, -x)
    parts = xb.ops.tuple_([normalised(same), transferred(x, n), comfortable(x[0])])
    computation: xb.Computation = builder.build(parts)
    return xb.Module("program", computation, num_replicas=4)
