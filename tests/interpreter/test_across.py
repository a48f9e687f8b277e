"""Provenance across devices: the elements that are named are those that were moved, or add up to the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import trace
from xbuild.traces import Across, Trace, TracedMeeting

GROUPS = [[2, 0], [1, 3]]
PAIRS = [(0, 1), (1, 2), (3, 0)]

CASES: dict[str, Callable[[xb.Value], Any]] = {
    "all-gather": lambda x: xb.all_gather(x, 1, 2, replica_groups=GROUPS),
    "all-to-all": lambda x: xb.all_to_all(x, 1, 0, 2, replica_groups=GROUPS),
    "all-to-all-tuple": lambda x: xb.ops.all_to_all((x, x), replica_groups=GROUPS),
    "permute": lambda x: xb.collective_permute(x, PAIRS),
    "broadcast": lambda x: xb.collective_broadcast(x, replica_groups=GROUPS),
    "all-reduce": lambda x: xb.all_reduce(x, xb.add, replica_groups=GROUPS),
    "all-reduce-several": lambda x: xb.all_reduce((x, -x), xb.add, replica_groups=GROUPS),
    "reduce-scatter": lambda x: xb.reduce_scatter(x, xb.add, 1, 2, replica_groups=GROUPS),
}


def _run(build: Callable[[xb.Value], Any]) -> Trace:
    program = xb.computation(xb.s32[2, 4])(build)
    inputs = [[np.arange(8, dtype=np.int32).reshape(2, 4) + 100 * device + 1] for device in range(4)]
    return trace(xb.Module("across", program, num_replicas=4), inputs, origins=True)


def _devices(found: Trace, meeting: TracedMeeting) -> list[int]:
    return [found[event].device for event in meeting.events]


def _sums(found: Trace, meeting: TracedMeeting, table: Across) -> list[int]:
    """The sum of the elements that each row names."""
    of_device = {found[member].device: member for member in meeting.events}
    sums = []
    for row in zip(table.device.tolist(), table.operand.tolist(), table.element.tolist(), strict=True):
        named = [each for each in zip(*row, strict=True) if each[0] >= 0]
        before = [(found.operands(of_device[device])[operand], element) for device, operand, element in named]
        sums.append(sum(int(np.ravel(found.values[event])[element]) for event, element in before if event is not None))
    return sums


@pytest.mark.parametrize("name", CASES)
def test_the_named_elements_make_the_result(name: str) -> None:
    found = _run(CASES[name])
    assert sorted(device for meeting in found.meetings for device in _devices(found, meeting)) == [0, 1, 2, 3]
    for meeting in found.meetings:
        for event in meeting.events:
            value, tables = found.value(event), found.across[event]
            parts = value if isinstance(value, tuple) else (value,)
            assert [table.part for table in tables] == ([*range(len(parts))] if isinstance(value, tuple) else [None])
            for part, table in zip(parts, tables, strict=True):
                assert _sums(found, meeting, table) == np.ravel(part).tolist()


def test_what_was_sent() -> None:
    builder = xb.Builder("pass")
    x = xb.parameter(builder, number=0, shape=xb.f32[3])
    token = xb.after_all(builder=builder)
    pairs = [(0, 1), (1, 0)]
    posted = xb.recv(token, shape=xb.f32[3], channel_id=1, source_target_pairs=pairs)
    sent = xb.send(xb.negate(x), token, channel_id=1, source_target_pairs=pairs)
    taken, _ = xb.recv_done(posted, channel_id=1)
    xb.send_done(sent, channel_id=1)
    module = xb.Module("pass", builder.build(taken), num_replicas=2)
    found = trace(module, [[np.arange(3, dtype=np.float32)], [np.ones(3, np.float32)]], origins=True)
    assert {(transfer.source, found[transfer.done].device) for transfer in found.transfers} == {*pairs}
    for transfer in found.transfers:
        (table,) = found.across[transfer.done]
        assert table.part == 0
        assert table.device.ravel().tolist() == [transfer.source] * 3
        before = found.operands(transfer.send)[0]
        assert before is not None
        np.testing.assert_array_equal(found.value(before)[table.element.ravel()], found.value(transfer.done)[0])


def test_of_large_values_nothing_is_said() -> None:
    program = xb.computation(xb.f32[1000])(lambda x: xb.all_reduce(x, xb.add))
    found = trace(xb.Module("large", program, num_replicas=2), [[np.zeros(1000, np.float32)]] * 2, origins=True)
    assert found.meetings
    assert not found.across
