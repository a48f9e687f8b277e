"""What real XLA cannot run is refused with the reason, and however its process ends, the end is told."""

from __future__ import annotations

import importlib.util
import io
import pickle
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from examples import ring
from interpreter import Limits, Refused, Stopped
from interpreter.engines import EngineError, execute_on_xla, outcomes
from interpreter.engines.process import MAGIC, READY, Child, Failure, Job, send
from interpreter.engines.programs import NOT_ON_CPU
from tests.interpreter.engines.programs import deadly, endless, one_device
from xbuild.core.op import OPS


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

    monkeypatch.setattr(outcomes, "Child", started)


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
        (one_device(xb.computation(xb.u32[2], xb.u32[2])(xb.ops.mulhi)), "is a mulhi .*does not implement"),
    ],
    ids=["group", "recv", "token", "dynamic", "mulhi"],
)
def test_what_xla_cannot_run_is_refused_with_the_reason(program: Any, reason: str, no_child: None) -> None:
    inputs = [[np.ones(2, np.float32)]] * program.num_devices
    with pytest.raises(EngineError, match=reason) as refused:
        execute_on_xla(program, inputs)
    assert refused.value.kind == "engine_unsupported"


def test_infeed_is_refused(no_child: None) -> None:
    builder = xb.Builder("fed")
    module = one_device(builder.build(_fed(xb.after_all(builder=builder))))
    with pytest.raises(EngineError, match="so the run would hang"):
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


@pytest.mark.oracle
def test_the_death_of_xla_is_an_error_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jaxlib")
    monkeypatch.setenv("XLA_FLAGS", "--xla_no_such_flag")
    with pytest.raises(EngineError, match=r"the process died with [\s\S]*xla_no_such_flag") as failed:
        execute_on_xla(one_device(endless()), [[np.int32(1)]])
    assert failed.value.kind == "engine_failed"


def test_a_signal_that_ends_the_process_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho the last words >&2\nkill -ABRT $$\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(EngineError, match="the process died with SIGABRT\n  the last words") as failed:
        execute_on_xla(one_device(endless()), [[np.int32(1)]])
    assert failed.value.kind == "engine_failed"


@pytest.mark.parametrize("is_ready", [False, True])
def test_a_jaxlib_with_other_internals_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_ready: bool
) -> None:
    """The child finds out when it starts, or when it runs a job."""
    pytest.importorskip("jaxlib")
    pipe = io.BytesIO()
    if is_ready:
        send(pipe, READY)
    send(pipe, {"misfit": "cannot import name '_hlo'"})
    said = pipe.getvalue()
    program = tmp_path / "python"
    program.write_text(
        f"#!{sys.executable}\nimport sys, time\nsys.stdout.buffer.write({said!r})\nsys.stdout.flush()\ntime.sleep(60)"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(EngineError) as refused:
        execute_on_xla(one_device(endless()), [[np.int32(1)]])
    assert refused.value.kind == "missing_extra"
    message = str(refused.value)
    assert message.startswith("real XLA needs internals of jaxlib 0.6 or newer (tested: 0.6.2, ")
    assert message.endswith(f"but jaxlib {version('jaxlib')} is installed: cannot import name '_hlo' [missing_extra]")


def _framed(text: bytes) -> bytes:
    return MAGIC + len(text).to_bytes(8, "little") + text


JUNK = {
    "no message": b"x" * 99,
    "a huge length": MAGIC + b"\xff" * 8,
    "no JSON": _framed(b"{"),
    "a pickle": pickle.dumps({0: [1.0]}),
    "a list": _framed(b"[]"),
    "no words": _framed(b'{"devices": [], "types": []}'),
    "words that are none": _framed(b'{"words": 3, "devices": [], "types": []}'),
    "other words": _framed(b'{"words": {"outcome": 3}, "devices": [], "types": []}'),
    "an unknown type": _framed(b'{"words": {"outcome": "done"}, "devices": [0], "types": [[0, "f99"]]}'),
    "an unknown device": _framed(b'{"words": {"outcome": "done"}, "devices": [0], "types": [[1, "f32"]]}'),
    "no array": _framed(b'{"words": {"outcome": "done"}, "devices": [0], "types": [[0, "f32"]]}') + b"y" * 99,
}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_an_answer_that_is_none_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, junk: bytes) -> None:
    """The child is replaced by a program that says it is ready, and then this."""
    pipe = io.BytesIO()
    send(pipe, READY)
    said = pipe.getvalue() + junk
    program = tmp_path / "python"
    program.write_text(
        f"#!{sys.executable}\nimport sys, time\nsys.stdout.buffer.write({said!r})\nsys.stdout.flush()\ntime.sleep(60)"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with Child(1) as child:
        assert child.run(Job("")) == Failure("died", "the process sent an invalid answer")
        assert child.is_dead
    pytest.importorskip("jaxlib")
    with pytest.raises(EngineError, match="real XLA failed: the process sent an invalid answer") as failed:
        execute_on_xla(one_device(endless()), [[np.int32(1)]])
    assert failed.value.kind == "engine_failed"


@pytest.mark.oracle
def test_a_child_that_cannot_start_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    (tmp_path / "jax.py").write_text("raise SystemExit('this jax is broken')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(EngineError, match=r"(?s)died with status 1.*this jax is broken"):
        execute_on_xla(one_device(endless()), [[np.int32(-1)]])


@pytest.mark.slow
@pytest.mark.oracle
def test_what_xla_says_itself_is_told() -> None:
    pytest.importorskip("jaxlib")
    minus = xb.computation(xb.f32[2])(lambda x: xb.ops.all_reduce(x, to_apply=xb.ops.subtract))
    with pytest.raises(EngineError, match="Unsupported reduction computation"):
        execute_on_xla(xb.Module("minus", minus, num_replicas=2), [[np.ones(2, np.float32)]] * 2)
    with pytest.raises(EngineError, match="no_such_platform"):
        execute_on_xla(one_device(endless()), [[np.int32(1)]], platform="no_such_platform")


@pytest.mark.oracle
def test_seconds_end_the_child() -> None:
    pytest.importorskip("jaxlib")
    with pytest.raises(Stopped, match="limit of 1 seconds was reached while real XLA ran") as stopped:
        execute_on_xla(one_device(endless()), [[np.int32(1)]], limits=Limits(seconds=1))
    assert stopped.value.report.kind == "limit_seconds"
