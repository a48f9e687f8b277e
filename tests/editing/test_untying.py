"""Programs without a schedule whose tokens make them deadlock: mended, they run, and give what buffered sends give."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import xbuild as xb
from examples.deadlocks import parameter_server, pipeline


def swap(control: bool = False) -> xb.Module:
    """Two replicas that send before they post their own recv, by tokens or by a control edge."""
    pairs = [(0, 1), (1, 0)]
    builder = xb.Builder("swap")
    x = xb.parameter(builder, number=0, shape=xb.f32[2], name="x")
    sent = xb.send(x, xb.after_all(builder=builder), channel_id=1, source_target_pairs=pairs)
    token = xb.send_done(sent, channel_id=1)
    if control:
        with xb.control(after=[token]):
            posted = xb.recv(xb.after_all(builder=builder), shape=xb.f32[2], channel_id=1, source_target_pairs=pairs)
    else:
        posted = xb.recv(token, shape=xb.f32[2], channel_id=1, source_target_pairs=pairs)
    came = xb.recv_done(posted, channel_id=1)
    return xb.Module("swap", builder.build(xb.get_tuple_element(came, index=0)), num_replicas=2)


@pytest.mark.parametrize("program", [swap, lambda: swap(control=True)], ids=["tokens", "control"])
def test_a_swap_is_mended_and_gives_what_buffers_give(program: Callable[[], xb.Module]) -> None:
    verdict = xb.check(program())
    assert (verdict.kind, verdict.scope, verdict.repair) == ("deadlock", "every", None)
    mended = xb.repaired(verdict)
    assert isinstance(mended, xb.Module)
    assert mended.is_scheduled
    assert xb.check(mended).kind == "ok"
    given = [[np.array([1, 2], np.float32)], [np.array([3, 4], np.float32)]]
    buffered = xb.execute(program(), given, send_buffers=1)
    assert [each.tolist() for each in xb.execute(mended, given)] == [each.tolist() for each in buffered]


@pytest.mark.parametrize("program", [pipeline.program, parameter_server.program], ids=["pipeline", "server"])
def test_programs_of_several_devices_are_mended(program: Callable[[], xb.ModuleGroup]) -> None:
    verdict = xb.check(program())
    assert verdict.kind == "deadlock"
    assert xb.check(xb.repaired(verdict)).kind == "ok"


def test_what_data_tie_is_not_mended() -> None:
    """Each replica sends what it has received: no order begins."""
    pairs = [(0, 1), (1, 0)]
    builder = xb.Builder("echo")
    posted = xb.recv(xb.after_all(builder=builder), shape=xb.f32[2], channel_id=1, source_target_pairs=pairs)
    came = xb.recv_done(posted, channel_id=1)
    value = xb.get_tuple_element(came, index=0)
    sent = xb.send(value, xb.after_all(builder=builder), channel_id=1, source_target_pairs=pairs)
    xb.send_done(sent, channel_id=1)
    verdict = xb.check(xb.Module("echo", builder.build(value), num_replicas=2))
    assert verdict.kind == "deadlock"
    with pytest.raises(ValueError, match="offers no repair"):
        xb.repaired(verdict)
