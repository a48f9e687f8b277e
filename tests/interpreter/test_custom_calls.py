"""Custom calls: what a registered function is given, what it may answer, and how a run ends that waits for one."""

from __future__ import annotations

import _thread
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from interpreter import ArgumentError, Limits, Recorder, Stopped, evaluate, execute
from interpreter.custom_calls import CustomCallError
from xbuild.cli import main
from xbuild.core.callbacks import CALLBACKS

X = [1.0, 2.0, 3.0]
Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """What a test registers is gone after it."""
    known = dict(CALLBACKS)
    yield
    CALLBACKS.clear()
    CALLBACKS.update(known)


def program(function: Function | None, shape: Any = None, **attributes: Any) -> xb.Computation:
    """A call of the function on f32[3]."""
    if function is not None:
        xb.custom_call_target("ours")(function)
    shape = xb.f32[3] if shape is None else shape
    return xb.computation(xb.f32[3])(lambda x: xb.custom_call(x, "ours", shape, **attributes))


def meeting(function: Function, *, devices: int = 2, **attributes: Any) -> xb.Module:
    """Each device calls the function with a number of its own, then all meet."""
    xb.custom_call_target("ours")(function)

    @xb.computation(xb.s32[()], xb.f32[3])
    def entry(number: xb.Value, x: xb.Value) -> xb.Value:
        made = xb.custom_call((number, x), "ours", xb.f32[3], name="cb", **attributes)
        return xb.cross_replica_sum(made, name="total")

    return xb.Module("meeting", entry, num_replicas=devices)


def given(devices: int = 2) -> list[list[Any]]:
    return [[n, X] for n in range(devices)]


# what is given and answered


def test_it_is_given_read_only_arrays_and_scalars() -> None:
    seen: list[Any] = []

    @xb.custom_call_target("look")
    def look(x: Any, n: Any, both: Any, token: Any) -> Any:
        seen.extend([x, n, both, token])
        return x

    @xb.computation(xb.f32[3], xb.s32[()])
    def entry(x: xb.Value, n: xb.Value) -> xb.Value:
        return xb.custom_call((x, n, xb.tuple_(x, n), xb.create_token(x.builder)), "look", xb.f32[3])

    assert evaluate(entry, X, 7).tolist() == X
    x, n, both, token = seen
    assert (x.tolist(), n, token) == (X, np.int32(7), None)
    assert (both[0].tolist(), both[1]) == (X, 7)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 5


def lists(value: Any) -> Any:
    """Arrays as lists, in tuples."""
    return (
        tuple(map(lists, value)) if isinstance(value, tuple) else None if value is None else np.asarray(value).tolist()
    )


@pytest.mark.parametrize(
    ("answer", "shape", "expected"),
    [
        (np.float32([4, 5, 6]), xb.f32[3], [4, 5, 6]),
        ([4, 5, 6], xb.f32[3], [4, 5, 6]),
        (2.5, xb.f32[()], 2.5),
        ((np.int32(3), [True]), [xb.s32[()], xb.pred[1]], (3, [True])),
        ([np.int32(3), ()], [xb.s32[()], xb.TupleShape(())], (3, ())),
        (None, xb.TupleShape(()), ()),
        ("whatever", xb.token, None),
        (np.zeros((0, 2), np.int8), xb.s8[0, 2], []),
        (np.float32([4]), xb.parse_shape("f32[<=3]"), [4]),
    ],
)
def test_its_answer_is_of_the_declared_shape(answer: Any, shape: Any, expected: Any) -> None:
    result = evaluate(program(lambda x: answer, shape), X)
    assert lists(result) == expected


@pytest.mark.parametrize(
    ("answer", "shape", "facts"),
    [
        (np.float32([4, 5]), xb.f32[3], ("[2]", "f32[3]")),
        (np.float64([4, 5, 6]), xb.f32[3], ("float64", "f32[3]")),
        (np.float32([[4, 5, 6]]), xb.f32[3], ("[1, 3]", "f32[3]")),
        ((1.0, 2.0), [xb.f32[()]], ("(1.0, 2.0)", "tuple of 1")),
        (3.0, [xb.f32[()]], ("3.0", "tuple of 1")),
        (None, xb.f32[3], ("None", "f32[3]", "f32")),
        ("text", xb.f32[3], ("text", "f32")),
        (np.float32([1, 2, 3, 4]), xb.parse_shape("f32[<=3]"), ("[4]", "<=3")),
    ],
)
def test_another_answer_is_refused(answer: Any, shape: Any, facts: tuple[str, ...]) -> None:
    with pytest.raises(ArgumentError) as caught:
        evaluate(program(lambda x: answer, shape), X)
    assert caught.value.kind == "argument_mismatch"
    for fact in ("'ours'", "%custom-call.2", "device 0", *facts):
        assert fact in str(caught.value)
    assert "raised on device 0 at custom-call.2" in caught.value.__notes__[0]


def test_what_it_gave_is_copied() -> None:
    kept = np.zeros(3, np.float32)

    def give(x: Any) -> Any:
        kept[:] += 1
        return kept

    xb.custom_call_target("ours")(give)
    twice = xb.computation(xb.f32[3])(lambda x: [xb.custom_call(x, "ours", xb.f32[3]) for _ in range(2)])
    first, second = evaluate(twice, X)
    assert (first.tolist(), second.tolist()) == ([1] * 3, [2] * 3)


def test_it_is_given_the_config_if_it_asks() -> None:
    def scaled(x: Any, *, backend_config: str) -> Any:
        return x * np.float32(backend_config)

    assert evaluate(program(scaled, backend_config="2.5"), X).tolist() == [2.5, 5.0, 7.5]
    assert evaluate(program(lambda x: x, backend_config="2.5"), X).tolist() == X
    assert evaluate(program(np.sqrt), [1.0, 4.0, 9.0]).tolist() == X


def test_it_stands_anywhere_in_a_program() -> None:
    xb.custom_call_target("ours")(lambda x: x + np.float32(1))
    more = lambda x: xb.custom_call(x, "ours", xb.f32[()])  # noqa: E731

    @xb.computation(xb.f32[()])
    def entry(x: xb.Value) -> xb.Value:
        called = xb.call(x, more)
        looped = xb.while_((0, called), lambda s: s[0] < 3, lambda s: (s[0] + 1, more(s[1])))[1]
        chosen = xb.conditional(looped > 0.0, looped, more, looped, lambda y: y)
        scanned = xb.scan((), chosen, lambda y: more(y), length=4)
        return xb.fusion(scanned, more)

    assert evaluate(entry, 0.0) == 1 + 3 + 1 + 4 + 1
    seen = Recorder()
    assert evaluate(entry, 0.0, observer=seen) == 10
    assert sum(event.instruction.opcode == "custom_call" for event in seen.events) == 10


# registering


def test_a_target_without_a_function_is_refused_before_the_run() -> None:
    @xb.custom_call_target("other")
    def other(x: Any) -> Any:
        raise AssertionError("nothing runs")

    @xb.computation(xb.f32[3])
    def entry(x: xb.Value) -> xb.Value:
        made = xb.custom_call(x, "other", xb.f32[3], has_side_effect=True)
        return xb.custom_call(made, "orther", xb.f32[3])

    with pytest.raises(CustomCallError) as caught:
        evaluate(entry, X)
    assert caught.value.kind == "unregistered_target"
    for fact in ("'orther'", "custom-call.3", "test_custom_calls.py"):
        assert fact in str(caught.value)
    assert "hint: @xb.custom_call_target('orther')" in str(caught.value)
    assert caught.value.hints == (
        "@xb.custom_call_target('orther') over a function registers it",
        "did you mean 'other'?",
    )


def unknown(y: xb.Value) -> xb.Value:
    return xb.custom_call(y, "nobody", xb.f32[3], name="cb")


def in_a_branch() -> xb.Computation:
    return xb.computation(xb.pred[()], xb.f32[3])(lambda p, x: xb.conditional(p, x, unknown, x, lambda y: y + y))


MAYBE: dict[str, Callable[[Any, xb.Value], Any]] = {
    "a conditional": lambda n, x: xb.conditional(n == 1, x, unknown, x, lambda y: y + y),
    "a branch by number": lambda n, x: xb.conditional(n, [x, x], [lambda y: y + y, unknown]),
    "a loop": lambda n, x: xb.while_((n, x + x), lambda s: s[0] == 1, lambda s: (s[0] + 1, unknown(s[1])))[1],
    "a call in a branch": lambda n, x: xb.conditional(n, [x, x], [lambda y: y + y, lambda y: xb.call(y, unknown)]),
}


@pytest.mark.parametrize("options", [{}, {"strict": True}, {"sequential": True}, {"observer": Recorder()}], ids=str)
@pytest.mark.parametrize("place", MAYBE)
def test_a_target_without_a_function_is_refused_when_the_run_comes_to_it(place: str, options: dict[str, Any]) -> None:
    entry = xb.computation(xb.s32[()], xb.f32[3])(MAYBE[place])
    assert evaluate(entry, 0, X, **options).tolist() == [2, 4, 6]
    with pytest.raises(Stopped) as caught:
        evaluate(entry, 1, X, **options)
    report = caught.value.report
    assert report.kind == "unregistered_target"
    for fact in ("custom-call %cb", "device 0", "'nobody'", "test_custom_calls.py"):
        assert fact in report.message, report.message
    assert report.repair == "@xb.custom_call_target('nobody') over a function registers it"
    assert [(state.instruction.name, state.cause) for state in report.devices if state.instruction] == [("cb", True)]
    xb.custom_call_target("nobody")(lambda x: -x)
    assert evaluate(entry, 1, X, **options).tolist() in ([-1, -2, -3], [-2, -4, -6])


def test_a_call_that_nobody_needs_does_not_run_and_is_not_refused() -> None:
    entry = xb.computation(xb.f32[3])(lambda x: (unknown(x), x + x)[1])
    assert evaluate(entry, X).tolist() == [2, 4, 6]
    called = xb.computation(xb.f32[3])(lambda x: xb.call(x, lambda y: xb.fusion(y, unknown)))
    with pytest.raises(CustomCallError, match="unregistered_target"):
        evaluate(called, X)


def test_the_device_that_comes_to_it_is_the_cause() -> None:
    entry = xb.computation(xb.pred[()], xb.f32[3])(
        lambda p, x: xb.cross_replica_sum(xb.conditional(p, x, unknown, x, lambda y: y + y), name="total")
    )
    with pytest.raises(Stopped) as caught:
        execute(xb.Module("m", entry, num_replicas=3), [[n == 1, X] for n in range(3)])
    states = {state.device: state for state in caught.value.report.devices}
    assert [device for device, state in states.items() if state.cause] == [1]
    assert states[0].instruction is not None
    assert states[0].instruction.name == "total"


@pytest.mark.parametrize("options", [(), ("--strict",), ("--trace", "kept"), ("--page", "page.html")], ids=str)
def test_the_command_tells_it_in_a_sentence(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "m.hlo").write_text(str(xb.Module("m", in_a_branch())))
    for taken in (False, True):
        np.savez(tmp_path / f"{taken}.npz", arg0=np.array(taken), arg1=np.float32(X))
    kept = [str(tmp_path / each) if not each.startswith("--") else each for each in options]
    told = [
        CliRunner().invoke(main, ["run", f"{tmp_path}/m.hlo", "--inputs", f"{tmp_path}/{taken}.npz", *kept])
        for taken in (False, True)
    ]
    assert (told[0].exit_code, told[0].stdout.split(maxsplit=4)[4]) == (0, "[2., 4., 6.]\n")
    assert told[1].exit_code == 1
    assert "custom-call %cb is to run on device 0, and no function is registered" in told[1].stderr
    assert "Traceback" not in told[1].output


@pytest.mark.parametrize(
    ("target", "hint"),
    [("xla_ffi_python_cpu_callback", "jax.pure_callback"), ("__cublas$gemm", "the text before its passes has the op")],
)
def test_a_target_that_nothing_here_could_run_is_explained(target: str, hint: str) -> None:
    kernel = xb.computation(xb.f32[3])(lambda x: xb.custom_call(x, target, xb.f32[3]))
    with pytest.raises(CustomCallError, match="unregistered_target") as caught:
        evaluate(kernel, X)
    assert hint in caught.value.hints[-1]


def test_no_text_imports_a_function() -> None:
    text = 'ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] custom-call(x), custom_call_target="os.getcwd" }'
    with pytest.raises(CustomCallError, match=r"'os\.getcwd'"):
        evaluate(xb.parse_hlo(text).entry, [1.0, 2.0])


def test_a_call_among_elements_is_refused() -> None:
    xb.custom_call_target("ours")(lambda a: a)
    entry = xb.computation(xb.f32[3])(lambda x: xb.map(x, lambda e: xb.custom_call(e, "ours", xb.f32[()])))
    with pytest.raises(CustomCallError, match=r"custom-call\.\d+.*%map\.\d+ applies to elements") as caught:
        evaluate(entry, X)
    assert caught.value.kind == "disallowed_computation"


@pytest.mark.parametrize(("name", "function"), [(b"ours", lambda x: x), ("ours", 5)])
def test_what_cannot_be_registered(name: Any, function: Any) -> None:
    with pytest.raises(TypeError, match=r"custom_call_target"):
        xb.custom_call_target(name)(function)


def test_a_later_registration_counts() -> None:
    entry = program(lambda x: x)
    assert evaluate(entry, X).tolist() == X
    xb.custom_call_target("ours")(lambda x: -x)
    assert evaluate(entry, X).tolist() == [-1, -2, -3]


# effects


def test_an_effect_runs_unused_and_in_order() -> None:
    seen: list[str] = []

    def note(x: Any, *, backend_config: str) -> None:
        seen.append(backend_config)

    xb.custom_call_target("note")(note)
    nothing = xb.TupleShape(())
    effect = lambda x, text: xb.custom_call(x, "note", nothing, has_side_effect=True, backend_config=text)  # noqa: E731

    @xb.computation(xb.f32[3])
    def entry(x: xb.Value) -> xb.Value:
        effect(x, "first")
        xb.call(x, lambda y: effect(y, "called"))
        xb.while_(xb.constant(x.builder, 0), lambda n: n < 2, lambda n: (effect(n, "looped"), n + 1)[1])
        xb.custom_call(x, "note", nothing, backend_config="pure and unused")
        effect(x, "last")
        return x

    evaluate(entry, X)
    assert seen == ["first", "called", "looped", "looped", "last"]
    seen.clear()
    execute(xb.Module("two", entry, num_replicas=2), [[X], [X]])
    assert sorted(seen) == sorted(["first", "called", "looped", "looped", "last"] * 2)


def test_a_pure_call_is_not_shared_between_devices() -> None:
    calls: list[int] = []
    entry = program(lambda x: calls.append(1) or x)
    shared = execute(xb.Module("two", entry, num_replicas=2), [[same := np.float32(X)], [same]])
    assert [each.tolist() for each in shared] == [X, X]
    assert len(calls) == 2


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
    assert f"cb calls on device {hung}, has not returned" in report.cause
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
    for fact in (type(error).__name__, "'ours'", "cb", "device 1", f"test_custom_calls.py:{line} in fails"):
        assert fact in report.message, report.message
    states = {state.device: state for state in report.devices}
    assert [device for device, state in states.items() if state.cause] == [1]
    assert {d: s.instruction.name for d, s in states.items() if s.instruction} == {0: "total", 1: "cb"}
    assert "device 1, which is at cb," in states[0].waits_for


def test_numbers_overflow_in_silence_there_too() -> None:
    entry = program(lambda x: np.float32(1e38) * np.float32(100) + x)
    for limits in (None, Limits(seconds=60)):
        assert np.isinf(evaluate(entry, X, limits=limits)).all()


# the verdict


def kind_of(entry: xb.Computation, devices: int) -> str:
    return xb.check(xb.Module("m", entry, num_replicas=devices)).kind


def test_the_verdict_depends_only_where_somebody_waits() -> None:
    effect = lambda x: xb.custom_call(x, "ours", xb.f32[3], has_side_effect=True)  # noqa: E731
    before = xb.computation(xb.f32[3])(lambda x: xb.cross_replica_sum(effect(x)))
    after = xb.computation(xb.f32[3])(lambda x: effect(xb.cross_replica_sum(x)))
    alone = xb.computation(xb.f32[3])(effect)
    pure = xb.computation(xb.f32[3])(lambda x: xb.cross_replica_sum(xb.custom_call(x, "ours", xb.f32[3])))
    inside = xb.computation(xb.f32[3])(
        lambda x: xb.while_((0, x), lambda s: s[0] < 3, lambda s: (s[0] + 1, effect(xb.cross_replica_sum(s[1]))))[1]
    )
    called = xb.computation(xb.f32[3])(lambda x: xb.cross_replica_sum(xb.call(x, effect)))
    assert [kind_of(each, 2) for each in (before, after, alone, pure, inside, called)] == [
        "depends", "ok", "ok", "ok", "depends", "depends",
    ]  # fmt: skip
    assert kind_of(before, 1) == "ok"


# text

LINES = [
    'f32[2]{0} custom-call(x), custom_call_target="foo", custom_call_has_side_effect=true, called_computations={c}, '
    'backend_config="a"',
    'f32[2]{0} custom-call(x), custom_call_target="foo", literal=f32[] 1',
    'f32[2]{0} custom-call(x), custom_call_target="foo", literal=pred[2,2]{1,0} { { 1, 0 }, { 0, 1 } }',
    'f32[2]{0} custom-call(x), custom_call_target="foo", literal=c64[2]{0} {(1, 2), (3, -4)}',
    'f32[2]{0} custom-call(x), custom_call_target="f\\no"',
    'f32[2]{0} custom-call(x), custom_call_target="foo", sharding={replicated}, frontend_attributes={a="b"}, '
    'control-predecessors={y}, backend_config="z"',
    'f32[2]{0} custom-call(x), custom_call_target="foo", api_version=API_VERSION_TYPED_FFI, '
    "backend_config={uplo = 76 : ui8}",
    'f32[2]{0} custom-call(x), custom_call_target="foo", backend_config="{abc"',
    '() custom-call(), custom_call_target="foo", operand_layout_constraints={}, custom_call_has_side_effect=true',
    'token[] custom-call(t), custom_call_target="x", custom_call_has_side_effect=true',
    "(f32[2]{0}, f32[2,3]{1,0}) custom-call(x, y), window={size=2 stride=3}, dim_labels=b0f_0io->b0f, "
    "feature_group_count=2, batch_group_count=3, operand_precision={highest,default}, padding_type=PADDING_VALID, "
    'custom_call_target="foo", operand_layout_constraints={f32[2]{0}, f32[2,3]{1,0}}, '
    "custom_call_has_side_effect=true, literal=f32[2]{0} {1, 2}, "
    "output_to_operand_aliasing={{0}: (0, {}), {1}: (1, {})}, schedule=SCHEDULE_LATEST, "
    'api_version=API_VERSION_STATUS_RETURNING, backend_config="abc\\"d"',
    "f32[2]{0} fusion(x), kind=kLoop, output_to_operand_aliasing={{}: (0, {})}, calls=c",
    'f32[2]{0} fusion(x), kind=kCustom, calls=c, backend_config={"a":{"b":1}}',
    "(f32[2,3]{1,0}, f32[3]{0}) scan(y, z), dimensions={0}, num_carries=1, is_reverse=true, is_associative=true, "
    "to_apply=sc",
    "f32[3,2]{0,1} bitcast(y)",
    "s32[6]{0} bitcast(y)",
    "f32[2]{0} add-dependency(x, t)",
    "f32[2]{0} scaled-dot(y, y, y, y), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, "
    "rhs_contracting_dims={1}, operand_precision={highest,default}, algorithm=dot_bf16_bf16_f32",
    "bf16[2,2]{1,0} scaled-dot(y, y, y, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    "f32[3,2,2]{2,1,0} ragged-dot(y, y, i), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={1}, "
    "operand_precision={highest,default}",
]


def text_of(line: str) -> str:
    return f"""HloModule w

c {{
  p = f32[2]{{0}} parameter(0)
  ROOT q = f32[2]{{0}} negate(p)
}}

sc {{
  a = f32[3]{{0}} parameter(0)
  d = f32[3]{{0}} parameter(1)
  s = f32[3]{{0}} add(a, d)
  ROOT u = (f32[3]{{0}}, f32[3]{{0}}) tuple(s, s)
}}

ENTRY m {{
  x = f32[2]{{0}} parameter(0)
  y = f32[2,3]{{1,0}} parameter(1)
  z = f32[3]{{0}} parameter(2)
  i = s32[3]{{0}} parameter(3)
  t = token[] after-all()
  ROOT r = {line}
}}
"""


@pytest.mark.parametrize("line", LINES)
def test_text_is_printed_as_it_is_read(line: str) -> None:
    assert xb.parse_hlo(text_of(line)).to_hlo() == text_of(line)


def test_to_apply_is_read_as_a_called_computation() -> None:
    line = 'f32[2] custom-call(x), to_apply=c, custom_call_target="foo"'
    assert 'custom_call_target="foo", called_computations={c}' in xb.parse_hlo(text_of(line)).to_hlo()


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("f32[2] custom-call(x)", "missing_attribute"),
        ('custom-call(x), custom_call_target="foo"', "missing_shape"),
        ('f32[2] custom-call(x), custom_call_target="foo", operand_layout_constraints={}', "attribute_length_mismatch"),
        (
            'f32[2] custom-call(x), custom_call_target="foo", operand_layout_constraints={f32[3]{0}}',
            "signature_mismatch",
        ),
        ('f32[2] custom-call(x), custom_call_target="foo", api_version=FOO', "invalid_attribute"),
        ('f32[2] custom-call(x), custom_call_target="foo", schedule=FOO', "invalid_attribute"),
        (
            'f32[2] custom-call(x), custom_call_target="foo", output_to_operand_aliasing={{}: (1, {})}',
            "index_out_of_range",
        ),
        ('f32[2] custom-call(x), custom_call_target="foo", literal=f32[2]{0} {1}', "shape_mismatch"),
        ('f32[2] custom-call(x), custom_call_target="foo", to_apply=c, called_computations={c}', "invalid_attribute"),
        ("f32[2] fusion(x), calls=c", "missing_attribute"),
        ("f32[2] fusion(x), kind=kFoo, calls=c", "invalid_attribute"),
        ("f32[3] fusion(x), kind=kLoop, calls=c", "shape_mismatch"),
        ("(f32[2,3], f32[3]) scan(y, z), num_carries=1, to_apply=sc", "missing_attribute"),
        ("(f32[4,3], f32[3]) scan(y, z), dimensions={0}, num_carries=1, to_apply=sc", "shape_mismatch"),
        ("scan(z), dimensions={0}, num_carries=1, to_apply=c", "invalid_attribute"),
        ("f32[7] bitcast(x)", "element_count_mismatch"),
        ("f32[2] add-dependency(x)", "arity_mismatch"),
    ],
)
def test_text_at_fault_is_refused(line: str, kind: str) -> None:
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse_hlo(text_of(line))
    assert caught.value.faults[0].kind == kind, caught.value


PARSER = """
import json, sys
from jaxlib import _hlo
for text in json.load(sys.stdin):
    lines = _hlo.hlo_module_from_text(text).to_string().splitlines()
    print(next(line for line in lines if "ROOT %r" in line))
"""


@pytest.mark.oracle
def test_real_xla_reads_and_prints_the_same() -> None:
    pytest.importorskip("jaxlib")
    texts = json.dumps([xb.parse_hlo(text_of(line)).to_hlo() for line in LINES])
    done = subprocess.run([sys.executable, "-c", PARSER], input=texts, capture_output=True, text=True, check=True)
    printed = [each.partition(" = ")[2].replace("%", "") for each in done.stdout.splitlines()]
    assert printed == LINES
