func.func @main(%x: tensor<4x6xf32>, %i: tensor<i32>) -> tensor<6x3xf32> {
  %0 = stablehlo.slice %x [0:4:2, 1:4] : (tensor<4x6xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.dynamic_slice %x, %i, %i, sizes = [4, 3] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
  %3 = stablehlo.reverse %2, dims = [1] : tensor<6x3xf32>
  return %3 : tensor<6x3xf32>
}
