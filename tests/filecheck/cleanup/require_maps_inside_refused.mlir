// RUN: not fuseline opt %s -p require-maps-inside | filecheck %s

// The first point of the loops and the last one read element 0; those between them do not.
// CHECK: E0107
// CHECK: it reads element -3
func.func @read(%x: tensor<4xf32>, %e: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i - j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4x4xf32> loc("read")
  return %r : tensor<4x4xf32>
}
