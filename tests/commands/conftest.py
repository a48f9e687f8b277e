"""A folder with a file of programs, in which commands are tested."""

from __future__ import annotations

from pathlib import Path

import pytest

PROGRAMS = """
import numpy as np
import xbuild as xb

@xb.computation(xb.f32[3], xb.f32[3])
def total(x, y):
    return xb.ops.add(x, y)

def summed():
    builder = xb.Builder("summed")
    x = xb.ops.parameter(builder, number=0, shape=xb.f32[2], name="x")
    return xb.Module("summed", builder.build(xb.ops.all_reduce(x, to_apply=xb.ops.add)), num_replicas=2)

def small_types():
    builder = xb.Builder("small")
    x = xb.ops.parameter(builder, number=0, shape=xb.bf16[2], name="x")
    n = xb.ops.parameter(builder, number=1, shape=xb.s4[3], name="n")
    return builder.build(xb.ops.tuple_([xb.ops.add(x, x), n, xb.ops.after_all((), builder=builder)]))

def crossed():
    def device(first, second):
        builder = xb.Builder("device")
        x = xb.ops.parameter(builder, number=0, shape=xb.f32[4], name="x")
        token = xb.ops.after_all((), builder=builder)
        sent = xb.ops.send(x, token, channel_id=first)
        sent = xb.ops.send_done(sent, channel_id=first)
        posted = xb.ops.recv(sent, shape=xb.f32[4], channel_id=second)
        got = xb.ops.recv_done(posted, channel_id=second)
        return xb.Module("device", builder.build(xb.ops.get_tuple_element(got, index=0)))
    return xb.ModuleGroup({0: device(1, 2), 1: device(2, 1)})

def endless():
    builder = xb.Builder("endless")
    n = xb.ops.parameter(builder, number=0, shape=xb.s32[()], name="n")
    zero = lambda n: xb.ops.constant(n.builder, literal=np.int32(-1))
    loop = xb.ops.while_(
        n, condition=lambda n: xb.ops.compare(n, zero(n), direction="GT"), body=lambda n: xb.ops.abs(n)
    )
    return builder.build(loop)

def fed():
    builder = xb.Builder("fed")
    item = xb.ops.infeed(xb.ops.after_all((), builder=builder), shape=xb.f32[2])
    return builder.build(xb.ops.get_tuple_element(item, index=0))

def fed_twice():
    builder = xb.Builder("fed")
    shape = xb.TupleShape([xb.f32[()], xb.bf16[2]])
    first = xb.ops.infeed(xb.ops.after_all((), builder=builder), shape=shape)
    second = xb.ops.infeed(xb.ops.get_tuple_element(first, index=1), shape=shape)
    return xb.Module("fed", builder.build(xb.ops.get_tuple_element(second, index=0)), num_replicas=2)

def diverging():
    builder = xb.Builder("diverging")
    n = xb.ops.parameter(builder, number=0, shape=xb.s32[()], name="n")
    return builder.build(xb.while_(n, condition=lambda n: xb.eq(n, n), body=lambda n: n / 0))

def wants(x):
    return x

def fails():
    inner = 1
    return inner / 0

def refused():
    builder = xb.Builder("refused")
    x = xb.ops.parameter(builder, number=0, shape=xb.f32[2], name="x")
    y = xb.ops.parameter(builder, number=1, shape=xb.f32[3], name="y")
    return builder.build(xb.ops.add(x, y))

number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "programs.py").write_text(PROGRAMS)
    return tmp_path
