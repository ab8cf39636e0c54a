// RUN: fuseline opt %s -p fold-broadcasts-into-readers --split-input-file --verify-each | filecheck %s

// Keys that are repeated for every query of a group are read where they lie.
// CHECK-LABEL: func.func @grouped_query
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d4)>
// CHECK-SAME: ins(%q, %k : tensor<2x3x5x4xf32>, tensor<2x6x4xf32>)
func.func @grouped_query(%q: tensor<2x3x5x4xf32>, %k: tensor<2x6x4xf32>) -> tensor<2x3x5x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<2x3x6x4xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(g, r, n, d) -> (g, n, d)>, affine_map<(g, r, n, d) -> (g, r, n, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k : tensor<2x6x4xf32>) outs(%e0 : tensor<2x3x6x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x3x6x4xf32>
  %e = tensor.empty() : tensor<2x3x5x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3x5x6xf32>) -> tensor<2x3x5x6xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(g, r, m, n, d) -> (g, r, m, d)>, affine_map<(g, r, m, n, d) -> (g, r, n, d)>, affine_map<(g, r, m, n, d) -> (g, r, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %b : tensor<2x3x5x4xf32>, tensor<2x3x6x4xf32>) outs(%f : tensor<2x3x5x6xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %t = arith.addf %acc, %m : f32
    linalg.yield %t : f32
  } -> tensor<2x3x5x6xf32>
  return %s : tensor<2x3x5x6xf32>
}

// -----

// A loop that only the repeated tensor walks, one that is summed, a producer that computes: each stays.
// CHECK-LABEL: func.func @refused
// CHECK: [[B:%.*]] = linalg.generic
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins([[B]]
// CHECK: [[C:%.*]] = linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} ins([[C]], %z
// CHECK: return
func.func @refused(%x: tensor<4xf32>, %z: tensor<4x3xf32>) -> (tensor<4xf32>, tensor<4x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x3xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x3xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%b : tensor<4x3xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %t = arith.addf %acc, %in : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<4x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c, %z : tensor<4x3xf32>, tensor<4x3xf32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %t = arith.addf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<4x3xf32>
  return %s, %y : tensor<4xf32>, tensor<4x3xf32>
}
