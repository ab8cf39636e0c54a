// RUN: fuseline opt %s -p require-equal-sizes,unify-equal-sizes --verify-each | filecheck %s
// RUN: fuseline opt %s -p require-equal-sizes,unify-equal-sizes,unify-equal-sizes --verify-each | filecheck %s

// Only names of arguments' sizes change (tests/unit/passes/cleanup/test_unify_equal_sizes.py), no op does.
// CHECK-LABEL: func.func @join(%x: tensor<2x?xf32>, %y: tensor<3x?xf32>)
// CHECK-NEXT: %r = tensor.concat dim(0) %x, %y
// CHECK-NEXT: func.return %r
func.func @join(%x: tensor<2x?xf32>, %y: tensor<3x?xf32>) -> tensor<5x?xf32> {
  %r = tensor.concat dim(0) %x, %y : (tensor<2x?xf32>, tensor<3x?xf32>) -> tensor<5x?xf32>
  return %r : tensor<5x?xf32>
}
