"""Names of instructions, the lines that reports name, and what attributes of a module and of values become."""

from __future__ import annotations

import pytest

import xbuild as xb

LOCATED = """#loc1 = loc("x")
module @jit_step attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 3 : i32} {
  func.func public @main(%arg0: tensor<4xf32> loc("x"), %arg1: tensor<4xf32>
    {mhlo.sharding = "{devices=[2]<=[2]}"} loc(#loc9)) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32> loc(#loc5)
    %total = stablehlo.multiply %0, %0 : tensor<4xf32> loc(#loc6)
    %cst_0 = stablehlo.constant dense<1.0> : tensor<f32> loc(#loc)
    %1 = stablehlo.negate %total {mhlo.frontend_attributes = {key = "value"}, mhlo.sharding = "{replicated}"}
      : tensor<4xf32> loc("a/b"("here.py":7:1))
    %2 = stablehlo.negate %1 : tensor<4xf32> loc(fused[#loc5, "named"])
    %3 = stablehlo.negate %2 : tensor<4xf32> loc(callsite("inner"("model.py":5:0) at "outer"("model.py":90:2)))
    return %3 : tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("model.py":88:4 to :12)
#loc3 = loc("attention"(#loc2))
#loc5 = loc("jit(step)/jit(main)/add"(#loc3))
#loc6 = loc("jit(step)/mul"(#loc2))
#loc9 = loc(unknown)
"""
TWICE = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.abs %x : tensor<4xf32>

  // a comment
  %1 = stablehlo.abs %0 : tensor<4xf32>
  %2 = stablehlo.abs %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}"""


def test_instructions_have_the_names_of_values_or_of_locations() -> None:
    module = xb.parse_stablehlo(LOCATED)
    assert [each.name for each in module.entry.instructions] == [
        "x",
        "arg1",
        "add.0",
        "total",
        "cst_0",
        "b.1",
        "add.2",
        "negate.3",
    ]


def test_reports_name_the_line_of_the_program_where_there_is_one() -> None:
    entry = xb.parse_stablehlo(LOCATED, "step.mlir").entry
    places = {each.name: str(each.source) for each in entry.instructions}
    assert places["add.0"] == "model.py:88 in attention"
    assert places["total"] == "model.py:88 in jit(step)/mul"
    assert places["cst_0"] == "step.mlir:7 in main"
    assert places["b.1"] == "here.py:7 in a/b"
    assert places["negate.3"] == "model.py:5 in inner"


def test_names_of_locations_are_metadata() -> None:
    entry = xb.parse_stablehlo(LOCATED).entry
    assert entry["add.0"].annotations["metadata"] == {
        "op_name": "jit(step)/jit(main)/add", "source_file": "model.py", "source_line": 88,
    }  # fmt: skip
    assert "metadata={op_name=" in xb.parse_stablehlo(LOCATED).to_hlo(metadata=True)


def test_without_locations_reports_name_the_line_of_the_text() -> None:
    entry = xb.parse_stablehlo(TWICE, "f.mlir").entry
    assert [str(each.source) for each in entry.instructions] == [f"f.mlir:{line} in main" for line in (1, 2, 5, 6)]


def test_counts_of_devices_shardings_and_attributes_are_kept() -> None:
    module = xb.parse_stablehlo(LOCATED)
    assert (module.num_replicas, module.num_partitions, module.name) == (3, 2, "jit_step")
    assert module.entry["arg1"].annotations["sharding"] == "{devices=[2]<=[2]}"
    assert module.entry["b.1"].annotations["sharding"] == "{replicated}"
    assert module.entry["b.1"].annotations["frontend_attributes"] == {"key": "value"}
    again = xb.parse_stablehlo(LOCATED, replicas=1, partitions=4)
    assert (again.num_replicas, again.num_partitions) == (1, 4)


def test_aliases_and_donors_of_the_entry_stand_in_the_header() -> None:
    text = """func.func @main(%a: tensor<f32> {tf.aliasing_output = 1 : i32}, %b: tensor<f32> {jax.buffer_donor = true})
  -> (tensor<f32>, tensor<f32>) { return %b, %a : tensor<f32>, tensor<f32> }"""
    module = xb.parse_stablehlo(text)
    assert "input_output_alias={ {1}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }" in module.to_hlo()
    assert xb.parse_hlo(module.to_hlo()).to_hlo() == module.to_hlo()


def test_meshes_and_shardings_of_shardy_are_kept() -> None:
    text = """module @m {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    %0 = sdy.sharding_constraint %a <@mesh, [{"y"}]> : tensor<8xf32>
    %1 = stablehlo.abs %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}"""
    module = xb.parse_stablehlo(text)
    assert "xla.sdy.meshes" in module.to_hlo()
    kept = [
        each.annotations.get("frontend_attributes", {}).get("xla.sdy.sharding") for each in module.entry.instructions
    ]
    assert kept == [
        '#sdy.sharding<@mesh, [{"x"}]>', '#sdy.sharding_per_value<[<@mesh, [{"y"}]>]>',
        "#sdy.sharding_per_value<[<@mesh, [{}]>]>",
    ]  # fmt: skip
    assert xb.parse_hlo(module.to_hlo()).to_hlo() == module.to_hlo()


@pytest.mark.parametrize("name", ["arg0", "%x y", "f32", "x"])
def test_names_that_hlo_cannot_hold_are_changed_a_little(name: str) -> None:
    module = xb.parse_stablehlo(
        f'func.func @"{name}"(%f32: tensor<f32>) -> tensor<f32> {{ return %f32 : tensor<f32> }}'
    )
    assert xb.parse_hlo(module.to_hlo()).to_hlo() == module.to_hlo()
    assert module.entry.parameters[0].name == "f32_"
