"""Programs in the form in which PyTorch/XLA writes them, by texts of ours: attributes of the module, layouts at ops."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb

# A linear layer, a ReLU and a softmax: weights are transposed, and one result is an argument.
LAYER = """module @IrToHlo.31 attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [ALIASES],
    mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} {
  func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<2x3xf32>, %arg2: tensor<4x3xf32>)
      -> (tensor<4x2xf32>, tensor<2xf32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.transpose %arg1, dims = [1, 0] {result_layout = dense<[0, 1]> : tensor<2xindex>,
      xla_shape = "f32[3,2]{0,1}"} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = stablehlo.dot %arg2, %0, precision = [DEFAULT, DEFAULT] : (tensor<4x3xf32>, tensor<3x2xf32>)
      -> tensor<4x2xf32>
    %2 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<2xf32>) -> tensor<4x2xf32>
    %3 = stablehlo.add %1, %2 : tensor<4x2xf32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x2xf32>
    %5 = stablehlo.maximum %3, %4 : tensor<4x2xf32>
    %6 = stablehlo.reduce(%5 init: %cst_0) applies stablehlo.maximum across dimensions = [1]
      : (tensor<4x2xf32>, tensor<f32>) -> tensor<4xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<4xf32>) -> tensor<4x2xf32>
    %8 = stablehlo.subtract %5, %7 : tensor<4x2xf32>
    %9 = stablehlo.exponential %8 : tensor<4x2xf32>
    %10 = stablehlo.reduce(%9 init: %cst) applies stablehlo.add across dimensions = [1]
      : (tensor<4x2xf32>, tensor<f32>) -> tensor<4xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<4xf32>) -> tensor<4x2xf32>
    %12 = stablehlo.divide %9, %11 : tensor<4x2xf32>
    return %12, %arg0 : tensor<4x2xf32>, tensor<2xf32>
  }
}
"""
ALIAS = (
    '{alias = {kind = "may_alias", parameter_index = array<i64>, parameter_number = 0 : i64}, '
    "output_index = array<i64: 1>}"
)
# A convolution of NCHW images, normalized with moments that are known, and summed over two replicas.
IMAGES = """module @IrToHlo.18 attributes {mhlo.cross_program_prefetches = [], mhlo.is_dynamic = false} {
  func.func @main(%arg0: tensor<1xf32>, %arg1: tensor<1x1x2x2xf32>, %arg2: tensor<1x1x3x3xf32>) -> tensor<1x1x2x2xf32> {
    %0 = stablehlo.convolution(%arg2, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1],
      reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
      : (tensor<1x1x3x3xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
    %1 = "stablehlo.batch_norm_inference"(%0, %arg0, %arg0, %arg0, %arg0) <{epsilon = 0.0 : f32,
      feature_index = 1 : i64}> : (tensor<1x1x2x2xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>)
      -> tensor<1x1x2x2xf32>
    %2 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %3 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
    return %2 : tensor<1x1x2x2xf32>
  }
}
"""


def test_a_layer() -> None:
    module = xb.parse(LAYER.replace("ALIASES", ALIAS))
    assert module.name == "IrToHlo.31"
    assert xb.check(module).kind == "ok"
    bias, weight, x = np.float32([1, -1]), np.float32([[1, 0, 2], [0, 1, -1]]), np.arange(12, dtype=np.float32)
    softmax, same = xb.execute(module, [[bias, weight, x.reshape(4, 3)]])[0]
    hidden = np.maximum(x.reshape(4, 3) @ weight.T + bias, 0)
    raised = np.exp(hidden - hidden.max(1, keepdims=True))
    np.testing.assert_allclose(softmax, raised / raised.sum(1, keepdims=True), rtol=1e-6)
    assert same.tolist() == [1, -1]


def test_images_on_two_replicas() -> None:
    module = xb.parse(IMAGES)
    assert (module.num_replicas, xb.check(module).kind) == (2, "ok")
    image = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    rows = [[np.float32([1]), np.full((1, 1, 2, 2), scale, np.float32), image] for scale in (1, 2)]
    sums = np.float32([[8, 12], [20, 24]])
    for found in xb.execute(module, rows):
        assert np.asarray(found).reshape(2, 2).tolist() == (3 * sums).tolist()


def test_aliases_of_the_module_are_kept() -> None:
    module = xb.parse(LAYER.replace("ALIASES", ALIAS))
    assert "input_output_alias={ {1}: (0, {}, may-alias) }" in module.to_hlo()
    assert xb.same_structure(xb.parse(module.to_stablehlo()), module)


@pytest.mark.parametrize(
    ("aliases", "reason"),
    [
        ("1", "expected entries {alias = "),
        (
            ALIAS.replace("parameter_number = 0", "parameter_number = 9"),
            "parameter 9 does not exist; the entry computation has 3",
        ),
        (ALIAS.replace("i64: 1>", "i64: 2>"), "which has no element {2}"),
        (ALIAS.replace("may_alias", "alias"), "expected entries {alias = "),
    ],
)
def test_aliases_that_are_none(aliases: str, reason: str) -> None:
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse(LAYER.replace("ALIASES", aliases))
    assert reason in str(caught.value)
