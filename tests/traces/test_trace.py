"""Traces: logical time keeps causes before effects, values are those of the run, a stopped run has a trace, too."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import xbuild as xb
from examples import pipeline, ring
from interpreter import Stopped, execute, trace
from xbuild.traces import Summary, Trace, summary


def _ring(replicas: int = 4) -> tuple[xb.Module, list[list[np.ndarray]]]:
    inputs = np.arange(replicas * 4 * replicas, dtype=np.float32).reshape(replicas, -1)
    return ring.ring_all_reduce(replicas), [[row] for row in inputs]


def _in_time(found: Trace) -> None:
    """On a device time grows with each event; who got a value did so after it was sent; who met, met at one time."""
    for events in found.of_device.values():
        assert (np.diff(found.time[events]) > 0).all()
        assert (found.since[events] <= found.time[events]).all()
        assert (found.since[events][1:] == found.time[events][:-1] + 1).all()
    for transfer in found.transfers:
        assert found.time[transfer.done] > found.time[transfer.send]
        assert found[transfer.send].device == transfer.source
        assert found[transfer.done].device == transfer.target
    for meeting in found.meetings:
        assert set(found.device[list(meeting.events)]) <= set(meeting.group)


def test_a_ring() -> None:
    module, inputs = _ring()
    found = trace(module, inputs)
    _in_time(found)
    assert len(found.transfers) == 4 * 6
    assert {(t.source, t.target) for t in found.transfers} == {(0, 1), (1, 2), (2, 3), (3, 0)}
    for got, wanted in zip(found.results or (), execute(module, inputs), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_the_values_are_those_of_the_run() -> None:
    module, inputs = _ring()
    found = trace(module, inputs)
    (last,) = found.where(module.entry.root.name, device=2)
    np.testing.assert_array_equal(found.value(last.number), np.sum(inputs, axis=0)[0])


def test_a_pipeline_of_two_programs() -> None:
    group = pipeline.program()
    shapes = {device: [p.shape for p in module.entry.parameters] for device, module in group.modules.items()}
    found = trace(group, [[np.zeros(s.dims, s.dtype.dtype) for s in shapes[d]] for d in sorted(shapes)])  # type: ignore[union-attr]
    _in_time(found)
    assert {(t.source, t.target) for t in found.transfers} == {(0, 1)}


def _meeting(groups: list[list[int]]) -> xb.Module:
    total = xb.computation(xb.f32[2])(lambda x: xb.all_reduce(x * 2.0, xb.add, replica_groups=groups))
    return xb.Module("total", total, num_replicas=4)


def test_members_of_a_collective_get_its_result_at_one_time() -> None:
    found = trace(_meeting([[0, 3], [1, 2]]), [[np.full(2, n, np.float32)] for n in range(4)])
    _in_time(found)
    assert sorted(meeting.group for meeting in found.meetings) == [(0, 3), (1, 2)]
    for meeting in found.meetings:
        assert {int(found.time[event]) for event in meeting.events} == {meeting.time}
        assert len(meeting.events) == 2


def _unequal() -> xb.Module:
    """Replica r goes r times through a loop of local work before all meet."""

    @xb.computation(xb.f32[()])
    def program(x: xb.Value) -> xb.Value:
        trips = xb.convert(xb.replica_id(x.builder), xb.s32)
        start = xb.tuple_((trips, x))
        loop = xb.while_(start, condition=lambda s: xb.gt(s[0], 0), body=lambda s: xb.tuple_((s[0] - 1, xb.sqrt(s[1]))))
        return xb.all_reduce(loop[1], xb.add)

    return xb.Module("unequal", program, num_replicas=3)


def test_who_is_early_waits() -> None:
    found = trace(_unequal(), [[np.float32(16.0)]] * 3)
    _in_time(found)
    waited = {event.device: event.waited for event in found if event.instruction.opcode == "all_reduce"}
    assert waited[2] == 0
    assert waited[0] > waited[1] > 0
    roots = [event for event in found.where(device=2) if event.instruction.opcode == "sqrt"]
    assert [event.count for event in roots] == [0, 1]
    assert all("while" in str(event.spot) for event in roots)


def _crossed() -> xb.ModuleGroup:
    """Each device sends before it posts its recv, in an order that is given."""

    def one(me: int) -> xb.Module:
        builder = xb.Builder(f"d{me}")
        x = xb.parameter(builder, number=0, shape=xb.f32[2])
        token = xb.after_all(builder=builder)
        sent = xb.ops.send(x, token, channel_id=1 + me)
        done = xb.ops.send_done(sent, channel_id=1 + me)
        posted = xb.ops.recv(done, shape=xb.f32[2], channel_id=2 - me)
        return xb.Module(f"d{me}", builder.build(xb.ops.recv_done(posted, channel_id=2 - me)), is_scheduled=True)

    return xb.ModuleGroup({0: one(0), 1: one(1)})


def test_a_run_that_is_stuck_has_a_trace() -> None:
    inputs = [[np.zeros(2, np.float32)]] * 2
    with pytest.raises(Stopped):
        execute(_crossed(), inputs, check=False)
    found = trace(_crossed(), inputs, check=False)
    assert found.stop is not None
    assert found.stop["kind"] == "deadlock"
    assert found.verdict is not None
    assert found.verdict["kind"] == "deadlock"
    assert found.results is None
    assert {event.instruction.opcode for event in found} == {"parameter", "after_all"}


def test_large_values_are_told_in_short_and_no_more_than_the_limit_is_kept() -> None:
    module = xb.Module("square", xb.computation(xb.f32[100, 100])(lambda x: x * x))
    x = np.arange(1e4, dtype=np.float32).reshape(100, 100)
    found = trace(module, [[x]], elements=64)
    assert isinstance(found.value(1), Summary)
    assert found.value(1).high == float(x.max() ** 2)
    assert "2 values of more than 64 elements" in found.left_out
    none = trace(module, [[x]], bytes=0)
    assert not none.values
    assert "the trace omits 2 values, since it already had 0 bytes" in none.left_out
    assert trace(module, [[x]], values=False).left_out == "the trace holds no values"


def test_what_comes_after_the_limit_is_told_in_short() -> None:
    """Until as much again has been kept; small arrays stay whole as long."""
    module = xb.Module("squares", xb.computation(xb.f32[512], xb.f32[4])(lambda x, y: (x * x, y * y)))
    given = [np.arange(512, dtype=np.float32), np.ones(4, np.float32)]
    found = trace(module, [given], bytes=2100)
    kept = {event.instruction.opcode: found.value(event.number) for event in found}
    kinds = [type(found.value(event.number)).__name__ for event in found if event.number in found.values]
    assert kinds.count("Summary") == 1
    assert isinstance(kept["multiply"], np.ndarray)
    assert "it summarizes those of more than 1,024 bytes" in found.left_out
    assert "not there" not in found.left_out
    assert "since it already had 4,000 bytes" in trace(module, [given], bytes=2000).left_out


@pytest.mark.parametrize("last", [1.0, -0.0])
def test_equal_arrays_of_devices_are_kept_once(last: float) -> None:
    """Equal are those that have the same bits."""
    module = xb.Module("double", xb.computation(xb.f32[100])(lambda x: x + x), num_replicas=2)
    inputs = np.zeros((2, 1, 100), np.float32)
    inputs[1, 0, -1] = last
    found = trace(module, list(inputs))
    one, other = (found.value(event.number) for event in found if event.instruction.opcode == "add")
    assert one is not other
    assert np.signbit(other[-1]) == np.signbit(last)
    same = trace(module, [inputs[0], inputs[0].copy()])
    one, other = (same.value(event.number) for event in same if event.instruction.opcode == "add")
    assert one is other


def test_a_summary_counts_what_is_no_number() -> None:
    told = summary(np.array([[np.nan, 1.0, np.inf], [2.0, 3.0, -np.inf]], np.float32))
    assert (told.nans, told.infs, told.low, told.high, told.mean) == (1, 2, 1.0, 3.0, 2.0)
    assert told.cells.shape == (2, 3)
    assert summary(np.zeros((0, 3), np.float32)).low is None
    assert summary(np.ones((40, 70, 90), np.int8)).cells.shape == (16, 16)


def test_operands_and_origins_of_an_event() -> None:
    def program(x: xb.Value) -> xb.Value:
        return xb.add(xb.transpose(x, (1, 0)), xb.reverse(x, (0,)))

    module = xb.Module("origins", xb.computation(xb.f32[2, 2])(program))
    found = trace(module, [[np.arange(4, dtype=np.float32).reshape(2, 2)]], origins=True)
    names = [event.instruction.opcode for event in found]
    assert names == ["parameter", "transpose", "reverse", "add"]
    assert found.operands(3) == [1, 2]
    tables = found.origins[1]
    assert tables[0] is not None
    assert tables[0].ravel().tolist() == [0, 2, 1, 3]


def test_in_a_loop_the_operands_are_those_of_the_same_trip() -> None:
    found = trace(_unequal(), [[np.float32(16.0)]] * 3)
    roots = [event for event in found.where(device=2) if event.instruction.opcode == "sqrt"]
    seen = [found.value(found.operands(event.number)[0] or 0) for event in roots]
    assert [float(value) for value in seen] == [16.0, 4.0]


@pytest.mark.parametrize("dims", [(3000,), (1, 3000), (50, 70), (7, 11, 13), (2, 3, 1000), (3000, 1), (40, 3, 2, 5)])
def test_the_summary_of_a_large_array_is_that_of_a_small_one(
    dims: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.random.default_rng(0).normal(size=dims).astype(np.float32)
    array.flat[[5, 77]], array.flat[123] = np.nan, -np.inf
    wanted = summary(array)
    module = sys.modules[summary.__module__]
    monkeypatch.setattr(module, "AT_ONCE", 0)
    monkeypatch.setattr(module, "PART", 100)
    for same in (array, np.asfortranarray(array), np.repeat(array, 2, axis=0)[::2]):
        found = summary(same)
        figures = ("type", "dims", "low", "high", "nans", "infs")
        assert [getattr(found, name) for name in figures] == [getattr(wanted, name) for name in figures]
        assert found.mean == pytest.approx(wanted.mean)
        np.testing.assert_allclose(found.cells, wanted.cells, rtol=1e-6, atol=1e-6)


def test_a_view_larger_than_any_memory_has_a_summary() -> None:
    found = trace(*_wide(), values=True)
    told = found.value(len(found) - 2)
    assert str(told) == "f32[2,1099511627776] nothing finite, 1099511627776 NaN, 1099511627776 inf"
    assert told.cells.size == 0


def _wide() -> tuple[xb.Module, list[list[np.ndarray]]]:
    def program(x: xb.Value) -> xb.Value:
        return xb.slice(xb.ops.broadcast(x, sizes=(2, 2**40), dimensions=(0,)), (0, 0), (2, 1))

    wide = xb.computation(xb.f32[2])(program)
    return xb.Module("wide", wide), [[np.float32([np.nan, np.inf])]]
