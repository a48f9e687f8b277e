"""Faults of StableHLO text: each with its line, its column, its kind and its reason."""

from __future__ import annotations

import json

import pytest

import xbuild as xb
from tests.stablehlo.programs import FOLDER

HEAD = "func.func @main(%x: tensor<4xf32>, %i: tensor<i32>) -> tensor<4xf32> {\n"
END = "\n  return %x : tensor<4xf32>\n}"
FAULTS = [tuple(each.values()) for each in json.loads((FOLDER / "faults.json").read_text())]
WHOLE = [
    ("", "the text contains no function"),
    ("func.func @main(%x: tensor<4xf32>) {", "this region is not closed"),
    ("module @m {\n  func.func @f()\n}", "@f has no body"),
    ("func.func @f() { return }\nfunc.func @f() { return }", "@f is already defined"),
    ("func.func @f(%a: tensor<f32>, %a: tensor<f32>) { return }", "%a is already defined"),
    ("func.func @f() { }", "this block has no return"),
    (
        "module @a { func.func @f() { return } }\n// -----\nmodule @b { func.func @f() { return } }",
        "expected one module, got 2",
    ),
    ("#loc1 = loc(#loc2)\n#loc2 = loc(#loc1)\nfunc.func @f() { return loc(#loc1) }", "is defined in terms of itself"),
    ("!a = !a\nfunc.func @f(%x: !a) { return }", "is defined in terms of itself"),
    ("func.func @f() { stablehlo.compare LT, }", "expected a value, such as %0"),
    ("hello", "expected an operation, got 'hello'"),
    ("%", "expected the name of a result"),
    (
        "module attributes {mhlo.num_replicas = 2 : i32} { func.func @f(%x: tensor<f32>) -> tensor<f32> {\n"
        '%y = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 3]]> : tensor<1x2xi64>}>'
        " : (tensor<f32>) -> tensor<f32>\nreturn %y : tensor<f32> } }",
        "source_target_pairs name replica 3, but the header states the range 0..1",
    ),
    (
        "func.func @f(%x: tensor<4xf32>) -> tensor<2xf32> {\n"
        '%y = "stablehlo.reduce_scatter"(%x) <{replica_groups = dense<[[1, 2]]> : tensor<1x2xi64>,'
        " scatter_dimension = 0 : i64}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
        "%s = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %s : tensor<f32>\n"
        "}) : (tensor<4xf32>) -> tensor<2xf32>\nreturn %y : tensor<2xf32> }",
        "replica 0 is in no group of replica_groups, but the largest ids imply the range 0..2",
    ),
    (
        "func.func @f() -> tensor<f32> { return }",
        "@f: expected one value for each result type, got 0 values for 1 types",
    ),
    (
        "func.func @f(%x: tensor<4xf32>) -> tensor<5xf32> { return %x : tensor<4xf32> }",
        "result 0 of @f is f32[4], but its type in the text is f32[5]",
    ),
    (
        'func.func @f(%x: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[none]}"}) { return }',
        "mhlo.sharding: expected an integer",
    ),
    ('func.func @f(%x: tensor<4xf32> {mhlo.sharding = "{replicated} x"}) { return }', "the end of the sharding"),
    (
        'func.func @f(%x: tensor<4xf32> {mhlo.frontend_attributes = {"a b" = "c"}}) { return }',
        "HLO text cannot represent the key 'a b'",
    ),
    ('#loc1 = loc("x")#loc2()\nfunc.func @f() { return }', "expected an operation"),
]


@pytest.mark.parametrize(("line", "row", "column", "kind", "reason"), FAULTS, ids=lambda each: str(each)[:40])
def test_fault(line: str, row: int, column: int, kind: str, reason: str) -> None:
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse_stablehlo(f"{HEAD}{line}{END}", "model.mlir")
    first = caught.value.faults[0]
    assert (first.line, first.column) == (row, column)
    assert not kind or first.kind == kind
    assert reason in first.message
    assert str(caught.value).startswith(f"model.mlir:{row}:{column}: ")
    assert str(caught.value).splitlines()[2].index("^") == 4 + column - 1


@pytest.mark.parametrize(("text", "reason"), WHOLE, ids=lambda each: each[:30])
def test_fault_of_a_whole_text(text: str, reason: str) -> None:
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse_stablehlo(text)
    assert reason in str(caught.value)


@pytest.mark.parametrize("wrong", ["%x, %q", "%x %x"])
def test_several_faults_are_told_at_once_and_users_of_faulty_values_are_not_blamed(wrong: str) -> None:
    lines = [f"  %{n} = stablehlo.add {wrong} : tensor<4xf32>" for n in range(30)]
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse_stablehlo(HEAD + "\n".join([*lines, "  %u = stablehlo.add %0, %1 : tensor<4xf32>"]) + END)
    assert [fault.line for fault in caught.value.faults] == list(range(2, 22))
    assert str(caught.value).endswith("and 10 more")


def test_a_text_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="expected StableHLO as str or bytes, got int"):
        xb.parse_stablehlo(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="partitions must be at least 1, got 0"):
        xb.parse_stablehlo("", partitions=0)
