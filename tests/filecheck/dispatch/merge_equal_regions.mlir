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
