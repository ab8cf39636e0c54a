// RUN: fuseline opt %s -p order-constants-as-results --split-input-file --verify-each | filecheck %s

// A filter with its channels last, of a result that has them first: what is summed over stays where it is.
// CHECK-LABEL: func.func @filter
// CHECK: linalg.transpose {{.*}} permutation = [0, 3, 1, 2]
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d4, d0)>, affine_map<(d0, d1, d2, d3, d4) -> (d4, d3, d1, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d3, d1, d0, d2)>]
// CHECK-SAME: ins(%x, {{.*}} : tensor<5x9xf32>, tensor<5x3x2x2xf32>)
func.func @filter(%x: tensor<5x9xf32>) -> tensor<3x2x9x2xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<2.0> : tensor<5x2x2x3xf32>
  %e = tensor.empty() : tensor<3x2x9x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2x9x2xf32>) -> tensor<3x2x9x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, p, q, f, c) -> (c, i)>, affine_map<(i, p, q, f, c) -> (c, p, q, f)>, affine_map<(i, p, q, f, c) -> (f, p, i, q)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<5x9xf32>, tensor<5x2x2x3xf32>) outs(%f : tensor<3x2x9x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<3x2x9x2xf32>
  return %y : tensor<3x2x9x2xf32>
}

// -----

// Seen through a reshape, it is a constant all the same.
// CHECK-LABEL: func.func @reshaped
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1]
func.func @reshaped(%x: tensor<5x9xf32>) -> tensor<3x9x2xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<2.0> : tensor<5x6xf32>
  %v = tensor.expand_shape %w [[0], [1, 2]] output_shape [5, 2, 3] : tensor<5x6xf32> into tensor<5x2x3xf32>
  %e = tensor.empty() : tensor<3x9x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x9x2xf32>) -> tensor<3x9x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, p, f, c) -> (c, i)>, affine_map<(i, p, f, c) -> (c, p, f)>, affine_map<(i, p, f, c) -> (f, i, p)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %v : tensor<5x9xf32>, tensor<5x2x3xf32>) outs(%f : tensor<3x9x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<3x9x2xf32>
  return %y : tensor<3x9x2xf32>
}

// -----

// What the run knows stays, and so does what lies in order.
// CHECK-LABEL: func.func @refused
// CHECK-NOT: linalg.transpose
func.func @refused(%x: tensor<5x9xf32>, %w: tensor<5x2x3xf32>) -> (tensor<3x9x2xf32>, tensor<9x2x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %k = arith.constant dense<2.0> : tensor<5x2x3xf32>
  %e = tensor.empty() : tensor<3x9x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x9x2xf32>) -> tensor<3x9x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, p, f, c) -> (c, i)>, affine_map<(i, p, f, c) -> (c, p, f)>, affine_map<(i, p, f, c) -> (f, i, p)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<5x9xf32>, tensor<5x2x3xf32>) outs(%f : tensor<3x9x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<3x9x2xf32>
  %e2 = tensor.empty() : tensor<9x2x3xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<9x2x3xf32>) -> tensor<9x2x3xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, p, f, c) -> (c, i)>, affine_map<(i, p, f, c) -> (c, p, f)>, affine_map<(i, p, f, c) -> (i, p, f)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %k : tensor<5x9xf32>, tensor<5x2x3xf32>) outs(%f2 : tensor<9x2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<9x2x3xf32>
  return %y, %z : tensor<3x9x2xf32>, tensor<9x2x3xf32>
}
