"""Programs that say on which devices values are, whose executable tests `kinds.py` writes."""

from __future__ import annotations

from .stated import X2, X4, kind

DEVICES = [
    kind(
        "an addition on one device",
        X4,
        ['4xi32 [{"x"}]', "4xi32 [{}]"],
        '4xi32 [{"x"}]',
        """
  %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : T4
  return %0 : T4""",
        more="sdy.mesh @one = <[], device_ids=[2]>\n",
    ),
    kind(
        "several results on one device",
        X4,
        ['4x2xi32 [{"x"}, {}]'],
        "4x2xi32 [{}, {}]",
        """
  %i = stablehlo.iota dim = 0 : T4x2
  %0:2 = "stablehlo.sort"(%arg0, %i) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>, %r: tensor<i32>, %s: tensor<i32>):
      %c = stablehlo.compare LT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>, <@one, []>]>} : (T4x2, T4x2) -> (T4x2, T4x2)
  %1 = stablehlo.add %0#0, %0#1 : T4x2
  return %1 : T4x2""",
        more="sdy.mesh @one = <[], device_ids=[3]>\n",
    ),
    kind(
        "the number of the device of a value",
        X4,
        ['4xi32 [{"x"}]'],
        "4xi32 [{}]",
        """
  %id = stablehlo.partition_id : tensor<ui32>
  %i = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
  %b = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> T4
  %0 = stablehlo.add %arg0, %b {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : T4
  %1 = stablehlo.multiply %0, %b {sdy.sharding = #sdy.sharding_per_value<[<@two, []>]>} : T4
  return %1 : T4""",
        lambda x: (x + 3) * 2,
        more="sdy.mesh @one = <[], device_ids=[3]>\nsdy.mesh @two = <[], device_ids=[2]>\n",
    ),
    kind(
        "the number of the replica of a value",
        X2,
        ['4xi32 [{"x"}]'],
        "4xi32 [{}]",
        """
  %id = stablehlo.replica_id : tensor<ui32>
  %i = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
  %b = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> T4
  %0 = stablehlo.add %arg0, %b {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : T4
  return %0 : T4""",
        lambda x: x + 1,
        more="sdy.mesh @one = <[], device_ids=[1]>\n",
        is_replicas=True,
    ),
    kind(
        "another order of the devices",
        '<["x"=2, "y"=2], device_ids=[3, 1, 2, 0]>',
        ['8x2xi32 [{"x"}, {"y"}]'],
        '8x2xi32 [{"y", "x"}, {}]',
        """
  %0 = stablehlo.negate %arg0 $[{"y"}, {"x"}] : T8x2
  %1 = sdy.reshard %0 <@m, [{"y", "x"}, {}]> : T8x2
  return %1 : T8x2""",
    ),
]
