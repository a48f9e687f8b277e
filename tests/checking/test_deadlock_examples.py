"""The deadlocks among the examples: a reader finds the place, the cause and the repair in the report alone."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from examples.deadlocks import data_parallel, infeed_loop, parameter_server, pipeline, ring
from interpreter import Refused, execute
from tests.conformance.deadlock import unnamed


def test_a_ring_that_sends_first() -> None:
    module = ring.program()
    verdict = xb.check(module)
    text = str(verdict)
    assert text.startswith(
        "deadlock: send.3 of devices 0-3 wait for each other in every order that this schedule allows"
    )
    assert "stops at send.3   examples/deadlocks/ring.py:14 in ring\n" in text
    assert "channel 1 -> device 1, f32[4]\n" in text
    assert "cause  all devices of the cycle send before they post their own recv" in text
    assert "fix    move recv.4 before send.3" in text
    inputs = [[np.full(4, device, np.float32)] for device in range(4)]
    with pytest.raises(Refused):
        execute(module, inputs)
    assert [result[0] for result in execute(xb.repaired(verdict), inputs)] == [3.0, 1.0, 3.0, 5.0]


@pytest.mark.parametrize(
    ("program", "facts"),
    [
        (
            pipeline.program,
            ["recv.6 depends on recv-done.3 on device 1", "send.10 depends on send.5 on device 0", "send_buffers=1"],
        ),
        (
            parameter_server.program,
            ["device 2", "send.2 on device 1", "recv.12 depends on recv-done.3 on device 0", "parameter_server.py:16"],
        ),
    ],
)
def test_tokens_that_tie_transfers_in_orders_that_do_not_fit(program: object, facts: list[str]) -> None:
    verdict = xb.check(program())  # type: ignore[operator]
    text = str(verdict)
    assert (verdict.kind, verdict.scope, verdict.findings[0].cause) == ("deadlock", "every", "TOKEN_ORDER")
    assert not unnamed(text, facts)
    assert "no other schedule helps" in text
    assert "fix    remove one of these" in text


def test_replicas_of_which_one_leaves_out_an_all_reduce() -> None:
    text = str(xb.check(data_parallel.program()))
    assert "if the predicate of conditional.20 differs between devices 0-3" in text
    assert "compare.8 = (parameter.3 > 0)   examples/deadlocks/data_parallel.py:15 in step\n" in text
    assert "decides conditional.20\n" in text
    report = data_parallel.main()
    assert "devices 1 and 3  like device 0" in report
    assert "devices 0 and 2 diverge after loss (collective 1 of both)" in report
    assert "device 0  reaches gradients (all-reduce of add, f32[3], one group of all)" in report
    assert "device 2  reaches no further collective in this group" in report
    assert "it took a branch of conditional.20 other than true_computation" in " ".join(report.split())
    assert "fix    make the predicate equal on all devices" in report


def test_a_replica_that_is_fed_an_item_less() -> None:
    report = infeed_loop.main()
    cause, victims = report.split("waiting as a result")
    assert "device 1  is at batch in while.20, trip 2" in cause
    assert "device 0  is at sum in while.20, trip 2" in victims
    assert "cause  the infeed batch of device 1 has no more items" in cause
    assert "fix    feed the number of items that the program reads to device 1" in cause


def in_branch(condition: str, groups: str, devices: int) -> str:
    """The text of a program whose devices run an all-reduce in a branch that `condition` of the device decides."""
    return f"""HloModule m, num_partitions={devices}
add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
yes {{ p = f32[4] parameter(0)
  ROOT r = f32[4] all-reduce(p), channel_id=1, replica_groups={groups}, use_global_device_ids=true, to_apply=add }}
no {{ ROOT p = f32[4] parameter(0) }}
ENTRY e {{
  x = f32[4] parameter(0)
  id = u32[] partition-id()
  one = u32[] constant(1)
  zero = u32[] constant(0)
  odd = u32[] and(id, one)
  here = pred[] {condition}
  ROOT c = f32[4] conditional(here, x, x), true_computation=yes, false_computation=no
}}
"""


@pytest.mark.parametrize(
    ("condition", "groups", "devices", "line"),
    [
        (
            "compare(odd, zero), direction=EQ",
            "{{0,1},{2,3}}",
            4,
            "device 2         like device 0; waits for device 3, which never reaches it",
        ),
        (
            "compare(odd, zero), direction=EQ",
            "{{0,1},{2,3},{4,5}}",
            6,
            "devices 2 and 4  like device 0, in other groups",
        ),
        ("compare(id, zero), direction=NE", "{{0,1,2,3}}", 4, "devices 2 and 3  like device 1"),
    ],
)
def test_devices_of_other_groups_wait_for_other_devices(condition: str, groups: str, devices: int, line: str) -> None:
    report = str(xb.check(xb.parse_hlo(in_branch(condition, groups, devices))))
    assert line in [each.strip() for each in report.splitlines()]
