"""Data-dependent numbers of trips: which of them matter, branches trip by trip, trips of two calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Stopped, execute
from tests.checking.programs_by_hand import OWN, choice, loop, many, meet, recv, send, times
from tests.model.compare import checked, disagreement
from tests.model.generator import WIDE, random_program
from tests.model.programs import Decision, Op

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
