"""JAX's `control_dep`: an order of two values, which programs keep as control predecessors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import xbuild as xb
from tests.commands.command_line import xbuild

CALL = 'stablehlo.custom_call @control_dep({}) {{backend_config = "", has_side_effect = true}} : ({}) -> ()'


def _mlir(*lines: str) -> str:
    types = "tensor<4xf32>, tensor<4xf32>"
    body = "\n".join(line if "custom" in line or "return" in line else f"{line} : tensor<4xf32>" for line in lines)
    return f"func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {{\n{body}\n}}".replace(
        "TYPES", types
    )


ORDERED = _mlir(
    "%s = stablehlo.sine %a", "%c = stablehlo.cosine %b", CALL.format("%c, %s", "TYPES"),
    "%r = stablehlo.add %s, %c", "return %r : tensor<4xf32>",
)  # fmt: skip
STARTS = """module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    BEGIN(%one, %a)
    BEGIN(%two, %b)
    DEP(FIRST)
    %x = "stablehlo.async_done"(%one) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>
    %y = "stablehlo.async_done"(%two) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>
    return %x, %y : tensor<4xf32>, tensor<4xf32>
  }
}"""


def _starts(first: str) -> str:
    begin = """{0} = "stablehlo.async_start"({1}) ({{
    ^bb0(%v: tensor<2xf32>):
      %g = "stablehlo.all_gather"(%v) <{{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}}>
        : (tensor<2xf32>) -> tensor<4xf32>
      stablehlo.return %g : tensor<4xf32>
    }}) : (tensor<2xf32>) -> !stablehlo.future<tensor<4xf32>>"""
    text = STARTS.replace("BEGIN(%one, %a)", begin.format("%one", "%a"))
    text = text.replace("BEGIN(%two, %b)", begin.format("%two", "%b"))
    future = "!stablehlo.future<tensor<4xf32>>"
    return text.replace("DEP(FIRST)", CALL.format(first, f"{future}, {future}"))


def test_the_second_value_comes_after_the_first() -> None:
    module = xb.parse(ORDERED)
    opcodes = [each.opcode for each in module.entry.instructions]
    assert opcodes == ["parameter", "parameter", "cosine", "sine", "add"]
    sine = module.entry["s"]
    assert [each.name for each in sine.control] == ["c"]
    given = np.float32([0, 1, 2, 3]), np.float32([4, 5, 6, 7])
    np.testing.assert_allclose(xb.evaluate(module.entry, *given), np.sin(given[0]) + np.cos(given[1]), rtol=1e-6)


def test_it_is_kept_in_both_texts() -> None:
    module = xb.parse(ORDERED)
    assert "sine(a), control-predecessors={c}" in module.to_hlo()
    assert xb.same_structure(xb.parse(module.to_hlo()), module)
    assert module.to_stablehlo().count("@control_dep(%c, %s)") == 1
    assert xb.same_structure(xb.parse(module.to_stablehlo()), module)


def test_hlo_text_has_it_as_a_custom_call() -> None:
    text = """ENTRY e {
      a = f32[4] parameter(0)
      s = f32[4] sine(a)
      c = f32[4] cosine(a)
      d = () custom-call(c, s), custom_call_target="control_dep", custom_call_has_side_effect=true
      ROOT r = f32[4] add(s, c)
    }"""
    module = xb.parse(text)
    assert "custom-call" not in module.to_hlo()
    assert [each.name for each in module.entry["s"].control] == ["c"]


def test_control_predecessors_of_hlo_are_written_as_stablehlo() -> None:
    module = xb.parse("""ENTRY e {
      a = f32[4] parameter(0)
      s = f32[4] sine(a), control-predecessors={a}
      c = f32[4] cosine(a)
      t = (f32[4], f32[4]) tuple(s, c)
      w = f32[4] negate(a), control-predecessors={t}
      ROOT r = f32[4] add(s, w)
    }""")
    text = module.to_stablehlo()
    assert [line.split("(")[1].split(")")[0] for line in text.splitlines() if "control_dep" in line] == [
        "%s, %w",
        "%c, %w",
    ]
    assert {each.name for each in xb.parse(text).entry["w"].control} == {"s", "c"}


@pytest.mark.parametrize(("order", "first"), [("%one, %two", 0), ("%two, %one", 1)])
def test_starts_are_ordered_and_nothing_else_uses_them(order: str, first: int) -> None:
    module = xb.parse(_starts(order))
    assert xb.check(module).kind == "ok"
    starts = [each for each in module.entry.instructions if each.opcode == "all_gather_start"]
    assert [each.operands[0].name for each in starts] == ["ab"[first], "ba"[first]]
    assert starts[1].control == (starts[0],)
    assert xb.same_structure(xb.parse(module.to_stablehlo()), module)
    rows = [[np.float32([n, n]), np.float32([9, 9])] for n in range(2)]
    assert xb.execute(module, rows)[1][0].tolist() == [0, 0, 1, 1]


def test_orders_decide_whether_devices_meet() -> None:
    """Two sums in the order of each device's own branch: the call says in which order both begin."""
    sums = "\n".join(
        f"""%{name} = "stablehlo.all_reduce"(%{operand}) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
        channel_handle = #stablehlo.channel_handle<handle = {number}, type = 1>, use_global_device_ids}}> ({{
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %z = stablehlo.add %x, %y : tensor<f32>
          stablehlo.return %z : tensor<f32>
        }}) : (tensor<4xf32>) -> tensor<4xf32>"""
        for number, (name, operand) in enumerate((("p", "a"), ("q", "b")), 1)
    )
    text = (
        "module attributes {mhlo.num_partitions = 2 : i32} {\n"
        f"func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {{\n{sums}\n"
        f"{CALL.format('%q, %p', 'tensor<4xf32>, tensor<4xf32>')}\nreturn %p : tensor<4xf32>\n}}\n}}"
    )
    module = xb.parse(text)
    meeting = [each.name for each in module.entry.instructions if each.opcode == "all_reduce"]
    assert meeting == ["q", "p"]
    assert xb.check(module).kind == "ok"


@pytest.mark.parametrize("text", [
    _mlir(
        "%s = stablehlo.sine %a", "%c = stablehlo.cosine %s", CALL.format("%c, %s", "TYPES"),
        "return %c : tensor<4xf32>",
    ),
    """ENTRY e {
      a = f32[4] parameter(0)
      s = f32[4] sine(a)
      c = f32[4] cosine(s)
      ROOT n = f32[4] negate(c)
      d = () custom-call(c, s), custom_call_target="control_dep"
    }""",
], ids=["stablehlo", "hlo"])  # fmt: skip
def test_an_order_against_the_operands_is_refused(text: str) -> None:
    with pytest.raises(xb.HloParseError, match="depend on each other in a cycle") as caught:
        xb.parse(text)
    assert caught.value.kind == "cycle"


@pytest.mark.oracle
def test_real_xla_and_the_reference_interpreter_run_it(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    module, given = xb.parse(ORDERED), [[np.float32([0, 1, 2, 3]), np.float32([4, 5, 6, 7])]]
    expected = xb.execute(module, given)[0]
    for run in (xb.engines.execute_on_xla, xb.engines.execute_on_stablehlo):
        np.testing.assert_allclose(run(module, given)[0], expected, rtol=1e-6)
    (tmp_path / "ordered.mlir").write_text(ORDERED)
    assert xbuild("run", "--random", "0", tmp_path / "ordered.mlir").exit_code == 0
