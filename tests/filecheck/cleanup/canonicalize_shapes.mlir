// RUN: fuseline opt %s -p canonicalize --split-input-file --verify-each | filecheck %s

// CHECK-LABEL: func.func @inverse
// CHECK-NEXT: func.return %x, %y
func.func @inverse(%x: tensor<4x8xf32>, %y: tensor<?x8xf32>, %n: index) -> (tensor<4x8xf32>, tensor<?x8xf32>) {
  %a = tensor.collapse_shape %x [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %b = tensor.expand_shape %a [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %c = tensor.collapse_shape %y [[0, 1]] : tensor<?x8xf32> into tensor<?xf32>
  %d = tensor.expand_shape %c [[0, 1]] output_shape [%n, 8] : tensor<?xf32> into tensor<?x8xf32>
  return %b, %d : tensor<4x8xf32>, tensor<?x8xf32>
}

// -----

// Two unknown sizes in a group: the product does not fix them.
// CHECK-LABEL: func.func @unknown
// CHECK: tensor.collapse_shape
// CHECK: tensor.expand_shape
func.func @unknown(%y: tensor<?x?xf32>, %n: index, %m: index) -> tensor<?x?xf32> {
  %c = tensor.collapse_shape %y [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %d = tensor.expand_shape %c [[0, 1]] output_shape [%n, %m] : tensor<?xf32> into tensor<?x?xf32>
  return %d : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: func.func @chains
// CHECK-NEXT: tensor.collapse_shape %x {{\[\[}}0 : i64, 1 : i64, 2 : i64]]
// CHECK-NEXT: tensor.expand_shape %y {{\[\[}}0 : i64, 1 : i64, 2 : i64]]
// CHECK-NEXT: tensor.expand_shape %z {{\[\[}}0 : i64, 1 : i64], [2 : i64]]
// CHECK-NEXT: func.return
func.func @chains(%x: tensor<2x3x4xf32>, %y: tensor<24xf32>, %z: tensor<6x4xf32>) -> (tensor<24xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %a = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
  %b = tensor.collapse_shape %a [[0, 1]] : tensor<6x4xf32> into tensor<24xf32>
  %c = tensor.expand_shape %y [[0, 1]] output_shape [6, 4] : tensor<24xf32> into tensor<6x4xf32>
  %d = tensor.expand_shape %c [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
  %e = tensor.collapse_shape %z [[0, 1]] : tensor<6x4xf32> into tensor<24xf32>
  %f = tensor.expand_shape %e [[0, 1, 2]] output_shape [2, 3, 4] : tensor<24xf32> into tensor<2x3x4xf32>
  return %b, %d, %f : tensor<24xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// -----

// No single reshape makes 8x3 of 4x6.
// CHECK-LABEL: func.func @regrouped
// CHECK: tensor.collapse_shape
// CHECK: tensor.expand_shape
func.func @regrouped(%x: tensor<4x6xf32>) -> tensor<8x3xf32> {
  %a = tensor.collapse_shape %x [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %b = tensor.expand_shape %a [[0, 1]] output_shape [8, 3] : tensor<24xf32> into tensor<8x3xf32>
  return %b : tensor<8x3xf32>
}

// -----

// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: func.return %x, %x, %x, %x, %y
func.func @nothing(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = tensor.extract_slice %x[0, 0] [4, 8] [1, 1] : tensor<4x8xf32> to tensor<4x8xf32>
  %b = tensor.pad %x low[0, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x8xf32> to tensor<4x8xf32>
  %c = tensor.concat dim(0) %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %d0 = tensor.cast %x : tensor<4x8xf32> to tensor<?x8xf32>
  %d = tensor.cast %d0 : tensor<?x8xf32> to tensor<4x8xf32>
  %e = tensor.insert_slice %y into %x[0, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<4x8xf32>
  return %a, %b, %c, %d, %e : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @something
// CHECK: tensor.extract_slice
// CHECK: tensor.pad
// CHECK: tensor.insert_slice
func.func @something(%x: tensor<4x8xf32>, %y: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<4x9xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = tensor.extract_slice %x[2, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>
  %b = tensor.pad %x low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x8xf32> to tensor<4x9xf32>
  %e = tensor.insert_slice %y into %x[1, 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<4x8xf32>
  return %a, %b, %e : tensor<2x8xf32>, tensor<4x9xf32>, tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @slices
// CHECK: %[[A:.*]] = tensor.extract_slice %y[1, 2] [1, 4] [1, 1] : tensor<2x8xf32> to tensor<1x4xf32>
// CHECK: %[[B:.*]] = tensor.extract_slice %x[1, 4] [2, 2] [2, 1] : tensor<4x8xf32> to tensor<2x2xf32>
// CHECK: tensor.extract_slice %{{.*}}[3, 0] [2, 8] [1, 1]
func.func @slices(%x: tensor<4x8xf32>, %y: tensor<2x8xf32>) -> (tensor<1x4xf32>, tensor<2x2xf32>, tensor<2x8xf32>) {
  %cat = tensor.concat dim(0) %x, %y : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<6x8xf32>
  %a = tensor.extract_slice %cat[5, 2] [1, 4] [1, 1] : tensor<6x8xf32> to tensor<1x4xf32>
  %b0 = tensor.extract_slice %x[1, 2] [2, 4] [2, 1] : tensor<4x8xf32> to tensor<2x4xf32>
  %b = tensor.extract_slice %b0[0, 2] [2, 2] [1, 1] : tensor<2x4xf32> to tensor<2x2xf32>
  %straddles = tensor.extract_slice %cat[3, 0] [2, 8] [1, 1] : tensor<6x8xf32> to tensor<2x8xf32>
  return %a, %b, %straddles : tensor<1x4xf32>, tensor<2x2xf32>, tensor<2x8xf32>
}

// -----

// CHECK-LABEL: func.func @concat
// CHECK-NEXT: tensor.concat dim(0) %x, %y, %x : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<10x8xf32>
func.func @concat(%x: tensor<4x8xf32>, %y: tensor<2x8xf32>, %none: tensor<0x8xf32>) -> tensor<10x8xf32> {
  %a = tensor.concat dim(0) %x, %y : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<6x8xf32>
  %b = tensor.concat dim(0) %a, %none, %x : (tensor<6x8xf32>, tensor<0x8xf32>, tensor<4x8xf32>) -> tensor<10x8xf32>
  return %b : tensor<10x8xf32>
}

// -----

// A concat with other readers is opened too: neither of the two is stored for the sake of the other.
// CHECK-LABEL: func.func @concats_in_a_chain
// CHECK-DAG: %[[A:.*]] = tensor.concat dim(1) %x, %y :
// CHECK-DAG: %[[B:.*]] = tensor.concat dim(1) %x, %y, %z :
// CHECK: tensor.concat dim(0) %[[B]], %[[B]] :
func.func @concats_in_a_chain(%x: tensor<4x8xf32>, %y: tensor<4x2xf32>, %z: tensor<4x1xf32>) -> (tensor<4x10xf32>, tensor<8x11xf32>) {
  %a = tensor.concat dim(1) %x, %y : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
  %b = tensor.concat dim(1) %a, %z : (tensor<4x10xf32>, tensor<4x1xf32>) -> tensor<4x11xf32>
  %c = tensor.concat dim(0) %b, %b : (tensor<4x11xf32>, tensor<4x11xf32>) -> tensor<8x11xf32>
  return %a, %c : tensor<4x10xf32>, tensor<8x11xf32>
}

// -----

// Sizes follow the ops down to the argument.
// CHECK-LABEL: func.func @dims
// CHECK: %[[EIGHT:.*]] = arith.constant 8 : index
// CHECK: %[[D:.*]] = tensor.dim %x
// CHECK-NOT: tensor.dim
// CHECK: func.return %n, %[[D]], %[[EIGHT]]
func.func @dims(%x: tensor<?x8xf32>, %n: index) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %a = tensor.dim %e, %c0 : tensor<?x8xf32>
  %b = tensor.dim %x, %c1 : tensor<?x8xf32>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%x : tensor<?x8xf32>) -> tensor<?x8xf32>
  %d = tensor.expand_shape %f [[0], [1, 2]] output_shape [%n, 2, 4] : tensor<?x8xf32> into tensor<?x2x4xf32>
  %c = tensor.dim %f, %c0 : tensor<?x8xf32>
  return %a, %c, %b : index, index, index
}

// -----

// The size of what is padded, joined or collapsed is arithmetic on the sizes of the operands.
// CHECK-LABEL: func.func @dims_of_moved_data
// CHECK-NOT: tensor.dim %{{[pjk]}}
// CHECK: func.return
func.func @dims_of_moved_data(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %n: index) -> (index, index, index, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[2, 0] high[%n, 0] {
  ^bb0(%i: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<?x?xf32> to tensor<?x?xf32>
  %j = tensor.concat dim(0) %x, %y : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %k = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %a = tensor.dim %p, %c0 : tensor<?x?xf32>
  %b = tensor.dim %j, %c0 : tensor<?x?xf32>
  %c = tensor.dim %k, %c0 : tensor<?xf32>
  return %a, %b, %c, %p, %j, %k : index, index, index, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>
}

// -----

// A dimension that is padded at one end only is larger than what is padded, one that is padded nowhere as large.
// CHECK-LABEL: func.func @dims_padded_at_one_end
// CHECK: %[[N:.*]] = tensor.dim %x
// CHECK: arith.addi %[[N]]
// CHECK-NOT: arith.addi
// CHECK: func.return
func.func @dims_padded_at_one_end(%x: tensor<?x?xf32>) -> (index, index, tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[3, 0] high[0, 0] {
  ^bb0(%i: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<?x?xf32> to tensor<?x?xf32>
  %a = tensor.dim %p, %c0 : tensor<?x?xf32>
  %b = tensor.dim %p, %c1 : tensor<?x?xf32>
  return %a, %b, %p : index, index, tensor<?x?xf32>
}
