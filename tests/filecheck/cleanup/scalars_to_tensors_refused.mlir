// RUN: not fuseline opt %s -p scalars-to-tensors | filecheck %s

// A number that is no constant, where an op has no form for it.
// CHECK: error E0305
// CHECK-NEXT: at   insert
// CHECK-NEXT: why  tensor.insert takes a number of type f32 that is no constant
// CHECK-NEXT: try  linalg ops, sizes and results may depend on computed numbers
func.func @put_in(%a: tensor<4xf32>, %s: f32, %i: index) -> tensor<4xf32> {
  %r = tensor.insert %s into %a[%i] : tensor<4xf32> loc("insert")
  return %r : tensor<4xf32>
}
