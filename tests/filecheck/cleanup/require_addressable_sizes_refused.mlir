// RUN: not fuseline opt %s -p require-addressable-sizes | filecheck %s

// A size of 0 beside the others does not help: strides are products of those.
// CHECK: E0405
// CHECK: too far
// CHECK: a tensor of ?x0x140737488355328 elements is larger than memory can be
func.func @negate(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %e = tensor.empty(%n) : tensor<?x0x140737488355328xf32> loc("too far")
  return %x : tensor<4xf32>
}
