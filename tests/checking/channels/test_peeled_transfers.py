"""Sends and recvs of a channel in a loop and around it: the n-th meets the n-th, against a model that unrolls loops."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

import xbuild as xb

SEEDS = 80
PAIRS = {1: (0, 1), 2: (1, 0)}
Part = tuple[int, tuple[int, ...]]  # how often, and which channels; 0 stands for the entry, once


def drawn(seed: int) -> list[list[Part]]:
    """For each device its parts in order; a channel stands once in each loop and once outside of all."""
    chance = random.Random(seed)
    programs = []
    for _ in range(2):
        parts = [(0, (channel,)) for channel in PAIRS if chance.random() < 0.7]
        for _ in range(chance.randint(1, 2)):
            channels = [channel for channel in PAIRS if chance.random() < 0.8]
            if channels:
                parts.append((chance.randint(1, 3), tuple(chance.sample(channels, len(channels)))))
        chance.shuffle(parts)
        programs.append(parts)
    if chance.random() < 0.6:  # as an SPMD program has it: both halves are peeled alike
        programs[1] = programs[0]
    return programs


def unrolled(parts: list[Part]) -> Iterator[int]:
    for trips, channels in parts:
        yield from channels * max(trips, 1)


def ends(programs: list[list[Part]]) -> bool:
    traces = [
        [(what, c) for c in unrolled(parts) for what in (("send",) if PAIRS[c][0] == device else ("post", "take"))]
        for device, parts in enumerate(programs)
    ]
    done, at, moved = Counter[tuple[str, int]](), [0, 0], True
    while moved:
        moved = False
        for device, trace in enumerate(traces):
            while at[device] < len(trace):
                what, channel = trace[at[device]]
                needed = {"send": "post", "take": "send", "post": ""}[what]
                if needed and done[needed, channel] <= done[what, channel]:
                    break
                done[what, channel] += 1
                at[device] += 1
                moved = True
    return all(here == len(trace) for here, trace in zip(at, traces, strict=True))


def text(device: int, parts: list[Part]) -> str:
    """The scheduled program of a device: a while that counts for each loop."""
    loops, lines = [], ["t = token[] after-all()", "x = f32[] parameter(0)", "zero = s32[] constant(0)"]
    for number, (trips, channels) in enumerate(parts):
        rows = [line for channel in channels for line in _lines(device, channel, f"{number}.{channel}")]
        if not trips:
            lines += rows
            continue
        loops.append(f"""test.{number} {{
          n = s32[] parameter(0)
          most = s32[] constant({trips})
          ROOT more = pred[] compare(n, most), direction=LT
        }}
        body.{number} {{
          n = s32[] parameter(0)
          t = token[] after-all()
          x = f32[] constant(1)
          {chr(10).join(rows)}
          one = s32[] constant(1)
          ROOT next = s32[] add(n, one)
        }}""")
        lines.append(f"w.{number} = s32[] while(zero), condition=test.{number}, body=body.{number}")
    body = "\n".join(lines)
    return (
        f"HloModule d{device}, is_scheduled=true\n{chr(10).join(loops)}\nENTRY e {{\n{body}\nROOT out = () tuple()\n}}"
    )


def _lines(device: int, channel: int, name: str) -> Iterator[str]:
    source, target = PAIRS[channel]
    notes = f'frontend_attributes={{_xla_send_recv_source_target_pairs="{{{{{source},{target}}}}}"}}'
    if device == source:
        yield f"s.{name} = (f32[], u32[], token[]) send(x, t), channel_id={channel}, {notes}"
        yield f"sd.{name} = token[] send-done(s.{name}), channel_id={channel}"
    else:
        yield f"r.{name} = (f32[], u32[], token[]) recv(t), channel_id={channel}, {notes}"
        yield f"rd.{name} = (f32[], token[]) recv-done(r.{name}), channel_id={channel}"


def verdict_of(programs: list[list[Part]]) -> xb.Verdict:
    return xb.check(xb.ModuleGroup({n: xb.parse_hlo(text(n, parts)) for n, parts in enumerate(programs)}))


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_the_verdict_is_what_the_model_says(first: int) -> None:
    for seed in range(first, first + 20):
        programs = drawn(seed)
        verdict = verdict_of(programs)
        if any(each.kind == "nest_mismatch" for each in verdict.findings):
            continue  # said of one send and one recv, whether counts fit or not
        expected = ("ok",) if ends(programs) else ("deadlock", "error")
        assert verdict.kind in expected, f"seed {seed}, {programs}:\n{verdict}"


def test_ends_and_halts_and_peeled_transfers_occur() -> None:
    kinds = Counter(verdict_of(drawn(seed)).kind for seed in range(SEEDS))
    assert min(kinds["ok"], kinds["deadlock"]) > 2
