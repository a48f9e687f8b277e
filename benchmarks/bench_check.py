"""The cost of checking large programs: one program for all devices, and one for each device."""

from __future__ import annotations

import resource
from typing import Any

import pytest

import xbuild as xb
from benchmarks.conftest import Row

INSTRUCTIONS = 20_000
EVENTS = 4  # recv, send and their dones, of one transfer


def one_program(replicas: int) -> xb.Module:
    builder = xb.Builder("spmd")
    x = value = xb.parameter(builder, number=0, shape=xb.f32[4])
    adder = xb.computation(xb.f32[()], xb.f32[()])(xb.ops.add)
    for n in range(INSTRUCTIONS):
        value = xb.ops.add(value, x) if n % 10 else xb.ops.all_reduce(value, to_apply=adder)
    return xb.Module("spmd", builder.build(value), num_replicas=replicas)


def many_programs(devices: int, transfers: int, local: int = 0) -> xb.ModuleGroup:
    """A ring in which each device repeatedly passes its value on, with local ops in between; recvs come first."""
    return xb.ModuleGroup({d: _ring_member(d, devices, transfers, local) for d in range(devices)})


def sends_first(devices: int, transfers: int) -> xb.ModuleGroup:
    """The same ring, recorded so that every device sends before it posts its recv: the check must find an order."""
    return xb.ModuleGroup({d: _ring_member(d, devices, transfers, 0, posts_first=False) for d in range(devices)})


def stuck_at_last(devices: int, transfers: int, local: int = 0) -> xb.ModuleGroup:
    """The same ring, in which the recvs of the last round wait for the sends, so that no order runs."""
    return xb.ModuleGroup(
        {d: _ring_member(d, devices, transfers, local, stuck_at=transfers - 1) for d in range(devices)}
    )


def many_reductions(devices: int, reductions: int, local: int) -> xb.ModuleGroup:
    """A program for each device, with all-reduces over two halves of the devices and local ops in between."""
    halves = tuple(range(devices // 2)), tuple(range(devices // 2, devices))
    return xb.ModuleGroup({d: _reducing_member(d, halves, reductions, local) for d in range(devices)})


def _reducing_member(device: int, groups: tuple[tuple[int, ...], ...], reductions: int, local: int) -> xb.Module:
    builder = xb.Builder(f"d{device}")
    adder = xb.computation(xb.f32[()], xb.f32[()])(xb.ops.add)
    x = value = xb.parameter(builder, number=0, shape=xb.f32[4])
    for n in range(reductions):
        value = xb.ops.all_reduce(value, to_apply=adder, replica_groups=groups, channel_id=n + 1)
        for _ in range(local):
            value = xb.ops.add(value, x)
    return xb.Module(f"d{device}", builder.build(value))


def _ring_member(
    device: int, devices: int, transfers: int, local: int, posts_first: bool = True, stuck_at: int | None = None
) -> xb.Module:
    builder = xb.Builder(f"d{device}")
    x = value = xb.parameter(builder, number=0, shape=xb.f32[4])
    token = xb.ops.after_all((), builder=builder)
    for n in range(transfers):
        out, into = n * devices + device + 1, n * devices + (device - 1) % devices + 1
        if posts_first and n != stuck_at:
            posted = xb.ops.recv(token, shape=xb.f32[4], channel_id=into)
        sent = xb.ops.send(value, token, channel_id=out)
        if not posts_first:
            posted = xb.ops.recv(token, shape=xb.f32[4], channel_id=into)
        done = xb.ops.send_done(sent, channel_id=out)
        if n == stuck_at:
            posted = xb.ops.recv(done, shape=xb.f32[4], channel_id=into)
        value, token = xb.ops.recv_done(posted, channel_id=into)
        token = xb.ops.after_all((token, done))
        for _ in range(local):
            value = xb.ops.add(value, x)
    return xb.Module(f"d{device}", builder.build(value))


def _peak() -> float:
    """The peak memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize("replicas", [8, 256])
def test_one_program_for_all(side_by_side: Any, replicas: int) -> None:
    module = one_program(replicas)
    assert xb.check(module).kind == "ok"
    side_by_side.alone(f"check an instruction, SPMD, {INSTRUCTIONS} instructions, {replicas} replicas",
                       lambda: xb.check(module), units=INSTRUCTIONS)  # fmt: skip


@pytest.mark.parametrize("devices", [10, 100, 1000])
def test_events_over_three_decades(side_by_side: Any, devices: int) -> None:
    """A thousand, ten thousand and a hundred thousand events: the time per event must hardly grow."""
    group = many_programs(devices, 25)
    assert xb.check(group).kind == "ok"
    count = devices * 25 * EVENTS
    side_by_side.alone(f"check an event, MPMD, {count:,} events on {devices} devices",
                       lambda: xb.check(group), units=count, rounds=3)  # fmt: skip


def test_a_thousand_programs_of_a_thousand_instructions(benchmark: Any, rows: list[Row]) -> None:
    """One in ten instructions communicates; the seconds of the check, and the memory that it adds."""
    group = many_programs(1024, 25, local=33)
    before = _peak()
    verdict = benchmark.pedantic(xb.check, (group,), rounds=1)
    assert verdict.kind == "ok"
    rows.append(Row("check 1,024 programs of 1,000 instructions", benchmark.stats.stats.median, unit="s"))
    rows.append(Row("  memory beside the programs", _peak() - before, unit="MB"))


def test_a_thousand_programs_that_reduce(benchmark: Any, rows: list[Row]) -> None:
    group = many_reductions(1024, 100, local=9)
    before = _peak()
    verdict = benchmark.pedantic(xb.check, (group,), rounds=1)
    assert verdict.kind == "ok"
    rows.append(
        Row("check 1,024 programs of 1,000 instructions, 100 all-reduces each", benchmark.stats.stats.median, unit="s")
    )
    rows.append(Row("  memory beside the programs", _peak() - before, unit="MB"))


def test_a_refused_program(side_by_side: Any) -> None:
    """A hundred thousand instructions in which the last round of transfers hangs, next to one that runs."""
    runs, hangs = many_programs(100, 50, local=14), stuck_at_last(100, 50, local=14)
    assert (xb.check(runs).kind, xb.check(hangs).kind) == ("ok", "deadlock")
    what = "check a refused program of 100,000 instructions, against one that runs"
    side_by_side(what, lambda: xb.check(hangs), lambda: xb.check(runs), rounds=3)


def test_a_million_events(benchmark: Any, rows: list[Row]) -> None:
    group = many_programs(1000, 250)
    before = _peak()
    verdict = benchmark.pedantic(xb.check, (group,), rounds=1)
    assert verdict.kind == "ok"
    rows.append(Row("check a million events on 1,000 devices", benchmark.stats.stats.median, unit="s"))
    rows.append(Row("  memory beside the programs", _peak() - before, unit="MB"))


def test_a_million_events_whose_order_is_found(benchmark: Any, rows: list[Row]) -> None:
    verdict = benchmark.pedantic(xb.check, (sends_first(1000, 250),), rounds=1)
    assert (verdict.kind, verdict.scope) == ("ok", "found")
    rows.append(Row("check a million events, sends before recvs", benchmark.stats.stats.median, unit="s"))
