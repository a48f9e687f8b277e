"""Custom calls that have not returned: devices that go on, limits, interrupts, and exceptions."""

from __future__ import annotations

import _thread
import threading
import time
from typing import Any

import pytest

import xbuild as xb
from interpreter import Limits, Stopped, execute
from tests.interpreter.custom_calls.programs import given, meeting

# pending, hanging, raising


def test_pending_is_asked_again_while_others_go_on() -> None:
    order: list[int] = []
    waited = [3]

    def slow(number: Any, x: Any) -> Any:
        order.append(int(number))
        if number == 0 and waited[0]:
            waited[0] -= 1
            return xb.PENDING
        return x

    results = execute(meeting(slow), given())
    assert [each.tolist() for each in results] == [[2, 4, 6]] * 2
    assert order == [0, 1, 0, 0, 0]
    order.clear()
    waited[0] = 2
    execute(meeting(slow), given(), limits=Limits(seconds=5))
    assert order == [0, 1, 0, 0]


def assert_hung(stopped: Stopped, kind: str, hung: int) -> None:
    report = stopped.report
    assert report.kind == kind
    states = {state.device: state for state in report.devices}
    assert states[hung].instruction is not None
    assert states[hung].instruction.name == "cb"
    assert states[1 - hung].instruction is not None
    assert states[1 - hung].instruction.name == "total"
    assert [state.device for state in report.devices if state.cause] == [hung]
    assert f"called by cb on device {hung}, has not returned" in report.cause
    assert "does not return" in report.let_through
    assert f"device {hung}, which is at cb," in states[1 - hung].waits_for


@pytest.mark.parametrize("hung", [0, 1])
def test_a_limit_ends_what_is_pending(hung: int) -> None:
    module = meeting(lambda number, x: xb.PENDING if number == hung else x, has_side_effect=True)
    with pytest.raises(Stopped) as caught:
        execute(module, given(), limits=Limits(seconds=0.2))
    assert_hung(caught.value, "limit_seconds", hung)


@pytest.mark.parametrize("hung", [0, 1])
def test_a_limit_ends_a_function_that_never_returns(hung: int) -> None:
    ended = threading.Event()

    def forever(number: Any, x: Any) -> Any:
        try:
            while number == hung:
                time.sleep(0.001)
        finally:
            ended.set()
        return x

    module = meeting(forever, has_side_effect=True)
    ended.clear()
    began = time.monotonic()
    with pytest.raises(Stopped) as caught:
        execute(module, given(), limits=Limits(seconds=0.2))
    assert time.monotonic() - began < 5
    assert_hung(caught.value, "limit_seconds", hung)
    assert ended.wait(5), "what is left behind does not run on"


@pytest.mark.parametrize("seconds", [None, 60])
def test_an_interrupt_ends_what_is_pending(seconds: float | None) -> None:
    asked: list[int] = []

    def pending(number: Any, x: Any) -> Any:
        if number == 1:
            asked.append(1)
            if len(asked) == 5:
                _thread.interrupt_main()
            return xb.PENDING
        return x

    with pytest.raises(Stopped) as caught:
        execute(meeting(pending, has_side_effect=True), given(), limits=Limits(seconds=seconds))
    assert caught.value.report.kind == "interrupted"
    assert {s.device: s.instruction.name for s in caught.value.report.devices if s.instruction} == {0: "total", 1: "cb"}


def test_an_interrupt_ends_a_function_that_never_returns() -> None:
    def forever(number: Any, x: Any) -> Any:
        if number == 1:
            threading.Timer(0.1, _thread.interrupt_main).start()
        while number == 1:
            time.sleep(0.001)
        return x

    with pytest.raises(Stopped) as caught:
        execute(meeting(forever, has_side_effect=True), given())
    assert_hung(caught.value, "interrupted", 1)


@pytest.mark.parametrize("seconds", [None, 60])
@pytest.mark.parametrize(
    "error", [ValueError("no such thing"), KeyError("k"), StopIteration(), SystemExit(3), MemoryError()]
)
def test_an_exception_is_the_first_cause(error: BaseException, seconds: float | None) -> None:
    def fails(number: Any, x: Any) -> Any:
        if number == 1:
            raise error
        return x

    with pytest.raises(Stopped) as caught:
        execute(meeting(fails, devices=3), given(3), limits=Limits(seconds=seconds))
    report = caught.value.report
    assert caught.value.__cause__ is error
    assert report.kind == "raised"
    line = fails.__code__.co_firstlineno + 2
    for fact in (type(error).__name__, "'ours'", "cb", "device 1", f"test_pending.py:{line} in fails"):
        assert fact in report.message, report.message
    states = {state.device: state for state in report.devices}
    assert [device for device, state in states.items() if state.cause] == [1]
    assert {d: s.instruction.name for d, s in states.items() if s.instruction} == {0: "total", 1: "cb"}
    assert "device 1, which is at cb," in states[0].waits_for
