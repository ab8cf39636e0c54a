// RUN: fuseline opt %s -p require-inserts-inside --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p require-inserts-inside,require-inserts-inside --verify-each --print-locations | filecheck %s

// The last element is inside: nothing to require, and nothing changes. What is required of symbols is checked in
// tests/unit/passes/cleanup/test_require_inserts_inside.py.
// CHECK-LABEL: func.func @last
// CHECK: tensor.insert
// CHECK-SAME: loc("put")
func.func @last(%t: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  %i = arith.constant 3 : index
  %r = tensor.insert %s into %t[%i] : tensor<4xf32> loc("put")
  return %r : tensor<4xf32>
}
