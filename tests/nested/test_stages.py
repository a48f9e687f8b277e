"""Stages of the check and of runs that a large program keeps busy: each ends within two seconds of its limit.

Without the limit most of these take more than five seconds, in one stage.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Limits, Stopped, execute, trace

from .campaign import SECONDS, SLACK

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
ODD = (
    "odd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n q = f32[] sine(a)\n r = f32[] cosine(b)\n"
    " k = f32[] subtract(q, r)\n ROOT c = f32[] multiply(k, k) }\n"
)


def late(run: Callable[[], object]) -> float:
    """The seconds that a run takes beyond its limit, of the processor or on the clock, whichever are fewer."""
    wall, used = time.monotonic(), time.process_time()
    run()
    return min(time.monotonic() - wall, time.process_time() - used) - SECONDS


def entry(lines: str, header: str = "", parameter: str = "f32[2]", more: str = "") -> str:
    return f"HloModule m{header}\n{ADD}{more}ENTRY e {{ x = {parameter} parameter(0)\n{lines} }}\n"


def transfers(channels: list[tuple[int, str]]) -> str:
    """A send and a recv with their dones for each channel and its pairs."""
    lines = " t = token[] after-all()\n"
    for n, (channel, pairs) in enumerate(channels):
        how = f'channel_id={channel}, frontend_attributes={{_xla_send_recv_source_target_pairs="{{{pairs}}}"}}'
        lines += f" r{n} = (f32[2], u32[], token[]) recv(t), {how}\n rd{n} = (f32[2], token[]) recv-done(r{n}), {how}\n"
        lines += f" y{n} = (f32[2], u32[], token[]) send(x, t), {how}\n yd{n} = token[] send-done(y{n}), {how}\n"
    return lines + " ROOT o = f32[2] copy(x)"


def ring(count: int) -> str:
    return ",".join(f"{{{n},{(n + 1) % count}}}" for n in range(count))


def many_pairs() -> Any:
    permute = f" ROOT r = f32[2] collective-permute(x), source_target_pairs={{{ring(20_000)}}}"
    return xb.parse_hlo(entry(permute, ", replica_count=20000"))


def many_pairs_of_a_channel() -> Any:
    return xb.parse_hlo(entry(transfers([(1, ring(20_000))]), ", replica_count=20000"))


def many_halves_of_a_channel() -> Any:
    pairs = itertools.islice(itertools.permutations(range(64), 2), 2500)
    return xb.parse_hlo(entry(transfers([(1, f"{{{a},{b}}}") for a, b in pairs]), ", replica_count=64"))


def one_channel_in_many_branches() -> Any:
    names = [f"branch{n}" for n in range(2500)]
    reduce = (
        "{ p = f32[2] parameter(0)\n ROOT r = f32[2] all-reduce(p), channel_id=1, replica_groups={}, to_apply=add }"
    )
    branches = "\n".join(f"{name} {reduce}" for name in names) + "\n"
    operands = ", ".join(["x"] * len(names))
    lines = " i = s32[] parameter(1)\n"
    lines += f" ROOT o = f32[2] conditional(i, {operands}), branch_computations={{{', '.join(names)}}}"
    return xb.ModuleGroup({n: xb.parse_hlo(entry(lines, more=branches)) for n in (0, 1)})


def callbacks_in_many_calls() -> Any:
    call = ' a{0} = f32[2] custom-call(p), custom_call_target="f", custom_call_has_side_effect=true\n'
    called = "f { p = f32[2] parameter(0)\n" + "".join(map(call.format, range(2500))) + " ROOT r = f32[2] copy(p) }\n"
    lines = "".join(f" v{n} = f32[2] call(x), to_apply=f\n" for n in range(2500))
    lines += " ROOT o = f32[2] all-reduce(x), to_apply=add"
    return xb.parse_hlo(entry(lines, ", replica_count=2", more=called))


def a_level_in_two_orders() -> Any:
    def one(numbers: range) -> xb.Module:
        lines = "".join(f" met{n} = f32[2] all-reduce(x), channel_id={n + 1}, to_apply=add\n" for n in numbers)
        return xb.parse_hlo(entry(lines + " ROOT o = f32[2] copy(x)"))

    return xb.ModuleGroup({0: one(range(6000)), 1: one(range(5999, -1, -1))})


def many_devices() -> Any:
    return xb.parse_hlo(entry(" ROOT r = f32[2] all-reduce(x), to_apply=add", ", replica_count=1048576"))


CHECKED = (
    many_pairs, many_pairs_of_a_channel, many_halves_of_a_channel, one_channel_in_many_branches,
    callbacks_in_many_calls, a_level_in_two_orders, many_devices,
)  # fmt: skip


@pytest.mark.parametrize("program", CHECKED, ids=lambda each: each.__name__)
def test_each_stage_of_a_check_observes_its_limit(program: Callable[[], Any]) -> None:
    def checked() -> float:
        made = program()
        return late(lambda: str(xb.check(made, max_seconds=SECONDS)))

    assert any(checked() < SLACK for _ in range(3))  # another process may have half of the core in some of them


def _row(op: str, shape: str, count: int) -> str:
    lines = f" v0 = {shape} iota(), iota_dimension=0\n"
    lines += "".join(f" v{n + 1} = {shape} {op.format(f'v{n}')}\n" for n in range(count))
    return lines + f" ROOT o = {shape} copy(v{count})"


def _doubled(levels: int) -> str:
    parts = ["g0 { p = f32[] parameter(0)\n ROOT r = f32[] sine(p) }\n"]
    for n in range(1, levels + 1):
        parts.append(
            f"g{n} {{ p = f32[] parameter(0)\n a = f32[] call(p), to_apply=g{n - 1}\n"
            f" ROOT r = f32[] call(a), to_apply=g{n - 1} }}\n"
        )
    return "".join(parts)


_DOT = "dot({0}, {0}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
RUN = {
    "products": entry(_row(_DOT, "f32[700,700]", 1000)),
    "large instructions": entry(_row("sine({})", "f32[4000000]", 300)),
    "a fold": entry(
        " d = f32[4000,4000] iota(), iota_dimension=0\n z = f32[] constant(0)\n"
        " ROOT s = f32[4000] reduce(d, z), dimensions={0}, to_apply=odd", more=ODD,
    ),
    "windows": entry(
        " d = f32[1000,1000] iota(), iota_dimension=0\n z = f32[] constant(0)\n"
        " ROOT s = f32[960,960] reduce-window(d, z), window={size=41x41}, to_apply=odd", more=ODD,
    ),
    "calls of calls": entry(
        " y = f32[4] broadcast(x), dimensions={}\n ROOT m = f32[4] map(y), dimensions={0}, to_apply=g20",
        parameter="f32[]", more=_doubled(20),
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", ["plain", "sequential", "strict", "trace"])
@pytest.mark.parametrize("kind", RUN)
def test_each_kind_of_work_of_a_run_observes_its_limit(kind: str, how: str) -> None:
    module = xb.parse_hlo(RUN[kind])
    inputs = [[np.zeros(p.shape.dims, np.float32) for p in module.entry.parameters]]

    def run() -> None:
        options: dict[str, Any] = {} if how in ("plain", "trace") else {how: True}
        with suppress(Stopped):
            (trace if how == "trace" else execute)(module, inputs, limits=Limits(seconds=SECONDS), **options)

    assert late(run) < SLACK


def test_drawing_the_inputs_of_a_comparison_observes_its_limit() -> None:
    shape = f"({', '.join(['f32[1000]'] * 30_000)})"
    text = f"HloModule m\nENTRY e {{ x = {shape} parameter(0)\n ROOT o = f32[1000] get-tuple-element(x), index=0 }}\n"
    module = xb.parse_hlo(text)
    assert late(lambda: xb.equivalent(module, module, limits=Limits(seconds=0.1))) < SLACK
