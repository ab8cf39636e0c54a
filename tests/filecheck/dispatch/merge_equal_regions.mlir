// RUN: fuseline opt %s -p "generalize-named-ops,clone-reads,form-dispatch-regions{fusion=none},merge-equal-regions" --split-input-file --verify-each | filecheck %s

// Without fusion nobody takes the slices in: they are stored once. Ops that differ stay two.
// CHECK-LABEL: func.func @columns
// CHECK: %[[S:.*]] = flow.dispatch.region
// CHECK: tensor.extract_slice
// CHECK-NOT: tensor.extract_slice
// CHECK-DAG: math.exp
// CHECK-DAG: math.absf
// CHECK: return
func.func @columns(%x: tensor<6x8xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>) {
  %e = tensor.empty() : tensor<6x4xf32>
  %s = tensor.extract_slice %x[0, 2] [6, 4] [1, 1] : tensor<6x8xf32> to tensor<6x4xf32>
  %a = linalg.elementwise <exp> ins(%s : tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
  %b = linalg.elementwise <abs> ins(%s : tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
  return %a, %b : tensor<6x4xf32>, tensor<6x4xf32>
}

// -----

// Nor the turned argument: what it is written to counts for nothing.
// CHECK-LABEL: func.func @turned
// CHECK: %[[T:.*]] = flow.dispatch.region
// CHECK: affine_map<(d0, d1) -> (d1, d0)>
// CHECK-NOT: affine_map<(d0, d1) -> (d1, d0)>
// CHECK: tensor.concat dim(0) %[[T]]
// CHECK: tensor.concat dim(1) %[[T]]
func.func @turned(%x: tensor<5x3xf32>, %y: tensor<3x5xf32>) -> (tensor<6x5xf32>, tensor<3x10xf32>) {
  %e = tensor.empty() : tensor<3x5xf32>
  %t = linalg.transpose ins(%x : tensor<5x3xf32>) outs(%e : tensor<3x5xf32>) permutation = [1, 0]
  %a = tensor.concat dim(0) %t, %y : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<6x5xf32>
  %b = tensor.concat dim(1) %t, %y : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x10xf32>
  return %a, %b : tensor<6x5xf32>, tensor<3x10xf32>
}
