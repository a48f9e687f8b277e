"""Several programs in flight: their orders on the devices decide, and a host that waits hangs."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from shape_inference import XbuildError

ONES = np.ones(2, np.float32)


def program(name: str, *, channel: int = 1, replicas: int = 2) -> xb.Module:
    total = xb.computation(xb.f32[2])(lambda x: xb.all_reduce(x, xb.add, channel_id=channel, name="psum"))
    return xb.Module(name, total, num_replicas=replicas)


def launched(*orders: str) -> xb.ModuleGroup:
    """The programs that the letters name, on each device in the order of its letters."""
    programs = {"t": program("train"), "e": program("evaluate")}
    return xb.in_flight({device: [programs[letter] for letter in order] for device, order in enumerate(orders)})


@pytest.mark.parametrize("runtime", [None, *xb.RUNTIMES])
def test_programs_in_one_order_run_and_in_two_orders_do_not(runtime: str | None) -> None:
    same, crossed = launched("tet", "tet"), launched("te", "et")
    assert xb.check(same, runtime=runtime).kind == "ok"
    results = xb.execute(same, [[ONES, 2 * ONES, 3 * ONES]] * 2, runtime=runtime)
    for own in results:
        for found, expected in zip(own, (2 * ONES, 4 * ONES, 6 * ONES), strict=True):
            assert np.array_equal(found, expected)
    verdict = xb.check(crossed, runtime=runtime)
    matches_by_order = runtime is not None and xb.RUNTIMES[runtime].collectives == "order"
    assert verdict.kind == ("error" if matches_by_order else "deadlock")
    if matches_by_order:
        assert "their programs differ: train and evaluate" in verdict.findings[0].message
    with pytest.raises(xb.Stopped) as stopped:
        xb.execute(crossed, [[ONES, ONES]] * 2, check=False, runtime=runtime)
    assert stopped.value.report.kind == ("collective_mismatch" if matches_by_order else "deadlock")


def test_a_launch_more_on_one_device_hangs() -> None:
    verdict = xb.check(launched("tt", "t"), runtime="xla_cpu")
    assert verdict.kind == "deadlock"
    assert verdict.findings[0].message == "psum of device 0 waits for device 1, which ends first"


def test_a_host_that_waits_for_one_device_before_it_launches_the_next_hangs() -> None:
    runtime = xb.Runtime(launches="in_turn")
    verdict = xb.check(launched("t", "t"), runtime=runtime)
    assert verdict.kind == "deadlock"
    message = "psum of device 0 waits for device 1, whose program the host has not launched"
    assert verdict.findings[0].message == message
    with pytest.raises(xb.Stopped) as stopped:
        xb.execute(launched("t", "t"), [[ONES]] * 2, check=False, runtime=runtime)
    assert stopped.value.report.cause.startswith(message)
    apart = xb.Runtime(launches="in_turn", devices_per_host=1)
    assert xb.check(launched("t", "t"), runtime=apart).kind == "ok"


def test_programs_for_different_numbers_of_devices_are_refused() -> None:
    with pytest.raises(XbuildError, match="2 replicas of 1 partitions and 4 replicas of 1 partitions"):
        xb.in_flight({0: [program("a"), program("b", replicas=4)]})
    with pytest.raises(TypeError, match="expected a Module or a Computation"):
        xb.in_flight({0: ["train"]})  # type: ignore[list-item]
