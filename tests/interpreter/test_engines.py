"""Real XLA as an engine: equal results, clear ends whatever it does, and how two engines are compared."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner, Result

import xbuild as xb
from examples import ring
from interpreter import ArgumentError, Limits, Refused, Stopped, execute
from interpreter.engines import EngineError, compare, execute_here, execute_on_xla, xla
from interpreter.engines.comparison import lines
from interpreter.engines.distance import allowed, beyond, distance
from interpreter.engines.process import Child, Failure, Job
from interpreter.engines.refusal import NOT_ON_CPU
from shape_inference import PRIMITIVES
from tests.conformance.corpus import stored_arguments
from tests.support.compare import assert_same
from xbuild.cli import main
from xbuild.core.op import OPS
from xbuild.files.results import leaf_values

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "data" / "hlo"

oracle = pytest.mark.oracle


def everywhere() -> xb.Module:
    """Replicas and partitions meet, a scalar, a token and a nested tuple come out."""
    builder = xb.Builder("everywhere")
    x = xb.parameter(builder, number=0, shape=xb.f32[2])
    pair = xb.parameter(builder, number=1, shape=xb.TupleShape((xb.bf16[2], xb.s4[3])))
    groups = [[0, 1, 2, 3]]
    total = xb.ops.all_reduce(x, to_apply=xb.ops.add, replica_groups=groups, channel_id=1, use_global_device_ids=True)
    who = xb.partition_id(builder) + xb.replica_id(builder) * 2
    root = xb.tuple_([total, [who, pair], xb.after_all(builder=builder)])
    return xb.Module("everywhere", builder.build(root), num_replicas=2, num_partitions=2)


def endless() -> xb.Computation:
    @xb.computation(xb.s32[()])
    def loop(n: xb.Value) -> xb.Value:
        return xb.while_(n, condition=lambda n: n >= 0, body=xb.abs)

    return loop


def deadly() -> xb.Computation:
    """XLA folds constants when it compiles, and a division by zero ends its process."""
    builder = xb.Builder("deadly")
    return builder.build(xb.constant(builder, np.int32([1])) / xb.constant(builder, np.int32([0])))


def random() -> xb.Computation:
    builder = xb.Builder("random")
    low, high = xb.constant(builder, np.float32(0)), xb.constant(builder, np.float32(1))
    return builder.build(xb.rng_uniform(low, high, xb.f32[8]))


def crossed() -> xb.ModuleGroup:
    def device(first: int, second: int) -> xb.Module:
        builder = xb.Builder("device")
        x = xb.parameter(builder, number=0, shape=xb.f32[4])
        sent = xb.send_done(xb.send(x, xb.after_all(builder=builder), channel_id=first), channel_id=first)
        got, _ = xb.recv_done(xb.recv(sent, shape=xb.f32[4], channel_id=second), channel_id=second)
        return xb.Module("device", builder.build(got))

    return xb.ModuleGroup({0: device(1, 2), 1: device(2, 1)})


@pytest.fixture
def no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA must not be started."""

    def started(*_: Any) -> None:
        raise AssertionError("a child process was started")

    monkeypatch.setattr(xla, "Child", started)


@oracle
def test_replicas_and_partitions_give_what_the_interpreter_gives() -> None:
    pytest.importorskip("jaxlib")
    module = everywhere()
    pair = np.ones(2, ml_dtypes.bfloat16), np.array([-8, 0, 7], ml_dtypes.int4)
    inputs = [[np.float32([device, 0.5]), pair] for device in range(4)]
    ours, theirs = execute(module, inputs), execute_on_xla(module, inputs)
    for one, other in zip(ours, theirs, strict=True):
        assert_same(other[:2], one[:2])
        assert other[2] is None
        assert type(other[1][0]) is type(one[1][0])
        other[0][0] = 7.0  # a result is the caller's own


@oracle
def test_this_process_can_hold_the_devices() -> None:
    pytest.importorskip("jaxlib")
    module = xb.Module("total", xb.computation(xb.f32[2])(xb.cross_replica_sum), num_replicas=2)
    results = execute_here(module, {0: [[1.0, 2.5]], 1: [[3.0, 5.25]]})
    assert [results[device].tolist() for device in (0, 1)] == [[4.0, 7.75]] * 2
    with pytest.raises(ValueError, match=r"devices \[0\], and this process holds \[0, 1\]"):
        execute_here(module, {0: [[1.0, 2.5]]})
    with pytest.raises(ArgumentError, match=r"argument 0 .* of device 1"):
        execute_here(module, {0: [[1.0, 2.5]], 1: [[1.0]]})
    with pytest.raises(ArgumentError, match=r"devices \[0, 2\]"):
        execute_here(module, {0: [[1.0, 2.5]], 2: [[1.0, 2.5]]})


@oracle
def test_two_processes_give_what_the_interpreter_gives() -> None:
    pytest.importorskip("jaxlib")
    command = [sys.executable, "-W", "error", "-m", "examples.two_processes"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("equals the interpreter") == 4


def one_device(computation: xb.Computation) -> xb.Module:
    return xb.Module(computation.name, computation)


def test_a_deadlock_is_refused_before_xla_starts(no_child: None) -> None:
    with pytest.raises(Refused, match="deadlock"):
        execute_on_xla(crossed(), [[np.ones(4, np.float32)]] * 2)


def _waits(token: xb.Value) -> Any:
    return xb.after_all(token)


def _fed(token: xb.Value) -> Any:
    return xb.infeed(token, shape=xb.f32[2])[0]


def _dynamic(x: xb.Value) -> Any:
    return xb.set_dimension_size(x, xb.constant(x.builder, np.int32(1)), dimension=0)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (xb.ModuleGroup({0: one_device(endless()), 1: one_device(deadly())}), "2 programs for 2 devices"),
        (ring.program(), r"is a recv \(.*ring.py:\d+ in ring\): XLA:CPU has no transfers"),
        (one_device(xb.computation(xb.TokenShape())(_waits)), "token"),
        (one_device(xb.computation(xb.f32[2])(_dynamic)), r"f32\[<=2\] has a dynamic dimension"),
        (one_device(xb.computation(xb.f32[2])(xb.ops.sinh)), "is a sinh .*does not implement"),
    ],
    ids=["group", "recv", "token", "dynamic", "sinh"],
)
def test_what_xla_cannot_run_is_refused_with_the_reason(program: Any, reason: str, no_child: None) -> None:
    inputs = [[np.ones(2, np.float32)]] * program.num_devices
    with pytest.raises(EngineError, match=reason) as refused:
        execute_on_xla(program, inputs)
    assert refused.value.kind == "engine_unsupported"


def test_infeed_is_refused(no_child: None) -> None:
    builder = xb.Builder("fed")
    module = one_device(builder.build(_fed(xb.after_all(builder=builder))))
    with pytest.raises(EngineError, match="wait for ever"):
        execute_on_xla(module, [[]])


def test_a_callback_into_python_is_refused(no_child: None) -> None:
    text = """HloModule called
    ENTRY e {
      x = f32[2] parameter(0)
      ROOT y = f32[2] custom-call(x), custom_call_target="xla_ffi_python_cpu_callback"
    }"""
    with pytest.raises(EngineError, match=r"%y is a custom-call .*calls back"):
        execute_on_xla(xb.parse_hlo(text), [[np.ones(2, np.float32)]])


def test_what_is_refused_by_name_are_ops() -> None:
    assert sorted(set(NOT_ON_CPU) - set(OPS)) == []


def test_without_jax_the_advice_is_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EngineError, match=r"pip install 'xbuild-hlo\[xla\]'") as refused:
        execute_on_xla(one_device(endless()), [[np.int32(1)]])
    assert refused.value.kind == "missing_extra"


@oracle
def test_the_death_of_xla_is_an_error_with_its_last_words() -> None:
    pytest.importorskip("jaxlib")
    with pytest.raises(EngineError, match="the process died with SIG") as failed:
        execute_on_xla(one_device(deadly()), [[]])
    assert failed.value.kind == "engine_failed"


@pytest.mark.parametrize("junk", [b"x", 3, {0: None}, {"device": []}, ["no", "devices"]], ids=repr)
def test_an_answer_that_is_none_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, junk: object) -> None:
    """The child is replaced by a program that says it is ready, and then this."""
    said = pickle.dumps("ready") + pickle.dumps(junk)
    program = tmp_path / "python"
    program.write_text(
        f"#!{sys.executable}\nimport sys, time\nsys.stdout.buffer.write({said!r})\nsys.stdout.flush()\ntime.sleep(60)"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with Child(1) as child:
        assert child.run(Job("")) == Failure("died", "the process sent something that is no answer")
        assert child.is_dead
    pytest.importorskip("jaxlib")
    with pytest.raises(EngineError, match="real XLA failed: the process sent something that is no answer") as failed:
        execute_on_xla(one_device(endless()), [[np.int32(1)]])
    assert failed.value.kind == "engine_failed"


@oracle
def test_a_child_that_cannot_start_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    (tmp_path / "jax.py").write_text("raise SystemExit('this jax is broken')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(EngineError, match=r"(?s)died with status 1.*this jax is broken"):
        execute_on_xla(one_device(endless()), [[np.int32(-1)]])


@oracle
def test_what_xla_says_itself_is_told() -> None:
    pytest.importorskip("jaxlib")
    minus = xb.computation(xb.f32[2])(lambda x: xb.ops.all_reduce(x, to_apply=xb.ops.subtract))
    with pytest.raises(EngineError, match="Unsupported reduction computation"):
        execute_on_xla(xb.Module("minus", minus, num_replicas=2), [[np.ones(2, np.float32)]] * 2)
    with pytest.raises(EngineError, match="no_such_platform"):
        execute_on_xla(one_device(endless()), [[np.int32(1)]], platform="no_such_platform")


@oracle
def test_seconds_end_the_child() -> None:
    pytest.importorskip("jaxlib")
    with pytest.raises(Stopped, match="limit of 1 seconds is over, while real XLA ran") as stopped:
        execute_on_xla(one_device(endless()), [[np.int32(1)]], limits=Limits(seconds=1))
    assert stopped.value.report.kind == "limit_seconds"


@pytest.mark.parametrize("name", [name for name, each in PRIMITIVES.items() if each.is_float])
def test_a_float_type_states_how_far_apart_is_the_same(name: str) -> None:
    dtype = PRIMITIVES[name]
    one = np.ones(3, dtype.dtype)
    eps = float(ml_dtypes.finfo(dtype.dtype).eps)
    near, far = one.copy(), one.copy()
    far[1] = np.array(1 + 4 * eps * allowed(dtype)).astype(dtype.dtype)
    near[1] = np.array(1 - eps / 2).astype(dtype.dtype)
    assert not beyond(one, near).any()
    assert beyond(one, far).tolist() == [False, True, False]
    assert beyond(one, near, 0).tolist() == [False, bool(distance(one, near)[1]), False]


def test_others_are_the_same_where_they_are_equal() -> None:
    assert beyond(np.int32([1, 2**31 - 1]), np.int32([1, 2**31 - 2])).tolist() == [False, True]
    assert beyond(np.array([True]), np.array([False])).tolist() == [True]
    odd = np.float32([np.nan, np.inf, -np.inf, 1.0])
    assert beyond(odd, odd).tolist() == [False] * 4
    assert beyond(odd, np.float32([0.0, -np.inf, -np.inf, np.nan])).tolist() == [True, True, False, True]
    assert beyond(np.complex64([1 + 1j]), np.complex64([1 + 2j])).tolist() == [True]
    empty = np.ones((0, 2), np.float32)
    assert compare([empty], [empty], [xb.f32[0, 2]])[0].same


def test_outputs_that_differ_are_told_with_the_first_place() -> None:
    shape = xb.TupleShape((xb.f32[2, 2], xb.s32[()]))
    one = np.float32([[1, 2], [3, 4]]), np.int32(5)
    other = np.float32([[1, 2], [3, 5]]), np.int32(5)
    told = list(lines(compare([one, one], [other, one], [shape, shape])))
    assert len(told) == 3
    assert "device 0  out0  f32[2,2]  max 2.09715e+06 ulp  differs at [1, 1]: interpreter 4.0, xla 5.0" in told[0]
    assert told[1] == "device 1  out0  f32[2,2]  max 0 ulp  the same"
    assert told[2] == "devices 0-1  out1  s32[]  max 0 ulp  the same"


@pytest.mark.slow
def test_the_interpreter_is_within_the_stated_tolerance_on_all_of_the_corpus() -> None:
    """The stored outputs are real XLA's."""
    wrong = []
    for entry in json.loads((FOLDER / "manifest.json").read_text()):
        if entry["kind"] == "parse-only" or entry["custom_call_targets"]:
            continue
        module = xb.parse_hlo((FOLDER / entry["file"]).read_text())
        with np.load(FOLDER / entry["inputs_file"]) as inputs, np.load(FOLDER / entry["outputs_file"]) as outputs:
            rows = [stored_arguments(dict(inputs), device, module.entry) for device in range(module.num_devices)]
            wrong += [f"{entry['file']}: {each}" for each in _apart(module, execute(module, rows), dict(outputs))]
    assert wrong == []


def _apart(module: xb.Module, results: list[Any], stored: dict[str, Any]) -> list[str]:
    shape = module.entry.root.shape
    found = []
    for device, result in enumerate(results):
        for number, (leaf, leaf_shape) in enumerate(leaf_values(result, shape)):
            key = f"d{device}_out{number}"
            theirs = stored[key if key in stored else f"out{number}"]
            theirs = xb_typed(theirs, leaf_shape)
            if leaf_shape.is_dynamic:
                theirs = theirs[tuple(slice(extent) for extent in np.shape(leaf))]
            found += [str(each) for each in compare([leaf], [theirs], [leaf_shape]) if not each.same]
    return found


def xb_typed(array: Any, shape: xb.Shape) -> Any:
    from xbuild.files.results import from_bits

    return from_bits(array, shape.dtype)


PROGRAMS = "from tests.interpreter.test_engines import deadly, endless, everywhere, random\n"


@pytest.fixture
def target(tmp_path: Path) -> str:
    file = tmp_path / "programs.py"
    file.write_text(PROGRAMS)
    return str(file)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["run", *arguments], catch_exceptions=False)


@oracle
def test_the_command_line_runs_on_either_or_both(target: str, tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    archives = [tmp_path / "xla.npz", tmp_path / "both.npz"]
    given = f"{target}:everywhere", "--random", "3"
    alone = run(*given, "--engine", "xla", "--outputs", str(archives[0]))
    both = run(*given, "--engine", "both", "--eps", "0", "--outputs", str(archives[1]))
    assert (alone.exit_code, both.exit_code) == (0, 0), both.output
    assert len(alone.output.splitlines()) == 16
    assert "devices 0-3  out0  f32[2]  max 0 ulp  the same" in both.output
    with np.load(archives[0]) as one, np.load(archives[1]) as other:
        assert one.files == other.files
        for key in one.files:
            assert_same(one[key], other[key])


@oracle
def test_the_command_line_tells_a_difference_by_its_status(target: str) -> None:
    pytest.importorskip("jaxlib")
    result = run(f"{target}:random", "--engine", "both")
    assert result.exit_code == 1
    assert "differs at [" in result.stdout
    assert "the engines differ" in result.stderr


@oracle
def test_an_interruption_ends_the_child(target: str) -> None:
    pytest.importorskip("jaxlib")
    handled = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # shells may have it ignored
    program = f"{handled}; from xbuild.cli import main; main()"
    command = [sys.executable, "-c", program, "run", f"{target}:endless", "--random", "1", "--engine", "xla"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if not Path(f"/proc/{os.getpid()}/task/{os.getpid()}").is_dir():
        pytest.skip("this system does not list the children of a process")
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as running:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        deadline = time.monotonic() + 30
        while not (found := children.read_text().split()) and time.monotonic() < deadline:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        try:
            _, said = running.communicate(timeout=60)
        finally:
            running.kill()
    assert (running.returncode, "interrupted" in said) == (1, True), said
    while Path(f"/proc/{found[0]}").exists() and time.monotonic() < deadline + 60:
        time.sleep(0.05)
    assert not Path(f"/proc/{found[0]}").exists()


PAGE = (ROOT / "docs" / "engines.md").read_text()


@oracle
@pytest.mark.parametrize("program", re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
def test_the_programs_of_the_page_run(program: str) -> None:
    pytest.importorskip("jaxlib")
    environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@oracle
@pytest.mark.parametrize("command", re.findall(r"^    xbuild run (.*)$", PAGE, re.MULTILINE))
def test_the_commands_of_the_page_run(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jaxlib")
    monkeypatch.chdir(ROOT)
    result = run(*command.split())
    assert result.exit_code == 0, result.output


def _maybe(target: str, **attributes: Any) -> xb.Module:
    """A custom call in a branch."""

    @xb.computation(xb.pred[()], xb.f32[2])
    def entry(p: xb.Value, x: xb.Value) -> xb.Value:
        called = lambda y: xb.custom_call(y, target, xb.f32[2], name="cb", **attributes)  # noqa: E731
        return xb.conditional(p, x, called, x, lambda y: y * 2.0)

    return xb.Module("maybe", entry)


@oracle
@pytest.mark.parametrize("target", ["nobody", "xla_ffi_python_cpu_callback"])
def test_a_custom_call_that_xla_lacks_is_refused_when_the_run_comes_to_it(target: str) -> None:
    module = _maybe(target, api_version="API_VERSION_TYPED_FFI")
    (result,) = execute_on_xla(module, [[False, [1.0, 2.0]]])
    assert result.tolist() == [2.0, 4.0]
    with pytest.raises(EngineError, match=rf"the run came to a custom call .*%cb to '{target}' .*test_engines\.py"):
        execute_on_xla(module, [[True, [1.0, 2.0]]])
