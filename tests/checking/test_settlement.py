"""Data-dependent programs: enumerated trip counts, values equal across programs, searched orders, limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Stopped, execute
from tests.checking.test_model import CROSSED, OWN, Decision, choice, loop, many, meet, recv, send, times
from tests.model.campaign import compare
from tests.model.compare import checked, disagreement
from tests.model.generator import WIDE, random_program
from tests.model.programs import Op
from xbuild.checking.scenarios import scenarios, search

CHUNK = 50


@pytest.mark.parametrize("first", range(0, 200, CHUNK))
def test_wide_programs_get_the_verdict_of_all_their_runs(first: int) -> None:
    """Numbers that decide in several places and by turns, programs that agree, up to five devices."""
    _, wrong = compare(range(first, first + CHUNK), is_small=True, size=WIDE)
    assert not wrong


@pytest.mark.parametrize("seed", [404779, 1002970, 2002418])
def test_an_order_is_searched_for_where_the_levels_refuse(seed: int) -> None:
    program = random_program(seed)
    assert checked(program)[1].kind == "depends"
    assert disagreement(program) is None


# Device 0 sends, then receives in one branch; device 1, whose branches are two, must take the sending one first.
SENDS = """
HloModule a
skip { ROOT x = f32[2] parameter(0) }
both { x = f32[2] parameter(0)
  t = token[] after-all()
  c = (f32[2], u32[], token[]) send(x, t), channel_id=1
  d = token[] send-done(c), channel_id=1
  r = (f32[2], u32[], token[]) recv(t), channel_id=2, control-predecessors={d}
  e = (f32[2], token[]) recv-done(r), channel_id=2
  ROOT y = f32[2] get-tuple-element(e), index=0 }
add { p = s32[] parameter(0)
  q = s32[] parameter(1)
  ROOT s = s32[] add(p, q) }
ENTRY e { n = s32[] parameter(0)
  x = f32[2] parameter(1)
  zero = s32[] constant(0)
  m = s32[] all-reduce(n), to_apply=add, channel_id=9
  p = pred[] compare(m, zero), direction=GT
  ROOT b = f32[2] conditional(p, x, x), true_computation=both, false_computation=skip }
"""
TAKES = """
HloModule b
skip { ROOT x = f32[2] parameter(0) }
take { x = f32[2] parameter(0)
  t = token[] after-all()
  r = (f32[2], u32[], token[]) recv(t), channel_id=1
  e = (f32[2], token[]) recv-done(r), channel_id=1
  ROOT y = f32[2] get-tuple-element(e), index=0 }
give { x = f32[2] parameter(0)
  t = token[] after-all()
  c = (f32[2], u32[], token[]) send(x, t), channel_id=2
  d = token[] send-done(c), channel_id=2
  ROOT y = f32[2] copy(x) }
add { p = s32[] parameter(0)
  q = s32[] parameter(1)
  ROOT s = s32[] add(p, q) }
ENTRY e { n = s32[] parameter(0)
  x = f32[2] parameter(1)
  zero = s32[] constant(0)
  m = s32[] all-reduce(n), to_apply=add, channel_id=9
  p = pred[] compare(m, zero), direction=GT
  g = f32[2] conditional(p, x, x), true_computation=give, false_computation=skip
  k = f32[2] conditional(p, x, x), true_computation=take, false_computation=skip
  ROOT s = f32[2] add(g, k) }
"""


def test_an_order_that_was_searched_is_told_as_found() -> None:
    verdict = xb.check(xb.ModuleGroup({0: xb.parse_hlo(SENDS), 1: xb.parse_hlo(TAKES)}))
    names = [instruction.name for instruction in verdict.schedule[1]]
    assert names.index("k") < names.index("g")
    assert "not the recorded one on device 1" in str(verdict)


# Which numbers of trips matter.


def trips(*counts: int) -> dict[str, Any]:
    return {"domains": (counts,)}


@pytest.mark.parametrize("count", [3, 5, 17, 100])
def test_a_loop_that_must_run_as_often_as_another(count: int) -> None:
    program = many(
        (loop("a", OWN, *send(1, 0, 1)),), (loop("a", times(0, count), *recv(1, 0, 1)),), **trips(count - 1, count)
    )
    assert checked(program)[1].kind == "depends"
    assert disagreement(program) is None


@pytest.mark.parametrize(("seed", "kind"), [(74210, "error"), (10_017_690, "deadlock")])
def test_a_loop_and_one_inside_of_it_hang_on_one_number(seed: int, kind: str) -> None:
    assert checked(random_program(seed, WIDE))[1].kind == kind


def test_buffers_hide_what_more_trips_show() -> None:
    program = many(
        (loop("a", OWN, *send(1, 0, 1)),), (loop("a", times(0, 0), *recv(1, 0, 1)),), send_buffers=10, **trips(10, 11)
    )
    assert checked(program)[1].kind == "depends"
    assert disagreement(program) is None


@pytest.mark.parametrize(("count", "kind"), [(1, "ok"), (2, "deadlock")])
def test_a_loop_that_fills_a_buffer(count: int, kind: str) -> None:
    """Each trip sends once more than the other side takes: one trip has room in the buffer, two have not."""
    sends = loop("a", times(count, count), choice("b", times(0, 0), *send(1, 0, 1)))
    takes = loop("a", times(count, count), choice("b", times(1, 1), *recv(1, 0, 1)))
    program = many((sends, meet(2)), (takes, meet(2)), send_buffers=1)
    assert checked(program)[1].kind == kind
    assert disagreement(program) is None


def test_nested_trips_are_counted_together() -> None:
    first = loop("a", OWN, loop("b", times(1, 1), *send(1, 0, 1)))
    second = loop("a", times(3, 3), loop("b", times(4, 4), *recv(1, 0, 1)))
    assert disagreement(many((first,), (second,), **trips(2, 3, 12))) is None


def test_items_run_out_after_many_trips() -> None:
    feed = loop("a", OWN, Op("infeed", "feed"), meet(1))
    program = many((feed,), (feed,), infeed=(30, 40), **trips(30, 31))
    assert checked(program)[1].kind == "depends"
    assert disagreement(program) is None


@pytest.mark.parametrize(("other", "kind"), [(0, "ok"), (1, "deadlock")])
def test_what_is_known_trip_by_trip_is_followed(other: int, kind: str) -> None:
    """A branch that is taken every second time."""
    first, second = (
        loop("a", times(3, 3), choice("b", Decision("known", 0, (n, n), turns=True), meet(1))) for n in (0, other)
    )
    program = many((first,), (second,))
    assert checked(program)[1].kind == kind
    assert disagreement(program) is None


def test_one_number_that_decides_twice_decides_alike() -> None:
    lists = [(choice("a", OWN, *half(1)), choice("b", OWN, *half(2))) for half in (sending, receiving)]
    program = many(*lists, domains=((0, 1),))
    assert disagreement(program) is None
    crossed = many(*[(choice("a", OWN, meet(1)), choice("b", OWN, meet(2)))] * 2, domains=((0, 1),))
    text = str(checked(crossed)[1])
    assert disagreement(crossed) is None
    assert "depends" in text


def sending(channel: int) -> Any:
    return send(channel, 0, 1)


def receiving(channel: int) -> Any:
    return recv(channel, 0, 1)


# Values that are one in several programs.

Agree = Callable[[xb.Value], xb.Value]


def agreed(x: xb.Value) -> xb.Value:
    return xb.all_reduce(x, xb.maximum, channel_id=1, name="agreed")


def agreed_later(x: xb.Value) -> xb.Value:
    started = xb.ops.all_reduce_start(x, to_apply=xb.maximum, channel_id=1, name="agreed")
    return xb.ops.all_reduce_done(started)


def in_pairs(x: xb.Value) -> xb.Value:
    groups = [[n, n + 1] for n in range(0, 4, 2)]
    return xb.ops.all_reduce(x, to_apply=xb.maximum, channel_id=1, replica_groups=groups, name="agreed")


def gathered(x: xb.Value) -> xb.Value:
    every = xb.ops.all_gather(xb.reshape(x, (1,)), all_gather_dimension=0, shard_count=4, channel_id=1, name="agreed")
    return xb.reduce(every, xb.constant(x.builder, np.int32(0)), xb.maximum, (0,))


def branching(agree: Agree, factor: float = 1.0, devices: int = 4) -> xb.Module:
    """A branch and a loop in which devices meet; a factor makes it another program."""

    def program(x: xb.Value, limit: xb.Value) -> xb.Value:
        limit = agree(limit)
        branches = (lambda x: xb.all_reduce(x * factor, xb.add, channel_id=2, name="sum"), lambda x: -x)
        x = xb.conditional(xb.gt(limit, 1), (x, x), branch_computations=branches)

        def body(state: xb.Value) -> list[xb.Value]:
            counter, limit, x = state
            return [counter + 1, limit, xb.all_reduce(x, xb.add, channel_id=3, name="again") * factor]

        state = [xb.constant(x.builder, np.int32(0)), limit, x]
        return xb.while_(state, condition=lambda state: state[0] < state[1], body=body)[2]

    return xb.Module("branching", xb.computation(xb.f32[2], xb.s32[()])(program), num_replicas=devices)


def group(first: xb.Module, second: xb.Module, devices: int = 4) -> xb.ModuleGroup:
    return xb.ModuleGroup({device: second if device % 2 else first for device in range(devices)})


@pytest.mark.parametrize("agree", [agreed, agreed_later, gathered])
def test_programs_that_agree_decide_alike(agree: Agree) -> None:
    programs = group(branching(agree), branching(agree, 0.5))
    assert xb.check(programs).kind == "ok"
    inputs = [[np.ones(2, np.float32), np.int32(device)] for device in range(4)]
    assert len(execute(programs, inputs)) == 4


def test_programs_of_which_one_begins_early_agree() -> None:
    assert xb.check(group(branching(agreed), branching(agreed_later, 0.5))).kind == "ok"


@pytest.mark.parametrize("agree", [lambda x: x, in_pairs])
def test_programs_that_do_not_agree_depend(agree: Agree) -> None:
    programs = group(branching(agree), branching(agree, 0.5))
    assert xb.check(programs).kind == "depends"
    inputs = [[np.ones(2, np.float32), np.int32(device)] for device in range(4)]
    with pytest.raises(Stopped):
        execute(programs, inputs)


def test_a_value_that_a_loop_changes_on_one_side_only_is_not_one() -> None:
    programs = group(branching(agreed), branching(lambda x: agreed(x) + 1))
    assert xb.check(programs).kind == "depends"


# Many devices.


@pytest.mark.parametrize("devices", [65, 200])
def test_many_devices_that_agree(devices: int) -> None:
    first, second = branching(agreed, devices=devices), branching(agreed, 0.5, devices)
    assert xb.check(group(first, second, devices)).kind == "ok"


def test_a_deadlock_in_a_branch_of_many_devices_depends() -> None:
    idle = (meet(9, 70),)
    first, second = CROSSED
    inside = many((choice("c", OWN, *first), *idle), (choice("c", OWN, *second), *idle), *[idle] * 68)
    assert checked(inside)[1].kind == "depends"


# What is too much to try.


def test_where_not_all_can_be_tried_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "MOST_SCENARIOS", 1)
    a = [choice(name, Decision("own", n), meet(n + 1)) for n, name in enumerate("abc")]
    program = many((*a,), (*a[::-1],), domains=((0, 1),) * 3)
    verdict = checked(program)[1]
    assert verdict.kind == "depends"
    assert "1 of 64 ways" in str(verdict)


def test_a_search_that_gives_up_does_not_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    program = random_program(404779)
    monkeypatch.setattr(search, "MOST_STEPS", 1)
    verdict = checked(program)[1]
    assert verdict.kind == "depends"
    assert "not all could be tried" in str(verdict)
    assert "not in every order" in str(verdict)


# A computation that is called twice.


def repeating(x: xb.Value, count: xb.Value, act: Callable[[xb.Value], xb.Value]) -> xb.Value:
    def body(state: xb.Value) -> list[xb.Value]:
        counter, count, x = state
        return [counter + 1, count, act(x)]

    start = [xb.constant(x.builder, np.int32(0)), count, x]
    return xb.while_(start, condition=lambda state: state[0] < state[1], body=body)[2]


def sent(x: xb.Value) -> xb.Value:
    xb.send_done(xb.send(x, xb.after_all(builder=x.builder), channel_id=1), channel_id=1)
    return x


def taken(x: xb.Value) -> xb.Value:
    return xb.recv_done(xb.recv(xb.after_all(builder=x.builder), shape=x.shape, channel_id=1), channel_id=1)[0]


def test_trips_of_two_calls_are_added_up() -> None:
    """Five sends meet two and three recvs: a number of trips that stands in no program."""
    x, count = xb.f32[2], xb.s32[()]
    send_all = xb.computation(x, count)(lambda x, count: repeating(x, count, sent))
    take_all = xb.computation(x, count)(lambda x, count: repeating(x, count, taken))

    def taker(x: xb.Value) -> xb.Value:
        for trips in (2, 3):
            x = xb.call([x, xb.constant(x.builder, np.int32(trips))], to_apply=take_all)
        return x

    first = xb.computation(x, count)(lambda x, count: xb.call([x, count], to_apply=send_all))
    modules = {0: xb.Module("sender", first), 1: xb.Module("taker", xb.computation(x)(taker))}
    programs = xb.ModuleGroup(modules)
    assert xb.check(programs).kind == "depends"
    ones = np.ones(2, np.float32)
    assert len(execute(programs, [[ones, np.int32(5)], [ones]])) == 2
    with pytest.raises(Stopped):
        execute(programs, [[ones, np.int32(6)], [ones]])
