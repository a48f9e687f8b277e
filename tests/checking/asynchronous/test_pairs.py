"""Starts, updates and dones: which belong together, and faults of those that do not pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import execute
from tests.checking.asynchronous.programs import ONES, F, finished, module, started, summed
from tests.support.compare import assert_same


def no_done(x: xb.Value) -> xb.Value:
    started(x, 1)
    return x


def two_dones(x: xb.Value) -> Any:
    start = started(x, 1)
    return finished(start), xb.all_reduce_done(start, name="again")


def done_of_another_kind(x: xb.Value) -> xb.Value:
    start = xb.all_gather_start(x, 0, 1, [(0,), (1,)], name="start1")
    return xb.collective_permute_done(start, name="done1")


def start_that_is_added(x: xb.Value) -> xb.Value:
    start = started(x, 1)
    return finished(start) + xb.negate(start, name="user")


def start_that_is_the_root(x: xb.Value) -> xb.Value:
    start = started(x, 1)
    finished(start)
    return start


def update_at_the_end(x: xb.Value) -> xb.Value:
    start = xb.async_start(x, xb.negate, name="start1")
    xb.async_update(start, name="update1")
    return xb.async_done(start)


def done_inside_a_call(x: xb.Value) -> xb.Value:
    return xb.call(started(x, 1), lambda start: xb.all_reduce_done(start, name="done1"))


def done_of_nothing(x: xb.Value) -> xb.Value:
    return xb.all_reduce_done(x, name="done1")


def two_ops_that_meet(x: xb.Value) -> xb.Value:
    calls = xb.computation(F)(lambda y: summed(xb.negate(y, name="first"), 1))
    return xb.async_done(xb.async_start(x, calls, name="start1"))


def copy_without_done(x: xb.Value) -> xb.Value:
    xb.copy_start(x, name="start1")
    return x


@pytest.mark.parametrize(
    ("program", "kind", "named"),
    [
        (no_done, "missing_done", ["start1"]),
        (copy_without_done, "missing_done", ["start1"]),
        (two_dones, "duplicate_done", ["start1", "done1", "again"]),
        (done_of_another_kind, "done_kind_mismatch", ["start1", "done1"]),
        (start_that_is_added, "start_misused", ["start1", "user"]),
        (start_that_is_the_root, "start_misused", ["start1"]),
        (update_at_the_end, "start_misused", ["update1"]),
        (done_inside_a_call, "nest_mismatch", ["start1", "done1"]),
        (done_of_nothing, "missing_start", ["done1"]),
        (two_ops_that_meet, "disallowed_computation", ["start1", "first", "sum1"]),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_halves_that_do_not_pair_are_refused(program: Callable[..., Any], kind: str, named: list[str]) -> None:
    verdict = xb.check(module(program))
    assert verdict.kind == "error"
    found = verdict.findings[0]
    assert found.kind == kind, verdict
    assert [i.name for i in found.instructions] == named
    assert all(f"{source.file.rsplit('/', 1)[-1]}:{source.line}" in str(verdict) for source in found.sources)
    assert len(found.sources) == len(named)


def test_an_update_chain_goes_back_to_its_start() -> None:
    def chained(x: xb.Value) -> xb.Value:
        start = xb.async_start(x, lambda y: summed(y, 1))
        return xb.async_done(xb.async_update(xb.async_update(start)))

    program = module(chained)
    assert xb.check(program).kind == "ok"
    assert_same(execute(program, [[ONES], [2 * ONES]]), [3 * ONES] * 2)


FUSED = """HloModule step, num_partitions=2

add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}

fused {{
  p0 = f32[8] parameter(0)
  p1 = f32[8] parameter(1)
  part = f32[4] slice(p0), slice={{[4:8]}}
  {collective}, replica_groups={{{{0,1}}}}, channel_id=1, use_global_device_ids=true
  zero = s32[] constant(0)
  ROOT updated = f32[8] dynamic-update-slice(p1, moved, zero)
}}

ENTRY main {{
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  {fusion}
  other = f32[8] all-reduce(x), replica_groups={{{{0,1}}}}, channel_id=2, use_global_device_ids=true, to_apply=add
  {done}
  ROOT results = (f32[8], f32[8]) tuple(done, other)
}}
"""
ASYNC = (
    "start = ((f32[8], f32[8]), f32[8], s32[]) fusion-start(x, y), kind=kCustom, calls=fused",
    "done = f32[8] fusion-done(start)",
)
CALLED = (
    ASYNC[0].replace("fusion-start", "call-start").replace("kind=kCustom, calls", "to_apply"),
    "done = f32[8] call-done(start)",
)
BLOCKING = ("done = f32[8] fusion(x, y), kind=kCustom, calls=fused", "")


def fused(collective: str, lines: tuple[str, str]) -> xb.Module:
    return xb.parse_hlo(FUSED.format(collective=collective, fusion=lines[0], done=lines[1]))


@pytest.mark.parametrize(
    "collective",
    [
        "moved = f32[4] all-reduce(part), to_apply=add",
        "moved = f32[2] reduce-scatter(part), dimensions={0}, to_apply=add",
        "moved = f32[8] all-gather(part), dimensions={0}",
    ],
    ids=["all_reduce", "reduce_scatter", "all_gather"],
)
@pytest.mark.parametrize("lines", [ASYNC, CALLED], ids=["fusion", "call"])
def test_a_started_fusion_or_call_with_a_collective_is_one_that_blocks(lines: tuple[str, str], collective: str) -> None:
    started, blocking = fused(collective, lines), fused(collective, BLOCKING)
    assert xb.check(started).kind == "ok"
    assert "2 collectives" in str(xb.check(started))
    inputs = [[np.arange(8, dtype=np.float32) * device, np.ones(8, np.float32)] for device in (1, 2)]
    assert_same(execute(started, inputs), execute(blocking, inputs))
    assert [each.is_async for each in xb.testing.collectives(started)] == [False, True]
    assert xb.parse_hlo(started.to_hlo()).to_hlo() == started.to_hlo()


def test_a_device_without_the_collective_of_a_started_fusion_is_refused() -> None:
    text = FUSED.replace(", num_partitions=2", "")
    collective = "moved = f32[4] all-reduce(part), to_apply=add"
    started = text.format(collective=collective, fusion=ASYNC[0], done=ASYNC[1])
    without = text.format(collective=collective, fusion="", done="done = f32[8] copy(y)")
    verdict = xb.check(xb.ModuleGroup({0: xb.parse_hlo(started), 1: xb.parse_hlo(without)}))
    assert verdict.kind == "error"
    assert [each.kind for each in verdict.findings] == ["missing_participant"]
    assert "moved in fusion in async-start start" in str(verdict)


def test_a_started_fusion_with_a_transfer_is_refused() -> None:
    moved = (
        "after = token[] after-all()\n"
        "  sent = (f32[4], u32[], token[]) send(part, after), channel_id=3\n"
        "  ended = token[] send-done(sent), channel_id=3\n"
        "  moved = f32[4] all-reduce(part), to_apply=add"
    )
    assert "disallowed_computation" in {each.kind for each in xb.check(fused(moved, ASYNC)).findings}
