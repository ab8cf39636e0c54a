// RUN: fuseline opt %s -p require-readable-positions --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p require-readable-positions,require-readable-positions --verify-each --print-locations | filecheck %s

// The last place that is read, 5, is inside by one: nothing to require, and nothing changes. What is required of symbols is in the context
// (tests/unit/passes/cleanup/test_require_readable_positions.py).
// CHECK-LABEL: func.func @read
// CHECK: tensor.extract %x[%at] : tensor<6xf32>
// CHECK: loc("read")
func.func @read(%x: tensor<6xf32>, %i: tensor<4xi64>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%p: i64, %out: f32):
    %here = linalg.index 0 : index
    %two = arith.constant 2 : index
    %at = arith.addi %here, %two : index
    %s = tensor.extract %x[%at] : tensor<6xf32>
    linalg.yield %s : f32
  } -> tensor<4xf32> loc("read")
  return %r : tensor<4xf32>
}
