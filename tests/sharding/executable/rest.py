"""Sharded reductions, orders, random bits and control flow whose executable tests `kinds.py` writes."""

from __future__ import annotations

# ruff: noqa: E501 (rows of a table)
from .stated import ADDED, X2, X4, XY, kind

LESS = """({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %c = stablehlo.compare LT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  })"""

REDUCTIONS = [
    kind(
        "reduce",
        XY,
        ['8x6xi32 [{"x"}, {"y"}]'],
        '6xi32 [{"y"}]',
        """
  %c = stablehlo.constant dense<5> : tensor<i32>
  %0 = stablehlo.reduce(%arg0 init: %c) applies stablehlo.add across dimensions = [0] $[{"y"}] : (T8x6, tensor<i32>) -> T6
  return %0 : T6""",
    ),
    kind(
        "reduce of uneven parts by maximum",
        X4,
        ["6x3xi32 [{}, {}]"],
        "3xi32 [{}]",
        """
  %n = stablehlo.negate %arg0 $[{"x"}, {}] : T6x3
  %c = stablehlo.constant dense<-100> : tensor<i32>
  %0 = stablehlo.reduce(%n init: %c) applies stablehlo.maximum across dimensions = [0] $[{}] : (T6x3, tensor<i32>) -> T3
  return %0 : T3""",
    ),
    kind(
        "a window of neighbours",
        X4,
        ['12xi32 [{"x"}]'],
        '12xi32 [{"x"}]',
        f"""
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%arg0, %c) {ADDED} {{window_dimensions = array<i64: 5>,
    padding = dense<[[2, 2]]> : tensor<1x2xi64>,
    sdy.sharding = #sdy.sharding_per_value<[<@m, [{{"x"}}]>]>}} : (T12, tensor<i32>) -> T12
  return %0 : T12""",
    ),
    kind(
        "a cumulative sum",
        X2,
        ['8x3xi32 [{"x"}, {}]'],
        '8x3xi32 [{"x"}, {}]',
        f"""
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%arg0, %c) {ADDED} {{window_dimensions = array<i64: 8, 1>,
    padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>,
    sdy.sharding = #sdy.sharding_per_value<[<@m, [{{"x"}}, {{}}]>]>}} : (T8x3, tensor<i32>) -> T8x3
  return %0 : T8x3""",
    ),
    kind(
        "windows with strides",
        X2,
        ['8x6xi32 [{"x"}, {}]'],
        "4x3xi32 [{}, {}]",
        f"""
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%arg0, %c) {ADDED} {{window_dimensions = array<i64: 2, 2>,
    window_strides = array<i64: 2, 2>,
    sdy.sharding = #sdy.sharding_per_value<[<@m, [{{"x"}}, {{}}]>]>}} : (T8x6, tensor<i32>) -> T4x3
  return %0 : T4x3""",
    ),
    kind(
        "select and scatter",
        XY,
        ['8x6xi32 [{"x"}, {"y"}]', '4x3xi32 [{"x"}, {}]'],
        '8x6xi32 [{"x"}, {"y"}]',
        f"""
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.select_and_scatter"(%arg0, %arg1, %c) ({{
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %d = stablehlo.compare GE, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %d : tensor<i1>
  }}, {ADDED[1:-1]}) {{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>,
    sdy.sharding = #sdy.sharding_per_value<[<@m, [{{"x"}}, {{"y"}}]>]>}} : (T8x6, T4x3, tensor<i32>) -> T8x6
  return %0 : T8x6""",
    ),
]

ORDERS = [
    kind(
        "sort along a cut dimension",
        X2,
        ['6x4xi32 [{"x"}, {}]'],
        '6x4xi32 [{"x"}, {}]',
        f"""
  %0 = "stablehlo.sort"(%arg0) <{{dimension = 0 : i64}}> {LESS} $[{{"x"}}, {{}}] : (T6x4) -> T6x4
  return %0 : T6x4""",
    ),
    kind(
        "sort beside a cut dimension",
        XY,
        ['6x4xi32 [{"x"}, {"y"}]'],
        '6x4xi32 [{"x"}, {"y"}]',
        f"""
  %0 = "stablehlo.sort"(%arg0) <{{dimension = 1 : i64}}> {LESS} $[{{"x"}}, {{}}] : (T6x4) -> T6x4
  %1 = stablehlo.negate %0 $[{{"x"}}, {{"y"}}] : T6x4
  return %1 : T6x4""",
    ),
    kind(
        "concatenate along a cut dimension",
        X2,
        ['4x2xi32 [{"x"}, {}]', '6x2xi32 [{"x"}, {}]'],
        '10x2xi32 [{"x"}, {}]',
        """
  %0 = stablehlo.concatenate %arg0, %arg1, dim = 0 $[{"x"}, {}] : (T4x2, T6x2) -> T10x2
  return %0 : T10x2""",
    ),
    kind(
        "iota of two cut dimensions",
        XY,
        ['4x6xi32 [{"x"}, {"y"}]'],
        '4x6xi32 [{"x"}, {"y"}]',
        """
  %0 = stablehlo.iota dim = 0 $[{"x"}, {"y"}] : T4x6
  %1 = stablehlo.iota dim = 1 $[{"y"}, {"x"}] : T4x6
  %2 = stablehlo.multiply %0, %arg0 $[{"x"}, {"y"}] : T4x6
  %3 = stablehlo.add %2, %1 $[{"x"}, {"y"}] : T4x6
  return %3 : T4x6""",
    ),
    kind(
        "a slice whose start is a number",
        X4,
        ['8x3xi32 [{"x"}, {}]', "i32 []"],
        "2x3xi32 [{}, {}]",
        """
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_slice %arg0, %arg1, %z, sizes = [2, 3] $[{}, {}] : (T8x3, tensor<i32>, tensor<i32>) -> T2x3
  return %0 : T2x3""",
    ),
    kind(
        "an update whose start is a number",
        XY,
        ['8x4xi32 [{"x"}, {"y"}]', '3x4xi32 [{}, {"y"}]'],
        '8x4xi32 [{"x"}, {"y"}]',
        """
  %s = stablehlo.constant dense<3> : tensor<i32>
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %s, %z $[{"x"}, {"y"}]
    : (T8x4, T3x4, tensor<i32>, tensor<i32>) -> T8x4
  return %0 : T8x4""",
    ),
    kind(
        "a Fourier transform beside a cut dimension",
        X2,
        ['4x4xf32 [{"x"}, {}]'],
        '4x4xf32 [{"x"}, {}]',
        """
  %0 = stablehlo.fft %arg0, type = RFFT, length = [4] $[{"x"}, {}] : (tensor<4x4xf32>) -> tensor<4x3xcomplex<f32>>
  %1 = stablehlo.fft %0, type = IRFFT, length = [4] $[{}, {}] : (tensor<4x3xcomplex<f32>>) -> tensor<4x4xf32>
  %2 = stablehlo.round_nearest_even %1 $[{"x"}, {}] : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>""",
    ),
    kind(
        "random bits",
        X2,
        ["2xui64 [{}]"],
        '8xui32 [{"x"}]',
        """
  %0, %1 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY
    {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>, <@m, [{"x"}]>]>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
  return %1 : tensor<8xui32>""",
    ),
    kind(
        "a constant",
        XY,
        ['4x2xi32 [{"x"}, {}]'],
        '4x2xi32 [{"x"}, {"y"}]',
        """
  %0 = stablehlo.constant $[{"x"}, {"y"}] dense<[[1, 2], [3, 4], [5, 6], [7, 8]]> : T4x2
  %1 = stablehlo.add %0, %arg0 $[{"x"}, {"y"}] : T4x2
  return %1 : T4x2""",
    ),
]

CALLS = [
    kind(
        "a loop",
        XY,
        ['8x4xi32 [{"x"}, {"y"}]'],
        '8x4xi32 [{"x"}, {}]',
        """
  %z = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%n = %z, %v = %arg0) : tensor<i32>, T8x4
    attributes {sdy.sharding = #sdy.sharding_per_value<[<@m, []>, <@m, [{"x"}, {"y"}]>]>}
    cond {
      %c = stablehlo.compare LT, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %m = stablehlo.add %n, %one : tensor<i32>
      %w = stablehlo.reverse %v, dims = [0] $[{"x"}, {"y"}] : T8x4
      %u = stablehlo.add %w, %v : T8x4
      stablehlo.return %m, %u : tensor<i32>, T8x4
    }
  return %0#1 : T8x4""",
    ),
    kind(
        "a branch",
        X2,
        ['8x2xi32 [{"x"}, {}]', "i32 []"],
        '8x2xi32 [{"x"}, {}]',
        """
  %0 = "stablehlo.case"(%arg1) ({
      %a = stablehlo.negate %arg0 : T8x2
      stablehlo.return %a : T8x2
    }, {
      %b = stablehlo.reverse %arg0, dims = [0] : T8x2
      stablehlo.return %b : T8x2
    }) $[{"x"}, {}] : (tensor<i32>) -> T8x2
  return %0 : T8x2""",
    ),
    kind(
        "a call",
        X2,
        ['8x2xi32 [{"x"}, {}]'],
        "8x2xi32 [{}, {}]",
        """
  %0 = func.call @inner(%arg0) $[{"x"}, {}] : (T8x2) -> T8x2
  return %0 : T8x2""",
        more="""func.func private @inner(%a: tensor<8x2xi32>) -> tensor<8x2xi32> {
  %0 = stablehlo.multiply %a, %a : tensor<8x2xi32>
  %1 = stablehlo.reverse %0, dims = [0] : tensor<8x2xi32>
  return %1 : tensor<8x2xi32>
}
""",
    ),
    kind(
        "a manual computation",
        XY,
        ['8x4xi32 [{"x"}, {"y"}]'],
        '8x4xi32 [{"x"}, {"y"}]',
        """
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@m, [{"x"}, {"y"}]>] out_shardings=[<@m, [{"x"}, {"y"}]>]
      manual_axes={"x", "y"} (%b: T4x2) {
    %1 = stablehlo.reverse %b, dims = [0] : T4x2
    sdy.return %1 : T4x2
  } : (T8x4) -> T8x4
  return %0 : T8x4""",
        lambda x: x.reshape(2, 4, 4)[:, ::-1].reshape(8, 4),
    ),
    kind(
        "a computation that is manual along one axis",
        XY,
        ['8x4xi32 [{"x"}, {"y"}]'],
        '8x4xi32 [{"x"}, {"y"}]',
        """
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@m, [{"x"}, {"y"}]>] out_shardings=[<@m, [{"x"}, {"y"}]>]
      manual_axes={"x"} (%b: T4x4) {
    %1 = stablehlo.reverse %b, dims = [0, 1] $[{}, {"y"}] : T4x4
    sdy.return %1 : T4x4
  } : (T8x4) -> T8x4
  return %0 : T8x4""",
        lambda x: x.reshape(2, 4, 4)[:, ::-1, ::-1].reshape(8, 4),
    ),
    kind(
        "a named computation",
        X2,
        ['8x4xi32 [{"x"}, {}]'],
        '8x4xi32 [{"x"}, {}]',
        """
  %0 = sdy.named_computation<"f">(%arg0) in_shardings=[<@m, [{"x"}, {}]>] out_shardings=[<@m, [{"x"}, {}]>] (%b: T8x4) {
    %1 = stablehlo.negate %b : T8x4
    sdy.return %1 : T8x4
  } : (T8x4) -> T8x4
  return %0 : T8x4""",
    ),
]
