"""Programs on which verdict and model once differed: the verdict said more, or less, than the runs show."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from interpreter import Stopped, execute
from tests.checking.programs_by_hand import CROSSED, OWN, TRIPS, choice, loop, many, meet, recv, send, times
from tests.conformance.deadlock import unnamed
from tests.model.compare import checked, disagreement
from tests.model.generator import random_program
from tests.model.programs import Decision, Op, Program


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


def test_what_was_not_looked_at_in_every_order_is_not_ok_in_every_order() -> None:
    """Loops that would have to run as one, and never do: their level has no order of its own."""
    assert disagreement(random_program(300509)) is None


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
