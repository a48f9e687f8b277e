"""The reference interpreter of StableHLO as an engine: what it gives, and what is refused with the reason."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from interpreter import Limits, Stopped, execute
from interpreter.engines import EngineError, compare, execute_on_stablehlo, outcomes, stablehlo
from interpreter.engines.reference import run_text
from tests.interpreter.engines.programs import endless, one_device
from tests.support.compare import assert_same
from xbuild.cli import main
from xbuild.stablehlo.spelling import TYPE_NAMES, TYPES_BY_NAME

ROOT = Path(__file__).parents[3]


@pytest.fixture
def no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: Any) -> None:
        raise AssertionError("a child process was started")

    monkeypatch.setattr(outcomes, "Child", started)


def met() -> xb.Module:
    """Two replicas meet; a scalar, a token and a nested tuple come out."""
    builder = xb.Builder("met")
    x = xb.parameter(builder, number=0, shape=xb.f32[2])
    pair = xb.parameter(builder, number=1, shape=xb.TupleShape((xb.bf16[2], xb.s4[3])))
    total = xb.ops.all_reduce(x, to_apply=xb.ops.add)
    root = xb.tuple_([total, [xb.replica_id(builder), pair], xb.after_all(builder=builder)])
    return xb.Module("met", builder.build(root), num_replicas=2)


@pytest.mark.oracle
def test_replicas_give_what_the_interpreter_gives() -> None:
    pytest.importorskip("jaxlib")
    pair = np.ones(2, ml_dtypes.bfloat16), np.array([-8, 0, 7], ml_dtypes.int4)
    inputs = [[np.float32([device, 0.5]), pair] for device in range(2)]
    ours, theirs = execute(met(), inputs), execute_on_stablehlo(met(), inputs)
    for one, other in zip(ours, theirs, strict=True):
        assert_same(other[:2], one[:2])
        assert other[2] is None
        other[0][0] = 7.0  # a result is the caller's own


@pytest.mark.oracle
def test_a_program_for_each_device() -> None:
    pytest.importorskip("jaxlib")

    def device(sends: bool) -> xb.Module:
        builder = xb.Builder("sender" if sends else "receiver")
        x = xb.parameter(builder, number=0, shape=xb.f32[2])
        token = xb.after_all(builder=builder)
        if sends:
            xb.send_done(xb.send(x * 2.0, token, channel_id=1), channel_id=1)
            return xb.Module("sender", builder.build(x))
        got, _ = xb.recv_done(xb.recv(token, shape=xb.f32[2], channel_id=1), channel_id=1)
        return xb.Module("receiver", builder.build(got + x))

    group = xb.ModuleGroup({0: device(True), 1: device(False)})
    inputs = [[np.float32([1, 2])], [np.float32([10, 20])]]
    assert [each.tolist() for each in execute_on_stablehlo(group, inputs)] == [[1, 2], [12, 24]]


@pytest.mark.oracle
def test_every_element_type_goes_in_and_comes_out() -> None:
    pytest.importorskip("jaxlib")
    types = list(TYPES_BY_NAME)
    takes = ", ".join(f"%x{n}: tensor<2x{name}>" for n, name in enumerate(types))
    kinds, names = (", ".join(f"tensor<2x{name}>" for name in types), ", ".join(f"%x{n}" for n in range(len(types))))
    text = f"func.func @main({takes}) -> ({kinds}) {{\n  return {names} : {kinds}\n}}"
    given = [np.array([1, 0 if dtype.kind == "pred" else 1], dtype.dtype) for dtype in TYPES_BY_NAME.values()]
    found = run_text(text, {0: given})[0]
    for one, other in zip(given, found, strict=True):
        assert_same(other, one)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: xb.ops.cholesky(xb.reshape(x, (1, 1)), lower=True), "does not implement stablehlo.cholesky"),
        (lambda x: xb.custom_call(x, "nobody", xb.f32[1]), "does not implement stablehlo.custom_call @nobody"),
    ],
    ids=["cholesky", "custom-call"],
)
def test_what_it_does_not_implement_is_named(function: Callable[[xb.Value], xb.Value], reason: str) -> None:
    pytest.importorskip("jaxlib")
    with pytest.raises(EngineError, match=reason) as refused:
        execute_on_stablehlo(one_device(xb.computation(xb.f32[1])(function)), [[np.float32([4])]])
    assert refused.value.kind == "engine_unsupported"


@pytest.mark.oracle
def test_functions_that_stablehlo_lacks_are_lowered_first() -> None:
    pytest.importorskip("jaxlib")
    module = one_device(xb.computation(xb.f32[3])(lambda x: xb.ops.erf(x) + xb.ops.asin(x)))
    inputs = [[np.float32([0.0, 0.5, -0.25])]]
    (found,) = compare(execute(module, inputs), execute_on_stablehlo(module, inputs), [xb.f32[3]], engine="stablehlo")
    assert found.same


@pytest.mark.oracle
def test_seconds_end_it() -> None:
    pytest.importorskip("jaxlib")
    with pytest.raises(Stopped, match="limit of 1 seconds was reached while StableHLO's reference interpreter ran"):
        execute_on_stablehlo(one_device(endless()), [[np.int32(1)]], limits=Limits(seconds=1))


@pytest.mark.oracle
def test_nan_without_a_mantissa_is_infinity_here_and_there() -> None:
    pytest.importorskip("jaxlib")
    module = one_device(xb.computation(xb.f32[2])(lambda x: xb.reduce_precision(x, 5, 0)))
    inputs = [[np.float32([np.nan, 1.5])]]
    assert execute(module, inputs)[0].tolist() == execute_on_stablehlo(module, inputs)[0].tolist() == [np.inf, 2.0]


@pytest.mark.oracle
def test_denormal_numbers_are_kept() -> None:
    pytest.importorskip("jaxlib")
    module = one_device(xb.computation(xb.f32[1])(lambda x: x * 0.5))
    inputs = [[np.float32([1e-40])]]
    (kept,) = execute(module, inputs, denormals="keep")
    assert_same(execute_on_stablehlo(module, inputs)[0], kept)
    assert kept[0]


def fed() -> xb.Computation:
    builder = xb.Builder("fed")
    return builder.build(xb.infeed(xb.after_all(builder=builder), shape=xb.f32[2])[0])


def _dynamic(x: xb.Value) -> xb.Value:
    return xb.set_dimension_size(x, xb.constant(x.builder, np.int32(1)), dimension=0)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (one_device(fed()), "infeed.*has no infeed"),
        (one_device(xb.computation(xb.TokenShape())(lambda t: xb.after_all(t))), "is a token"),
        (one_device(xb.computation(xb.f32[2])(_dynamic)), r"f32\[<=2\] has a dynamic dimension"),
    ],
    ids=["infeed", "token", "dynamic"],
)
@pytest.mark.usefixtures("no_child")
def test_what_would_hang_or_be_lost_is_refused_before_it_starts(program: xb.Module, reason: str) -> None:
    with pytest.raises(EngineError, match=reason):
        execute_on_stablehlo(program, [[np.ones(2, np.float32)] * len(program.entry.parameters)])


@pytest.mark.usefixtures("no_child")
def test_more_devices_than_run_at_a_time_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    pair = np.ones(2, ml_dtypes.bfloat16), np.zeros(3, ml_dtypes.int4)
    with pytest.raises(EngineError, match=r"all-reduce .*needs 2 devices at the same time.*only 1 at a time"):
        execute_on_stablehlo(met(), [[np.ones(2, np.float32), pair]] * 2)


def test_without_jaxlib_the_advice_is_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EngineError, match=r"pip install 'xbuild-hlo\[xla\]'"):
        execute_on_stablehlo(one_device(endless()), [[np.int32(1)]])


@pytest.mark.oracle
def test_the_command_line_compares_with_it(tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    target = f"{ROOT / 'examples' / 'axpy.py'}:axpy"
    done = CliRunner().invoke(main, ["run", target, "--random", "0", "--engine", "both", "--against", "stablehlo"])
    assert (done.exit_code, "max 0 ulp  the same" in done.output) == (0, True), done.output
    alone = CliRunner().invoke(main, ["run", target, "--random", "0", "--engine", "stablehlo"])
    assert alone.exit_code == 0
    wrong = ["run", target, "--random", "0", "--engine", "stablehlo", "--denormals", "flush"]
    refused = CliRunner().invoke(main, wrong)
    assert refused.exit_code == 2
    assert "the reference interpreter keeps denormal numbers" in refused.output


def test_every_element_type_has_a_way_in() -> None:
    from interpreter.engines.reference import wire_of

    assert all(wire_of(f"tensor<2x{name}>") is not None for name in TYPE_NAMES.values())
    assert stablehlo.NAMES
