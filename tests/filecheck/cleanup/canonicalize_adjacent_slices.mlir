// RUN: fuseline opt %s -p "canonicalize,cse,canonicalize" --split-input-file --verify-each | filecheck %s

// The halves of a split side by side are what was split, of unknown sizes too.
// CHECK-LABEL: func.func @halves
// CHECK: tensor.concat dim(1) %x, %y :
func.func @halves(%x: tensor<?x8xf32>, %y: tensor<?x3xf32>) -> tensor<?x11xf32> {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x8xf32>
  %a = tensor.extract_slice %x[0, 0] [%n, 4] [1, 1] : tensor<?x8xf32> to tensor<?x4xf32>
  %b = tensor.extract_slice %x[0, 4] [%n, 4] [1, 1] : tensor<?x8xf32> to tensor<?x4xf32>
  %c = tensor.concat dim(1) %a, %b, %y : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x3xf32>) -> tensor<?x11xf32>
  return %c : tensor<?x11xf32>
}

// -----

// Three in a row of a computed tensor, after something else: one slice, for the last column is not among them.
// CHECK-LABEL: func.func @thirds
// CHECK: %[[X:.*]] = linalg.elementwise
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][0, 1] [%{{.*}}, 7] [1, 1]
// CHECK: tensor.concat dim(1) %y, %[[S]] :
func.func @thirds(%x: tensor<?x9xf32>, %y: tensor<?x3xf32>) -> tensor<?x10xf32> {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x9xf32>
  %e = tensor.empty(%n) : tensor<?x9xf32>
  %z = linalg.elementwise <exp> ins(%x : tensor<?x9xf32>) outs(%e : tensor<?x9xf32>) -> tensor<?x9xf32>
  %a = tensor.extract_slice %z[0, 1] [%n, 2] [1, 1] : tensor<?x9xf32> to tensor<?x2xf32>
  %b = tensor.extract_slice %z[0, 3] [%n, 4] [1, 1] : tensor<?x9xf32> to tensor<?x4xf32>
  %c = tensor.extract_slice %z[0, 7] [%n, 1] [1, 1] : tensor<?x9xf32> to tensor<?x1xf32>
  %d = tensor.concat dim(1) %y, %a, %b, %c : (tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x4xf32>, tensor<?x1xf32>) -> tensor<?x10xf32>
  return %d : tensor<?x10xf32>
}

// -----

// Side by side in the concat and not in the tensor: in the wrong order, with a gap, of every other element, of other rows, of fewer rows, of another tensor.
// CHECK-LABEL: func.func @apart
// CHECK: tensor.concat dim(1) %{{.*}}, %{{.*}} :
// CHECK: tensor.concat dim(1) %{{.*}}, %{{.*}} :
// CHECK: tensor.concat dim(1) %{{.*}}, %{{.*}} :
// CHECK: tensor.concat dim(1) %{{.*}}, %{{.*}} :
// CHECK: tensor.concat dim(1) %{{.*}}, %{{.*}} :
// CHECK: tensor.concat dim(1) %{{.*}}, %{{.*}} :
func.func @apart(%x: tensor<6x8xf32>, %y: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6x6xf32>, tensor<6x4xf32>, tensor<3x8xf32>, tensor<6x8xf32>, tensor<3x8xf32>) {
  %a0 = tensor.extract_slice %x[0, 4] [6, 4] [1, 1] : tensor<6x8xf32> to tensor<6x4xf32>
  %a1 = tensor.extract_slice %x[0, 0] [6, 4] [1, 1] : tensor<6x8xf32> to tensor<6x4xf32>
  %a = tensor.concat dim(1) %a0, %a1 : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x8xf32>
  %b0 = tensor.extract_slice %x[0, 0] [6, 3] [1, 1] : tensor<6x8xf32> to tensor<6x3xf32>
  %b1 = tensor.extract_slice %x[0, 4] [6, 3] [1, 1] : tensor<6x8xf32> to tensor<6x3xf32>
  %b = tensor.concat dim(1) %b0, %b1 : (tensor<6x3xf32>, tensor<6x3xf32>) -> tensor<6x6xf32>
  %c0 = tensor.extract_slice %x[0, 0] [6, 2] [1, 2] : tensor<6x8xf32> to tensor<6x2xf32>
  %c1 = tensor.extract_slice %x[0, 2] [6, 2] [1, 2] : tensor<6x8xf32> to tensor<6x2xf32>
  %c = tensor.concat dim(1) %c0, %c1 : (tensor<6x2xf32>, tensor<6x2xf32>) -> tensor<6x4xf32>
  %d0 = tensor.extract_slice %x[0, 0] [3, 4] [1, 1] : tensor<6x8xf32> to tensor<3x4xf32>
  %d1 = tensor.extract_slice %x[3, 4] [3, 4] [1, 1] : tensor<6x8xf32> to tensor<3x4xf32>
  %d = tensor.concat dim(1) %d0, %d1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x8xf32>
  %e0 = tensor.extract_slice %x[0, 0] [6, 4] [1, 1] : tensor<6x8xf32> to tensor<6x4xf32>
  %e1 = tensor.extract_slice %y[0, 4] [6, 4] [1, 1] : tensor<6x8xf32> to tensor<6x4xf32>
  %e = tensor.concat dim(1) %e0, %e1 : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x8xf32>
  %f0 = tensor.extract_slice %x[0, 0] [3, 4] [1, 1] : tensor<6x8xf32> to tensor<3x4xf32>
  %f1 = tensor.extract_slice %x[0, 4] [3, 4] [2, 1] : tensor<6x8xf32> to tensor<3x4xf32>
  %f = tensor.concat dim(1) %f0, %f1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x8xf32>
  return %a, %b, %c, %d, %e, %f : tensor<6x8xf32>, tensor<6x6xf32>, tensor<6x4xf32>, tensor<3x8xf32>, tensor<6x8xf32>, tensor<3x8xf32>
}

// -----

// Some rows of unknown number are not all of them; another start is none either.
// CHECK-LABEL: func.func @some_rows
// CHECK-COUNT-2: tensor.extract_slice
// CHECK: return
func.func @some_rows(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %at: index) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %zero = arith.constant 0 : index
  %m = tensor.dim %y, %zero : tensor<?x8xf32>
  %n = tensor.dim %x, %zero : tensor<?x8xf32>
  %a = tensor.extract_slice %x[0, 0] [%m, 8] [1, 1] : tensor<?x8xf32> to tensor<?x8xf32>
  %b = tensor.extract_slice %x[%at, 0] [%n, 8] [1, 1] : tensor<?x8xf32> to tensor<?x8xf32>
  return %a, %b : tensor<?x8xf32>, tensor<?x8xf32>
}
