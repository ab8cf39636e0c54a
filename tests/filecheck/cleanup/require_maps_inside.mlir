// RUN: fuseline opt %s -p require-maps-inside --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p require-maps-inside,require-maps-inside --verify-each --print-locations | filecheck %s

// The last place that is read, 2 * 3 + 2, is inside by one: nothing to require, and nothing changes. What is required of symbols is in the context
// (tests/unit/passes/cleanup/test_require_maps_inside.py).
// CHECK-LABEL: func.func @window
// CHECK: linalg.generic
// CHECK-SAME: (d0 * 2) + d1
// CHECK: loc("window")
func.func @window(%x: tensor<9xf32>, %w: tensor<3xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (2 * i + k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<9xf32>, tensor<3xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %p, %out : f32
    linalg.yield %s : f32
  } -> tensor<4xf32> loc("window")
  return %r : tensor<4xf32>
}
