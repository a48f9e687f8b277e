"""The second model, written from the documents alone, against the check and the run; what its campaign found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import xbuild as xb
from tests.checking.runtimes.independent import (
    CALL,
    FEATURES,
    SYNCHRONIZE,
    Collective,
    Launch,
    Model,
    Program,
    draw_program,
    judge,
    run_program,
    write_program,
)

PAIR, ALONE = ((0, 1),), ((0,), (1,))


@pytest.mark.parametrize("feature", FEATURES)
def test_verdict_and_run_are_those_of_the_model(feature: str) -> None:
    found = {seed: judge(*draw_program(feature, seed)) for seed in range(1, 2000, 97)}
    assert {seed: result for seed, result in found.items() if result[0] not in ("agree", "large")} == {}
    assert len({verdict for _, verdict, _, _ in found.values()}) > 1  # some programs end, and some do not


@pytest.mark.parametrize("feature", ["communicators", "streams", "pools", "mixed"])
def test_the_order_in_which_collectives_end_does_not_matter(feature: str) -> None:
    for seed in range(1, 1000, 130):
        program, runtime = draw_program(feature, seed)
        assert Model(program, runtime).explore() == Model(program, runtime, is_full=True).explore()


def test_a_run_follows_an_order_in_which_one_of_two_pools_is_large_enough() -> None:
    """A place on the device is always free here; whether the calls hang depends on the threads alone."""
    one, two = Collective(1, ALONE), Collective(2, ALONE)
    bodies = [("start", one), ("call", CALL), ("start", two), ("done", one), ("done", two)], [("call", CALL)]
    program = Program(tuple((Launch("m", 0, tuple(body)),) for body in bodies))
    runtime = xb.Runtime(collectives="channel", streams="one", resident=1, threads=2, callback_threads=1)
    assert judge(program, runtime) == ("agree", "deadlock", "hangs", {"ends", "hangs"})


@pytest.mark.parametrize("is_used", [False, True])
def test_a_synchronizing_call_runs_even_if_nothing_uses_its_result(is_used: bool) -> None:
    total = Collective(1, PAIR)
    call, start, done = ("call", SYNCHRONIZE), ("start", total), ("done", total)
    first = [start, call, done] if is_used else [start, done, call]  # results of calls at odd places are used
    bodies = first, [call, start, done] if is_used else [call, call, start, done]
    program = Program(tuple((Launch("m", 0, tuple(body)),) for body in bodies))
    runtime = xb.Runtime(collectives="channel", synchronizing=(SYNCHRONIZE,), threads=1)
    verdict, ran, outcomes = judge(program, runtime)[1:]
    assert outcomes == {ran}
    assert (verdict == "deadlock") == (ran == "hangs")


def sending(name: str, *, channel: int, source: int) -> list[xb.Module]:
    """Programs of two devices, one of which sends to the other."""
    pairs = f'frontend_attributes={{_xla_send_recv_source_target_pairs="{{{{{source},{1 - source}}}}}"}}'
    send = f"""t = token[] after-all()
      s = (f32[2], u32[], token[]) send(x, t), channel_id={channel}, {pairs}
      e = token[] send-done(s), channel_id={channel}
      ROOT y = f32[2] negate(x)"""
    recv = f"""t = token[] after-all()
      r = (f32[2], u32[], token[]) recv(t), channel_id={channel}, {pairs}
      d = (f32[2], token[]) recv-done(r), channel_id={channel}
      ROOT y = f32[2] get-tuple-element(d), index=0"""
    bodies = (send, recv) if source == 0 else (recv, send)
    head = f"HloModule {name}, replica_count=2, is_scheduled=true\nENTRY e {{ x = f32[2] parameter(0)\n"
    return [xb.parse_hlo(f"{head}{body} }}") for body in bodies]


@pytest.mark.parametrize("runtime", [None, *xb.RUNTIMES])
def test_launches_may_use_one_channel_id(runtime: str | None) -> None:
    there, back = sending("there", channel=1, source=0), sending("back", channel=1, source=1)
    total = xb.computation(xb.f32[2])(lambda x: xb.all_reduce(x, xb.add, channel_id=1, name="psum"))
    psum = xb.Module("total", total, num_replicas=2)
    program = xb.in_flight({d: [there[d], back[d], psum, there[d]] for d in (0, 1)})
    assert xb.check(program, runtime=runtime).kind == "ok"
    arguments = [[np.full(2, 10 * d + n, np.float32) for n in range(4)] for d in (0, 1)]
    results = xb.execute(program, arguments, runtime=runtime)
    assert [[float(value[0]) for value in own] for own in results] == [[0, 11, 14, -3], [0, -11, 14, 3]]
    crossed = xb.in_flight({0: [there[0], back[0]], 1: [back[1], there[1]]})
    assert xb.check(crossed, runtime=runtime).kind == "deadlock"


def test_transfers_of_two_launches_never_belong_together() -> None:
    one, two = sending("one", channel=1, source=0), sending("two", channel=1, source=0)
    program = xb.in_flight({0: [one[0], two[0]], 1: [two[1], one[1]]})
    runtime = xb.Runtime(transfers="order", eager_bytes=8)
    verdict = xb.check(program, runtime=runtime)
    assert verdict.kind == "error"
    assert "form one transfer, but their programs differ: one and two" in verdict.findings[0].message
    with pytest.raises(xb.Stopped, match="their programs differ: one and two"):
        xb.execute(program, [[np.ones(2, np.float32)] * 2] * 2, runtime=runtime, check=False)


@pytest.mark.parametrize(
    ("runtime", "groups"), [*itertools.product(["nccl", "gloo", "xla_cpu", "xla_gpu", "tpu"], ["{0,1}", "{1,0}"])]
)
def test_a_group_in_another_order_is_named_as_the_cause(runtime: str, groups: str) -> None:
    text = """HloModule m, is_scheduled=true, replica_count=2
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
    ENTRY e { x = f32[2] constant({1, 2})
              ROOT y = f32[2] all-reduce(x), to_apply=add, channel_id=1, replica_groups={GROUPS} }"""
    program = xb.ModuleGroup([xb.parse_hlo(text.replace("GROUPS", each)) for each in ("{0,1}", groups)])
    verdict = xb.check(program, runtime=runtime)
    if groups == "{0,1}":
        assert verdict.kind == "ok"
        return
    assert verdict.kind == "deadlock"
    assert "the group is {0,1} on device 0 and {1,0} on device 1" in verdict.report().replace("\n         ", " ")
    assert run_program(program, xb.RUNTIMES[runtime], 0) == "hangs"


def test_a_device_alone_in_its_group_takes_no_part_in_a_split() -> None:
    body = (("sync", Collective(1, ((0,), (1, 2)))),)
    program = Program(tuple((Launch("m", 0, body),) for _ in range(3)))
    runtime = xb.Runtime(collectives="channel", communicators="split")
    assert judge(program, runtime)[1:] == ("deadlock", "hangs", {"hangs"})
    assert xb.check(write_program(program), runtime=xb.Runtime(communicators="first_use")).kind == "ok"
