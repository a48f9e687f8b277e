"""Assertions on ops, donated arguments and calls of the host, in texts as XLA:CPU, XLA:GPU and older versions print."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from xbuild.testing import ContractError

OPS = """HloModule m
fused {
  p = f32[8,8] parameter(0)
  ROOT d = f32[8,8] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="step/dense/dot"}
}
ENTRY main {
  x = f32[8,8] parameter(0)
  f = f32[8,8] fusion(x), kind=kOutput, calls=fused
  w = f64[8,8] convert(f)
  s = (f64[8,8], f64[8,8], u32[]) copy-start(w)
  c = f64[8,8] copy-done(s)
  q = (f32[8,8], f32[8]) custom-call(x), custom_call_target="qr"
  ROOT o = f64[8,8] custom-call(c), custom_call_target="other"
}
"""


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ({"dot": 1}, 1),
        ({"fusion": 1, "dot": 1}, 2),
        ({"conditional": 0}, 0),
        ({"copy": 1}, 1),
        ({"custom_call": 2}, 2),
        ({"custom_call": {"qr": 1, "other": 1, "lu": 0}}, 2),
        ({"dot": 1, "scope": "dense"}, 1),
        ({"dot": 0, "scope": "attention"}, 0),
        ({"convert": 1, "dtype": "f64"}, 1),
        ({"dtype": np.float64, "others": 3}, 0),
        ({"dtype": "bf16", "others": 0}, 0),
        ({"fusion": xb.testing.at_least(1)}, 1),
        ({"on_host": True, "others": 0}, 0),
    ],
)
def test_ops_are_counted_as_the_contract_says(options: dict[str, Any], number: int) -> None:
    assert len(xb.testing.assert_ops(OPS, **options)) == number


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"dot": 0}, "expected 0 dot instructions, got 1"),
        ({"conditional": xb.testing.at_least(1)}, "expected at least 1 conditional instructions, got 0"),
        ({"custom_call": {"qr": 2}}, "expected 2 custom-call instructions of qr, got 1"),
        ({"dtype": "f64", "others": 0}, "expected 0 instructions of other ops of element type f64, got 3"),
        ({"dot": 1, "scope": "head"}, "expected 1 dot instruction in scope 'head', got 0"),
        ({"parameter": 1, "on_host": True}, "expected 1 parameter instruction in host memory, got 0"),
        ({"dot": 2, "copy": 0}, "expected 2 dot instructions, got 1 and expected 0 copy instructions, got 1"),
    ],
)
def test_each_wrong_number_is_reported(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(ContractError) as caught:
        xb.testing.assert_ops(OPS, **options)
    assert str(caught.value).splitlines()[0] == fault


def test_a_report_lists_what_is_counted() -> None:
    with pytest.raises(ContractError) as caught:
        xb.testing.assert_ops(OPS, custom_call={"qr": 0}, dot=2)
    _, head, *rows = str(caught.value).splitlines()
    assert head.split() == ["op", "shape", "instruction", "place"]
    assert [row.split("  ")[1] for row in rows] == ["custom-call qr", "custom-call other", "dot"]


def test_what_is_no_op_or_no_number_is_refused() -> None:
    with pytest.raises(TypeError, match="'matmul' is not an op; write the name of an HLO op in snake_case"):
        xb.testing.assert_ops(OPS, matmul=1)
    with pytest.raises(TypeError, match="fusion takes a number; only custom_call takes a separate number for each"):
        xb.testing.assert_ops(OPS, fusion={"kLoop": 1})


# XLA:CPU states the memory of parameters in the header, XLA:GPU and XLA:TPU at the instructions too.
ON_HOST = {
    "in the header": "HloModule m, entry_computation_layout={(f32[8]{0:S(5)}, f32[8]{0})->f32[8]{0:S(5)}}\n"
    "ENTRY main {\n  w = f32[8]{0} parameter(0)\n  x = f32[8]{0} parameter(1)\n  ROOT o = f32[8]{0} add(w, x)\n}\n",
    "at instructions": "HloModule m\nENTRY main {\n  w = f32[8]{0:S(5)} parameter(0)\n  x = f32[8]{0} parameter(1)\n"
    "  ROOT o = f32[8]{0:S(5)} add(w, x)\n}\n",
}


@pytest.mark.parametrize("text", ON_HOST.values(), ids=ON_HOST)
def test_arrays_in_host_memory_are_counted(text: str) -> None:
    found = xb.testing.assert_ops(text, on_host=True, parameter=1, add=1, others=0)
    assert [each.name for each in found] == ["w", "o"]
    xb.testing.assert_ops(text, on_host=False, parameter=1, others=0)


STEP = """HloModule step, input_output_alias={ {0}: (0, {}, may-alias), {2}: (2, {}, must-alias) }%s
ENTRY main {
  p.0 = f32[4] parameter(0), metadata={op_name="state['b']"}
  p.1 = f32[8] parameter(1), metadata={op_name="state['w']"}
  p.2 = f32[16] parameter(2), metadata={op_name="step"}
  ROOT t = (f32[4], f32[8], f32[16]) tuple(p.0, p.1, p.2)
}
"""


@pytest.mark.parametrize(
    ("arguments", "names"),
    [("step", ["p.2"]), ("state['b']", ["p.0"]), (0, ["p.0"]), ([0, "step"], ["p.0", "p.2"]), ("p.2", ["p.2"])],
)
def test_donated_arguments_pass(arguments: Any, names: list[str]) -> None:
    assert [each.name for each in xb.testing.assert_donated(STEP % "", arguments=arguments)] == names


def test_an_argument_of_several_arrays_is_donated_only_with_all_of_them() -> None:
    with pytest.raises(ContractError) as caught:
        xb.testing.assert_donated(STEP % "", arguments="state")
    first, head, row, fix = str(caught.value).splitlines()
    assert first == "expected results in the memory of state, got 1 of 2 arrays"
    assert head.split("  ") == ["", "parameter", "not donated", "shape"]
    assert row.split() == ["1", "state['w']", "f32[8]"]
    assert "donate_argnums" in fix
    assert len(xb.testing.assert_donated(STEP % ", buffer_donor={ (1, {}) }", arguments="state")) == 2


def test_an_argument_that_the_program_lacks_is_reported() -> None:
    with pytest.raises(ContractError, match="the program has no parameter 'batch'; its parameters are state"):
        xb.testing.assert_donated(STEP % "", arguments="batch")
    with pytest.raises(ContractError, match="the program has no parameter 7"):
        xb.testing.assert_donated(STEP % "", arguments=7)
    with pytest.raises(TypeError, match="expected a program with a header, got Computation"):
        xb.testing.assert_donated(xb.computation(xb.f32[2])(lambda x: x), arguments=0)


HOST = {
    "python": 'c = f32[8] custom-call(x), custom_call_target="xla_ffi_python_cpu_callback"',
    "older python": 'c = f32[8] custom-call(x), custom_call_target="xla_python_gpu_callback"',
    "partitioned python": 'c = f32[8] custom-call(x), custom_call_target="xla_ffi_partitioned_python_cpu_callback"',
    "outfeed": "t = token[] after-all()\n  c = token[] outfeed(x, t), outfeed_shape=f32[8]",
    "send": "t = token[] after-all()\n  s = (f32[8], u32[], token[]) send(x, t), channel_id=1, is_host_transfer=true\n"
    "  c = token[] send-done(s), channel_id=1, is_host_transfer=true",
}


@pytest.mark.parametrize("line", HOST.values(), ids=HOST)
def test_each_call_of_the_host_is_reported(line: str) -> None:
    text = f"HloModule m\nENTRY main {{\n  x = f32[8] parameter(0)\n  {line}\n  ROOT o = f32[8] negate(x)\n}}\n"
    with pytest.raises(ContractError, match="expected no calls of functions of the host, got 1\n"):
        xb.testing.assert_no_callbacks(text)


def test_other_custom_calls_and_transfers_between_devices_are_no_calls_of_the_host() -> None:
    xb.testing.assert_no_callbacks(OPS)
    sent = xb.parse_hlo(
        "HloModule m, num_partitions=2\nENTRY main {\n  x = f32[8] parameter(0)\n"
        "  ROOT c = f32[8] collective-permute(x), channel_id=1, source_target_pairs={{0,1}}\n}\n"
    )
    xb.testing.assert_no_callbacks(sent)


def test_axes_are_those_of_a_function_of_jax_whose_arguments_have_no_sharding() -> None:
    jax = pytest.importorskip("jax")
    from jax.sharding import Mesh
    from jax.sharding import PartitionSpec as P

    if len(jax.devices()) < 2:
        pytest.skip("needs 2 devices")
    mesh = Mesh(np.array(jax.devices()[:2]).reshape(1, 2), ("data", "model"))
    total = jax.shard_map(lambda x: jax.lax.psum(x, "model"), mesh=mesh, in_specs=P("model"), out_specs=P())
    xb.testing.assert_collectives(jax.jit(total), np.ones(8, np.float32), all_reduce={"model": 1, "data": 0})
    xb.testing.assert_collectives(lambda x: jax.jit(total)(x) + 1, np.ones(8, np.float32), all_reduce={"model": 1})
