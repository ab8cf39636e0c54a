// RUN: fuseline opt %s -p require-equal-sizes --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p require-equal-sizes,require-equal-sizes --verify-each --print-locations | filecheck %s

// Requirements are in the context, not in the IR (tests/unit/passes/cleanup/test_require_equal_sizes.py); sizes without symbols are no matter.
// CHECK-LABEL: func.func @join
// CHECK-NEXT: %r = tensor.concat dim(0) %x, %y {{.*}} loc("join")
// CHECK-NEXT: func.return %r
func.func @join(%x: tensor<2x?xf32>, %y: tensor<3x?xf32>) -> tensor<5x?xf32> {
  %r = tensor.concat dim(0) %x, %y : (tensor<2x?xf32>, tensor<3x?xf32>) -> tensor<5x?xf32> loc("join")
  return %r : tensor<5x?xf32>
}
