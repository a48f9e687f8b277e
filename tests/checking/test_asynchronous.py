"""Asynchronous ops on several devices: XLA's text, faults of starts and dones, waits, comparison with real XLA."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from interpreter import Recorder, Stopped, execute
from tests.support.compare import assert_same
from xbuild.text.writing.skeleton import skeleton_text

F = xb.f32[4]
ONES = np.ones(4, np.float32)


def module(function: Callable[..., Any], *shapes: Any, replicas: int = 2, partitions: int = 1) -> xb.Module:
    traced = xb.computation(*(shapes or (F,)))(function)
    return xb.Module("m", traced, num_replicas=replicas, num_partitions=partitions)


def group(*functions: Callable[[xb.Value], Any], scheduled: bool = True) -> xb.ModuleGroup:
    """A program for each device; the recorded order binds."""
    return xb.ModuleGroup(
        {
            device: xb.Module(f"d{device}", xb.computation(F)(function), is_scheduled=scheduled)
            for device, function in enumerate(functions)
        }
    )


def started(x: xb.Value, channel: int) -> xb.Value:
    return xb.all_reduce_start(x, xb.add, channel_id=channel, name=f"start{channel}")


def finished(start: xb.Value) -> xb.Value:
    return xb.all_reduce_done(start, name=f"done{start.name[-1]}")


def summed(x: xb.Value, channel: int) -> xb.Value:
    return xb.all_reduce(x, xb.add, channel_id=channel, name=f"sum{channel}")


# What jaxlib 0.10.2 prints of its own modules.
PRINTED = """
HloModule one_op, entry_computation_layout={(f32[4]{0})->f32[4]{0}}, replica_count=2

ENTRY main {
  x = f32[4]{0} parameter(0)
  s = ((f32[4]{0}), f32[4]{0}, u32[]) negate-start(x), async_execution_thread="foo"
  u = ((f32[4]{0}), f32[4]{0}, u32[]) negate-update(s)
  ROOT d = f32[4]{0} negate-done(u)
}
---
HloModule collectives, entry_computation_layout={(f32[4]{0})->(f32[2]{0}, f32[4]{0})}, replica_count=2

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[4]{0} parameter(0)
  s = ((f32[4]{0}), f32[2]{0}) reduce-scatter-start(x), replica_groups={{0,1}}, dimensions={0}, to_apply=add
  u = ((f32[4]{0}), f32[2]{0}) reduce-scatter-update(s)
  d = f32[2]{0} reduce-scatter-done(u)
  t = ((f32[4]{0}), f32[4]{0}, u32[]) all-to-all-start(x), replica_groups={{0,1}}, constrain_layout=true, dimensions={0}
  td = f32[4]{0} all-to-all-done(t)
  ROOT r = (f32[2]{0}, f32[4]{0}) tuple(d, td)
}
---
HloModule computation, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

w2 {
  p = f32[4]{0} parameter(0)
  a = f32[4]{0} add(p, p)
  ROOT n = f32[4]{0} negate(a)
}, execution_thread="par"

ENTRY main {
  x = f32[4]{0} parameter(0)
  st = ((f32[4]{0}), f32[4]{0}, u32[]) async-start(x), async_execution_thread="par", calls=w2
  d = f32[4]{0} async-done(st)
  ROOT r = f32[4]{0} add(d, d)
}
---
HloModule own, entry_computation_layout={(f32[4]{0}, f32[4]{0})->(f32[4]{0}, f32[4]{0})}, replica_count=2

ENTRY main {
  x = f32[4]{0} parameter(0)
  c = (f32[4]{0:S(5)}, f32[4]{0}, u32[]) copy-start(x), cross_program_prefetch_index=0
  cd = f32[4]{0:S(5)} copy-done(c)
  p = (f32[4]{0}, f32[4]{0}, u32[], u32[]) collective-permute-start(cd), channel_id=1, source_target_pairs={{0,1}}
  pd = f32[4]{0} collective-permute-done(p)
  y = f32[4]{0} parameter(1)
  g = ((f32[4]{0}, f32[4]{0}), (f32[8]{0}, f32[8]{0})) all-gather-start(x, y), channel_id=3, replica_groups={{0,1}}, \
constrain_layout=true, dimensions={0}, use_global_device_ids=true
  gd = (f32[8]{0}, f32[8]{0}) all-gather-done(g)
  b = f32[4]{0} collective-broadcast(pd), replica_groups={{0,1}}
  i = s32[2]{0} constant({0, 1})
  ra = f32[4]{0} ragged-all-to-all(x, y, i, i, i, i), replica_groups={{0,1}}
  ROOT r = (f32[4]{0}, f32[4]{0}) tuple(b, ra)
}
"""


@pytest.mark.parametrize("text", PRINTED.strip().split("\n---\n"), ids=lambda text: text.split()[1].strip(","))
def test_text_is_read_and_printed_as_xla_prints_it(text: str) -> None:
    assert xb.parse_hlo(text).to_hlo().strip() == text.strip()


def test_text_of_a_wrapped_op_with_a_start_of_its_own_keeps_its_meaning() -> None:
    text = """ENTRY main {
      x = f32[4] parameter(0)
      s = ((f32[4]), f32[8]) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}
      ROOT d = f32[8] all-gather-done(s)
    }"""
    read = xb.parse_hlo(text)
    assert [i.opcode for i in read.entry.instructions] == ["parameter", "async_start", "async_done"]
    again = xb.parse_hlo(read.to_hlo())
    assert "calls=wrapped_all_gather" in again.to_hlo()
    assert again.to_hlo() == read.to_hlo()


@pytest.mark.parametrize(
    ("lines", "kind", "names"),
    [
        (["s = ((f32[4]), f32[4]) negate-start(x)", "d = f32[4] abs-done(s)"], "done_kind_mismatch", ["negate", "abs"]),
        (["d = f32[4] async-done(x)"], "missing_start", ["'x'"]),
        (["d = f32[4] negate-done(x)"], "missing_start", ["'x'"]),
        (["s = f32[4] negate-start(x)"], "shape_mismatch", ["f32[4]"]),
        (["s = ((f32[4]), f32[8]) negate-start(x)"], "shape_mismatch", ["f32[8]", "f32[4]"]),
        (["s = ((f32[4]), f32[4]) negate-start(x), dimensions={0}"], "unknown_attribute", ["dimensions"]),
        (["s = ((f32[4]), f32[4]) broadcast-start(x), dimensions={1}"], "dimension_out_of_range", ["broadcast", "1"]),
        (["s = negate-start(x)"], "missing_shape", ["async-start"]),
        (["s = f32[4] all-reduce-start(x), channel_id=1"], "missing_attribute", ["to_apply"]),
        (["s = f32[4] nonsense-start(x)"], "unknown_opcode", ["nonsense-start"]),
        (
            [
                "s = ((f32[4]), f32[4]) async-start(x), calls=w",
                "t = ((f32[4]), f32[4]) async-start(x), calls=w",
            ],
            "invalid_attribute",
            ["calls=w"],
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_text_that_pairs_wrongly_is_refused(lines: list[str], kind: str, names: list[str]) -> None:
    called = "w { p = f32[4] parameter(0) a = f32[4] abs(p) ROOT n = f32[4] negate(a) }"
    text = "\n".join([called, "ENTRY main {", "x = f32[4] parameter(0)", *lines, "}"])
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse_hlo(text)
    assert caught.value.faults[0].kind == kind, caught.value
    assert [name for name in names if name not in str(caught.value)] == []


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


def crossing(begin: Callable[[xb.Value, int], Any], end: Callable[[Any], xb.Value]) -> xb.ModuleGroup:
    """Two devices come to two collectives in opposite orders, and wait for both after that."""

    def program(*channels: int) -> Callable[[xb.Value], xb.Value]:
        def record(x: xb.Value) -> xb.Value:
            begun = {channel: begin(x, channel) for channel in channels}
            return xb.subtract(end(begun[1]), xb.multiply(end(begun[2]), 10.0))

        return record

    return group(program(1, 2), program(2, 1))


def test_starts_in_opposite_orders_are_no_deadlock_and_blocking_collectives_are() -> None:
    blocking = crossing(summed, lambda value: value)
    assert xb.check(blocking).kind == "deadlock"
    begun = crossing(started, finished)
    assert xb.check(begun).kind == "ok"
    assert_same(execute(begun, [[ONES], [2 * ONES]]), [-27 * ONES] * 2)


def test_who_starts_a_collective_meets_who_comes_to_it() -> None:
    program = group(lambda x: finished(started(x, 1)), lambda x: summed(x, 1))
    assert xb.check(program).kind == "ok"
    assert_same(execute(program, [[ONES], [2 * ONES]]), [3 * ONES] * 2)


@pytest.mark.parametrize("is_given", [True, False])
def test_a_computation_that_is_called_twice_meets_its_like_turn_by_turn(is_given: bool) -> None:
    def twice(meet: Callable[[xb.Value], xb.Value]) -> Callable[[xb.Value], xb.Value]:
        called = xb.computation(F)(meet)
        return lambda x: xb.call(xb.call(x, called), called)

    blocking, begun = twice(lambda x: summed(x, 1)), twice(lambda x: finished(started(x, 1)))
    for functions in ((blocking, blocking), (begun, begun), (blocking, begun)):
        program = group(*functions, scheduled=is_given)
        assert xb.check(program).kind == "ok"
        assert_same(execute(program, [[ONES], [2 * ONES]]), [6 * ONES] * 2)


def waits_first(x: xb.Value) -> xb.Value:
    return summed(finished(started(x, 1)), 2)


def starts_last(x: xb.Value) -> xb.Value:
    total = summed(x, 2)
    with xb.control(after=[total]):
        return finished(started(x, 1))


def test_the_report_names_the_done_that_waits_and_the_start_that_it_waits_for() -> None:
    verdict = xb.check(group(waits_first, starts_last, scheduled=False))
    assert verdict.kind == "deadlock"
    assert {device: [i.name for i in at] for device, at in verdict.findings[0].blocked.items()} == {
        0: ["done1"],
        1: ["sum2"],
    }
    text = str(verdict)
    assert "done1 @0 -> start1 @1" in text, text
    assert "waits for start1 on device 1 (a done needs the start of every member)" in text, text


def test_a_schedule_is_mended_by_moving_the_start() -> None:
    def late(x: xb.Value) -> xb.Value:
        total = summed(x, 2)
        return total + finished(started(x, 1))

    verdict = xb.check(group(waits_first, late))
    assert verdict.kind == "deadlock"
    assert verdict.repair is not None
    assert verdict.repair.text == "on device 1 move start1 before sum2"


def test_a_run_that_stops_names_start_and_done_and_who_has_not_come() -> None:
    def sometimes(x: xb.Value) -> xb.Value:
        return xb.conditional(x[0] > 0.0, (x, x), (lambda y: finished(started(y, 1)), lambda y: y))

    program = module(sometimes)
    assert xb.check(program).kind == "depends"
    with pytest.raises(Stopped) as caught:
        execute(program, [[ONES], [-ONES]])
    report = caught.value.report
    assert report.kind == "deadlock"
    assert report.devices[0].instruction is not None
    assert report.devices[0].instruction.name == "done1"
    assert report.devices[0].missing == (1,)
    assert "to come to start1, which done1 completes" in str(report)
    assert_same(execute(program, [[ONES], [ONES]]), [2 * ONES] * 2)


def test_halves_in_a_loop_meet_trip_by_trip() -> None:
    def body(state: xb.Value) -> Any:
        n, x = state
        start = started(x, 1)
        other = xb.async_start(x, lambda y: xb.all_to_all(y, 0, 0, 2))
        return n + 1, finished(start) + xb.async_done(other)

    program = module(lambda x: xb.while_((0, x), lambda s: s[0] < 5, body)[1])
    assert xb.check(program).kind == "ok"
    first, second = np.arange(4, dtype=np.float32), np.arange(4, 8, dtype=np.float32)
    results = execute(program, [[first], [second]])
    for _ in range(5):
        total = first + second
        first, second = (
            total + np.concatenate([first[:2], second[:2]]),
            total + np.concatenate([first[2:], second[2:]]),
        )
    assert_same(results, [first, second])


def test_a_done_gives_all_members_the_same_so_that_a_loop_over_it_is_safe() -> None:
    def counted(x: xb.Value) -> xb.Value:
        count = xb.convert(finished(started(x, 1))[0], xb.s32)
        return xb.while_((count, x), lambda s: s[0] > 0, lambda s: (s[0] - 1, summed(s[1], 2)))[1]

    assert xb.check(module(counted)).kind == "ok"


def test_an_observer_sees_nothing_of_a_collective_before_its_done() -> None:
    def program(x: xb.Value) -> xb.Value:
        return xb.async_done(xb.async_update(xb.async_start(x, lambda y: summed(y, 1)))) + finished(started(x, 2))

    seen = Recorder()
    execute(module(program), [[ONES], [ONES]], observer=seen)
    values = {(event.device, event.instruction.opcode): event.value for event in seen.events}
    assert values[0, "async_start"] == ((None,), None)
    assert values[1, "async_update"] == ((None,), None)
    assert values[0, "all_reduce_start"] is None
    assert_same(values[1, "async_done"], 2 * ONES)


def test_the_skeleton_shows_collectives_that_are_started_and_no_local_copies() -> None:
    def program(x: xb.Value) -> xb.Value:
        copied = xb.copy_done(xb.copy_start(x))
        begun = xb.async_start(copied, lambda y: xb.reduce_scatter(y, xb.add, 0, 2))
        return xb.tuple_(finished(started(x, 1)), xb.async_done(begun))

    text = skeleton_text(module(program))
    assert [
        word for word in ("all-reduce-start(", "all-reduce-done(", "reduce-scatter-start(") if word not in text
    ] == []
    assert "copy-start" not in text
    assert "wrapped" not in text


def test_a_broadcast_comes_from_the_first_of_the_group_and_is_zero_outside_of_all() -> None:
    program = module(lambda x: xb.collective_broadcast(x, [(2, 1), (4,)]), xb.s32[()], replicas=5)
    assert xb.check(program).kind == "ok"
    assert execute(program, [[n + 1] for n in range(5)]) == [0, 3, 3, 0, 5]
    by_partition = module(lambda x: xb.collective_broadcast(x, [(1, 0)], 7), xb.s32[()], partitions=2)
    assert execute(by_partition, [[n] for n in range(4)]) == [1, 1, 3, 3]


def test_groups_of_another_size_than_the_offsets_are_refused() -> None:
    numbers = [xb.s32[2]] * 4
    program = module(xb.ragged_all_to_all, F, F, *numbers, replicas=3)
    verdict = xb.check(program)
    assert verdict.findings[0].kind == "invalid_group"
    assert "the groups have 3 devices, and dimension 0 of input_offsets is 2" in str(verdict)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 2**32))
def test_ragged_rows_arrive_where_their_senders_say(members: int, updates: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sent = rng.integers(0, 4, (members, members, updates)).astype(np.int32)
    starts = np.cumsum(sent.reshape(members, -1), axis=1).reshape(sent.shape).astype(np.int32) - sent
    arrivals = sent.transpose(1, 0, 2).reshape(members, -1)
    places = (np.cumsum(arrivals, axis=1) - arrivals).reshape(members, members, updates).astype(np.int32)
    data = [np.arange(sent[m].sum() + 1, dtype=np.float32) + 100 * m for m in range(members)]
    rows = max(map(len, data))
    data = [np.pad(each, (0, rows - len(each))) for each in data]
    most = int(arrivals.sum(axis=1).max()) + 1
    shapes = xb.f32[rows], xb.f32[most], *[xb.s32[members, updates]] * 4
    program = module(xb.ragged_all_to_all, *shapes, replicas=members)
    inputs = [
        [data[m], np.full(most, -1, np.float32), starts[m], sent[m], places[:, m], sent[:, m]] for m in range(members)
    ]
    for m, result in enumerate(execute(program, inputs)):
        parts = [data[s][starts[s, m, u] :][: sent[s, m, u]] for s in range(members) for u in range(updates)]
        arrived = np.concatenate(parts)
        assert_same(result, np.concatenate([arrived, np.full(most - len(arrived), -1, np.float32)]))


def reduced(x: xb.Value, **groups: Any) -> xb.Value:
    to_apply = xb.add if x.shape.dtype is xb.c64 else xb.maximum  # type: ignore[union-attr]
    return xb.all_reduce_done(xb.all_reduce_start(x, to_apply, **groups))


def gathered(x: xb.Value, **groups: Any) -> xb.Value:
    return xb.all_gather_done(xb.all_gather_start(x, 0, 2, **groups))


def scattered(x: xb.Value, **groups: Any) -> xb.Value:
    to_apply = xb.add if x.shape.dtype is xb.c64 else xb.minimum  # type: ignore[union-attr]
    return xb.async_done(xb.async_start(x, lambda y: xb.reduce_scatter(y, to_apply, 0, 2, **groups)))


def exchanged(x: xb.Value, **groups: Any) -> xb.Value:
    return xb.async_done(xb.async_start(x, lambda y: xb.all_to_all(y, 0, 0, 2, **groups), context_shapes=[xb.u32]))


def permuted(x: xb.Value, **pairs: Any) -> xb.Value:
    return xb.collective_permute_done(xb.collective_permute_start(x, **pairs, context_shapes=[xb.u32, xb.u32]))


ROWS: list[tuple[int, int]] = [(0, 3), (2, 1)]
ON_XLA = [
    *((f, 4, 1, {"replica_groups": ROWS}) for f in (reduced, gathered, scattered, exchanged)),
    *(
        (f, 2, 2, {"replica_groups": ROWS, "channel_id": 1, "use_global_device_ids": True})
        for f in (reduced, gathered, scattered)
    ),
    (reduced, 2, 2, {"replica_groups": [(0, 1)], "channel_id": 1}),
    (exchanged, 2, 2, {"replica_groups": [(1, 0)], "channel_id": 2}),
    (permuted, 4, 1, {"source_target_pairs": [(0, 2), (2, 3)]}),
    (permuted, 2, 2, {"source_target_pairs": [(0, 1)], "channel_id": 2}),
]


@pytest.mark.oracle
def test_real_xla_gives_the_same() -> None:
    from tests.oracle import Job, run

    rng = np.random.default_rng(0)
    jobs, ours = [], []
    for dtype in (xb.f32, xb.bf16, xb.f8e5m2, xb.s8, xb.u64, xb.pred, xb.c64):
        for function, replicas, partitions, attributes in ON_XLA if dtype is xb.f32 else ON_XLA[:4] + ON_XLA[-2:-1]:
            program = module(partial(function, **attributes), dtype[4, 3], replicas=replicas, partitions=partitions)
            rows = [[rng.integers(0, 2, (4, 3)).astype(dtype.dtype)] for _ in range(replicas * partitions)]
            jobs.append(Job(program.to_hlo(), rows, replicas, partitions))
            ours.append(execute(program, rows))
    for given_back, results in zip(run(jobs), ours, strict=True):
        assert isinstance(given_back, list), given_back
        assert_same([np.asarray(leaf) for (leaf,) in given_back], results)
