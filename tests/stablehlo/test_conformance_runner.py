"""The runner of StableHLO's interpret tests: what passes, what fails, and what it says of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance.stablehlo import failure, main, modules_in

GRID = """
func.func @each(%x: tensor<2xi32>) -> (tensor<2xi32>, !stablehlo.token, tensor<ui32>) {
  %sum = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xi32>) -> tensor<2xi32>
  %t = stablehlo.after_all : !stablehlo.token
  %id = stablehlo.replica_id : tensor<ui32>
  return %sum, %t, %id : tensor<2xi32>, !stablehlo.token, tensor<ui32>
}
func.func @main() {
  %x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %y = stablehlo.constant dense<[10, 20]> : tensor<2xi32>
  %r:6 = "interpreter.run_parallel"(%x, %y) {programs = [[@each], [@each]]}
    : (tensor<2xi32>, tensor<2xi32>)
    -> (tensor<2xi32>, !stablehlo.token, tensor<ui32>, tensor<2xi32>, !stablehlo.token, tensor<ui32>)
  check.expect_eq_const %r#3, dense<[11, 22]> : tensor<2xi32>
  check.expect_eq_const %r#5, dense<WANTED> : tensor<ui32>
  return
}
"""
FED = """
func.func @each(%t: !stablehlo.token) -> (tensor<i32>, tensor<i32>) {
  %a:2 = "stablehlo.infeed"(%t) : (!stablehlo.token) -> (tensor<i32>, !stablehlo.token)
  %b:2 = "stablehlo.infeed"(%a#1) : (!stablehlo.token) -> (tensor<i32>, !stablehlo.token)
  return %a#0, %b#0 : tensor<i32>, tensor<i32>
}
func.func @one() -> tensor<i32> {
  %c = stablehlo.constant dense<5> : tensor<i32>
  return %c : tensor<i32>
}
func.func @other() -> tensor<i32> {
  %c = stablehlo.constant dense<6> : tensor<i32>
  return %c : tensor<i32>
}
func.func @main() {
  %t = stablehlo.after_all : !stablehlo.token
  %r:2 = "interpreter.run_parallel"(%t) {infeed = [@one, @other], programs = [[@each]]}
    : (!stablehlo.token) -> (tensor<i32>, tensor<i32>)
  check.expect_eq_const %r#0, dense<5> : tensor<i32>
  check.expect_eq_const %r#1, dense<WANTED> : tensor<i32>
  return
}
"""
PROBED = """
func.func @main() {
  %x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %y = interpreter.probe %x, probe_id = "p" : tensor<2xi32>
  %z = stablehlo.add %y, %y : tensor<2xi32>
  interpreter.print %z : tensor<2xi32>
  %w = stablehlo.constant dense<[1, WANTED]> : tensor<2xi32>
  "check.expect_serialized_eq"(%w) {probe_id = "p"} : (tensor<2xi32>) -> ()
  return
}
"""


def alone(line: str, type_: str = "2xf32", value: str = "[1.0, 2.0]") -> str:
    return f"""
func.func @main() {{
  %x = stablehlo.constant dense<{value}> : tensor<{type_}>
  {line}
  return
}}
"""


MET = [
    alone("check.expect_eq_const %x, dense<[1.0, 2.0]> : tensor<2xf32>"),
    alone("check.expect_eq %x, %x : tensor<2xf32>"),
    alone("check.expect_almost_eq_const %x, dense<[1.00005, 2.0]> : tensor<2xf32>"),
    alone("check.expect_almost_eq_const %x, dense<[1.5, 2.0]> : tensor<2xf32> {tolerance = 0.6 : f32}"),
    alone("check.expect_almost_eq %x, %x : tensor<2xf32>", value="[0x7FC00000, 0x7F800000]"),
    alone("check.expect_close %x, %x, max_ulp_difference = 0 : tensor<2xf32>, tensor<2xf32>"),
    alone(
        "check.expect_almost_eq_const %x, dense<(1.0, 0.00001)> : tensor<complex<f32>>", "complex<f32>", "(1.0, 0.0)"
    ),
    GRID.replace("WANTED", "1"), FED.replace("WANTED", "6"), PROBED.replace("WANTED", "2"),
]  # fmt: skip
NOT_MET = [
    (alone("check.expect_eq_const %x, dense<[1.0, 3.0]> : tensor<2xf32>"), r"found \[1.0, 2.0\], wanted \[1.0, 3.0\]"),
    (alone("check.expect_eq %x, %x : tensor<2xf32>", value="[0x7FC00000, 1.0]"), "check.expect_eq"),
    (alone("check.expect_almost_eq_const %x, dense<[1.001, 2.0]> : tensor<2xf32>"), "check.expect_almost_eq"),
    (alone("check.expect_close %x, %x, min_ulp_difference = 1 : tensor<2xf32>, tensor<2xf32>"), "check.expect_close"),
    (alone("%y = stablehlo.nothing %x : tensor<2xf32>"), "stablehlo.nothing"),
    (GRID.replace("WANTED", "0"), "found 1, wanted 0"), (FED.replace("WANTED", "7"), "found 6, wanted 7"),
    (PROBED.replace("WANTED", "3"), "probe 'p'"),
]  # fmt: skip


@pytest.mark.parametrize("text", MET)
def test_a_module_whose_expectations_are_met_passes(text: str) -> None:
    assert failure(text, text, "t") is None


@pytest.mark.parametrize(("text", "reason"), NOT_MET)
def test_what_is_not_met_is_told(text: str, reason: str) -> None:
    assert re.search(reason, str(failure(text, text, "t")))


def test_a_file_may_state_that_a_module_fails() -> None:
    wrong, right = NOT_MET[0][0], MET[0]
    assert failure("// RUN: not interpret %s\n" + wrong, wrong, "t") is None
    assert "says that it fails" in str(failure("// RUN: not interpret %s\n" + right, right, "t"))
    marked = "// expected-error@+3 {{no}}" + wrong
    assert failure(marked, marked, "t") is None


def test_denormal_numbers_are_kept() -> None:
    text = alone(
        "%y = stablehlo.add %x, %x : tensor<f32>\n  check.expect_eq_const %y, dense<0x00000002> : tensor<f32>",
        "f32", "0x00000001",
    )  # fmt: skip
    assert failure(text, text, "t") is None


def test_modules_of_a_folder_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.mlir").write_text(f"// RUN: x\n{MET[0]}\n// -----\n{NOT_MET[0][0]}\n// -----\n// nothing\n")
    (tmp_path / "b.mlir").write_text(MET[1])
    assert len(modules_in((tmp_path / "a.mlir").read_text())) == 2
    assert main([str(tmp_path)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("a#2: check.expect_eq: found")
    assert told[-1] == "2 passed, 1 failed"
    assert main([str(tmp_path / "b.mlir")]) == 0
