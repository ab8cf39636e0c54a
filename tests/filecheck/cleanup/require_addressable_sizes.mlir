// RUN: fuseline opt %s -p require-addressable-sizes --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p require-addressable-sizes,require-addressable-sizes --verify-each --print-locations | filecheck %s

// 2^46 elements could be addressed, and of free sizes a run knows more: nothing changes.
// CHECK-LABEL: func.func @negate
// CHECK-NEXT: %e = tensor.empty() : tensor<70368744177664xf32> loc("far")
// CHECK-NEXT: func.return %x
func.func @negate(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %e = tensor.empty() : tensor<70368744177664xf32> loc("far")
  return %x : tensor<?x4xf32>
}
