"""The engine `auto`: which runs use native code, that results agree, and what stays in the interpreter."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter.auto import choosing, native, parts
from interpreter.auto.choosing import choice_of
from interpreter.engines.comparison import compare
from tests.commands.command_line import usage, xbuild

pytest.importorskip("jaxlib")
pytestmark = pytest.mark.oracle

F = np.float32


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Compiling costs nothing, and native code is always kept, so that the second run is a trial."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(choosing, "START_SECONDS", 0.0)
    monkeypatch.setattr(choosing, "GAIN", float("inf"))
    monkeypatch.setattr(choosing, "seconds_to_compile", lambda _: 0.0)
    monkeypatch.setattr(choosing, "AT_ONCE", float("inf"))
    monkeypatch.setattr(parts, "LEAST", 0.0)


def settled(program: Any, *arguments: Any, **options: Any) -> Any:
    """The result after the choice is made."""
    run = xb.evaluate if isinstance(program, xb.Computation) else xb.execute
    for _ in range(5):
        run(program, *arguments, engine="auto", **options)
        if choice_of(program).state != "counting":
            break
    return run(program, *arguments, engine="auto", **options)


def chain() -> xb.Computation:
    return xb.computation(xb.f32[8, 4])(lambda x: xb.exp(x) * x + xb.tanh(x))


X = np.linspace(-2, 2, 32, dtype=F).reshape(8, 4)


def test_a_program_switches_once_between_runs() -> None:
    program, ours = chain(), xb.evaluate(chain(), X)
    seen = []
    for _ in range(6):
        seen.append(xb.evaluate(program, X, engine="auto").tobytes())
    assert choice_of(program).state == "compiled", choice_of(program).reason
    changes = [n for n in range(1, 6) if seen[n] != seen[n - 1]]
    assert len(changes) <= 1
    assert seen[0] == ours.tobytes()
    (compared,) = compare([ours], [np.frombuffer(seen[-1], F).reshape(8, 4)], [program.root.shape])
    assert compared.same, compared
    first, *rest = choice_of(program).lines()
    assert first.startswith("engine auto: native code: a run takes ")
    assert "1 exponential" in rest[0]


def test_native_code_that_is_slower_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "GAIN", 0.0)
    program = chain()
    settled(program, X)
    assert choice_of(program).state == "interpreter"
    assert choice_of(program).timed is not None
    assert " with native code, " in choice_of(program).reason


def test_a_few_short_runs_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "seconds_to_compile", lambda _: 1e9)
    program = chain()
    settled(program, X)
    assert choice_of(program).state == "counting"
    assert next(choice_of(program).lines()).startswith("engine auto: interpreter so far: 6 runs took ")


def test_a_long_first_run_is_compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "AT_ONCE", 1.0)
    program = chain()
    xb.evaluate(program, X, engine="auto")
    assert (choice_of(program).state, choice_of(program).runs) == ("compiled", 0)


def test_results_are_the_callers() -> None:
    """They are writable, share no memory with each other or with arguments, and keep their values."""
    program = xb.computation(xb.f32[8, 4])(lambda x: xb.tuple_([x, -x, -x, x + 1.0, xb.reshape(x, [32])]))
    results = settled(program, X)
    assert choice_of(program).state == "compiled"
    before = [each.copy() for each in results]
    for number, each in enumerate(results):
        assert each.flags.writeable
        assert not np.shares_memory(each, X)
        assert not any(np.shares_memory(each, other) for other in results[:number])
    settled(program, X + 1)
    assert all(map(np.array_equal, results, before))


ARGUMENTS = {
    "fortran": np.asfortranarray(X),
    "strided": np.repeat(X, 2, 1)[:, ::2],
    "read-only": np.frombuffer(X.tobytes(), F).reshape(8, 4),
    "broadcast": np.broadcast_to(F(2), (8, 4)),
    "list": X.tolist(),
}


@pytest.mark.parametrize("bound", [native.MOST_COPIED, -1], ids=["copied", "passed"])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_of_every_layout(name: str, bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "MOST_COPIED", bound)
    program = xb.computation(xb.f32[8, 4])(lambda x: x * 2.0 - xb.transpose(xb.transpose(x, [1, 0]), [1, 0]) * 4.0)
    assert np.array_equal(settled(program, ARGUMENTS[name]), np.asarray(ARGUMENTS[name], F) * -2)
    assert choice_of(program).state == "compiled"


@pytest.mark.parametrize("bound", [native.MOST_COPIED, -1], ids=["copied", "passed"])
def test_every_type_of_parts(bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "MOST_COPIED", bound)
    types = [xb.pred, xb.s8, xb.s64, xb.u8, xb.u16, xb.u64, xb.bf16, xb.f16, xb.f32, xb.f64, xb.c64, xb.c128]
    shapes = [*(t[3] for t in types), *(t[()] for t in types), *(t[0, 2] for t in types)]
    program = xb.computation(xb.TupleShape(shapes))(
        lambda given: xb.tuple_([xb.select(xb.eq(each, each), each, each) for each in given])
    )
    given = tuple(np.ones(shape.dims, shape.dtype.dtype) for shape in shapes)
    results = settled(program, given)
    assert choice_of(program).state == "compiled", choice_of(program).reason
    for result, value in zip(results, given, strict=True):
        assert np.asarray(result).dtype == value.dtype
        assert np.array_equal(result, value)


def test_loops_and_constants() -> None:
    def step(state: Any) -> Any:
        count, x = state
        return xb.tuple_([count + 1, x * 1.5 - 0.25])

    program = xb.computation(xb.s32[()], xb.f32[()])(
        lambda n, x: xb.while_(xb.tuple_([n, x]), condition=lambda s: s[0] < 20, body=step)
    )
    count, x = settled(program, 0, 1.0)
    assert (int(count), type(count)) == (20, np.int32)
    assert choice_of(program).state == "compiled"
    assert not choice_of(program).parts[0].is_bounded
    assert np.isclose(x, xb.evaluate(program, 0, 1.0)[1])


def reducing(num_replicas: int) -> xb.Module:
    def body(x: Any, w: Any) -> Any:
        total = xb.cross_replica_sum(xb.tanh(x) * 2.0)
        more = xb.cross_replica_sum(xb.exp(total * 0.01) + x)
        return xb.tuple_([xb.dot(more, w), total, xb.replica_id(builder=x.builder)])

    return xb.Module("m", xb.computation(xb.f32[8, 4], xb.f32[4, 3])(body), num_replicas=num_replicas)


def test_collectives_stay_between_parts() -> None:
    program, rows = reducing(2), [[X, X[:4, :3]], [X + 1, X[4:, :3]]]
    results = settled(program, rows)
    choice = choice_of(program)
    assert choice.state == "compiled", choice.reason
    assert len(choice.parts) == 3
    shapes = [program.entry.root.shape] * 2
    assert all(each.same for each in compare(xb.execute(reducing(2), rows), results, shapes))
    assert any("all-reduce" in reason for reason in choice.stays)


def test_a_loop_with_a_collective_has_parts_inside() -> None:
    def step(state: Any) -> Any:
        count, x = state
        return xb.tuple_([count + 1, xb.tanh(xb.cross_replica_sum(xb.sin(x) * 0.5))])

    entry = xb.computation(xb.s32[()], xb.f32[8, 4])(
        lambda n, x: xb.while_(xb.tuple_([n, x]), condition=lambda s: s[0] < 3, body=step)
    )
    program = xb.Module("m", entry, num_replicas=2)
    rows = [[0, X], [0, X * 2]]
    results = settled(program, rows)
    assert choice_of(program).state == "compiled", choice_of(program).reason
    assert all(each.same for each in compare(xb.execute(program, rows), results, [entry.root.shape] * 2))


OPTIONS = [
    {"strict": True}, {"sequential": True}, {"denormals": "keep"}, {"observer": lambda *_: None},
    {"runtime": "nccl"}, {"limits": xb.Limits(bytes=1000)},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options)))
def test_runs_with_options_that_native_code_lacks(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    program = chain()
    ours = xb.evaluate(program, X)
    settled(program, X)
    assert choice_of(program).state == "compiled"
    monkeypatch.setattr(native.Native, "__call__", lambda *_: pytest.fail("native code runs"))
    monkeypatch.setattr(choosing.EngineChoice, "temporary", 2000)
    assert xb.evaluate(program, X, engine="auto", **options).tobytes() == ours.tobytes()


def test_a_loop_of_unknown_length_under_a_limit_stays() -> None:
    program = xb.computation(xb.f32[()])(lambda x: xb.while_(x, condition=lambda s: s < 100.0, body=lambda s: s * 2.0))
    assert settled(program, 1.0, limits=xb.Limits(seconds=100)) == 128
    assert choice_of(program).state == "counting"
    assert settled(program, 1.0) == 128
    assert choice_of(program).state == "compiled"
    with pytest.raises(xb.Stopped, match="limit"):
        xb.evaluate(program, 1.0, engine="auto", limits=xb.Limits(trips=3))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_an_interrupt_ends_the_wait_for_a_loop_of_unknown_length() -> None:
    program = xb.computation(xb.s64[()])(
        lambda n: xb.while_(n, condition=lambda s: s > 0, body=lambda s: s - xb.maximum(xb.remainder(s, 2), 1))
    )
    settled(program, 5)
    assert choice_of(program).state == "compiled"
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(xb.Stopped, match="interrupted"):
            xb.evaluate(program, 300_000_000, engine="auto")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert any(thread.name == "xbuild native code" for thread in threading.enumerate())
    assert xb.evaluate(program, 5, engine="auto") == 0


def test_programs_that_reach_the_host_stay() -> None:
    @xb.custom_call_target("test_auto_doubles")
    def double(x: Any) -> Any:
        return x * 2

    program = xb.computation(xb.f32[8, 4])(
        lambda x: xb.exp(xb.custom_call([x], custom_call_target="test_auto_doubles", shape=xb.f32[8, 4]))
    )
    settled(program, X)
    assert choice_of(program).state == "interpreter"
    assert "reaches the host" in choice_of(program).reason


def test_a_wrong_result_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = native.Native.__call__
    monkeypatch.setattr(native.Native, "__call__", lambda self, *v: tuple(each + F(1) for each in real(self, *v)))
    program = chain()
    ours = settled(program, X)
    assert choice_of(program).state == "interpreter"
    assert choice_of(program).reason.startswith("the results of XLA differ: ")
    assert np.array_equal(ours, xb.evaluate(program, X))


def test_rounding_that_cancels_is_no_difference() -> None:
    """The sums differ by more than the tolerance, since large numbers cancel, and agree in f64."""
    big = np.random.default_rng(0).standard_normal(4096).astype(F) * F(1e4)
    given = np.concatenate([big, -big])
    program = xb.computation(xb.f32[8192])(lambda x: xb.reduce(xb.exp(x * 1e-5) * x, 0.0, to_apply=xb.ops.add))
    settled(program, given)
    choice = choice_of(program)
    assert choice.state == "compiled", choice.reason


def test_a_failing_call_is_repeated_in_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    program = chain()
    settled(program, X)

    def fail(*_: Any) -> Any:
        raise RuntimeError("no memory")

    monkeypatch.setattr(native._Operands, "filled", fail)
    assert np.array_equal(xb.evaluate(program, X, engine="auto"), xb.evaluate(program, X))
    assert choice_of(program).reason == "XLA failed: no memory"


def test_threads_share_a_choice() -> None:
    program, wrong = chain(), []
    ours = xb.evaluate(program, X)

    def work(number: int) -> None:
        for _ in range(30):
            result = xb.evaluate(program, X + F(number), engine="auto")
            expected = ours if not number else xb.evaluate(program, X + F(number))
            if not np.allclose(result, expected, rtol=1e-5, atol=1e-6):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []
    assert choice_of(program).state == "compiled"


@pytest.mark.forks
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_uses_the_interpreter() -> None:
    program = chain()
    settled(program, X)
    ours = xb.evaluate(program, X)
    child = os.fork()
    if not child:
        same = xb.evaluate(program, X, engine="auto").tobytes() == ours.tobytes()
        os._exit(0 if same and native.is_of_parent() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="expected the engine 'interpreter' or 'auto', got 'xla'"):
        xb.evaluate(chain(), X, engine="xla")  # type: ignore[arg-type]
    monkeypatch.setattr(native.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(xb.XbuildError, match=r"needs jaxlib, .* pip install 'xbuild-hlo\[xla\]' \[missing_extra\]"):
        xb.evaluate(chain(), X, engine="auto")


def test_arguments_are_refused_as_in_the_interpreter() -> None:
    program = chain()
    settled(program, X)
    with pytest.raises(xb.ArgumentError):
        xb.evaluate(program, X[:2], engine="auto")


TEXT = """HloModule sums, replica_count=2
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[8,4] parameter(0)  t = f32[8,4] tanh(x)
  r = f32[8,4] all-reduce(t), to_apply=add
  ROOT m = f32[8,4] multiply(r, t) }"""


def test_commands_say_what_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sums.hlo").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    shown = xbuild("show", "sums.hlo", "--plan", "--engine", "auto")
    assert shown.exit_code == 0, shown.output
    assert "# engine auto: interpreter so far: no run yet" in shown.stdout
    assert "#   1 instruction in the interpreter: all-reduce is not a tested op" in shown.stdout
    assert shown.stdout.count("= n") == 2
    plain = xbuild("run", "sums.hlo", "--random", 0)
    ran = xbuild("run", "sums.hlo", "--random", 0, "--engine", "auto")
    assert ran.exit_code == 0, ran.output
    assert ran.stdout == plain.stdout
    assert ran.stderr.startswith("notice: engine auto: ")
    assert usage(xbuild("show", "sums.hlo", "--engine", "auto")) == "--engine has no effect without --plan"
    assert usage(xbuild("run", "sums.hlo", "--random", 0, "--engine", "auto", "--strict")).startswith("--strict needs")
