"""What it costs to check large programs: one for all devices, and one for each."""

from __future__ import annotations

from typing import Any

import pytest

import xbuild as xb

INSTRUCTIONS = 20_000
TRANSFERS = 64


def one_program(replicas: int) -> xb.Module:
    builder = xb.Builder("spmd")
    x = value = xb.parameter(builder, number=0, shape=xb.f32[4])
    adder = xb.computation(xb.f32[()], xb.f32[()])(xb.ops.add)
    for n in range(INSTRUCTIONS):
        value = xb.ops.add(value, x) if n % 10 else xb.ops.all_reduce(value, to_apply=adder)
    return xb.Module("spmd", builder.build(value), num_replicas=replicas)


def many_programs(devices: int) -> xb.ModuleGroup:
    """A ring in which each device passes its value on again and again; a recv is posted before each send."""
    return xb.ModuleGroup({d: _ring_member(d, devices) for d in range(devices)})


def _ring_member(device: int, devices: int) -> xb.Module:
    builder = xb.Builder(f"d{device}")
    value = xb.parameter(builder, number=0, shape=xb.f32[4])
    token = xb.ops.after_all((), builder=builder)
    for n in range(TRANSFERS):
        out, into = n * devices + device + 1, n * devices + (device - 1) % devices + 1
        posted = xb.ops.recv(token, shape=xb.f32[4], channel_id=into)
        sent = xb.ops.send(value, token, channel_id=out)
        done = xb.ops.send_done(sent, channel_id=out)
        value, token = xb.ops.recv_done(posted, channel_id=into)
        token = xb.ops.after_all((token, done))
    return xb.Module(f"d{device}", builder.build(value))


@pytest.mark.parametrize("replicas", [8, 256])
def test_one_program_for_all(side_by_side: Any, replicas: int) -> None:
    module = one_program(replicas)
    assert xb.check(module).kind == "ok"
    side_by_side.alone(f"check an instruction, SPMD, {INSTRUCTIONS} instructions, {replicas} replicas",
                       lambda: xb.check(module), units=INSTRUCTIONS)  # fmt: skip


@pytest.mark.parametrize("devices", [8, 64])
def test_a_program_for_each(side_by_side: Any, devices: int) -> None:
    group = many_programs(devices)
    assert xb.check(group).kind == "ok"
    count = sum(len(module.entry.instructions) for module in group.modules.values())
    side_by_side.alone(f"check an instruction, MPMD, {count} instructions, {devices} devices",
                       lambda: xb.check(group), units=count)  # fmt: skip
