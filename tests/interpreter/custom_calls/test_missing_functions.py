"""Custom calls whose target has no function: refused before the run, or when the run comes to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from interpreter import Recorder, Stopped, evaluate, execute
from interpreter.custom_calls import CustomCallError
from tests.interpreter.custom_calls.programs import X
from xbuild.cli import main

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
    for fact in ("'orther'", "custom-call.3", "test_missing_functions.py"):
        assert fact in str(caught.value)
    assert "hint: register a function with the decorator @xb.custom_call_target('orther')" in str(caught.value)
    assert caught.value.hints == (
        "register a function with the decorator @xb.custom_call_target('orther')",
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
    for fact in ("custom-call %cb", "device 0", "'nobody'", "test_missing_functions.py"):
        assert fact in report.message, report.message
    assert report.repair == "register a function with the decorator @xb.custom_call_target('nobody')"
    assert [(state.instruction.name, state.cause) for state in report.devices if state.instruction] == [("cb", True)]
    xb.custom_call_target("nobody")(lambda x: -x)
    assert evaluate(entry, 1, X, **options).tolist() in ([-1, -2, -3], [-2, -4, -6])


def test_a_call_that_nobody_needs_does_not_run_and_is_not_refused() -> None:
    entry = xb.computation(xb.f32[3])(lambda x: (unknown(x), x + x)[1])
    assert evaluate(entry, X).tolist() == [2, 4, 6]
    called = xb.computation(xb.f32[3])(lambda x: xb.call(x, lambda y: xb.fusion(y, unknown)))
    with pytest.raises(CustomCallError, match="unregistered_target"):
        evaluate(called, X)


PRINTS = """HloModule m, replica_count=2
one {{ p = f32[2] parameter(0)
  {name} = {shape} custom-call(p), custom_call_target="{target}", custom_call_has_side_effect=true
  ROOT y = f32[2] negate(p) }}
other {{ ROOT p = f32[2] parameter(0) }}
ENTRY e {{
  x = f32[2] parameter(0)
  id = u32[] replica-id()
  zero = u32[] constant(0)
  first = pred[] compare(id, zero), direction=EQ
  ROOT c = f32[2] conditional(first, x, x), true_computation=one, false_computation=other
}}
"""
PYTHON = "xla_ffi_python_cpu_callback"


@pytest.mark.parametrize("shape", ["()", "token[]", "(token[])"])
def test_a_print_of_jax_is_skipped(tmp_path: Path, shape: str) -> None:
    text = PRINTS.format(name="debug_print.1", shape=shape, target=PYTHON)
    results = execute(xb.parse_hlo(text), [[np.float32([1, 2])]] * 2)
    assert [each.tolist() for each in results] == [[-1, -2], [1, 2]]
    (tmp_path / "m.hlo").write_text(text)
    told = CliRunner().invoke(main, ["run", f"{tmp_path}/m.hlo", "--random", "0"])
    assert told.exit_code == 0
    assert "notice: the run skips debug_print.1: only the process that lowered the program" in told.stderr
    seen: list[Any] = []
    xb.custom_call_target(PYTHON)(lambda x: seen.append(x.tolist()))
    execute(xb.parse_hlo(text), [[np.float32([1, 2])]] * 2)
    assert seen == [[1, 2]]


@pytest.mark.parametrize(
    ("name", "shape", "target"),
    [("debug_print.1", "f32[2]", PYTHON), ("io_callback.1", "()", PYTHON), ("debug_print.1", "()", "printer")],
)
def test_other_callbacks_are_not_skipped(name: str, shape: str, target: str) -> None:
    text = PRINTS.format(name=name, shape=shape, target=target)
    with pytest.raises(Stopped, match="no function is registered") as caught:
        execute(xb.parse_hlo(text), [[np.float32([1, 2])]] * 2)
    said = " ".join(str(caught.value).split())
    assert (target == PYTHON) == ("it takes the operands and returns a tuple of arrays" in said)


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
    assert (told[0].exit_code, told[0].stdout.splitlines()[0].split(maxsplit=4)[4]) == (0, "[2., 4., 6.]")
    assert told[1].exit_code == 1
    assert "custom-call %cb cannot run on device 0: no function is registered" in told[1].stderr
    assert "Traceback" not in told[1].output


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("xla_ffi_python_cpu_callback", "jax.pure_callback"),
        ("__cublas$gemm", "use the text from before XLA's passes, which still contains the op"),
    ],
)
def test_a_target_that_nothing_here_could_run_is_explained(target: str, hint: str) -> None:
    kernel = xb.computation(xb.f32[3])(lambda x: xb.custom_call(x, target, xb.f32[3]))
    with pytest.raises(CustomCallError, match="unregistered_target") as caught:
        evaluate(kernel, X)
    assert hint in caught.value.hints[-1]
    assert (str(caught.value).count(hint), str(caught.value).count("hint: register a function")) == (1, 1)


def test_no_text_imports_a_function() -> None:
    text = 'ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] custom-call(x), custom_call_target="os.getcwd" }'
    with pytest.raises(CustomCallError, match=r"'os\.getcwd'"):
        evaluate(xb.parse_hlo(text).entry, [1.0, 2.0])


def test_a_call_among_elements_is_refused() -> None:
    xb.custom_call_target("ours")(lambda a: a)
    entry = xb.computation(xb.f32[3])(lambda x: xb.map(x, lambda e: xb.custom_call(e, "ours", xb.f32[()])))
    with pytest.raises(CustomCallError, match=r"custom-call\.\d+.*%map\.\d+ applies to each element") as caught:
        evaluate(entry, X)
    assert caught.value.kind == "disallowed_computation"
