"""Waits in `xbuild step`: who waits for whom and until when, and where all are stuck in a deadlock."""

from __future__ import annotations

from tests.pages.scripts import said
from xbuild.stepping.place import Waits
from xbuild.traces import Trace


def test_who_waits_for_whom(traces: dict[str, Trace]) -> None:
    lines, _ = said(traces["unequal"], "to step 13\ndevices\n")
    assert lines[-4] == "    waits at all-reduce.21 for devices 1, 2, until step 33"
    assert lines[-3:] == [
        "-> device 0  step 10  get-tuple-element.17                      waits at all-reduce.21 for devices 1, 2, "
        "until step 33",
        "   device 1  step 13  get-tuple-element.13 in while.16, trip 1",
        "   device 2  step 13  get-tuple-element.13 in while.16, trip 1",
    ]
    late, _ = said(traces["unequal"], "to step 30\ndevices\n")
    assert late[-3].endswith("waits at all-reduce.21 for device 2, until step 33")
    ended, _ = said(traces["unequal"], "to end\ndevices\n")
    assert all(line.endswith("all-reduce.21  has ended") for line in ended[-3:])


def test_a_deadlock_says_where_all_are_stuck(traces: dict[str, Trace]) -> None:
    lines, failed = said(traces["deadlock"], "to end\nn\ndevices\n")
    assert failed
    assert lines[1].startswith("stopped: no device can continue")
    waits = "stuck at send.3, waits for device 1, which is at send.3, to post a recv on channel 1"
    assert lines[-5] == f"! the run ends here: {waits}"
    assert lines[-4] == f"-> device 0  step 2  after-all.2  {waits}"


def test_nobody_waits_without_an_event_that_waited(traces: dict[str, Trace]) -> None:
    """What a device waits at at a time is what it comes to next, later than it could have."""
    for name in ("loop", "unequal", "ring", "digits"):
        found, waits = traces[name], Waits(traces[name])
        for device in range(found.num_devices):
            lane = found.of_device[device]
            waiting = {t for n in lane.tolist() for t in range(int(found.since[n]), int(found.time[n]))}
            for time in range(1, found.end + 1):
                assert bool(waits.state(device, time).waits) == (time in waiting)
