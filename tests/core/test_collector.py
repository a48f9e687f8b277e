"""The collector's threshold: raised while a program is recorded, restored whatever ends the recording."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator

import pytest

import xbuild as xb
from xbuild.core.collector import OBJECTS


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before, was_on = gc.get_threshold(), gc.isenabled()
    gc.enable()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)
    (gc.enable if was_on else gc.disable)()


def record(count: int = 600) -> xb.Builder:
    builder = xb.Builder("long")
    x = xb.parameter(builder, number=0, shape=xb.f32[2])
    for _ in range(count):
        x = xb.ops.negate(x)
    return builder


def test_long_programs_raise_it_and_build_restores_it() -> None:
    builder = record()
    assert gc.get_threshold() == (OBJECTS, 10, 10)
    builder.build()
    assert gc.get_threshold() == (700, 10, 10)


def test_small_programs_leave_it() -> None:
    record(100)
    assert gc.get_threshold() == (700, 10, 10)


def failing() -> None:
    record()
    raise ZeroDivisionError


def abandoned() -> None:
    def recording() -> Iterator[None]:
        record()
        yield

    next(recording())
    raise ZeroDivisionError


def in_a_thread() -> None:
    thread = threading.Thread(target=record)
    thread.start()
    thread.join()
    raise ZeroDivisionError


@pytest.mark.parametrize("end", [failing, abandoned, in_a_thread])
def test_collections_restore_it_when_recording_stops(end: Callable[[], None]) -> None:
    with pytest.raises(ZeroDivisionError):
        end()
    assert gc.get_threshold() == (OBJECTS, 10, 10)
    gc.collect()  # something was recorded before this one
    gc.collect()
    assert gc.get_threshold() == (700, 10, 10)


def test_garbage_is_collected_while_programs_are_recorded() -> None:
    """The number of objects in garbage stays bounded: no collection is skipped for good."""
    seen: list[int] = []
    gc.callbacks.append(lambda phase, info: seen.append(info["generation"]))
    try:
        builder = record()
        for _ in range(OBJECTS + 1000):
            cycle: list[object] = []
            cycle.append(cycle)
            del cycle
        assert seen
        builder.build()
    finally:
        gc.callbacks.pop()


@pytest.mark.parametrize("chosen", [(0, 10, 10), (OBJECTS * 2, 5, 5)])
def test_thresholds_of_the_user_stay(chosen: tuple[int, int, int]) -> None:
    gc.set_threshold(*chosen)
    record().build()
    assert gc.get_threshold() == chosen
    gc.set_threshold(700, 10, 10)
    builder = record()
    gc.set_threshold(*chosen)
    builder.build()
    assert gc.get_threshold() == chosen


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    record().build()
    assert not gc.isenabled()
    assert gc.get_threshold() == (700, 10, 10)
