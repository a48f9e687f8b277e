"""The text of the shard dialect: the examples of its document, the older names, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import execute
from shape_inference import XbuildError
from tests.sharding.test_grid_ops import ROWS, SQUARES


def function(body: str, *, grid: str, arguments: str = "", result: str, returned: str = "%1", head: str = "") -> str:
    return f"""
    shard.grid @grid0(shape = {grid})
    {head}
    func.func @main({arguments}) -> ({result}) {{
      {body}
      return {returned} : {result}
    }}"""


def results(text: str, given: Any = None) -> list[Any]:
    module = xb.parse(text)
    verdict = xb.check(module)
    assert verdict.kind == "ok", verdict
    count = module.num_devices
    return execute(module, [[]] * count if given is None else [[each] for each in given], strict=True)


# The examples of the document as they are written: line, grid, operand, result type, operands, results.
COLLECTIVES = [
    ("%1 = shard.all_gather %0 on @grid0 grid_axes = [1] gather_axis = 1\n : tensor<2x2xi8> -> tensor<2x4xi8>",
     "2x2", SQUARES, "tensor<2x4xi8>", ROWS),
    ("%1 = shard.all_slice %0 on @grid0 grid_axes = [1] slice_axis = 1\n : tensor<2x4xi8> -> tensor<2x2xi8>",
     "2x2", ROWS, "tensor<2x2xi8>", SQUARES),
    ("%1 = shard.all_reduce %0 on @grid0 grid_axes = [1, 0] reduction = <max>\n : tensor<3x4xf32> -> tensor<3x4xf64>",
     "2x2", np.arange(48, dtype=np.float32).reshape(4, 3, 4), "tensor<3x4xf64>",
     [np.arange(36, 48).reshape(3, 4)] * 4),
    ("%1 = shard.all_to_all %0 on @grid0 grid_axes = [0]\n split_axis = 0 concat_axis = 0\n"
     " : tensor<3x2xi8> -> tensor<3x2xi8>", "3", np.arange(18, dtype=np.int8).reshape(3, 3, 2), "tensor<3x2xi8>",
     np.arange(18).reshape(3, 3, 2).transpose(1, 0, 2)),
    ("%1 = shard.broadcast %0 on @grid0\n grid_axes = [0]\n root = [0]\n : (tensor<2xi8>) -> tensor<2xi8>",
     "2x2", np.array([[1, 2], [3, 4], [9, 9], [9, 9]], np.int8), "tensor<2xi8>", [[1, 2], [3, 4]] * 2),
    ("%1 = shard.gather %0 on @grid0 grid_axes = [1]\n gather_axis = 1 root = [1]\n"
     " : (tensor<2x2xi8>) -> tensor<2x4xi8>", "2x2", SQUARES, "tensor<2x4xi8>", [None, ROWS[0], None, ROWS[2]]),
    ("%1 = shard.reduce %0 on @grid0 grid_axes = [1, 0]\n reduction = <max> root = [2, 3]\n"
     " : (tensor<3x4xf32>) -> tensor<3x4xf64>", "4x3", np.arange(144, dtype=np.float32).reshape(12, 3, 4),
     "tensor<3x4xf64>", [None] * 11 + [np.arange(132, 144).reshape(3, 4)]),
    ("%1 = shard.reduce_scatter %0 on @grid0 grid_axes = [1]\n reduction = <max> scatter_axis = 0\n"
     " : tensor<2x2xf32> -> tensor<1x2xf64>", "2x2", SQUARES.astype(np.float32), "tensor<1x2xf64>",
     [[[5, 6]], [[7, 8]], [[13, 14]], [[15, 16]]]),
    ("%1 = shard.reduce_scatter %0 on @grid0 grid_axes = [1] scatter_dim = 0 : tensor<2x2xf32> -> tensor<1x2xf32>",
     "2x2", SQUARES.astype(np.float32), "tensor<1x2xf32>", [[[6, 8]], [[10, 12]], [[22, 24]], [[26, 28]]]),
    ("%1 = shard.scatter %0 on @grid0 grid_axes = [0]\n scatter_axis = 0\n root = [1]\n"
     " : (tensor<2x2xi8>) -> tensor<1x2xi8>", "2x2",
     np.array([[[0, 0], [0, 0]], [[9, 9], [9, 9]], [[1, 2], [3, 4]], [[5, 6], [7, 8]]], np.int8), "tensor<1x2xi8>",
     [[[1, 2]], [[5, 6]], [[3, 4]], [[7, 8]]]),
    ("%1 = shard.shift %0 on @grid0 grid_axes = [1]\n shift_axis = 1 offset = 2 rotate\n"
     " : tensor<2xi8> -> tensor<2xi8>", "2x4", np.arange(16, dtype=np.int8).reshape(8, 2), "tensor<2xi8>",
     np.arange(16).reshape(8, 2)[[2, 3, 0, 1, 6, 7, 4, 5]]),
    ("%2 = shard.send %0 on @grid0 grid_axes = [0] destination = [1] : (tensor<1xf32>) -> tensor<1xf32>\n"
     "%1 = shard.recv %0 on @grid0 grid_axes = [0] source = [0] : (tensor<1xf32>) -> tensor<1xf32>",
     "2", np.array([[3], [4]], np.float32), "tensor<1xf32>", [None, [3]]),
    ("%1 = shard.update_halo %0 on @grid0 split_axes = [[0]] halo_sizes = [1, 1] : tensor<4xf32>", "2",
     np.array([[9, 0, 1, 9], [9, 2, 3, 9]], np.float32), "tensor<4xf32>", [[9, 0, 1, 2], [1, 2, 3, 9]]),
]  # fmt: skip


def _operand_type(line: str) -> str:
    return line.partition(" : ")[2].removeprefix("(").partition(">")[0] + ">"


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize(("line", "grid", "given", "result", "wanted"), COLLECTIVES)
def test_collectives_of_the_document(line: str, grid: str, given: Any, result: str, wanted: Any, older: bool) -> None:
    text = function(line, grid=grid, arguments=f"%0 : {_operand_type(line)}", result=result)
    if older:
        text = text.replace("shard.grid", "mesh.mesh").replace("shard.", "mesh.").replace("grid_axes", "mesh_axes")
    for came, each in zip(results(text, given), wanted, strict=True):
        if each is not None:
            np.testing.assert_array_equal(came, each)


def test_indices_of_the_document() -> None:
    body = """
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %idx:2 = shard.neighbors_linear_indices on @grid0[%c1, %c2, %c3] split_axes = [1] : index, index
    %last:2 = shard.neighbors_linear_indices on @grid0[9, %c1, 29] split_axes = [2] : index, index
    %sizes:3 = shard.grid_shape @grid0 : index, index, index
    """
    names = "%idx#0, %idx#1, %last#0, %last#1, %sizes#0, %sizes#1, %sizes#2"
    text = function(body, grid="10x20x30", result=", ".join(["index"] * 7), returned=names)
    found = xb.evaluate(xb.parse(text).entry)
    assert [int(each) for each in found] == [633, 693, 9 * 600 + 30 + 28, -1, 10, 20, 30]


def test_processes_of_the_document() -> None:
    body = """
    %idx = shard.process_linear_index on @grid0 : index
    %all:3 = shard.process_multi_index on @grid0 : index, index, index
    %one = shard.process_multi_index on @grid0 axes = [1] : index
    """
    text = function(body, grid="2x3x4", result=", ".join(["index"] * 5), returned="%idx, %all#0, %all#1, %all#2, %one")
    came = [tuple(map(int, each)) for each in results(text)]
    places = [(*map(int, np.unravel_index(device, (2, 3, 4))),) for device in range(24)]
    assert came == [(number, *place, place[1]) for number, place in enumerate(places)]


SHARDINGS = """
shard.grid @grid0(shape = 2x2x4)
shard.grid @grid1d_4(shape = 4)
func.func @main(%arg0 : tensor<4x8xf32>, %arg1 : tensor<4x14xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %sharding0 = shard.sharding @grid0 split_axes = [[]] : !shard.sharding
  %sharding1 = shard.sharding @grid0 split_axes = [[0]] : !shard.sharding
  %sharded0 = shard.shard %arg0 to %sharding1 : tensor<4x8xf32>
  %halo_sharding = shard.sharding @grid0 split_axes = [[0]] halo_sizes = [1, 2] : !shard.sharding
  %sharding4 = shard.sharding @grid1d_4 split_axes = [[], [0]] sharded_dims_offsets = [0, 2, 5, 9, 14] : !shard.sharding
  %sharding5 = shard.sharding @grid0 split_axes = [[1]] : !shard.sharding
  %sharded1 = shard.shard %sharded0 to %sharding5 annotate_for_users : tensor<4x8xf32>
  %again = shard.get_sharding %sharded0 : tensor<4x8xf32> -> !shard.sharding
  %sharded2 = shard.shard %sharded1 to %sharding5 annotate_for_users : tensor<4x8xf32>
  return %sharded0, %sharded2 : tensor<4x8xf32>, tensor<4x8xf32>
}"""


def test_shardings_of_the_document() -> None:
    module = xb.parse(SHARDINGS)
    calls = [each for each in module.entry.instructions if each.opcode == "custom_call"]
    mesh = xb.shard.grid([2, 2, 4])
    wanted = [xb.shard.sharding(mesh, [[axis], []]) for axis in (0, 1, 1)]
    assert [xb.shard.sharding_of(each) for each in calls] == wanted
    assert module.num_partitions == 16
    value = np.ones((4, 8), np.float32)
    assert [each.tolist() for each in xb.evaluate(module.entry, value, np.ones((4, 14), np.float32))] == [
        value.tolist()
    ] * 2


def test_shapes_of_parts_of_the_document() -> None:
    body = """
    %s = shard.sharding @grid0 split_axes = [[], [0]] sharded_dims_offsets = [0, 2, 5, 9, 14] : !shard.sharding
    %own = shard.process_linear_index on @grid0 : index
    %1:2 = shard.shard_shape dims = [4, 14] sharding = %s device = [%own] : index, index
    """
    came = results(function(body, grid="4", result="index, index", returned="%1#0, %1#1"))
    assert [tuple(map(int, each)) for each in came] == [(4, 2), (4, 3), (4, 4), (4, 5)]


@pytest.mark.parametrize("shape", ["4x8x12", "4x?", "?x4", "?x?"])
def test_grids_of_the_document(shape: str) -> None:
    module = xb.parse(
        f"shard.grid @g(shape = {shape})\n"
        "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    )
    assert module.num_partitions == (384 if "?" not in shape else 1)


def test_an_open_size_is_what_the_partitions_leave() -> None:
    text = function(
        "%1 = shard.all_reduce %0 on @grid0 grid_axes = [1] : tensor<1xf32> -> tensor<1xf32>",
        grid="2x?", arguments="%0 : tensor<1xf32>", result="tensor<1xf32>",
    )  # fmt: skip
    with pytest.raises(XbuildError, match="has unknown sizes"):
        xb.parse(text)
    module = xb.parse(text, partitions=6)
    came = execute(module, [[np.array([device], np.float32)] for device in range(6)])
    assert [float(each[0]) for each in came] == [3, 3, 3, 12, 12, 12]


WRONG = [
    ("%1 = shard.all_gather %0 on @none gather_axis = 0 : tensor<4xf32> -> tensor<4xf32>", "grid requires the symbol"),
    ("%1 = shard.all_gather %0 on @grid0 grid_axes = [2] gather_axis = 0 : tensor<4xf32> -> tensor<4xf32>", "rank 2"),
    (
        "%1 = shard.all_gather %0 on @grid0 grid_axes = [0, 0] gather_axis = 0 : tensor<4xf32> -> tensor<4xf32>",
        "duplic",
    ),
    (
        "%1 = shard.all_gather %0 on @grid0 grid_axes = [0] gather_axis = 0 : tensor<4xf32> -> tensor<5xf32>",
        r"f32\[8\]",
    ),
    ("%1 = shard.all_slice %0 on @grid0 grid_axes = [1] slice_axis = 0 : tensor<3xf32> -> tensor<3xf32>", "divisible"),
    ("%1 = shard.recv %0 on @grid0 grid_axes = [0] source = [0] : (tensor<4xf32>) -> tensor<4xf32>", "no send"),
    ("%1 = shard.broadcast %0 on @grid0 grid_axes = [0] root = [2] : (tensor<4xf32>) -> tensor<4xf32>", "coordinate 0"),
    ("%2:3 = shard.process_multi_index on @grid0 : index, index, index", "results, got 3"),
    ("%2 = shard.sharding @grid0 split_axes = [[0], [0]] : !shard.sharding", "duplicated"),
]


@pytest.mark.parametrize(("line", "named"), WRONG)
def test_refusals(line: str, named: str) -> None:
    kind = "tensor<3xf32>" if "tensor<3" in line else "tensor<4xf32>"
    text = function(line, grid="2x4", arguments=f"%0 : {kind}", result=kind, returned="%0")
    with pytest.raises(XbuildError, match=named):
        xb.parse(text)


ANNOTATED = """
shard.grid @grid0(shape = 2x2x2)
func.func @main(%arg0 : tensor<4x8xf32>, %arg1 : tensor<16x8xf32>) -> (tensor<4x8xf32>, tensor<16x8xf32>) {
  %sharding = shard.sharding @grid0 split_axes = [[0]] : !shard.sharding
  %sharding1 = shard.sharding @grid0 split_axes = [[1]] : !shard.sharding
  %sharding2 = shard.sharding @grid0 split_axes = [[2]] : !shard.sharding
  LINES
}"""
RIGHT = {
    "only_result_annotated": "%0 = shard.shard %arg0 to %sharding : tensor<4x8xf32>",
    "only_operand_annotated": "%0 = shard.shard %arg0 to %sharding annotate_for_users : tensor<4x8xf32>",
    "two_operands_annotated": """%0 = shard.shard %arg0 to %sharding annotate_for_users : tensor<4x8xf32>
      %1 = shard.shard %arg1 to %sharding annotate_for_users : tensor<16x8xf32>""",
    "both_result_and_multi_operands_annotated": """%r = shard.shard %arg0 to %sharding : tensor<4x8xf32>
      %1 = shard.shard %r to %sharding1 annotate_for_users : tensor<4x8xf32>
      %2 = shard.shard %r to %sharding2 annotate_for_users : tensor<4x8xf32>
      %op0 = stablehlo.negate %1 : tensor<4x8xf32>
      %op1 = stablehlo.abs %2 : tensor<4x8xf32>
      %0 = stablehlo.add %op0, %op1 : tensor<4x8xf32>""",
}
UNDEFINED = {
    "annotate_on_same_result_with_different_sharding": """
      %r = shard.shard %arg0 to %sharding1 : tensor<4x8xf32>
      %0 = shard.shard %r to %sharding2 : tensor<4x8xf32>""",
    "annotate_on_same_result_same_value_with_different_sharding": """
      %r = shard.shard %arg0 to %sharding1 : tensor<4x8xf32>
      %0 = shard.shard %arg0 to %sharding2 : tensor<4x8xf32>""",
    "annotate_on_same_operand_with_different_sharding": """
      %r = shard.shard %arg0 to %sharding1 annotate_for_users : tensor<4x8xf32>
      %0 = shard.shard %r to %sharding2 annotate_for_users : tensor<4x8xf32>""",
    "result_annotated_after_operand": """%r = shard.shard %arg0 to %sharding1 annotate_for_users : tensor<4x8xf32>
      %0 = shard.shard %r to %sharding2 : tensor<4x8xf32>""",
}


def _annotated(lines: str) -> xb.Module:
    names = f"{'%0' if '%0' in lines else '%arg0'}, {'%1' if '16x8' in lines else '%arg1'}"
    return xb.parse(ANNOTATED.replace("LINES", f"{lines}\n  return {names} : tensor<4x8xf32>, tensor<16x8xf32>"))


@pytest.mark.parametrize("name", RIGHT)
def test_annotations_of_the_document(name: str) -> None:
    module = _annotated(RIGHT[name])
    given = np.arange(32, dtype=np.float32).reshape(4, 8), np.ones((16, 8), np.float32)
    made = xb.shard.partition(module)
    assert xb.check(made.module).kind == "ok"
    wanted = given[0] if "multi" not in name else np.zeros_like(given[0])
    assert made.run(*given)[0].tolist() == wanted.tolist()


@pytest.mark.parametrize("name", UNDEFINED)
def test_usages_that_the_document_leaves_undefined(name: str) -> None:
    with pytest.raises(XbuildError):
        _annotated(UNDEFINED[name])
