"""Real XLA as an engine gives what the interpreter gives: here, in a child and in several processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xbuild as xb
from interpreter import ArgumentError, execute
from interpreter.engines import EngineError, execute_here, execute_on_xla
from tests.interpreter.engines.programs import everywhere
from tests.support.compare import assert_same

ROOT = Path(__file__).parents[3]


@pytest.mark.oracle
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


@pytest.mark.oracle
def test_this_process_can_hold_the_devices() -> None:
    pytest.importorskip("jaxlib")
    module = xb.Module("total", xb.computation(xb.f32[2])(xb.cross_replica_sum), num_replicas=2)
    results = execute_here(module, {0: [[1.0, 2.5]], 1: [[3.0, 5.25]]})
    assert [results[device].tolist() for device in (0, 1)] == [[4.0, 7.75]] * 2
    with pytest.raises(ValueError, match=r"devices \[0\], but this process holds devices \[0, 1\]"):
        execute_here(module, {0: [[1.0, 2.5]]})
    with pytest.raises(ArgumentError, match=r"argument 0 .* of device 1"):
        execute_here(module, {0: [[1.0, 2.5]], 1: [[1.0]]})
    with pytest.raises(ArgumentError, match=r"devices \[0, 2\]"):
        execute_here(module, {0: [[1.0, 2.5]], 2: [[1.0, 2.5]]})


@pytest.mark.slow
@pytest.mark.oracle
def test_two_processes_give_what_the_interpreter_gives() -> None:
    pytest.importorskip("jaxlib")
    command = [sys.executable, "-W", "error", "-m", "examples.two_processes"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("equals the interpreter") == 4


def _maybe(target: str, **attributes: Any) -> xb.Module:
    """A custom call in a branch."""

    @xb.computation(xb.pred[()], xb.f32[2])
    def entry(p: xb.Value, x: xb.Value) -> xb.Value:
        called = lambda y: xb.custom_call(y, target, xb.f32[2], name="cb", **attributes)  # noqa: E731
        return xb.conditional(p, x, called, x, lambda y: y * 2.0)

    return xb.Module("maybe", entry)


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("target", ["nobody", "xla_ffi_python_cpu_callback"])
def test_a_custom_call_that_xla_lacks_is_refused_when_the_run_comes_to_it(target: str) -> None:
    module = _maybe(target, api_version="API_VERSION_TYPED_FFI")
    (result,) = execute_on_xla(module, [[False, [1.0, 2.0]]])
    assert result.tolist() == [2.0, 4.0]
    with pytest.raises(EngineError, match=rf"the run reached a custom call .*%cb to '{target}' .*test_engines\.py"):
        execute_on_xla(module, [[True, [1.0, 2.0]]])


LOOP = """HloModule loop, num_partitions=2
body {
  state = (s32[], f32[2], f32[4,1,2]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  sum = f32[2] get-tuple-element(state), index=1
  x = f32[4,1,2] get-tuple-element(state), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  zero = s32[] constant(0)
  row = f32[1,1,2] dynamic-slice(x, i, zero, zero), dynamic_slice_sizes={1,1,2}
  flat = f32[2] reshape(row)
  y = f32[2] add(sum, flat)
  ROOT out = (s32[], f32[2], f32[4,1,2]) tuple(next, y, x)
}
condition {
  state = (s32[], f32[2], f32[4,1,2]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  three = s32[] constant(3)
  ROOT goes_on = pred[] compare(i, three), direction=LT
}
ENTRY main {
  x = f32[1,8] parameter(0)
  apart = f32[1,4,2] reshape(x)
  turned = f32[4,1,2] transpose(apart), dimensions={1,0,2}
  zero = s32[] constant(0)
  sum = f32[2] parameter(1)
  state = (s32[], f32[2], f32[4,1,2]) tuple(zero, sum, turned)
  loop = (s32[], f32[2], f32[4,1,2]) while(state), condition=condition, body=body
  ROOT y = f32[2] get-tuple-element(loop), index=1
}"""


@pytest.mark.oracle
def test_an_operand_of_a_loop_that_is_simplified_away_is_a_part_of_each_partition() -> None:
    """The reshape and the transposition of a dimension of 1 become one reshape, which has no mark."""
    pytest.importorskip("jaxlib")
    module = xb.parse_hlo(LOOP)
    inputs = [[np.arange(8, dtype=np.float32)[None] + device, np.zeros(2, np.float32)] for device in range(2)]
    for one, other in zip(execute(module, inputs), execute_on_xla(module, inputs), strict=True):
        assert_same(other, one)
