"""What holds of every run: arguments, results, limits, observers, errors, interruption."""

from __future__ import annotations

import pickle
import signal
import threading
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import ArgumentError, Limits, Recorder, Stopped, evaluate, execute, plan_source


@xb.computation(xb.f32[3], xb.f32[3])
def axpy(x: xb.Value, y: xb.Value) -> xb.Value:
    return x * 2.0 + y


@xb.computation(xb.s32[()])
def endless(n: xb.Value) -> xb.Value:
    return xb.while_(n, condition=lambda n: xb.eq(n, n), body=lambda n: n + 1)


ONES = np.ones(3, np.float32)


@pytest.mark.parametrize(
    ("argument", "fact"),
    [
        (np.ones(3, np.float16), "float16"),
        (np.ones(4, np.float32), "[4]"),
        ([1.0, 2.0], "[2]"),
        ("three", "three"),
        ([1j, 2j, 3j], "1j"),
        ([[1.0], [2.0, 3.0]], "argument 0 (%parameter.1)"),
    ],
)
def test_an_argument_that_does_not_fit_is_refused_with_both_sides(argument: object, fact: str) -> None:
    with pytest.raises(ArgumentError, match="argument 0") as refused:
        evaluate(axpy, argument, ONES)
    assert fact in str(refused.value)
    assert refused.value.kind == "argument_mismatch"


def test_the_number_of_arguments_is_checked() -> None:
    with pytest.raises(ArgumentError, match=r"1 argument for device 0.*2 parameters"):
        evaluate(axpy, ONES)


def test_an_integer_that_the_type_does_not_hold_is_refused() -> None:
    with pytest.raises(ArgumentError, match="300"):
        evaluate(xb.computation(xb.s8[2])(xb.negate), [1, 300])


def test_python_numbers_take_the_declared_type() -> None:
    assert evaluate(axpy, [1, 2, 3], [0.5, 0.5, 0.5]).dtype == np.float32


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "s8", "u32", "c64", "pred", "bf16"])
def test_arrays_from_another_process_are_like_others(dtype: str) -> None:
    # The dtype of an array that was pickled is equal to NumPy's own, and another object.
    t = xb.primitive_type(dtype)
    plain = (np.arange(5) / 3).astype(t.dtype)
    sent = pickle.loads(pickle.dumps(plain))
    narrow = xb.pred if dtype == "pred" else xb.c64 if dtype == "c64" else xb.f8e5m2

    @xb.computation(t[5])
    def program(x: xb.Value) -> xb.Value:
        total = xb.reduce(x, t.dtype.type(0), xb.or_ if dtype == "pred" else xb.add, dimensions=[0])
        return xb.tuple_(xb.cross_replica_sum(x), total, xb.convert(x, narrow), xb.select(xb.eq(x, x), x, sent))

    one, other = (execute(xb.Module("m", program, num_replicas=2), [[x], [x]])[0] for x in (plain, sent))
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_results_are_not_the_inputs_nor_each_other() -> None:
    same = xb.computation(xb.f32[3])(lambda x: (x, x, xb.reverse(x, [0])))
    given = ONES.copy()
    results = evaluate(same, given)
    for result in results:
        result[0] = 7.0
    assert given[0] == 1.0
    assert [float(result[0]) for result in results] == [7.0] * 3
    assert not any(np.shares_memory(a, b) for a in results for b in (given, *results) if a is not b)


def test_a_constant_result_can_be_written_without_changing_the_program() -> None:
    builder = xb.Builder("constant")
    computation = builder.build(xb.constant(builder, np.ones(2, np.float32)))
    evaluate(computation)[0] = 5.0
    assert evaluate(computation)[0] == 1.0


def test_inputs_are_never_written() -> None:
    given = ONES.copy()
    given.flags.writeable = False
    evaluate(xb.computation(xb.f32[3])(lambda x: xb.dynamic_update_slice(x, x[0:1] * 9.0, [1])), given)
    assert np.array_equal(given, ONES)


def test_what_several_devices_share_is_read_only() -> None:
    total = xb.Module("total", xb.computation(xb.f32[2])(xb.cross_replica_sum), num_replicas=2)
    first, second = execute(total, [[[1.0, 2.0]], [[3.0, 4.0]]])
    assert first is second or not np.shares_memory(first, second)
    if first is second:
        assert not first.flags.writeable


def test_rank_0_results_are_numpy_scalars_and_tuples_are_tuples() -> None:
    results = evaluate(xb.computation(xb.f32[2])(lambda x: (xb.reduce(x, 0.0, xb.add), (x[0], x))), [1.0, 2.0])
    assert isinstance(results[0], np.float32)
    assert isinstance(results[1], tuple)
    assert isinstance(results[1][0], np.float32)


def test_a_limit_of_trips_ends_an_endless_loop_with_the_place() -> None:
    with pytest.raises(Stopped, match=r"5000 trips.*limit_trips") as stopped:
        evaluate(endless, 0, limits=Limits(trips=5000))
    assert "while" in str(stopped.value)
    assert "test_run.py" in str(stopped.value)


def test_a_loop_of_just_the_limit_passes() -> None:
    count = xb.computation(xb.s32[()])(lambda n: xb.while_(n, lambda n: n < 3000, lambda n: n + 1))
    assert evaluate(count, 0, limits=Limits(trips=3000)) == 3000
    with pytest.raises(Stopped):
        evaluate(count, 0, limits=Limits(trips=2999))


def test_a_limit_of_seconds_ends_an_endless_loop() -> None:
    with pytest.raises(Stopped) as stopped:
        evaluate(endless, 0, limits=Limits(seconds=0.05))
    assert stopped.value.report.kind == "limit_seconds"
    assert "trip" in str(stopped.value)


def test_a_value_beyond_the_limit_of_bytes_is_refused_before_the_run() -> None:
    builder = xb.Builder("huge")
    computation = builder.build(xb.iota(builder, xb.f32[10**12]))
    with pytest.raises(Stopped, match="4,000,000,000,000 bytes") as stopped:
        evaluate(computation)
    assert stopped.value.report.kind == "limit_bytes"


def test_an_interruption_ends_the_run_with_the_report() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have switched it off
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(Stopped) as stopped:
            evaluate(endless, 0, limits=Limits(seconds=60))
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert stopped.value.report.kind == "interrupted"
    assert "while" in str(stopped.value)


def test_an_observer_sees_each_value_in_order_and_trip_by_trip() -> None:
    seen = Recorder()
    count = xb.computation(xb.s32[()])(lambda n: xb.while_(n, lambda n: n < 3, lambda n: n + 1))
    assert evaluate(count, 0, observer=seen) == 3
    assert [event.step for event in seen.events] == list(range(len(seen.events)))
    assert [int(event.value) for event in seen.events if event.instruction.opcode == "add"] == [1, 2, 3]


def test_an_observed_run_gives_what_the_plain_run_gives_on_every_device() -> None:
    seen = Recorder()
    module = xb.Module("m", xb.computation(xb.f32[2])(lambda x: xb.cross_replica_sum(x) * x), num_replicas=3)
    inputs = [[np.array([r, r + 1], np.float32)] for r in range(3)]
    plain, observed = execute(module, inputs), execute(module, inputs, observer=seen)
    assert all(np.array_equal(a, b) for a, b in zip(plain, observed, strict=True))
    assert {event.device for event in seen.events} == {0, 1, 2}


def test_an_observer_that_raises_says_where() -> None:
    def observer(step: int, device: int, instruction: xb.Instruction, value: object) -> None:
        if instruction.opcode == "multiply":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough") as raised:
        evaluate(axpy, ONES, ONES, observer=observer)
    assert "device 0 at multiply" in raised.value.__notes__[0]


def test_the_names_of_an_input_never_reach_the_source_of_a_plan() -> None:
    builder = xb.Builder("b")
    x = xb.parameter(builder, number=0, shape=xb.f32[()], name="import_os")
    assert "import_os" not in plan_source(builder.build(xb.tanh(x)))


def test_arrays_are_freed_after_their_last_use() -> None:
    lines = plan_source(xb.computation(xb.f32[2])(lambda x: xb.neg(xb.sub((x + x) * x, x)))).splitlines()
    assert [line.strip() for line in lines[2:]] == [
        "v1 = v0 + v0", "v2 = v1 * v0", "v1 = None", "v3 = v2 - v0", "v0 = v2 = None", "v4 = -v3", "return v4",
    ]  # fmt: skip


def test_nested_loops_deeper_than_python_allows_run() -> None:
    def nest(depth: int, n: xb.Value) -> xb.Value:
        one = xb.constant(n.builder, 1)
        if depth == 0:
            return n + 1
        return xb.while_([n, one], lambda s: s[1] > 0, lambda s: [nest(depth - 1, s[0]), s[1] - 1])[0]

    assert evaluate(xb.computation(xb.s32[()])(lambda n: nest(25, n)), 0) == 1


def test_a_computation_called_by_many_is_a_function_of_its_own() -> None:
    @xb.computation(xb.f32[()])
    def long(x: xb.Value) -> xb.Value:
        for _ in range(100):
            x = x + 1.0
        return x

    twice = xb.computation(xb.f32[()])(lambda x: xb.call(xb.call(x, long), long))
    assert plan_source(twice).count("def ") == 2
    assert evaluate(twice, 0.0) == 200.0


ABSENT: dict[str, Any] = {
    "all-reduce": lambda x: xb.all_reduce(x, xb.add, [(0, 1, 7)]),
    "collective-broadcast": lambda x: xb.collective_broadcast(x, [(7, 0)]),
    "a source": lambda x: xb.collective_permute(x, [(7, 0)]),
    "a target": lambda x: xb.collective_permute(x, [(0, 7)]),
    "partitions": lambda x: xb.collective_permute(x, [(0, 1), (1, 0)], 1),
    "send": lambda x: (xb.send_sync(x, 1, [(0, 7)]), xb.recv_sync(xb.f32[2], 1, [(0, 7)], builder=x.builder))[1],
    "recv": lambda x: (xb.send_sync(x, 1, [(0, 1)]), xb.recv_sync(xb.f32[2], 1, [(7, 1)], builder=x.builder))[1],
}


@pytest.mark.parametrize("kind", ABSENT)
def test_an_unchecked_program_that_names_an_absent_device_is_refused_by_name(kind: str) -> None:
    """XLA has no meaning for it: no device of this number ever brings or takes a value."""
    module = xb.Module("m", xb.computation(xb.f32[2])(ABSENT[kind]), num_replicas=2)
    assert xb.check(module).kind == "error"
    with pytest.raises(
        xb.XbuildError, match=r"(7|partition 1)( is outside|.* but the (device|partition)s are) .*test_run"
    ) as error:
        xb.execute(module, [[[1, 2]], [[3, 4]]], check=False)
    assert error.value.kind in ("invalid_group", "device_out_of_range")
