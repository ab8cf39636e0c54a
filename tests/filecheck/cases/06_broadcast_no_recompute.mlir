// RUN: fuseline opt %s -p cleanup,layout,padding,fusion,dispatch | filecheck %s

// CHECK-COUNT-1: flow.dispatch @
// CHECK-NOT: flow.dispatch @

// A costly producer over 4 elements is read by a consumer over 4x4096 (iree#8724: redundant computation; iree#22500: broadcast consumer).
// Want: the exponential is computed 4 times, not 16,384, and the edge's record says what was decided and why: either one dispatch whose outer
// loop computes it once per row, or two dispatches with the reason `recompute`. IREE 3.13 at O3 forms 1.
func.func @scale_rows(%s: tensor<4xf32>, %x: tensor<4x4096xf32>) -> tensor<4x4096xf32> {
  %e0 = tensor.empty() : tensor<4xf32>
  %k = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%s : tensor<4xf32>) outs(%e0 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %e1 = tensor.empty() : tensor<4x4096xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %k : tensor<4x4096xf32>, tensor<4xf32>) outs(%e1 : tensor<4x4096xf32>) {
  ^bb0(%in: f32, %scale: f32, %out: f32):
    %v = arith.mulf %in, %scale : f32
    linalg.yield %v : f32
  } -> tensor<4x4096xf32>
  return %y : tensor<4x4096xf32>
}
