"""Programs whose shardings name several meshes, a mesh without axes, or none at all."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb


def program(meshes: str, given: str, made: str, partitions: int = 4) -> str:
    meshes = "\n".join(f"sdy.mesh @{each}" for each in meshes.split("; ") if each)
    note = "{{sdy.sharding = #sdy.sharding<{}>}}"
    one, other = (note.format(each) if each else "" for each in (given, made))
    return f"""module @m attributes {{mhlo.num_partitions = {partitions} : i32}} {{
      {meshes}
      func.func public @main(%a: tensor<8x8xf32> {one}) -> (tensor<8x8xf32> {other}) {{
        %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
        %1 = stablehlo.sine %0 : tensor<8x8xf32>
        return %1 : tensor<8x8xf32>
      }}
    }}"""


A, B = 'a = <["x"=4]>', 'b = <["y"=2, "z"=2]>'
CASES = {
    "one_axis_and_two": (f"{A}; {B}", '@a, [{"x"}, {}]', '@b, [{"z"}, {"y"}]', (2, 8), (4, 4)),
    "two_axes_and_one": (f"{B}; {A}", '@b, [{"z"}, {"y"}]', '@a, [{}, {"x"}]', (4, 4), (8, 2)),
    "a_part_of_an_axis": (f"{A}; {B}", '@a, [{"x":(1)2}, {"x":(2)2}]', '@b, [{"y"}, {}]', (4, 4), (4, 8)),
    "other_names": ('a = <["x"=4]>; b = <["y"=4]>', '@a, [{"x"}, {}]', '@b, [{"y"}, {}]', (2, 8), (2, 8)),
    "no_common_mesh_is_finer": ('a = <["x"=2, "y"=4]>; b = <["z"=4, "w"=2]>', '@a, [{"y"}, {"x"}]', '@b, [{"z"}, {}]',
                                (2, 4), (2, 8)),
    "empty_mesh_first": (f"empty_mesh = <[]>; {A}", "@empty_mesh, [{}, {}]", '@a, [{"x"}, {}]', (8, 8), (2, 8)),
    "empty_mesh_alone": (f"empty_mesh = <[]>; {A}", "@empty_mesh, [{}, {}]", "@empty_mesh, [{}, {}]", (8, 8), (8, 8)),
    "no_mesh": ("", "", "", (8, 8), (8, 8)),
}  # fmt: skip


@pytest.mark.parametrize(("meshes", "given", "made", "taken", "gives"), CASES.values(), ids=CASES)
def test_shardings_are_put_on_one_mesh(
    meshes: str, given: str, made: str, taken: tuple[int, ...], gives: tuple[int, ...]
) -> None:
    partitions = 8 if 'x"=2' in meshes else 4
    found = xb.shard.partition(xb.parse_stablehlo(program(meshes, given, made, partitions)))
    assert found.mesh.num_devices == partitions
    assert xb.check(found.module).kind == "ok"
    assert found.module.entry.parameters[0].shape == xb.f32[taken]
    assert found.module.entry.root.shape == xb.f32[gives]
    array = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_allclose(found.run(array), np.sin(array.T), rtol=1e-6)


def test_meshes_whose_axes_do_not_fit_are_refused() -> None:
    text = program('a = <["x"=2, "y"=3]>; b = <["z"=3, "w"=2]>', '@a, [{"x"}, {}]', '@b, [{"z"}, {}]', 6)
    with pytest.raises(xb.XbuildError, match=r"use two meshes, .*x=2, y=3.*z=3, w=2") as refused:
        xb.shard.partition(xb.parse_stablehlo(text))
    assert refused.value.kind == "invalid_attribute"


def test_manual_axes_are_those_of_the_common_mesh() -> None:
    text = """module @m attributes {mhlo.num_partitions = 4 : i32} {
      sdy.mesh @a = <["x"=4]>
      sdy.mesh @b = <["y"=2, "z"=2]>
      func.func public @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@b, [{"z"}]>}) -> tensor<2xf32> {
        %0 = sdy.manual_computation(%a) in_shardings=[<@a, [{"x"}]>] out_shardings=[<@a, [{}]>] manual_axes={"x"}
            (%b: tensor<2xf32>) {
          %1 = "stablehlo.all_reduce"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
              replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
          ^bb0(%p: tensor<f32>, %q: tensor<f32>):
            %2 = stablehlo.add %p, %q : tensor<f32>
            stablehlo.return %2 : tensor<f32>
          }) : (tensor<2xf32>) -> tensor<2xf32>
          sdy.return %1 : tensor<2xf32>
        } : (tensor<8xf32>) -> tensor<2xf32>
        return %0 : tensor<2xf32>
      }
    }"""
    found = xb.shard.partition(xb.parse_stablehlo(text))
    assert found.mesh == xb.Mesh(y=2, z=2)
    assert found.run(np.arange(8, dtype=np.float32)).tolist() == [12, 16]
