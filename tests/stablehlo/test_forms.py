"""The pretty and the generic form of an operation are read as the same instruction."""

from __future__ import annotations

import pytest

import xbuild as xb
from xbuild.stablehlo.reading.rules import RULES
from xbuild.stablehlo.syntax.form_rows import ROWS
from xbuild.stablehlo.syntax.forms import compiled

X, I, P = "%x: tensor<4x6xf32>", "%i: tensor<i32>", "%p: tensor<i1>"
FORMS = [
    ("stablehlo.add %x, %x : tensor<4x6xf32>", '"stablehlo.add"(%x, %x) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>'),
    ("stablehlo.convert %x : (tensor<4x6xf32>) -> tensor<4x6xf64>", '"stablehlo.convert"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf64>'),
    ("stablehlo.constant dense<[1, 2]> : tensor<2xi8>", '"stablehlo.constant"() <{value = dense<[1, 2]> : tensor<2xi8>}> : () -> tensor<2xi8>'),
    ("stablehlo.iota dim = 1 : tensor<2x3xui8>", '"stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<2x3xui8>'),
    (
        "stablehlo.compare LT, %x, %x, TOTALORDER : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>",
        '"stablehlo.compare"(%x, %x) <{comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type TOTALORDER>}> : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>',
    ),
    ("stablehlo.select %p, %x, %x : tensor<i1>, tensor<4x6xf32>", '"stablehlo.select"(%p, %x, %x) : (tensor<i1>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>'),
    ("stablehlo.complex %x, %x : tensor<4x6xcomplex<f32>>", '"stablehlo.complex"(%x, %x) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xcomplex<f32>>'),
    ("stablehlo.tuple %x, %i : tuple<tensor<4x6xf32>, tensor<i32>>", '"stablehlo.tuple"(%x, %i) : (tensor<4x6xf32>, tensor<i32>) -> tuple<tensor<4x6xf32>, tensor<i32>>'),
    ("stablehlo.slice %x [1:3, 0:6:2] : (tensor<4x6xf32>) -> tensor<2x3xf32>", '"stablehlo.slice"(%x) {start_indices = array<i64: 1, 0>, limit_indices = dense<[3, 6]> : tensor<2xi64>, strides = array<i64: 1, 2>} : (tensor<4x6xf32>) -> tensor<2x3xf32>'),
    ("stablehlo.pad %x, %c, low = [1, 0], high = [0, -1], interior = [2, 0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<11x5xf32>", '"stablehlo.pad"(%x, %c) {edge_padding_low = array<i64: 1, 0>, edge_padding_high = array<i64: 0, -1>, interior_padding = array<i64: 2, 0>} : (tensor<4x6xf32>, tensor<f32>) -> tensor<11x5xf32>'),
    ("stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>", '"stablehlo.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>'),
    ("stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<3xi32>", '"stablehlo.broadcast_in_dim"(%i) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<3xi32>'),
    ("stablehlo.concatenate %x, %x, dim = 1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x12xf32>", '"stablehlo.concatenate"(%x, %x) {dimension = 1 : i64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x12xf32>'),
    (
        "stablehlo.dot_general %x, %x, contracting_dims = [1] x [1], precision = [HIGH, HIGHEST] : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x4xf32>",
        '"stablehlo.dot_general"(%x, %x) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGHEST>]}> : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x4xf32>',
    ),
    ("stablehlo.reduce_precision %x, format = e5m10 : tensor<4x6xf32>", '"stablehlo.reduce_precision"(%x) {exponent_bits = 5 : i32, mantissa_bits = 10 : i32} : (tensor<4x6xf32>) -> tensor<4x6xf32>'),
    ("stablehlo.fft %z, type = FFT, length = [4] : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>", '"stablehlo.fft"(%z) {fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 4>} : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>'),
    ('stablehlo.custom_call @f(%x) {backend_config = "a\\22b"} : (tensor<4x6xf32>) -> tensor<f32>', '"stablehlo.custom_call"(%x) <{call_target_name = "f", backend_config = "a\\22b"}> : (tensor<4x6xf32>) -> tensor<f32>'),
    ("stablehlo.cholesky %s, lower = true : tensor<3x3xf32>", '"stablehlo.cholesky"(%s) {lower = true} : (tensor<3x3xf32>) -> tensor<3x3xf32>'),
    ("stablehlo.rng %c, %c, %d, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<5xf32>", '"stablehlo.rng"(%c, %c, %d) {rng_distribution = #stablehlo<rng_distribution UNIFORM>} : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<5xf32>'),
    ("stablehlo.replica_id : tensor<ui32>", '"stablehlo.replica_id"() : () -> tensor<ui32>'),
    ("stablehlo.after_all : !stablehlo.token", '"stablehlo.after_all"() : () -> !stablehlo.token'),
    ("stablehlo.create_token : !stablehlo.token", '"stablehlo.after_all"() : () -> !stablehlo.token'),
    ("stablehlo.get_dimension_size %x, dim = 1 : (tensor<4x6xf32>) -> tensor<i32>", '"stablehlo.get_dimension_size"(%x) {dimension = 1 : i64} : (tensor<4x6xf32>) -> tensor<i32>'),
    ("stablehlo.optimization_barrier %x : tensor<4x6xf32>", '"stablehlo.optimization_barrier"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>'),
    ("chlo.top_k(%x, k = 2) : tensor<4x6xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)", '"chlo.top_k"(%x) {k = 2 : i64} : (tensor<4x6xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)'),
    ("chlo.erf %x : tensor<4x6xf32> -> tensor<4x6xf32>", '"chlo.erf"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>'),
]  # fmt: skip
SIGNATURE = f"({X}, {I}, {P}, %c: tensor<f32>, %z: tensor<4xcomplex<f32>>, %s: tensor<3x3xf32>, %d: tensor<1xi64>)"


def _read(line: str) -> xb.Module:
    count = line.rpartition("->")[2].count("tensor") if line.rpartition("->")[2].strip().startswith("(") else 1
    results = f":{count}" if count > 1 else ""
    return xb.parse_stablehlo(f"func.func @main{SIGNATURE} {{\n  %0{results} = {line}\n  return\n}}")


@pytest.mark.parametrize(("pretty", "generic"), FORMS, ids=lambda line: line[:30])
def test_two_forms_are_one_program(pretty: str, generic: str) -> None:
    one, other = _read(pretty), _read(generic)
    assert str(one.entry) == str(other.entry)
    assert len(one.entry.instructions) > 8


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_made_of_parts_that_there_are(name: str) -> None:
    assert compiled(ROWS[name])


def test_what_has_a_pretty_form_has_a_rule() -> None:
    without = {name for name in ROWS if name not in RULES and name.partition(".")[0] in ("stablehlo", "chlo")}
    assert without <= {
        "stablehlo.return", "stablehlo.dynamic_broadcast_in_dim", "stablehlo.dynamic_iota", "stablehlo.dynamic_pad",
        "stablehlo.real_dynamic_slice", "stablehlo.uniform_dequantize", "stablehlo.uniform_quantize",
    }  # fmt: skip
