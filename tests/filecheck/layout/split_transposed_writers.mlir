// RUN: fuseline opt %s -p generalize-named-ops,propagate-transposes,split-transposed-writers --split-input-file --verify-each | filecheck %s

// Windows are put back into an image: the product and its bias run over windows and what is in them.
// CHECK-LABEL: func.func @windows
// CHECK: tensor.expand_shape %x {{.*}} output_shape [2, 3, 4, 5, 6]
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d5)>
// CHECK: arith.addf
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1, 3, 4]
func.func @windows(%x: tensor<6x20x6xf32>, %w: tensor<6x7xf32>, %b: tensor<7xf32>) -> tensor<5x15x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x20x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x20x7xf32>) -> tensor<6x20x7xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(a, b, n, k) -> (a, b, k)>, affine_map<(a, b, n, k) -> (k, n)>, affine_map<(a, b, n, k) -> (a, b, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<6x20x6xf32>, tensor<6x7xf32>) outs(%f : tensor<6x20x7xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<6x20x7xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(a, b, n) -> (a, b, n)>, affine_map<(a, b, n) -> (n)>, affine_map<(a, b, n) -> (a, b, n)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%p, %b : tensor<6x20x7xf32>, tensor<7xf32>) outs(%e : tensor<6x20x7xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<6x20x7xf32>
  %r = tensor.expand_shape %y [[0, 1], [2, 3], [4]] output_shape [2, 3, 4, 5, 7] : tensor<6x20x7xf32> into tensor<2x3x4x5x7xf32>
  %et = tensor.empty() : tensor<2x4x3x5x7xf32>
  %t = linalg.transpose ins(%r : tensor<2x3x4x5x7xf32>) outs(%et : tensor<2x4x3x5x7xf32>) permutation = [0, 2, 1, 3, 4]
  %c = tensor.collapse_shape %t [[0, 1], [2, 3], [4]] : tensor<2x4x3x5x7xf32> into tensor<8x15x7xf32>
  %l = tensor.extract_slice %c[3, 0, 0] [5, 15, 7] [1, 1, 1] : tensor<8x15x7xf32> to tensor<5x15x7xf32>
  return %l : tensor<5x15x7xf32>
}

// -----

// A reader takes the transposition into its own maps: the writer stays as it is.
// CHECK-LABEL: func.func @read_in_order
// CHECK: tensor.expand_shape %p {{.*}} output_shape [2, 3, 4, 5, 7]
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3, d4)>]
func.func @read_in_order(%x: tensor<6x20x6xf32>, %w: tensor<6x7xf32>) -> tensor<2x4x3x5x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x20x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x20x7xf32>) -> tensor<6x20x7xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(a, b, n, k) -> (a, b, k)>, affine_map<(a, b, n, k) -> (k, n)>, affine_map<(a, b, n, k) -> (a, b, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<6x20x6xf32>, tensor<6x7xf32>) outs(%f : tensor<6x20x7xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<6x20x7xf32>
  %r = tensor.expand_shape %p [[0, 1], [2, 3], [4]] output_shape [2, 3, 4, 5, 7] : tensor<6x20x7xf32> into tensor<2x3x4x5x7xf32>
  %et = tensor.empty() : tensor<2x4x3x5x7xf32>
  %t = linalg.transpose ins(%r : tensor<2x3x4x5x7xf32>) outs(%et : tensor<2x4x3x5x7xf32>) permutation = [0, 2, 1, 3, 4]
  %y = linalg.exp ins(%t : tensor<2x4x3x5x7xf32>) outs(%et : tensor<2x4x3x5x7xf32>) -> tensor<2x4x3x5x7xf32>
  return %y : tensor<2x4x3x5x7xf32>
}

// -----

// What makes the operand has no loops to split (a window slides over them): a reshape would stand between the two.
// CHECK-LABEL: func.func @window
// CHECK: tensor.expand_shape %{{.*}} output_shape [2, 3, 4]
// CHECK: linalg.transpose
func.func @window(%x: tensor<8x4xf32>, %k: tensor<3x4xf32>) -> tensor<3x2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, c, k) -> (i + k, c)>, affine_map<(i, c, k) -> (k, c)>, affine_map<(i, c, k) -> (i, c)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %k : tensor<8x4xf32>, tensor<3x4xf32>) outs(%f : tensor<6x4xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<6x4xf32>
  %r = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
  %et = tensor.empty() : tensor<3x2x4xf32>
  %t = linalg.transpose ins(%r : tensor<2x3x4xf32>) outs(%et : tensor<3x2x4xf32>) permutation = [1, 0, 2]
  %l = tensor.extract_slice %t[0, 0, 1] [3, 2, 3] [1, 1, 1] : tensor<3x2x4xf32> to tensor<3x2x3xf32>
  return %l : tensor<3x2x3xf32>
}
