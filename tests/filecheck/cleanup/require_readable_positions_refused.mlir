// RUN: not fuseline opt %s -p require-readable-positions | filecheck %s

// One element fewer, and the last place is never inside.
// CHECK: E0107
// CHECK: it reads element 5 of 5
func.func @read(%x: tensor<5xf32>, %i: tensor<4xi64>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%p: i64, %out: f32):
    %here = linalg.index 0 : index
    %two = arith.constant 2 : index
    %at = arith.addi %here, %two : index
    %s = tensor.extract %x[%at] : tensor<5xf32>
    linalg.yield %s : f32
  } -> tensor<4xf32> loc("read")
  return %r : tensor<4xf32>
}
