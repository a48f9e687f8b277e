"""The verdict on small random programs against a model of every run, and programs on which both once differed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Stopped, execute
from tests.conformance.deadlock import unnamed
from tests.model.campaign import compare
from tests.model.compare import checked, disagreement
from tests.model.generator import SCANS, random_program
from tests.model.programs import Decision, Op, Ops, Program, every
from tests.model.runs import Judgement, all_data, ends, explored, judged

CHUNK = 50


@pytest.mark.parametrize("first", range(0, 400, CHUNK))
def test_small_programs_get_the_verdict_of_all_their_runs(first: int) -> None:
    _, wrong = compare(range(first, first + CHUNK), is_small=True)
    assert not wrong


def test_large_programs_run_as_the_verdict_says() -> None:
    _, wrong = compare(range(10), is_small=False)
    assert not wrong


def test_programs_with_scans_get_the_verdict_of_all_their_runs() -> None:
    """Some of them hold what communicates, and some of these run for another number of trips on another device."""
    seeds = range(150)
    _, wrong = compare(seeds, is_small=True, size=SCANS)
    assert not wrong
    programs = [random_program(seed, SCANS) for seed in seeds]
    scans = [op for p in programs for ops in p.lists for op in every(ops) if op.word == "scan" and op.inside[0]]
    assert len(scans) > 50
    assert any(op.decision is not None and len({*op.decision.known}) > 1 for op in scans)


@pytest.mark.parametrize("most", [4, 20])
def test_what_is_too_long_to_follow_is_counted_or_left_open(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr("xbuild.checking.scenarios.simulate.MOST_EVENTS", most)
    found = set()
    for seed in range(200):
        program = random_program(seed, SCANS)
        judgement = judged(program)
        verdict = checked(program)[1]
        kind = "deadlock" if verdict.refused else verdict.kind
        if judgement is not None:
            assert kind in (judgement.kind, "depends"), seed
            found.add((judgement.kind, kind))
    assert {("deadlock", "deadlock"), ("deadlock", "depends"), ("ok", "ok")} <= found


def test_programs_of_every_kind_are_among_them() -> None:
    found = {}
    for seed in range(250):
        program = random_program(seed)
        judgement = judged(program) if program.is_given or not program.is_one else None
        if judgement is not None:
            found[program.is_one, program.is_given, judgement.kind] = seed
    forms, kinds = [(True, True), (False, True), (False, False)], ("ok", "deadlock", "depends")
    assert [key for form in forms for kind in kinds if (key := (*form, kind)) not in found] == []


def test_who_moves_first_decides_nothing() -> None:
    """All interleavings of a program in one order and with one data end alike, so that following one is enough."""
    for seed in range(100):
        program = random_program(seed)
        for number, data in enumerate(all_data(program)):
            if number == 4:
                break
            assert explored(program, data) == {ends(program, data)}


# What the model itself says, by hand.


def send(channel: int, source: int, target: int) -> Ops:
    pairs = ((source, target),)
    start = Op("send", f"send{channel}", channel, pairs)
    return start, Op("send_done", f"sent{channel}", channel, pairs, after=frozenset({start.name}))


def recv(channel: int, source: int, target: int) -> Ops:
    pairs = ((source, target),)
    start = Op("recv", f"recv{channel}", channel, pairs)
    return start, Op("recv_done", f"taken{channel}", channel, pairs, after=frozenset({start.name}))


def meet(channel: int, devices: int = 2) -> Op:
    return Op("meet", f"all{channel}", channel, groups=(tuple(range(devices)),))


def loop(name: str, decision: Decision, *body: Op) -> Op:
    return Op("loop", name, decision=decision, inside=((), body))


def choice(name: str, decision: Decision, *first: Op) -> Op:
    return Op("choice", name, decision=decision, inside=(first, ()))


def many(*lists: Ops, given: bool = True, **more: Any) -> Program:
    return Program(lists, False, given, **more)


def times(*counts: int) -> Decision:
    return Decision("known", known=counts)


OWN = Decision("own", 0)
CROSSED = ((*send(1, 0, 1), *recv(2, 1, 0)), (*send(2, 1, 0), *recv(1, 0, 1)))
TRIPS: dict[str, Any] = {"domains": ((0, 1, 2),)}


@pytest.mark.parametrize(
    ("program", "judgement"),
    [
        (many(*CROSSED), Judgement(False, False, False)),
        (many(*CROSSED, given=False), Judgement(False, True, True)),
        (many(*CROSSED, send_buffers=1), Judgement(True, True, True)),
        (many((loop("a", OWN, meet(1)),), (loop("a", OWN, meet(1)),), **TRIPS), Judgement(False, False, True)),
    ],
)
def test_the_model_knows_what_is_known(program: Program, judgement: Judgement) -> None:
    assert judged(program) == judgement
    assert disagreement(program) is None


# What was found: verdicts that said more, or less, than the runs show.


def verdict_of(program: Program) -> xb.Verdict:
    assert disagreement(program) is None
    return checked(program)[1]


def test_a_deadlock_that_data_may_pass_by_depends() -> None:
    first, second = CROSSED
    inside = many((loop("a", OWN, *first),), (loop("b", OWN, *second),), **TRIPS)
    verdict = verdict_of(inside)
    assert verdict.kind == "depends"
    calls = "send1 of device 0 and send2 of device 1"
    assert f"if a on device 0 runs 1 trip and b on device 1 runs 1 trip: {calls} wait for each" in str(verdict)


def test_units_in_crossed_orders_depend_on_whether_they_run() -> None:
    a, b = choice("a", OWN, meet(1)), choice("b", Decision("own", 1), meet(2))
    verdict = verdict_of(many((a, b), (b, a), domains=((0, 1), (0, 1))))
    assert verdict.kind == "depends"


def test_a_loop_of_no_trip_and_a_branch_not_taken_are_not_there() -> None:
    never = loop("never", times(0, 0), meet(1))
    assert verdict_of(many((never, meet(2)), (meet(2), never))).kind == "ok"
    dead = choice("dead", times(1, 1), loop("inner", OWN, meet(1)))
    assert verdict_of(many((dead,), (dead,), **TRIPS)).kind == "ok"


def test_two_loops_of_one_trip_meet_one_loop() -> None:
    one = times(1, 1)
    first = (loop("a", one, *send(1, 0, 1)), loop("b", one, *send(2, 0, 1)))
    second = (loop("c", one, *recv(1, 0, 1), *recv(2, 0, 1)),)
    assert verdict_of(many(first, second)).kind == "ok"
    twice = times(2, 2)
    first = (loop("a", twice, *send(1, 0, 1)), loop("b", twice, *send(2, 0, 1)))
    second = (loop("c", twice, *recv(1, 0, 1), *recv(2, 0, 1)),)
    assert verdict_of(many(first, second)).findings[0].kind == "companion_conflict"


def test_a_loop_of_one_trip_is_entered_only_where_no_device_communicates_in_its_condition() -> None:
    """A condition runs once more than the body, so what it sends, it sends twice."""
    program = random_program(1004513)
    assert checked(program)[1].kind == "deadlock"
    assert disagreement(program) is None


def test_sends_into_buffers_leave_their_loop_before_the_other_side_comes() -> None:
    first = (loop("a", times(1, 0), *send(1, 0, 1)),)
    second = (loop("a", times(1, 0), *recv(1, 0, 1)),)
    assert verdict_of(many(first, second)).kind == "deadlock"
    assert verdict_of(many(first, second, send_buffers=1)).kind == "ok"


def test_items_that_a_loop_takes_are_counted() -> None:
    feed = loop("a", times(2, 2), Op("infeed", "feed"), meet(1))
    assert verdict_of(many((feed,), (feed,), infeed=(2, 2))).kind == "ok"
    starved = verdict_of(many((feed,), (feed,), infeed=(2, 1)))
    assert starved.findings[0].kind == "infeed_starved"
    assert "device 1" in str(starved)


def test_a_conditional_that_an_order_would_leave_and_enter_again_has_another_order() -> None:
    for seed in (962, 406549, 407369):
        assert disagreement(random_program(seed)) is None


# A loop whose state carries the context of the next recv.


def receiver(trips: int) -> xb.Module:
    builder = xb.Builder("receiver")
    x = xb.parameter(builder, number=0, shape=xb.f32[4], name="x")
    posted = xb.recv(xb.after_all(builder=builder), shape=x.shape, channel_id=1, name="first")

    def body(state: xb.Value) -> list[xb.Value]:
        counter, context, total = state
        taken, token = xb.recv_done(context, channel_id=1)
        return [counter + 1, xb.recv(token, shape=xb.f32[4], channel_id=1, name="following"), total + taken]

    start = [xb.constant(builder, np.int32(0)), posted, x]
    _, context, total = xb.while_(start, condition=lambda state: state[0] < trips, body=body)
    return xb.Module("receiver", builder.build(total + xb.recv_done(context, channel_id=1, name="last")[0]))


def sender(trips: int) -> xb.Module:
    builder = xb.Builder("sender")
    x = xb.parameter(builder, number=0, shape=xb.f32[4], name="x")

    def body(state: xb.Value) -> list[xb.Value]:
        counter, x, token = state
        return [counter + 1, x + 1.0, xb.send_done(xb.send(x, token, channel_id=1), channel_id=1)]

    start = [xb.constant(builder, np.int32(0)), x, xb.after_all(builder=builder)]
    return xb.Module("sender", builder.build(xb.while_(start, condition=lambda state: state[0] < trips, body=body)[1]))


def test_a_pipelined_loop_is_counted_trip_by_trip() -> None:
    inputs = [[np.ones(4, np.float32)], [np.zeros(4, np.float32)]]
    good = xb.ModuleGroup({0: sender(3), 1: receiver(2)})
    assert xb.check(good).kind == "ok"
    assert execute(good, inputs)[1][0] == 1 + 2 + 3
    bad = xb.ModuleGroup({0: sender(3), 1: receiver(3)})
    verdict = xb.check(bad)
    assert verdict.kind == "deadlock"
    assert not unnamed(str(verdict), ["last", "device 1"])
    with pytest.raises(Stopped):
        execute(bad, inputs, check=False)


# What others let pass with a wrong answer.


def module(function: Any, *more: Any) -> xb.Module:
    return xb.Module("m", xb.computation(xb.f32[4], *more)(function), num_replicas=2)


TOTAL = module(lambda x: xb.all_reduce(x, xb.add, channel_id=1, name="total"))


@pytest.mark.parametrize(
    ("other", "kind", "differ"),
    [
        (
            lambda x: xb.ops.all_gather(x, all_gather_dimension=0, shard_count=2, channel_id=1, name="other"),
            "channel_kind_mix",
            "kinds",
        ),
        (lambda x: xb.all_reduce(x, xb.maximum, channel_id=1, name="other"), "reducer_mismatch", "reducers"),
        (
            lambda x: xb.all_reduce(xb.slice(x, [0], [2]), xb.add, channel_id=1, name="other"),
            "shape_mismatch",
            "shapes",
        ),
    ],
)
def test_two_collectives_that_are_one_must_agree(other: Any, kind: str, differ: str) -> None:
    group = xb.ModuleGroup({0: TOTAL, 1: module(other)})
    verdict = xb.check(group)
    assert (verdict.kind, verdict.findings[0].kind) == ("error", kind)
    assert not unnamed(str(verdict), ["total", "other"])
    with pytest.raises(Stopped) as stopped:
        execute(group, [[np.ones(4, np.float32)]] * 2, check=False)
    assert stopped.value.report.kind == "collective_mismatch"
    assert f"their {differ} differ" in str(stopped.value)
    assert not unnamed(str(stopped.value), ["total", "other", "test_model.py"])


def test_one_reducer_written_twice_is_one() -> None:
    again = module(lambda x: xb.all_reduce(x, lambda a, b: a + b, channel_id=1, name="again"))
    group = xb.ModuleGroup({0: TOTAL, 1: again})
    assert xb.check(group).kind == "ok"
    assert execute(group, [[np.ones(4, np.float32)]] * 2)[0].tolist() == [2.0] * 4


def test_different_sums_in_two_branches_are_not_matched_by_arrival() -> None:
    def program(x: xb.Value, first: xb.Value) -> xb.Value:
        x = xb.all_reduce(x, xb.add, name="before")
        branches = (
            lambda x: xb.all_reduce(x, xb.add, name="sum_of_x"),
            lambda x: xb.all_reduce(x * 2.0, xb.add, name="sum_of_2x"),
        )
        return xb.conditional(first, (x, x), branch_computations=branches)

    made, ones = module(program, xb.pred[()]), np.ones(4, np.float32)
    assert xb.check(made).kind == "depends"
    assert execute(made, [[ones, True]] * 2)[0].tolist() == [4.0] * 4
    with pytest.raises(Stopped) as stopped:
        execute(made, [[ones, True], [ones, False]])
    parting = stopped.value.report.parting
    assert parting[0] == "devices 0 and 1 part after before (collective 1 of both)"
    assert [name in line for name, line in zip(("sum_of_x", "sum_of_2x"), parting[1:], strict=True)] == [True, True]
    assert all("all-reduce of add, f32[4], one group of all" in line for line in parting[1:])


def test_the_predicate_that_parts_the_devices_is_told() -> None:
    def program(x: xb.Value) -> xb.Value:
        is_first = xb.eq(xb.convert(xb.replica_id(x.builder), xb.s32), 0)
        branches = (lambda x: xb.all_reduce(x, xb.add, name="sum"), lambda x: -x)
        return xb.conditional(is_first, (x, x), branch_computations=branches, name="chosen")

    text = str(xb.check(module(program)))
    assert "(replica-id == 0)" in text
    assert "decides chosen: true_computation on device 0, another on device 1" in text
    assert "a collective inside a conditional whose predicate depends on replica-id" in text
    assert "move sum out of chosen" in text


def test_what_was_not_looked_at_in_every_order_is_not_ok_in_every_order() -> None:
    """Loops that would have to run as one, and never do: their level has no order of its own."""
    assert disagreement(random_program(300509)) is None
