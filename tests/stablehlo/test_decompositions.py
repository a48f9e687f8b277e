"""Operations that become several ops: dynamic extents, quantized values, special functions, roots, bits of i1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import execute
from xbuild.stablehlo.reading.reader import parse_stablehlo

Q = "!quant.uniform<i8:f32, 0.5:3>"
AXIS = "!quant.uniform<i8:f32:1, {0.5, 0.25:1}>"
NARROW = "!quant.uniform<i8<-4:4>:f32, 0.5>"


def run(text: str, *arguments: Any, devices: int = 1) -> Any:
    """The result on the last device."""
    module = parse_stablehlo(text, replicas=devices)
    return execute(module, [[np.asarray(each) for each in arguments]] * devices)[-1]


def function(signature: str, *lines: str) -> str:
    return f"func.func @main{signature} {{\n  {chr(10).join(lines)}\n}}"


def _dynamic(lines: str, given: str, result: str) -> str:
    return function(f"(%x: {given}) -> {result}", lines, f"return %r : {result}")


SIZES = "%s = stablehlo.constant dense<[2, 3]> : tensor<2xi64>"
ROWS = [
    (_dynamic(f"{SIZES} %r = stablehlo.dynamic_reshape %x, %s : (tensor<6xf32>, tensor<2xi64>) -> tensor<2x3xf32>",
              "tensor<6xf32>", "tensor<2x3xf32>"), np.arange(6, dtype="f4"), [[0, 1, 2], [3, 4, 5]]),
    (_dynamic(f"{SIZES} %r = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<3xf32>, tensor<2xi64>)"
              " -> tensor<2x3xf32>", "tensor<3xf32>", "tensor<2x3xf32>"), np.float32([1, 2, 3]), [[1, 2, 3]] * 2),
    (_dynamic(f"{SIZES} %r = stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi64>) -> tensor<2x3xi32>",
              "tensor<f32>", "tensor<2x3xi32>"), np.float32(0), [[0, 1, 2]] * 2),
    (_dynamic("%l = stablehlo.constant dense<1> : tensor<1xi64> %h = stablehlo.constant dense<2> : tensor<1xi64>"
              " %i = stablehlo.constant dense<0> : tensor<1xi64> %f = stablehlo.constant dense<9.0> : tensor<f32>"
              ' %r = "stablehlo.dynamic_pad"(%x, %f, %l, %h, %i) : (tensor<2xf32>, tensor<f32>, tensor<1xi64>,'
              " tensor<1xi64>, tensor<1xi64>) -> tensor<5xf32>", "tensor<2xf32>", "tensor<5xf32>"),
     np.float32([1, 2]), [9, 1, 2, 9, 9]),
    (_dynamic("%l = stablehlo.constant dense<1> : tensor<1xi64> %h = stablehlo.constant dense<4> : tensor<1xi64>"
              " %i = stablehlo.constant dense<2> : tensor<1xi64>"
              ' %r = "stablehlo.real_dynamic_slice"(%x, %l, %h, %i) : (tensor<5xf32>, tensor<1xi64>, tensor<1xi64>,'
              " tensor<1xi64>) -> tensor<2xf32>", "tensor<5xf32>", "tensor<2xf32>"),
     np.arange(5, dtype="f4"), [1, 3]),
    (_dynamic("%d = stablehlo.get_dimension_size %x, dim = 0 : (tensor<6xf32>) -> tensor<i32>"
              " %s = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>"
              " %r = stablehlo.dynamic_reshape %x, %s : (tensor<6xf32>, tensor<1xi32>) -> tensor<6xf32>",
              "tensor<6xf32>", "tensor<6xf32>"), np.arange(6, dtype="f4"), [0, 1, 2, 3, 4, 5]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "given", "wanted"), ROWS)
def test_extents_that_follow_from_constants_are_those_of_the_static_op(text: str, given: Any, wanted: Any) -> None:
    assert run(text, given).tolist() == wanted


def test_extents_that_are_not_known_are_refused_with_the_operand() -> None:
    text = function(
        "(%x: tensor<2xf32>, %s: tensor<1xi64>, %f: tensor<f32>) -> tensor<3xf32>",
        '%r = "stablehlo.dynamic_pad"(%x, %f, %s, %s, %s) : (tensor<2xf32>, tensor<f32>, tensor<1xi64>, '
        "tensor<1xi64>, tensor<1xi64>) -> tensor<3xf32>",
        "return %r : tensor<3xf32>",
    )
    with pytest.raises(xb.HloParseError, match="operand 2, %s, cannot be computed from constants"):
        parse_stablehlo(text)
    wrong = ROWS[0][0].replace("dense<[2, 3]>", "dense<[3, 2]>")
    with pytest.raises(
        xb.HloParseError, match=r"the operand specifies the extents \[3, 2\], but the result type is f32\[2,3\]"
    ):
        parse_stablehlo(wrong)


def quantized(element: str, op: str, dims: str = "3") -> str:
    type_ = f"tensor<{dims}x{element}>"
    return function(
        f"(%x: tensor<{dims}xf32>) -> (tensor<{dims}xf32>, {type_})",
        f"%q = stablehlo.uniform_quantize %x : (tensor<{dims}xf32>) -> {type_}",
        f"%r = stablehlo.{op} : {type_}",
        f"%f = stablehlo.uniform_dequantize %r : ({type_}) -> tensor<{dims}xf32>",
        f"return %f, %r : tensor<{dims}xf32>, {type_}",
    )


def test_quantized_values_are_computed_on_their_numbers() -> None:
    # (1, 2.25, 100) is (5, 7.5 -> 8, 127) in integers, of which the numbers are 1, 2.5 and 62.
    numbers, integers = run(quantized(Q, "add %q, %q"), np.float32([1, 2.25, 100]))
    assert (numbers.tolist(), integers.tolist()) == ([2, 5, 62], [7, 13, 127])
    assert integers.dtype == np.int8


def test_each_slice_may_have_a_scale_of_its_own() -> None:
    numbers, integers = run(quantized(AXIS, "negate %q", "2x2"), np.float32([[1, 1], [0.2, 0.2]]))
    assert numbers.tolist() == [[-1, -1], [0, -0.25]]
    assert integers.tolist() == [[-2, -3], [0, 0]]


def test_a_storage_may_have_a_narrower_range() -> None:
    assert run(quantized(NARROW, "abs %q"), np.float32([-9, 1, 9]))[1].tolist() == [4, 2, 4]


def test_what_only_arranges_elements_takes_integers_as_they_are() -> None:
    text = quantized(Q, "reverse %q, dims = [0]")
    module = parse_stablehlo(text)
    (reverse,) = [i for i in module.entry.instructions if i.opcode == "reverse"]
    assert reverse.shape == xb.s8[3]
    assert execute(module, [[np.float32([0, 1, 2])]])[0][1].tolist() == [7, 5, 3]


FUNCTIONS = [
    ("erfc", [0.5], 0.4795001), ("lgamma", [4.0], 1.7917595), ("digamma", [1.0], -0.5772157),
    ("erf_inv", [0.5], 0.4769363),
    ("bessel_i1e", [1.0], 0.2079104), ("is_inf", [np.inf], True), ("is_pos_inf", [-np.inf], False),
    ("conj", [2.0], 2.0),
    ("is_neg_inf", [-np.inf], True), ("square", [3.0], 9.0), ("atan", [1.0], 0.7853982), ("acos", [0.5], 1.0471976),
    ("acosh", [2.0], 1.3169579), ("asin", [0.5], 0.5235988), ("asinh", [-2.0], -1.4436355), ("atanh", [0.5], 0.5493061),
    ("cosh", [1.0], 1.5430806), ("sinh", [0.5], 0.5210953), ("sinh", [-2.0], -3.6268604), ("acosh", [3e38], 89.289992),
    ("asinh", [3e38], 89.289992), ("zeta", [2.0, 1.0], 1.644934), ("polygamma", [1.0, 1.0], 1.644934),
    ("next_after", [1.0, 2.0], 1.0000001),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "wanted"), FUNCTIONS)
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_functions_of_chlo(name: str, given: list[float], wanted: Any, element: str) -> None:
    if element == "f16" and (1e5 < given[0] < np.inf or name == "next_after"):
        given, wanted = [1.0] * len(given), None
    result = "i1" if isinstance(wanted, bool) else element
    names = ", ".join(f"%x{n}" for n in range(len(given)))
    takes = ", ".join(f"%x{n}: tensor<{element}>" for n in range(len(given)))
    types = ", ".join([f"tensor<{element}>"] * len(given))
    line = f'%r = "chlo.{name}"({names}) : ({types}) -> tensor<{result}>'
    text = function(f"({takes}) -> tensor<{result}>", line, f"return %r : tensor<{result}>")
    found = run(text, *(np.array(each, xb.primitive_type(element).dtype) for each in given))
    if wanted is not None:
        assert float(found) == pytest.approx(float(wanted), rel=2e-6 if element == "f32" else 4e-3)


def test_a_function_is_one_computation_for_operands_of_one_shape() -> None:
    lines = [f"%{n} = chlo.lgamma %x : tensor<f32> -> tensor<f32>" for n in range(3)]
    module = parse_stablehlo(function("(%x: tensor<f32>) -> tensor<f32>", *lines, "return %2 : tensor<f32>"))
    assert len({each.attributes.to_apply for each in module.entry.instructions if each.opcode == "call"}) == 1
    assert xb.parse_hlo(module.to_hlo()).to_hlo() == module.to_hlo()


def test_a_cube_root_of_complex_numbers_is_the_principal_one() -> None:
    line = "%r = stablehlo.cbrt %x : tensor<complex<f64>>"
    text = function("(%x: tensor<complex<f64>>) -> tensor<complex<f64>>", line, "return %r : tensor<complex<f64>>")
    assert run(text, -8 + 0j) == pytest.approx(1 + 3**0.5 * 1j)


@pytest.mark.parametrize(("element", "width"), [("i64", 64), ("ui8", 8), ("f32", 32), ("i4", 4)])
def test_bits_of_i1_are_single_bits(element: str, width: int) -> None:
    bits, whole = f"tensor<3x{width}xi1>", f"tensor<3x{element}>"
    text = function(
        f"(%x: {bits}) -> ({whole}, {bits})",
        f"%w = stablehlo.bitcast_convert %x : ({bits}) -> {whole}",
        f"%b = stablehlo.bitcast_convert %w : ({whole}) -> {bits}",
        f"return %w, %b : {whole}, {bits}",
    )
    given = np.random.default_rng(0).integers(0, 2, (3, width)).astype(bool)
    found, back = run(text, given)
    assert np.array_equal(back, given)
    if element == "ui8":
        assert found.tolist() == np.packbits(given, axis=-1, bitorder="little")[:, 0].tolist()


GROUPS = "replica_groups = dense<[[0, 1, 2], [3, 4, -1]]> : tensor<2x3xi64>"


def test_the_root_of_a_broadcast_may_be_a_value() -> None:
    text = function(
        "(%x: tensor<i32>) -> tensor<ui32>",
        "%id = stablehlo.replica_id : tensor<ui32>",
        "%root = stablehlo.constant dense<1> : tensor<1xi32>",
        f'%r = "stablehlo.collective_broadcast"(%id, %root) {{{GROUPS}, has_dynamic_root}}'
        " : (tensor<ui32>, tensor<1xi32>) -> tensor<ui32>",
        "return %r : tensor<ui32>",
    )
    results = execute(parse_stablehlo(text, replicas=6), [[np.int32(0)]] * 6)
    assert [int(each) for each in results] == [1, 1, 1, 4, 4, 0]


def test_a_collective_reduce_gives_the_root_the_sum_and_others_zeros() -> None:
    text = function(
        "(%x: tensor<f32>) -> tensor<f32>",
        '%r = "stablehlo.collective_reduce"(%x) ({',
        "^bb0(%a: tensor<f32>, %b: tensor<f32>):",
        "  %s = stablehlo.add %a, %b : tensor<f32>",
        "  stablehlo.return %s : tensor<f32>",
        f"}}) {{{GROUPS.replace('[3, 4, -1]', '[5, 4, 3]')}}} : (tensor<f32>) -> tensor<f32>",
        "return %r : tensor<f32>",
    )
    results = execute(parse_stablehlo(text, replicas=6), [[np.float32(2**n)] for n in range(6)])
    assert [float(each) for each in results] == [7, 0, 0, 0, 0, 56]


def test_a_function_of_what_it_has_not_is_refused_at_its_place() -> None:
    line = '%r = "chlo.lgamma"(%x) : (tensor<2xi32>) -> tensor<2xi32>'
    with pytest.raises(xb.HloParseError, match=r"<mlir>:2:\d+: chlo.lgamma: .*\[element_type_unsupported\]"):
        parse_stablehlo(function("(%x: tensor<2xi32>) -> tensor<2xi32>", line, "return %r : tensor<2xi32>"))


def test_what_tensorflow_takes_over_from_xla_is_read() -> None:
    text = function(
        "(%x: tensor<2x3xf32>) -> tensor<3x2xf32>",
        "%e = mhlo.erf %x : tensor<2x3xf32>",
        "%r = stablehlo.transpose %e, dims = [1, 0] {result_layout = dense<[0, 1]> : tensor<2xindex>}"
        " : (tensor<2x3xf32>) -> tensor<3x2xf32>",
        "return %r : tensor<3x2xf32>",
    )
    assert run(text, np.zeros((2, 3), "f4")).tolist() == [[0, 0]] * 3


APPROXIMATE = """func.func @greater(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main(%x: tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>) {
  %i = stablehlo.iota dim = 1 : tensor<2x4xi32>
  %c = stablehlo.constant dense<-1> : tensor<i32>
  %l = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %l, %c) {backend_config = "", called_computations = [@greater],
    mhlo.backend_config = {is_fallback = true, recall_target = 0.95 : f32, reduction_dim = 1 : i64, top_k = 2 : i64}}
    : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
  return %1#0, %1#1 : tensor<2x2xf32>, tensor<2x2xi32>
}"""


def test_approximate_top_k_is_a_sort() -> None:
    values, places = execute(parse_stablehlo(APPROXIMATE), [[np.float32([[3, 1, 4, 2], [0, 5, -1, 6]])]])[0]
    assert (values.tolist(), places.tolist()) == ([[4, 3], [6, 5]], [[2, 0], [3, 1]])


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("reduction_dim = 1 : i64, ", "", "reduction_dim is missing"),
        ("[@greater]", "[]", "ApproxTopK needs one comparator"),
        ("reduction_dim = 1", "reduction_dim = 7", "dimension"),
    ],
)
def test_approximate_top_k_that_is_none(old: str, new: str, reason: str) -> None:
    with pytest.raises(xb.HloParseError, match=reason):
        parse_stablehlo(APPROXIMATE.replace(old, new))


def test_the_dictionary_of_a_typed_call_may_stand_under_the_name_that_jax_gives_it() -> None:
    call = '@solve(%x) {backend_config = "", mhlo.backend_config = {side = 76 : ui8}}'
    line = f"%0 = stablehlo.custom_call {call} : (tensor<2xf32>) -> tensor<2xf32>"
    text = function("(%x: tensor<2xf32>) -> tensor<2xf32>", line, "return %0 : tensor<2xf32>")
    attributes = parse_stablehlo(text).entry.root.attributes
    assert attributes.backend_config == "{side = 76 : ui8}"
    assert attributes.api_version == "API_VERSION_TYPED_FFI"


SOLVED = """func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.custom_call @solve(%x) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}"""


def test_a_call_has_the_layouts_that_are_stated_of_its_results() -> None:
    module = parse_stablehlo(SOLVED)
    assert str(module.entry.root.shape) == "f32[2,3]{0,1}"
    assert "result_layouts = [dense<[0, 1]> : tensor<2xindex>]" in module.to_stablehlo()
    by_rows = SOLVED.replace("result_layouts = [dense<[0, 1]", "result_layouts = [dense<[1, 0]")
    assert str(parse_stablehlo(by_rows).entry.root.shape) == "f32[2,3]"


def test_a_layout_of_a_result_is_an_order_of_its_dimensions() -> None:
    with pytest.raises(
        xb.HloParseError, match=r"result_layouts: \[1, 1\] is not a permutation of the dimensions of f32\[2,3\]"
    ):
        parse_stablehlo(SOLVED.replace("result_layouts = [dense<[0, 1]", "result_layouts = [dense<[1, 1]"))
