// RUN: fuseline opt %s -p "clone-slices" --split-input-file --verify-each | filecheck %s
// RUN: fuseline opt %s -p "clone-slices,clone-slices" --split-input-file --verify-each | filecheck %s

// Columns that two ops and the caller read: the caller's is one, each op has its own.
// CHECK-LABEL: func.func @columns
// CHECK-COUNT-3: tensor.extract_slice
// CHECK-NOT: tensor.extract_slice
// CHECK: return
func.func @columns(%x: tensor<6x8xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>) {
  %e = tensor.empty() : tensor<6x4xf32>
  %s = tensor.extract_slice %x[0, 2] [6, 4] [1, 1] : tensor<6x8xf32> to tensor<6x4xf32>
  %a = linalg.elementwise <exp> ins(%s : tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
  %b = linalg.elementwise <mul> ins(%s, %s : tensor<6x4xf32>, tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
  return %a, %s, %b : tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>
}

// -----

// Rows are a part of the buffer itself; one reader needs no copy.
// CHECK-LABEL: func.func @rows
// CHECK-COUNT-2: tensor.extract_slice
// CHECK-NOT: tensor.extract_slice
// CHECK: return
func.func @rows(%x: tensor<6x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<6x4xf32>) {
  %e = tensor.empty() : tensor<2x8xf32>
  %f = tensor.empty() : tensor<6x4xf32>
  %s = tensor.extract_slice %x[2, 0] [2, 8] [1, 1] : tensor<6x8xf32> to tensor<2x8xf32>
  %a = linalg.elementwise <exp> ins(%s : tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) -> tensor<2x8xf32>
  %b = linalg.elementwise <abs> ins(%s : tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) -> tensor<2x8xf32>
  %t = tensor.extract_slice %x[0, 2] [6, 4] [1, 1] : tensor<6x8xf32> to tensor<6x4xf32>
  %c = linalg.elementwise <mul> ins(%t, %t : tensor<6x4xf32>, tensor<6x4xf32>) outs(%f : tensor<6x4xf32>) -> tensor<6x4xf32>
  return %a, %b, %c : tensor<2x8xf32>, tensor<2x8xf32>, tensor<6x4xf32>
}
