"""Scans whose computation communicates, before the run: checked as loops of a known length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Stopped, execute
from tests.checking.scan_programs import Body, agreed, both, counted, ends, inputs, looped, scanned, summed, total

# What is refused, and what is not.


def test_scans_of_one_length_meet() -> None:
    assert agreed(both(scanned(3), scanned(3))).kind == "ok"
    assert agreed(both(scanned(0), scanned(0))).kind == "ok"


@pytest.mark.parametrize(("first", "second"), [(3, 2), (4, 1), (0, 4)])
def test_scans_of_different_lengths_do_not(first: int, second: int) -> None:
    verdict = agreed(both(scanned(first), scanned(second)))
    assert verdict.findings[0].kind == "trip_count_mismatch"
    assert f"s runs {first} trip{'s' * (first != 1)} on device 0" in verdict.findings[0].message


def test_a_length_that_is_too_long_to_follow_is_counted() -> None:
    verdict = xb.check(both(scanned(1_000_000), scanned(999_999)))
    assert verdict.findings[0].kind == "trip_count_mismatch"
    assert xb.check(both(scanned(1_000_000), scanned(1_000_000))).kind == "ok"


def test_a_scan_of_one_trip_stands_like_a_call() -> None:
    """As a loop of one trip does: the one that is missing is told, and not that loops differ."""
    assert agreed(both(scanned(1), scanned(0))).findings[0].kind == "deadlock"


def test_a_scan_meets_a_while_of_as_many_trips() -> None:
    assert agreed(both(scanned(3), looped(3))).kind == "ok"
    assert agreed(both(scanned(3), looped(4))).findings[0].kind == "trip_count_mismatch"


@pytest.mark.parametrize("more", [{}, {"is_reverse": True}])
@pytest.mark.parametrize(
    ("first", "second", "is_ok"),
    [
        (lambda i: xb.eq(i % 2, 0), lambda i: xb.eq(i % 2, 0), True),
        (lambda i: xb.eq(i % 2, 0), lambda i: xb.eq(i % 2, 1), True),  # as often, in other trips
        (lambda i: i < 2, lambda i: i > 1, True),
        (lambda i: i < 2, lambda i: i < 3, False),
        (lambda i: i / 2 < 1, lambda i: xb.eq(i % 3, 0), True),
    ],
)
def test_a_conditional_beside_it_is_followed_trip_by_trip(
    first: Any, second: Any, is_ok: bool, more: dict[str, Any]
) -> None:
    program = both(counted(4, first, **more), counted(4, second))
    assert (agreed(program).kind == "ok") == is_ok


@pytest.mark.parametrize(("there", "is_ok"), [((1, 0, 1, 0), True), ((0, 1, 1, 0), True), ((1, 1, 1, 0), False)])
def test_a_table_that_a_loop_looks_up_is_known(there: tuple[int, ...], is_ok: bool) -> None:
    """One device scans it, the other looks it up in each trip of a while."""

    def meeting_if(here: xb.Value, x: xb.Value) -> Any:
        return xb.conditional(xb.eq(here, 1), x, total, x, lambda v: v * 2.0, name="c")

    def looking(state: xb.Value) -> Any:
        trip, table, x = state
        here = xb.reshape(xb.dynamic_slice(table, [trip], (1,)), ())
        return trip + 1, table, meeting_if(here, x)

    def looked_up(x: xb.Value) -> Any:
        table = xb.constant(x.builder, np.array(there, np.int32))
        start = [xb.constant(x.builder, np.int32(0)), table, x]
        return xb.while_(start, condition=lambda state: state[0] < 4, body=looking, name="s")[2]

    def scanned_through(x: xb.Value) -> Any:
        table = xb.constant(x.builder, np.array([0, 0, 1, 1], np.int32))
        return xb.scan(table, x, meeting_if, name="s")

    program = both(*(xb.computation(xb.f32[2])(each) for each in (looked_up, scanned_through)))
    assert (agreed(program).kind == "ok") == is_ok


def test_a_replica_that_leaves_out_a_trip_is_found() -> None:
    who = lambda i: xb.convert(xb.replica_id(i.builder), xb.s32)  # noqa: E731
    alone = xb.Module("alone", counted(4, lambda i: i < who(i) + 1), num_replicas=2)
    verdict = agreed(alone)
    assert verdict.refused
    assert "total in true_computation of conditional c in scan s" in str(verdict)
    assert agreed(xb.Module("all", counted(4, lambda i: i < 3), num_replicas=2)).kind == "ok"


def test_data_decide_in_a_trip() -> None:
    def body(each: xb.Value, carry: xb.Value) -> Any:
        first = xb.reshape(xb.slice(each, (0,), (1,), (1,)), ())
        return xb.conditional(first > 0.0, each, total, each, lambda v: v * 2.0), carry

    assert xb.check(xb.Module("m", scanned(3, body), num_replicas=2)).kind == "depends"

    def told(each: xb.Value, carry: xb.Value) -> Any:
        same = xb.ops.all_reduce(each, to_apply=xb.maximum)
        first = xb.reshape(xb.slice(same, (0,), (1,), (1,)), ())
        return xb.conditional(first > 0.0, each, total, each, lambda v: v * 2.0), carry

    module = xb.Module("m", scanned(3, told), num_replicas=2)
    assert xb.check(module).kind == "ok"
    assert ends(module)


def test_a_bounded_number_of_slices_is_left_to_the_data() -> None:
    def program(x: xb.Value, n: xb.Value) -> Any:
        some = xb.ops.set_dimension_size(x, n, dimension=0)
        return xb.scan(some, xb.constant(x.builder, np.zeros(2, np.float32)), summed, name="s")[1]

    computation = xb.computation(xb.f32[4, 2], xb.s32[()])(program)
    module = xb.Module("m", computation, num_replicas=2)
    verdict = xb.check(module)
    assert verdict.kind == "depends"
    assert "the number of slices of s differs between devices 0 and 1" in str(verdict)
    x = np.ones((4, 2), np.float32)
    assert [row[0] for row in execute(module, [[x, 3], [x, 3]])] == [3.0, 3.0]
    with pytest.raises(Stopped, match="s, trip 3"):
        execute(module, [[x, 3], [x, 2]])


def test_sends_and_recvs_pair_in_a_scan() -> None:
    def sending(each: xb.Value, carry: xb.Value) -> Any:
        token = xb.after_all(builder=each.builder)
        sent = xb.ops.send(each, token, channel_id=1, name="sent")
        xb.ops.send_done(sent, channel_id=1)
        return each, carry

    def receiving(each: xb.Value, carry: xb.Value) -> Any:
        token = xb.after_all(builder=each.builder)
        posted = xb.ops.recv(token, shape=xb.f32[2], channel_id=1, name="posted")
        got = xb.ops.get_tuple_element(xb.ops.recv_done(posted, channel_id=1), index=0)
        return got, got + carry

    program = both(scanned(3, sending), scanned(3, receiving))
    assert agreed(program).kind == "ok"
    (sent, _), (_, got) = execute(program, [[np.ones((3, 2), np.float32), np.zeros(2, np.float32)]] * 2)
    np.testing.assert_array_equal(got, sent.sum(0))
    assert agreed(both(scanned(2, sending), scanned(3, receiving))).refused


def test_an_infeed_in_a_scan_takes_an_item_a_trip() -> None:
    def body(each: xb.Value, carry: xb.Value) -> Any:
        item = xb.ops.infeed(xb.after_all(builder=each.builder), shape=xb.f32[2])
        return xb.ops.get_tuple_element(item, index=0), carry + each

    module = xb.Module("m", scanned(3, body))
    items = [np.full(2, n, np.float32) for n in range(3)]
    (given, _), *_ = execute(module, inputs(module), infeed={0: items})
    np.testing.assert_array_equal(given, items)
    assert xb.check(module, infeed={0: 3}).kind == "ok"
    assert xb.check(module, infeed={0: 2}).refused


def test_an_order_that_crosses_in_a_scan_is_refused_and_mended() -> None:
    def body(order: tuple[str, str]) -> Body:
        def step(each: xb.Value, carry: xb.Value) -> Any:
            first, second = (total(each, name) for name in order)
            return first, carry + second

        return step

    def module(*order: str) -> xb.Module:
        return xb.Module("m", scanned(3, body(order)), is_scheduled=True)  # type: ignore[arg-type]

    program = xb.ModuleGroup({0: module("a", "b"), 1: module("b", "a")})
    verdict = agreed(program)
    assert verdict.kind == "deadlock"
    assert "in scan s" in str(verdict)
    assert verdict.repair is not None
