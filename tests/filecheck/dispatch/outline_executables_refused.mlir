// RUN: not fuseline opt %s -p outline-executables | filecheck %s

// Only tensors and sizes can be arguments of a dispatch; a number that is no constant was to be a tensor (scalars-to-tensors).
// CHECK: E0901
// CHECK: captures a scalar that is no constant
func.func @scalar(%x: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  %r = flow.dispatch.region -> (tensor<4xf32>) {
    %v = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {
    ^bb0(%a: f32, %out: f32):
      %t = arith.mulf %a, %s : f32
      linalg.yield %t : f32
    } -> tensor<4xf32>
    flow.return %v : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
