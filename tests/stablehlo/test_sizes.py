"""Programs with open dimensions read for given sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from interpreter import execute
from xbuild.cli import main
from xbuild.stablehlo.reading.reader import parse_stablehlo

# In the form of a shape-polymorphic export of JAX: sizes are measured, asserted, and passed on to the function inside.
TEXT = """
module @poly {
  func.func public @main(%arg0: tensor<?x3xf32>, %arg1: tensor<?xf32>) -> tensor<?xf32> {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %b = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %ok = stablehlo.compare GE, %b, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%ok, %b) {api_version = 2 : i32, has_side_effect = true,
      error_message = "Expected b >= 1. args[0].shape = (b, 3), args[1].shape = (3*b + 1). Obtained"}
      : (tensor<i1>, tensor<i32>) -> ()
    %r = call @inner(%b, %arg0, %arg1) : (tensor<i32>, tensor<?x3xf32>, tensor<?xf32>) -> tensor<?xf32>
    return %r : tensor<?xf32>
  }
  func.func private @inner(%b: tensor<i32> {jax.global_constant = "b"}, %x: tensor<?x3xf32>, %y: tensor<?xf32>)
      -> tensor<?xf32> {
    %three = stablehlo.constant dense<3> : tensor<i32>
    %n = stablehlo.multiply %b, %three : tensor<i32>
    %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %flat = stablehlo.dynamic_reshape %x, %s : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>
    %whole = stablehlo.concatenate %flat, %y, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %l:2 = stablehlo.while(%i = %zero, %v = %whole) : tensor<i32>, tensor<?xf32>
    cond {
      %go = stablehlo.compare LT, %i, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %step = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %step : tensor<i32>
      %size = stablehlo.get_dimension_size %v, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %sizes = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>
      %ones = stablehlo.constant dense<1.0> : tensor<f32>
      %more = stablehlo.dynamic_broadcast_in_dim %ones, %sizes, dims = []
        : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
      %w = stablehlo.add %v, %more : tensor<?xf32>
      stablehlo.return %next, %w : tensor<i32>, tensor<?xf32>
    }
    return %l#1 : tensor<?xf32>
  }
}
"""


@pytest.mark.parametrize("sizes", [{"b": 2}, {"arg0.0": 2, "arg1.0": 7}])
def test_sizes_make_all_types_static(sizes: dict[str, int]) -> None:
    module = parse_stablehlo(TEXT, shapes=sizes)
    assert str(module.entry.program_shape) == "(f32[2,3], f32[7]) -> f32[13]"
    x, y = np.arange(6, dtype="f4").reshape(2, 3), np.zeros(7, "f4")
    assert execute(module, [[x, y]])[0].tolist() == [2, 3, 4, 5, 6, 7] + [2] * 7
    assert xb.parse_hlo(module.to_hlo()).to_hlo() == module.to_hlo()


REFUSED = [
    ({}, r"dimension 0 of %arg0, tensor<\?x3xf32>, is unknown[\s\S]*'b' or 'arg0.0', for example shapes=\{'b': 4\}"),
    ({"arg0.0": 2}, r"dimension 0 of %arg1.*is unknown"),
    ({"b": 2, "c": 1}, "shapes= contains 'c', which is not an unknown dimension"),
    ({"b": 0}, "the sizes violate an assertion of the program: Expected b >= 1"),
]


@pytest.mark.parametrize(("sizes", "message"), REFUSED)
def test_sizes_that_are_missing_or_wrong_are_told(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(xb.HloParseError, match=message):
        parse_stablehlo(TEXT, shapes=sizes)


def test_types_that_contradict_the_sizes_are_told() -> None:
    text = TEXT.replace(
        "(tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>", "(tensor<?x3xf32>, tensor<1xi32>) -> tensor<5xf32>"
    )
    with pytest.raises(
        xb.HloParseError, match=r"the operand specifies the extents \[6\], but the result type is f32\[5\]"
    ):
        parse_stablehlo(text, shapes={"b": 2})


def test_a_function_that_calls_itself_is_refused() -> None:
    types = "(tensor<i32>, tensor<?x3xf32>, tensor<?xf32>) -> tensor<?xf32>"
    text = TEXT.replace("%three = stablehlo", f"%again = call @inner(%b, %x, %y) : {types}\n    %three = stablehlo")
    with pytest.raises(xb.HloParseError, match="calls itself"):
        parse_stablehlo(text, shapes={"b": 2})


def test_a_slice_may_begin_anywhere_where_its_extents_are_known() -> None:
    text = """
    func.func @main(%x: tensor<?x3xf32>, %i: tensor<1xi32>) -> tensor<1x3xf32> {
      %zero = stablehlo.constant dense<0> : tensor<1xi32>
      %begin = stablehlo.concatenate %i, %zero, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %sizes = stablehlo.constant dense<[1, 3]> : tensor<2xi32>
      %end = stablehlo.add %begin, %sizes : tensor<2xi32>
      %ones = stablehlo.constant dense<1> : tensor<2xi32>
      %r = stablehlo.real_dynamic_slice %x, %begin, %end, %ones
        : (tensor<?x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<1x3xf32>
      return %r : tensor<1x3xf32>
    }"""
    module = parse_stablehlo(text, shapes={"x.0": 4})
    given = np.arange(12, dtype="f4").reshape(4, 3)
    assert execute(module, [[given, np.int32([2])]])[0].tolist() == [[6, 7, 8]]


def test_a_size_may_be_the_whole_extent() -> None:
    line = "%r = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<2xf32>, tensor<i32>) -> tensor<2xf32>"
    text = f"""func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %n = stablehlo.constant dense<2> : tensor<i32>
      {line}
      return %r : tensor<2xf32>
    }}"""
    assert execute(parse_stablehlo(text), [[np.float32([1, 2])]])[0].tolist() == [1, 2]
    with pytest.raises(xb.HloParseError, match=r"f32\[<=2\]"):
        parse_stablehlo(text.replace("dense<2>", "dense<1>"))


def test_commands_take_sizes(tmp_path: Path) -> None:
    file = tmp_path / "poly.mlir"
    file.write_text(TEXT)
    done = CliRunner().invoke(main, ["check", str(file), "--shape", "b=2"])
    assert done.exit_code == 0, done.output
    missing = CliRunner().invoke(main, ["check", str(file)])
    assert (missing.exit_code, "is unknown" in missing.output) == (1, True)
    wrong = CliRunner().invoke(main, ["check", str(file), "--shape", "b=two"])
    assert (wrong.exit_code, "expected NAME=SIZE" in wrong.output) == (2, True)


@pytest.mark.parametrize(
    ("given", "used", "reason"),
    [
        ("4", "?", "is defined as f32[4], but its type here is tensor<?xf32>"),
        ("?", "4", "is defined as tensor<?xf32>, but its type here is f32[4]"),
    ],
)
def test_an_operand_has_the_type_with_which_it_comes(given: str, used: str, reason: str) -> None:
    text = (
        f"func.func @main(%x: tensor<{given}xf32>, %y: tensor<?xf32>) -> tensor<{used}xf32> {{\n"
        f"  %0 = stablehlo.abs %x : tensor<{used}xf32>\n  return %0 : tensor<{used}xf32>\n}}"
    )
    with pytest.raises(xb.HloParseError) as caught:
        parse_stablehlo(text, shapes={"y.0": 4, **({"x.0": 4} if given == "?" else {})})
    assert reason in caught.value.faults[0].message
