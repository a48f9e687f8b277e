"""Faults of StableHLO text: each with its line, its column, its kind and its reason."""

from __future__ import annotations

import pytest

import xbuild as xb

HEAD = "func.func @main(%x: tensor<4xf32>, %i: tensor<i32>) -> tensor<4xf32> {\n"
END = "\n  return %x : tensor<4xf32>\n}"
FAULTS = [
    ("  %0 = stablehlo.add %x, %y : tensor<4xf32>", 2, 3, "undefined_name", "there is no value %y"),
    ("  %0 = stablehlo.add %x, %i : tensor<4xf32>", 2, 3, "shape_mismatch", "operand %i is s32[], and f32[4] is written"),
    ("  %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<5xf32>", 2, 3, "shape_mismatch", "the result is f32[4], and f32[5] is written"),
    ("  %0 = stablehlo.addd %x, %x : tensor<4xf32>", 2, 8, "unknown_opcode", "has no short form"),
    ('  %0 = "stablehlo.addd"(%x) : (tensor<4xf32>) -> tensor<4xf32>', 2, 3, "unknown_opcode", "xbuild reads no stablehlo.addd"),
    ("  %0 = stablehlo.add %x, %x tensor<4xf32>", 2, 29, "syntax", "':' before the types is wanted, and 'tensor' stands here"),
    ("  %0 = stablehlo.add %x, %x : tensor<4xf33>", 2, 40, "syntax", "no element type 'f33'"),
    ("  %0 = stablehlo.add %x : tensor<4xf32>", 2, 3, "arity_mismatch", "1 operands, and 2 are wanted"),
    ("  %0:2 = stablehlo.abs %x : tensor<4xf32>", 2, 10, "arity_mismatch", "has 1 results, and names of 2 are written"),
    ("  %x = stablehlo.abs %x : tensor<4xf32>", 2, 3, "duplicate_name", "there is a value %x already"),
    ("  %0 = stablehlo.iota dim = 3 : tensor<4xi32>", 2, 3, "dimension_out_of_range", "stablehlo.iota"),
    ("  %0 = stablehlo.transpose %x, dims = [0, 0] : (tensor<4xf32>) -> tensor<4xf32>", 2, 3, "not_permutation", "permutation"),
    ("  %0 = stablehlo.transpose %x, dimz = [0] : (tensor<4xf32>) -> tensor<4xf32>", 2, 32, "syntax", "'dims' is wanted, and 'dimz' stands here"),
    ('  %0 = "stablehlo.iota"() : () -> tensor<4xi32>', 2, 3, "missing_attribute", "attribute 'iota_dimension' is missing"),
    ('  %0 = "stablehlo.iota"() {iota_dimension = 0 : i64, iota = 1} : () -> tensor<4xi32>', 2, 3, "unknown_attribute", "no attribute 'iota'"),
    ('  %0 = "stablehlo.iota"() {iota_dimension = "0"} : () -> tensor<4xi32>', 2, 3, "invalid_attribute", "an integer is wanted"),
    ('  %0 = "stablehlo.iota"() {iota_dimension = 0, iota_dimension = 0} : () -> tensor<4xi32>', 2, 48, "duplicate_attribute", "given twice"),
    ("  %0 = stablehlo.abs %x : tensor<?xf32>", 2, 3, "missing_shape", "extents that are not known"),
    ("  %0 = stablehlo.abs %x : tensor<*xf32>", 2, 34, "syntax", "rank is not known"),
    ('  %0 = "stablehlo.uniform_quantize"(%x) : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>>', 2, 3, "", "uniform_quantize"),
    ("  %0 = call @nobody(%x) : (tensor<4xf32>) -> tensor<4xf32>", 2, 3, "undefined_name", "there is no function @nobody"),
    ("  %0 = call @main(%x, %i) : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>", 2, 3, "nested_too_deep", "@main calls itself"),
    ('  %0 = stablehlo.custom_call @"f(%x) : (tensor<4xf32>) -> tensor<4xf32>', 2, 30, "syntax", "a symbol"),
    ("  %0 = stablehlo.abs %x : !gone", 2, 27, "undefined_name", "there is no type '!gone'"),
    ("  %0 = stablehlo.abs %x {a = #gone} : tensor<4xf32>", 2, 30, "undefined_name", "there is no attribute '#gone'"),
    (
        '  %0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({\n  ^bb0(%a: tensor<f32>):\n'
        "    %b = stablehlo.slice %x [0:1] : (tensor<4xf32>) -> tensor<1xf32>\n    stablehlo.return %a : tensor<f32>\n"
        "  }) : (tensor<4xf32>) -> tensor<4xf32>", 4, 5, "foreign_value", "%x is a value from outside of the region",
    ),
    ('  "stablehlo.case"(%i) ({\n  ^a:\n    stablehlo.return\n  ^b:\n    stablehlo.return\n  }) : (tensor<i32>) -> ()', 5, 3, "syntax", "several blocks"),
]  # fmt: skip
WHOLE = [
    ("", "the text has no function"),
    ("func.func @main(%x: tensor<4xf32>) {", "this region is never closed"),
    ("module @m {\n  func.func @f()\n}", "@f has no body"),
    ("func.func @f() { return }\nfunc.func @f() { return }", "there is a function @f already"),
    ("func.func @f(%a: tensor<f32>, %a: tensor<f32>) { return }", "there is a value %a already"),
    ("func.func @f() { }", "ends without a return"),
    (
        "module @a { func.func @f() { return } }\n// -----\nmodule @b { func.func @f() { return } }",
        "the text has 2 modules",
    ),
    ("#loc1 = loc(#loc2)\n#loc2 = loc(#loc1)\nfunc.func @f() { return loc(#loc1) }", "is defined by itself"),
    ("!a = !a\nfunc.func @f(%x: !a) { return }", "is defined by itself"),
    ("ML\udcefR\x01", "MLIR bytecode"),
    ("func.func @f() { stablehlo.compare LT, }", "a value, such as %0, is wanted"),
    ("hello", "an operation is wanted, and 'hello' is none"),
    ("%", "the name of a result is wanted"),
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


@pytest.mark.parametrize(
    "wrong", ["  %N = stablehlo.add %x, %q : tensor<4xf32>", "  %N = stablehlo.add %x %x : tensor<4xf32>"]
)
def test_several_faults_are_told_at_once_and_users_of_faulty_values_are_not_blamed(wrong: str) -> None:
    lines = [wrong.replace("N", str(n)) for n in range(30)]
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse_stablehlo(HEAD + "\n".join([*lines, "  %u = stablehlo.add %0, %1 : tensor<4xf32>"]) + END)
    assert [fault.line for fault in caught.value.faults] == list(range(2, 22))
    assert str(caught.value).endswith("and 10 more")


def test_a_text_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="StableHLO text is wanted, and int is given"):
        xb.parse_stablehlo(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="partitions=0"):
        xb.parse_stablehlo("", partitions=0)
