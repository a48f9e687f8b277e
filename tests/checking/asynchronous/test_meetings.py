"""Collectives that are started: who waits for whom before the run and in it, in what order, in calls and in loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Recorder, Stopped, execute
from tests.checking.asynchronous.programs import ONES, F, finished, group, module, started, summed
from tests.support.compare import assert_same


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
    assert "waits for start1 on device 1 (a done needs the start of every participant)" in text, text


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
    assert "to reach start1, which done1 completes" in report.report(width=1000)
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
