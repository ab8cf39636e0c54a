// RUN: fuseline opt %s -p widen-factors --split-input-file | filecheck %s

// Both factors are read in the type of the sums; what was widened before is widened from what is stored.

// CHECK-LABEL: func.func @main
// CHECK: arith.extf %{{.*}} : f16 to f64
// CHECK: arith.extf %{{.*}} : f32 to f64
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<4x5xf64>, tensor<5x6xf64>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f64, %[[B:.*]]: f64,
// CHECK-NEXT: arith.mulf %[[A]], %[[B]]
func.func @main(%x: tensor<4x5xf16>, %y: tensor<5x6xf32>, %z: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %e = tensor.empty() : tensor<4x5xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x5xf16>) outs(%e : tensor<4x5xf32>) {
  ^bb0(%a: f16, %o: f32):
    %v = arith.extf %a : f16 to f32
    linalg.yield %v : f32
  } -> tensor<4x5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
      affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %y : tensor<4x5xf32>, tensor<5x6xf32>) outs(%z : tensor<4x6xf64>) {
  ^bb0(%a: f32, %b: f32, %o: f64):
    %c = arith.extf %a : f32 to f64
    %d = arith.extf %b : f32 to f64
    %m = arith.mulf %c, %d : f64
    %s = arith.addf %o, %m : f64
    linalg.yield %s : f64
  } -> tensor<4x6xf64>
  return %r : tensor<4x6xf64>
}

// -----

// A product that is rounded before it is added is one of narrow factors, and a window widens what it loads.

// CHECK-LABEL: func.func @main
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<4x5xf32>, tensor<5x6xf32>)
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<8x16xf32>, tensor<3x16xf64>)
func.func @main(%x: tensor<4x5xf32>, %y: tensor<5x6xf32>, %z: tensor<4x6xf64>, %i: tensor<8x16xf32>,
    %f: tensor<3x16xf64>, %g: tensor<6x16xf64>) -> (tensor<4x6xf64>, tensor<6x16xf64>) {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
      affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<4x5xf32>, tensor<5x6xf32>) outs(%z : tensor<4x6xf64>) {
  ^bb0(%a: f32, %b: f32, %o: f64):
    %m = arith.mulf %a, %b : f32
    %c = arith.extf %m : f32 to f64
    %s = arith.addf %o, %c : f64
    linalg.yield %s : f64
  } -> tensor<4x6xf64>
  %d = linalg.generic {indexing_maps = [affine_map<(i, c, k) -> (i + k, c)>, affine_map<(i, c, k) -> (k, c)>,
      affine_map<(i, c, k) -> (i, c)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%i, %f : tensor<8x16xf32>, tensor<3x16xf64>) outs(%g : tensor<6x16xf64>) {
  ^bb0(%a: f32, %b: f64, %o: f64):
    %c = arith.extf %a : f32 to f64
    %m = arith.mulf %c, %b : f64
    %s = arith.addf %o, %m : f64
    linalg.yield %s : f64
  } -> tensor<6x16xf64>
  return %r, %d : tensor<4x6xf64>, tensor<6x16xf64>
}
