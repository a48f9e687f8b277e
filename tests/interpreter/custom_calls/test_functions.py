"""Custom calls: what a registered function is given, and what it may answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import ArgumentError, Limits, Recorder, evaluate, execute
from tests.interpreter.custom_calls.programs import X, program

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
        (np.array([4, 5, 1e300]), xb.f32[3], ("1e+300", "f32[3]")),
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


def test_numbers_overflow_in_silence_there_too() -> None:
    entry = program(lambda x: np.float32(1e38) * np.float32(100) + x)
    for limits in (None, Limits(seconds=60)):
        assert np.isinf(evaluate(entry, X, limits=limits)).all()
