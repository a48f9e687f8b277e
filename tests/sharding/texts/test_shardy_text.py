"""Shardings of Shardy's text: read, printed, and brought to the place where programs keep shardings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import execute
from shape_inference import XbuildError
from tests.conformance.shardy import failure
from xbuild.sharding.hlo_text import hlo_text
from xbuild.sharding.sharding import Placement
from xbuild.sharding.shardy_text import shardy_mesh, shardy_mesh_text, shardy_shardings, shardy_text

MESHES = {"m": xb.Mesh(x=8, y=2), "one": 3}
TEXTS = [
    '#sdy.sharding<@m, [{"x"}, {}]>',
    '#sdy.sharding<@m, [{"x":(1)2, "y"}, {"x":(2)4, ?}]>',
    '#sdy.sharding<@m, [{?}p2, {"y"}p1], replicated={"x"}>',
    '#sdy.sharding<@m, [], unreduced={"x", "y"}>',
]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_printed_as_they_were(text: str) -> None:
    (found,) = shardy_shardings(text, MESHES)
    assert shardy_text(found, "m") == text
    several = f"#sdy.sharding_per_value<[{text.removeprefix('#sdy.sharding')}, {text}]>"
    assert shardy_shardings(several, MESHES) == (found, found)


def test_meshes() -> None:
    for mesh in (xb.Mesh(x=2, y=3), xb.Mesh({"a": 4}, device_ids=[3, 1, 2, 0])):
        assert shardy_mesh(shardy_mesh_text(mesh)) == mesh
    assert shardy_shardings("#sdy.sharding<@one, []>", MESHES) == (Placement("maximal", 3),)
    (found,) = shardy_shardings('#sdy.sharding<mesh<["x"=2]>, [{"x"}]>', {})
    assert hlo_text(found) == "{mesh['x'=2], [{'x'}]}"


WRONG = [
    ('#sdy.sharding<@n, [{"x"}]>', "no mesh @n"),
    ('#sdy.sharding<@m, [{"z"}]>', "'z'"),
    ('#sdy.sharding<@m, [{"x"}, {"x":(1)2}]>', "twice"),
    ('#sdy.sharding<@m, [{"x"}', "expected"),
    ('#sdy.sharding<@m, [{"x":(1)3}]>', "3 equal parts"),
    ('#sdy.sharding<@m, [], hidden={"x"}>', "replicated"),
]


@pytest.mark.parametrize(("text", "named"), WRONG)
def test_other_texts_are_refused(text: str, named: str) -> None:
    with pytest.raises(XbuildError, match=named) as caught:
        shardy_shardings(text, MESHES)
    assert caught.value.kind == "invalid_attribute"


PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}, %arg1: tensor<4xf32>)
    -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}, tensor<4xf32>) {
  %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<4x4xf32>
  %1 = sdy.sharding_constraint %arg1 <@mesh, [{"y"}]> : tensor<4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4xf32>
}
"""


def test_a_program_of_shardy_has_its_shardings_where_all_are() -> None:
    module = xb.shard.on_one_mesh(xb.parse(PROGRAM))
    assert xb.shard.mesh_of_shardings(module) == xb.Mesh(x=2, y=2)
    texts = [each.annotations.get("sharding", "").partition("2], ")[2] for each in module.entry.instructions]
    one, two = "[{'x'}, {'y'}]}", "[{'y'}]}"
    root = "{mesh['x'=2,'y'=2], [{}, {'y'}]}, {mesh['x'=2,'y'=2], [{?}]}}"
    assert texts == ["[{'x'}, {?}]}", "", one, two, root.partition("2], ")[2]]
    assert xb.shard.on_one_mesh(module).to_hlo() == module.to_hlo()


def test_a_result_that_is_cut_otherwise_than_its_value() -> None:
    text = PROGRAM.replace(', tensor<4xf32>) {', ") {").replace("return %0, %1 : tensor<4x4xf32>, tensor<4xf32>",
                                                               "return %0 : tensor<4x4xf32>")  # fmt: skip
    root = xb.shard.on_one_mesh(xb.parse(text)).entry.root
    assert (root.opcode, root.operands[0].opcode) == ("custom_call", "tanh")
    assert xb.shard.sharding_of(root) == xb.shard.shardings("{mesh['x'=2,'y'=2], [{}, {'y'}]}")


# One function f of a test: its body, the part of each device, and the result of each.
COLLECTIVES: list[tuple[str, str, Any, Any]] = [
    ('%0 = sdy.all_gather [{"x"}] %a out_sharding=<@m, [{}]> : tensor<4xi32>', '[{"x"}]',
     [[1, 2], [3, 4]], [[1, 2, 3, 4]] * 2),
    ('%0 = sdy.all_slice [{"x"}] %a out_sharding=<@m, [{"x"}]> : tensor<4xi32>', "[{}]",
     [[1, 2, 3, 4]] * 2, [[1, 2], [3, 4]]),
    ('%0 = sdy.all_reduce {"x"} %a out_sharding=<@m, [{}]> : tensor<4xi32>', "[{}]",
     [[1, 2, 3, 4], [10, 20, 30, 40]], [[11, 22, 33, 44]] * 2),
    ('%0 = sdy.reduce_scatter [{"x"}] %a out_sharding=<@m, [{"x"}]> : tensor<4xi32>', "[{}]",
     [[1, 2, 3, 4], [10, 20, 30, 40]], [[11, 22], [33, 44]]),
    ('%0 = sdy.collective_permute %a out_sharding=<@turned, [{"x"}]> : tensor<4xi32>', '[{"x"}]',
     [[1, 2], [3, 4]], [[3, 4], [1, 2]]),
    ('%0 = sdy.sharded_to_unreduced [{"x"}] %a out_sharding=<@m, [{}], unreduced={"x"}> : tensor<4xi32>', '[{"x"}]',
     [[1, 2], [3, 4]], [[1, 2, 0, 0], [0, 0, 3, 4]]),
    ('%0 = sdy.replicated_to_unreduced {"x"} %a out_sharding=<@m, [{}], unreduced={"x"}> : tensor<4xi32>', "[{}]",
     [[1, 2, 3, 4]] * 2, [[1, 2, 3, 4], [0, 0, 0, 0]]),
]  # fmt: skip


@pytest.mark.parametrize(("line", "dims", "given", "wanted"), COLLECTIVES, ids=[each[0][9:32] for each in COLLECTIVES])
def test_collectives_on_the_values_of_devices(line: str, dims: str, given: Any, wanted: Any) -> None:
    text = f"""
    sdy.mesh @m = <["x"=2]>
    sdy.mesh @turned = <["x"=2], device_ids=[1, 0]>
    func.func @main(%a: tensor<4xi32> {{sdy.sharding = #sdy.sharding<@m, {dims}>}}) -> tensor<4xi32> {{
      {line}
      return %0 : tensor<4xi32>
    }}"""
    made = xb.shard.partition(xb.parse(text), propagate=False)
    assert xb.check(made.module).kind == "ok"
    came = execute(made.module, [[np.array(each, np.int32)] for each in given])
    if "unreduced" in line:  # devices may hold any parts of the sum
        came, wanted = [sum(came)], [np.sum(wanted, axis=0).tolist()]
    assert [each.tolist() for each in came] == wanted
    whole = np.array([1, 2, 3, 4], np.int32)
    assert xb.evaluate(xb.parse(text).entry, whole).tolist() == [1, 2, 3, 4]


MANUAL = """
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", "y"}, {}]>}) -> tensor<8x2xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"x", "y"}, {}]>] out_shardings=[<@m, [{"y", "x"}, {}]>]
      manual_axes={AXES} (%b: tensor<1x2xf32>) {
    %1 = "stablehlo.all_gather"(%b) {
      all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, use_global_device_ids}
      : (tensor<1x2xf32>) -> tensor<2x2xf32>
    sdy.return %1 : tensor<2x2xf32>
  } : (tensor<4x2xf32>) -> tensor<8x2xf32>
  %2 = stablehlo.negate %0 : tensor<8x2xf32>
  return %2 : tensor<8x2xf32>
}
"""


def test_the_computation_of_a_shard_is_kept() -> None:
    made = xb.shard.partition(xb.parse(MANUAL.replace("AXES", '"x", "y"')), propagate=False)
    assert xb.check(made.module).kind == "ok"
    given = np.arange(8, dtype=np.float32).reshape(4, 2)
    assert (-made.run(given)).tolist() == given[[0, 1, 2, 3, 0, 1, 2, 3]].tolist()


def test_a_region_whose_arrays_are_not_the_parts_along_its_axes_is_refused() -> None:
    with pytest.raises(XbuildError, match=r"along x: array 0, f32\[4,2\], has shards of \[2, 2\], expected f32\[1,2\]"):
        xb.shard.partition(xb.parse(MANUAL.replace("AXES", '"x"')), propagate=False)
    with pytest.raises(XbuildError, match="shards dimension 0 of array 0 along the manual axes y after other axes"):
        xb.shard.partition(xb.parse(MANUAL.replace("AXES", '"y"')), propagate=False)


def test_a_reduction_by_another_op_has_to_be_that_of_its_operand() -> None:
    text = """
    sdy.mesh @m = <["x"=2]>
    func.func @main(%a: tensor<4xi32> {sdy.sharding = #sdy.sharding<@m, [{}]>}) -> tensor<4xi32> {
      %0 = sdy.all_reduce max {"x"} %a out_sharding=<@m, [{}]> : tensor<4xi32>
      return %0 : tensor<4xi32>
    }"""
    with pytest.raises(XbuildError, match="takes the max of a"):
        xb.shard.on_one_mesh(xb.parse(text))


TEST = """// RUN: %S/run.sh %s %t
//--- part1.mlir
sdy.mesh @m = <["x"=2]>
func.func @parallel_double(%a: tensor<4xi32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>})
    -> (tensor<4xi32> {sdy.sharding = #sdy.sharding<@m, [{}]>}) {
  %0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : tensor<4xi32>
  %1 = sdy.reshard %0 <@m, [{}]> : tensor<4xi32>
  return %1 : tensor<4xi32>
}
//--- part2.mlir
func.func @main() {
  %all = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %low = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %high = stablehlo.constant dense<[3, 4]> : tensor<2xi32>
  %wanted = func.call @sequential_double(%all) : (tensor<4xi32>) -> tensor<4xi32>
  %r:2 = "interpreter.run_parallel"(%low, %high) {programs = [[@parallel_double, @parallel_double]]}
    : (tensor<2xi32>, tensor<2xi32>) -> (tensor<4xi32>, tensor<4xi32>)
  "check.expect_eq"(%r#1, %wanted) : (tensor<4xi32>, tensor<4xi32>) -> ()
  return
}
"""


def test_the_runner_of_shardys_tests() -> None:
    assert failure(TEST, "double") is None
    assert "found" in str(failure(TEST.replace("[3, 4]", "[3, 5]"), "double"))
    assert "undefined function" in str(failure(TEST.replace("@sequential_double", "@another"), "double"))


class TestFromJax:
    jax = pytest.importorskip("jax")

    def _sharded(self, *dims: int, spec: tuple[Any, ...]) -> Any:
        sharding = self.jax.sharding
        mesh = sharding.AbstractMesh((2, 4), ("data", "model"), axis_types=(sharding.AxisType.Auto,) * 2)
        placed = sharding.NamedSharding(mesh, sharding.PartitionSpec(*spec))
        return self.jax.ShapeDtypeStruct(dims, np.float32, sharding=placed)

    def _texts(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> list[str]:
        module = xb.from_jax(function, *arguments, partition=False, **named)
        assert module.num_partitions == 1
        return [each.annotations.get("sharding", "").partition("4], ")[2] for each in module.entry.instructions]

    def test_arguments_and_constraints_need_no_devices(self) -> None:
        x = self._sharded(8, 16, spec=("data", "model"))
        w = self._sharded(16, 4, spec=("model", None))
        constraint = self._sharded(8, 4, spec=("data", None)).sharding

        def f(x: Any, w: Any) -> Any:
            return self.jax.lax.with_sharding_constraint(x @ w, constraint)

        assert self._texts(f, x, w) == ["[{'data'}, {'model'}]}", "[{'model'}, {}]}", "", "[{'data'}, {}]}"]

    def test_in_and_out_shardings(self) -> None:
        placed = self._sharded(8, spec=("model",)).sharding
        f = self.jax.jit(lambda x: -x, in_shardings=placed, out_shardings=placed)
        assert self._texts(f, xb.f32[8]) == ["[{'model'}]}"] * 2

    def test_shard_map_runs(self) -> None:
        x, w = self._sharded(8, 16, spec=("data", "model")), self._sharded(16, 4, spec=("model", None))
        jax, spec = self.jax, self.jax.sharding.PartitionSpec

        def body(a: Any, b: Any) -> Any:
            return jax.lax.psum(a @ b, "model") + jax.lax.axis_index("data")

        mesh = x.sharding.mesh
        f = jax.jit(lambda x, w: jax.shard_map(
            body, mesh=mesh, in_specs=(spec("data", "model"), spec("model", None)), out_specs=spec("data", None)
        )(x, w) * 2)  # fmt: skip
        made = xb.shard.partition(xb.from_jax(f, x, w, partition=False))
        left, right = np.random.default_rng(0).normal(size=(2, 8, 16)).astype(np.float32), np.ones((16, 4), np.float32)
        wanted = 2 * (left[0] @ right + np.repeat([[0.0], [1.0]], 4, 0))
        np.testing.assert_allclose(made.run(left[0], right), wanted, rtol=1e-5, atol=1e-5)

    def test_a_keyword_of_the_users_function(self) -> None:
        module = xb.from_jax(lambda x, partition: x * partition, xb.f32[2], kwargs={"partition": xb.f32[2]})
        assert len(module.entry.parameters) == 2
