func.func @main(%x: tensor<1x4x4x2xf32>, %k: tensor<3x3x2x5xf32>, %w: tensor<5x6xf32>) -> tensor<1x2x2x6xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]} : (tensor<1x4x4x2xf32>, tensor<3x3x2x5xf32>) -> tensor<1x2x2x5xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [3] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x2x2x5xf32>, tensor<5x6xf32>) -> tensor<1x2x2x6xf32>
  return %1 : tensor<1x2x2x6xf32>
}
