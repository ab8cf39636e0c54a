// RUN: not fuseline opt %s -p order-dispatches | filecheck %s

// What is not outlined has no dispatches to order.
// CHECK: E0305
// CHECK: cannot be scheduled
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.elementwise <exp> ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
