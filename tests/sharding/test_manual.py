"""Regions that are manual along some axes: parts in, collectives along these axes, and all else cut by the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from shape_inference import XbuildError

from .manual_programs import faults

REGION = """
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>},
                %w: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"y"}]>}) -> tensor<8x6xf32> {
  %0 = sdy.manual_computation(%a, %w) in_shardings=[<@m, [{"x", ?}, {?}]>, <@m, [{?}, {?}]>]
      out_shardings=[<@m, [{"x", ?}, {?}]>] manual_axes={"x"} (%b: tensor<4x4xf32>, %v: tensor<4x6xf32>) {
    %1 = stablehlo.dot_general %b, %v, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %2 = "stablehlo.all_reduce"(%1) ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}
      : (tensor<4x6xf32>) -> tensor<4x6xf32>
    sdy.return %2 : tensor<4x6xf32>
  } : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
"""  # noqa: E501


def _wanted(a: Any, w: Any) -> Any:
    parts = a.reshape(2, 4, 4) @ w
    return np.concatenate([parts.sum(0)] * 2)


def test_the_axes_that_are_left_cut_what_is_inside() -> None:
    made = xb.shard.partition(xb.parse(REGION))
    assert xb.check(made.module).kind == "ok"
    a, w = (np.arange(32) % 5).reshape(8, 4).astype(np.float32), (np.arange(24) % 7).reshape(4, 6).astype(np.float32)
    assert made.run(a, w).tolist() == _wanted(a, w).tolist()
    (product,) = (each for each in made.module.entry.instructions if each.opcode == "dot")
    assert product.shape.dims in ((4, 3), (4, 6))
    assert product.operands[0].shape.dims != (8, 4)


def test_axes_pass_the_ends_of_a_region() -> None:
    found = xb.shard.propagate(xb.parse(REGION.replace('[{"x"}, {"y"}]', '[{"x"}, {}]', 1)))
    assert [[axis.name for axis in dim.axes] for dim in found.sharding("v").dims] == [[], ["y"]]
    assert [axis.name for axis in found.sharding("v").manual] == ["x"]
    names = [[axis.name for axis in dim.axes] for dim in found.sharding(found.module.entry.root.name).dims]
    assert names == [["x"], ["y"]]


HLO = """HloModule m
body {
  n = u32[] partition-id()
  ROOT f = f32[] convert(n)
}
ENTRY e {
  p = f32[8,4] parameter(0), sharding={devices=[2,2]<=[4]}
  c = f32[] call(), to_apply=body
  s = f32[] custom-call(c), custom_call_target="Sharding", sharding={manual}
  r = f32[1] reshape(s)
  numbers = f32[4] custom-call(r), custom_call_target="SPMDShardToFullShape", sharding={devices=[4]<=[4]}
  q = f32[8,4] custom-call(p), custom_call_target="Sharding", sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
  l = f32[4,4] custom-call(q), custom_call_target="SPMDFullToShardShape", sharding={devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={manual}}
  turned = f32[4,4] reverse(l), dimensions={0,1}
  g = f32[8,4] all-gather(turned), channel_id=3, replica_groups={{0,2},{1,3}}, dimensions={0}, use_global_device_ids=true
  w = f32[8,4] custom-call(g), custom_call_target="SPMDShardToFullShape", sharding={replicated}
  ROOT z = (f32[4], f32[8,4]) tuple(numbers, w)
}"""  # noqa: E501


@pytest.mark.parametrize("propagate", [False, True])
def test_regions_that_shardings_of_hlo_state(propagate: bool) -> None:
    made = xb.shard.partition(xb.parse_hlo(HLO), propagate=propagate)
    assert xb.check(made.module).kind == "ok"
    given = np.arange(32, dtype=np.float32).reshape(8, 4)
    numbers, turned = made.run(given)
    assert numbers.tolist() == [0, 1, 2, 3]
    assert turned.tolist() == given.reshape(2, 4, 4)[:, ::-1, ::-1].reshape(8, 4).tolist()


def test_a_collective_of_a_global_program_needs_a_sharding() -> None:
    text = """HloModule m
    ENTRY e {
      p = f32[4] parameter(0), sharding={devices=[2]<=[2]}
      ROOT r = f32[4] collective-permute(p), channel_id=1, source_target_pairs={{0,1},{1,0}}
    }"""
    with pytest.raises(XbuildError, match="is already partitioned"):
        xb.shard.partition(xb.parse_hlo(text), propagate=False)
    stated = text.replace("{1,0}}", "{1,0}}, sharding={devices=[2]<=[2]}")
    made = xb.shard.partition(xb.parse_hlo(stated), propagate=False)
    assert made.run(np.arange(4, dtype=np.float32)).tolist() == [2, 3, 0, 1]


@pytest.mark.slow
def test_programs_of_jax_give_what_xla_gives() -> None:
    pytest.importorskip("jax")
    found = faults()
    assert len(found) == 13
    assert {name: fault for name, fault in found.items() if fault} == {}


@pytest.mark.slow
def test_programs_of_jax_by_shardings_of_hlo() -> None:
    pytest.importorskip("jax")
    found = faults("--gspmd", "region", "ring", "gradient")
    assert len(found) == 5
    assert {name: fault for name, fault in found.items() if fault} == {}


ALONE = """
sdy.mesh @m = <["x"=1, "y"=4]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}]>}) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"x", ?}]>] out_shardings=[<@m, [{?}]>] manual_axes={"x"}
      (%b: tensor<8xf32>) {
    %1 = COLLECTIVE
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.add %0, %0 : tensor<8xf32>
  return %2 : tensor<8xf32>
}
"""
GROUPS = """replica_groups = dense<[[0], [1], [2], [3]]> : tensor<4x1xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"""


@pytest.mark.parametrize(
    "collective",
    [
        f'"stablehlo.all_gather"(%b) {{all_gather_dim = 0 : i64, {GROUPS}, use_global_device_ids}}'
        " : (tensor<8xf32>) -> tensor<8xf32>",
        '"stablehlo.all_to_all"(%b) {split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 1 : i64, '
        f"{GROUPS}}} : (tensor<8xf32>) -> tensor<8xf32>",
        """"stablehlo.collective_permute"(%b) {
        source_target_pairs = dense<[[0, 0], [1, 1], [2, 2], [3, 3]]> : tensor<4x2xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<8xf32>) -> tensor<8xf32>""",
    ],
    ids=["all-gather", "all-to-all", "collective-permute"],
)  # fmt: skip
def test_an_axis_of_extent_1_may_be_manual(collective: str) -> None:
    """Its collectives have groups of one device, and the program around them is a global one all the same."""
    module = xb.parse(ALONE.replace("COLLECTIVE", collective))
    made = xb.shard.partition(module)
    assert xb.check(made.module).kind == "ok"
    assert made.run(np.arange(8, dtype=np.float32)).tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
