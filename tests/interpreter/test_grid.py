"""Runs of several devices: collectives, channels, feeds, and the report of a deadlock."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Refused, Stopped, execute

SCALARS = [[np.float32(r)] for r in range(4)]


def spmd(function: Any, replicas: int, *shapes: Any, partitions: int = 1) -> xb.Module:
    return xb.Module("m", xb.computation(*shapes)(function), num_replicas=replicas, num_partitions=partitions)


def test_groups_meet_apart_from_each_other() -> None:
    module = spmd(lambda x: xb.cross_replica_sum(x, replica_groups=[[0, 2], [1, 3]]), 4, xb.f32[()])
    assert execute(module, SCALARS) == [2.0, 4.0, 2.0, 4.0]


def test_the_document_s_sum_over_eight_replicas_in_four_groups() -> None:
    module = spmd(lambda x: xb.cross_replica_sum(x, replica_group_ids=[0, 1, 2, 3, 0, 1, 2, 3]), 8, xb.f32[()])
    assert execute(module, [[float(r)] for r in range(8)]) == [4.0, 6.0, 8.0, 10.0] * 2


def test_a_sum_of_a_tuple_sums_each_element() -> None:
    shapes = {"one": (xb.f32[2], xb.f32[()]), "several": (xb.f32[2], xb.s32[()], xb.pred[2], xb.f32[()])}
    given = {"f32[2]": [1.0, 2.0], "f32[]": 4.0, "s32[]": 3, "pred[2]": [True, False]}
    sums = {"f32[2]": [2.0, 4.0], "f32[]": 8.0, "s32[]": 6, "pred[2]": [True, False]}
    for name, elements in shapes.items():
        module = spmd(xb.cross_replica_sum, 2, xb.TupleShape(elements))
        results = execute(module, [[tuple(given[str(each)] for each in elements)]] * 2)
        for result in results:
            assert [np.asarray(each).tolist() for each in result] == [sums[str(each)] for each in elements]
        reduces = [i for i in module.entry.instructions if i.opcode == "all_reduce"]
        assert len(reduces) == {"one": 1, "several": 3}[name]


def test_the_document_s_all_to_all_over_four_cores() -> None:
    module = spmd(lambda x: xb.all_to_all(x, 1, 0, 4), 4, xb.f32[4, 16])
    inputs = [np.arange(64, dtype=np.float32).reshape(4, 16) + 100 * core for core in range(4)]
    for core, result in enumerate(execute(module, [[x] for x in inputs])):
        assert result.shape == (16, 4)
        assert np.array_equal(result, np.concatenate([x[:, 4 * core : 4 * core + 4] for x in inputs]))


def test_all_gather_concatenates_in_the_order_of_the_group() -> None:
    module = spmd(lambda x: xb.all_gather(x, 1, 2, replica_groups=[[1, 0]]), 2, xb.s32[2, 2])
    results = execute(module, [[[[1, 2], [3, 4]]], [[[5, 6], [7, 8]]]])
    assert np.array_equal(results[0], [[5, 6, 1, 2], [7, 8, 3, 4]])


def test_reduce_scatter_gives_each_member_its_part() -> None:
    module = spmd(lambda x: xb.reduce_scatter(x, xb.add, 1, 2), 2, xb.s32[2, 4])
    x = np.arange(1, 9, dtype=np.int32).reshape(2, 4)
    first, second = execute(module, [[x], [x + 8]])
    assert np.array_equal(first, [[10, 12], [18, 20]])
    assert np.array_equal(second, [[14, 16], [22, 24]])


def test_collective_permute_gives_zeros_where_nobody_sends_and_may_send_to_itself() -> None:
    module = spmd(lambda x: xb.collective_permute(x, [(3, 3), (0, 1)]), 4, xb.f32[()])
    assert execute(module, [[float(r + 1)] for r in range(4)]) == [0.0, 1.0, 0.0, 4.0]


@pytest.mark.parametrize("dtype", [xb.bf16, xb.f8e4m3fn, xb.s4, xb.pred, xb.c64, xb.u64], ids=repr)
def test_a_sum_over_replicas_in_every_kind_of_type(dtype: xb.PrimitiveType) -> None:
    module = spmd(xb.cross_replica_sum, 3, dtype[2])
    row = np.array([1, 0]).astype(dtype.dtype)
    result = execute(module, [[row]] * 3)[1]
    assert result.dtype == dtype.dtype
    assert np.array_equal(result, np.array([1 if dtype is xb.pred else 3, 0]).astype(dtype.dtype))


def test_any_computation_may_reduce_over_replicas_from_left_to_right() -> None:
    module = spmd(lambda x: xb.all_reduce(x, to_apply=lambda a, b: a - b * 2.0), 3, xb.f32[()])
    assert execute(module, [[10.0], [1.0], [2.0]])[0] == 4.0


def test_ids_of_replicas_and_partitions() -> None:
    def both(x: xb.Value) -> list[xb.Value]:
        return [xb.replica_id(x.builder), xb.partition_id(x.builder)]

    assert execute(spmd(both, 2, xb.f32[()], partitions=2), [[0.0]] * 4) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_run_is_the_same_every_time() -> None:
    from examples import ring

    inputs = [[np.random.default_rng(r).standard_normal(16).astype(np.float32)] for r in range(4)]
    runs = [execute(ring.program(), inputs) for _ in range(3)]
    assert all(np.array_equal(a, b) for run in runs for a, b in zip(run, runs[0], strict=True))


def test_a_starved_infeed_is_the_cause_and_who_waits_for_its_device_the_victim() -> None:
    def program(x: xb.Value) -> xb.Value:
        item = xb.infeed(xb.after_all(builder=x.builder), shape=xb.f32[()])
        return xb.cross_replica_sum(item[0] + x)

    module = spmd(program, 3, xb.f32[()])
    assert execute(module, [[0.0]] * 3, infeed=[[1.0], [2.0], [3.0]])[0] == 6.0
    with pytest.raises(Stopped) as stopped:
        execute(module, [[0.0]] * 3, infeed=[[1.0], [2.0], []])
    causes = [state.device for state in stopped.value.report.devices if state.cause]
    assert causes == [2]
    assert stopped.value.report.kind == "infeed_starved"
    assert "infeed" in str(stopped.value)
    assert "all-reduce" in str(stopped.value)


@pytest.mark.parametrize("send_buffers", [0, 4])
def test_a_message_of_another_shape_stops_the_run(send_buffers: int) -> None:
    """Two messages on one channel, which the receiver takes in the other order; the check is off."""

    def sends(x: xb.Value) -> xb.Value:
        token = xb.after_all(builder=x.builder)
        for value in (x, xb.concatenate([x, x], 0)):
            token = xb.send_done(xb.send(value, token, channel_id=1), channel_id=1)
        return x

    def receives(x: xb.Value) -> xb.Value:
        token = xb.after_all(builder=x.builder)
        for size in (4, 2):
            posted = xb.recv(token, shape=xb.f32[size], channel_id=1)
            value, token = xb.recv_done(posted, channel_id=1)
        return value

    programs = [xb.Module(f"m{n}", xb.computation(xb.f32[2])(f)) for n, f in enumerate((sends, receives))]
    group = xb.ModuleGroup(dict(enumerate(programs)))
    with pytest.raises(Stopped) as stopped:
        execute(group, [[np.zeros(2, np.float32)]] * 2, check=False, send_buffers=send_buffers)
    assert stopped.value.report.kind == "transfer_mismatch"
    assert "device 0 sends f32[2], but recv-done" in stopped.value.report.message
    assert "of device 1 receives f32[4] on channel 1" in stopped.value.report.message


def test_loops_that_run_a_different_number_of_trips_stop_with_the_trip() -> None:
    def program(n: xb.Value) -> xb.Value:
        def body(state: xb.Value) -> list[xb.Value]:
            return [state[0] - 1, xb.cross_replica_sum(state[1])]

        return xb.while_([n, xb.constant(n.builder, 1.0)], lambda s: s[0] > 0, body)[1]

    module = spmd(program, 2, xb.s32[()])
    assert execute(module, [[2], [2]]) == [4.0, 4.0]
    with pytest.raises(Stopped) as stopped:
        execute(module, [[3], [2]])
    text = str(stopped.value)
    assert "trip 3" in text
    assert "device 1  has finished" in text
    assert [state.device for state in stopped.value.report.devices if state.cause] == [1]


def test_a_device_that_raises_names_itself() -> None:
    def items() -> Any:
        raise OSError("the disk is gone")
        yield

    module = spmd(lambda x: xb.infeed(xb.after_all(builder=x.builder), shape=xb.f32[()])[0] + x, 2, xb.f32[()])
    with pytest.raises(OSError, match="disk") as raised:
        execute(module, [[0.0]] * 2, infeed=[[1.0], items()])
    assert "device 1 at infeed" in raised.value.__notes__[0]


def crossed(first: int) -> xb.Module:
    builder = xb.Builder("crossed")
    x = xb.parameter(builder, number=0, shape=xb.f32[4])
    token = xb.after_all(builder=builder)
    sent = xb.send(x, token, channel_id=1 + first)
    token = xb.send_done(sent, channel_id=1 + first)
    posted = xb.recv(token, shape=xb.f32[4], channel_id=2 - first)
    return xb.Module(f"m{first}", builder.build(xb.recv_done(posted, channel_id=2 - first)[0]))


def test_crossed_sends_are_refused_and_run_with_a_buffer() -> None:
    group = xb.ModuleGroup({0: crossed(0), 1: crossed(1)})
    inputs = [[np.full(4, device, np.float32)] for device in range(2)]
    with pytest.raises(Refused, match="deadlock"):
        execute(group, inputs)
    with pytest.raises(Stopped, match="send"):
        execute(group, inputs, check=False)
    assert execute(group, inputs, send_buffers=1)[0][0] == 1.0


def test_sixty_four_replicas_pass_sums_round_a_ring() -> None:
    from examples.ring import ring_all_reduce

    replicas = 64
    inputs = np.random.default_rng(0).integers(0, 9, (replicas, replicas * 2)).astype(np.float32)
    results = execute(ring_all_reduce(replicas, 2), [[row] for row in inputs])
    assert all(np.array_equal(result, inputs.sum(axis=0)) for result in results)


def test_what_is_the_same_on_every_device_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from interpreter.kernels.elementwise import UNARY

    calls: list[tuple[int, ...]] = []

    def counting(operand: Any) -> Any:
        calls.append(operand.shape)
        return np.tanh(operand)

    monkeypatch.setitem(UNARY, "tanh", {"f": counting})

    def step(weights: xb.Value, x: xb.Value) -> list[xb.Value]:
        summed = xb.cross_replica_sum(xb.tanh(x))
        return [xb.tanh(weights), xb.tanh(summed), x]

    module = spmd(step, 8, xb.f32[64, 64], xb.f32[64, 64])
    weights = np.ones((64, 64), np.float32)
    results = execute(module, [[weights, np.full((64, 64), r, np.float32)] for r in range(8)])
    assert len(calls) == 8 + 1 + 1
    assert all(np.array_equal(result[1], results[0][1]) for result in results)
    assert results[5][2][0, 0] == 5.0


def test_sharing_changes_no_value_in_loops_and_branches() -> None:
    def program(weights: xb.Value, x: xb.Value, n: xb.Value) -> xb.Value:
        def body(state: xb.Value) -> list[xb.Value]:
            count, w, y = state
            w = xb.conditional(xb.lt(count, 2), [w, w], [lambda w: xb.tanh(w), lambda w: w * 0.5])
            mine = xb.conditional(xb.gt(y[0, 0], 3.0), [w, w], [lambda w: w + 1.0, lambda w: w - 1.0])
            return [count + 1, w, y + mine]

        return xb.while_([xb.constant(n.builder, 0), weights, x], lambda s: s[0] < n_trips, body)[2]

    n_trips = 4
    module = spmd(program, 6, xb.f32[40, 40], xb.f32[40, 40], xb.s32[()])
    weights = np.linspace(-1, 1, 1600, dtype=np.float32).reshape(40, 40)
    rows = [[weights, np.full((40, 40), r, np.float32), 4] for r in range(6)]
    alone = [execute(spmd(program, 1, xb.f32[40, 40], xb.f32[40, 40], xb.s32[()]), [row])[0] for row in rows]
    for together, single in zip(execute(module, rows), alone, strict=True):
        assert np.array_equal(together, single)


@pytest.mark.parametrize("runtime", [None, "nccl", xb.Runtime()])
def test_a_group_with_a_device_that_has_no_program(runtime: Any) -> None:
    text = """HloModule m, is_scheduled=true
    add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b) }
    ENTRY e { x = f32[2] parameter(0)
      ROOT y = f32[2] all-reduce(x), replica_groups={{0,1,2}}, to_apply=add, channel_id=1 }"""
    group = xb.ModuleGroup({number: xb.parse_hlo(text) for number in range(2)})
    with pytest.raises(xb.BuildError, match=r"all-reduce y needs device 2, without a program"):
        execute(group, [[np.zeros(2, np.float32)]] * 2, check=False, runtime=runtime)
