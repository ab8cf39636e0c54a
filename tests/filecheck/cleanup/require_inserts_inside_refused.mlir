// RUN: not fuseline opt %s -p require-inserts-inside | filecheck %s

// CHECK: E0107
// CHECK: it writes element 4 of 4
func.func @behind(%t: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  %i = arith.constant 4 : index
  %r = tensor.insert %s into %t[%i] : tensor<4xf32> loc("put")
  return %r : tensor<4xf32>
}
