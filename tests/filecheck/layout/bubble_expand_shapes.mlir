// RUN: fuseline opt %s -p generalize-named-ops,bubble-expand-shapes --split-input-file --verify-each | filecheck %s

// Through an elementwise op and a contraction to the collapse that it undoes.
// CHECK-LABEL: func.func @cancels
// CHECK-NOT: tensor.collapse_shape
// CHECK: affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-NOT: tensor.expand_shape
// CHECK: return
func.func @cancels(%x: tensor<?x?x4xf32>, %w: tensor<4x5xf32>) -> tensor<?x?x5xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?x4xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?x4xf32>
  %nm = arith.muli %n, %m : index
  %e = tensor.empty(%n, %m) : tensor<?x?x4xf32>
  %a = linalg.exp ins(%x : tensor<?x?x4xf32>) outs(%e : tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %c = tensor.collapse_shape %a [[0, 1], [2]] : tensor<?x?x4xf32> into tensor<?x4xf32>
  %e1 = tensor.empty(%nm) : tensor<?x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x5xf32>) -> tensor<?x5xf32>
  %p = linalg.matmul ins(%c, %w : tensor<?x4xf32>, tensor<4x5xf32>) outs(%f : tensor<?x5xf32>) -> tensor<?x5xf32>
  %y = linalg.exp ins(%p : tensor<?x5xf32>) outs(%e1 : tensor<?x5xf32>) -> tensor<?x5xf32>
  %r = tensor.expand_shape %y [[0, 1], [2]] output_shape [%n, %m, 5] : tensor<?x5xf32> into tensor<?x?x5xf32>
  return %r : tensor<?x?x5xf32>
}

// -----

// Nothing above to cancel with: it stays where it is, as a free alias.
// CHECK-LABEL: func.func @heads
// CHECK: affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK: tensor.expand_shape {{.*}} output_shape [8, 2, 3]
func.func @heads(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>) -> tensor<8x2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x6xf32>) -> tensor<8x6xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%f : tensor<8x6xf32>) -> tensor<8x6xf32>
  %r = tensor.expand_shape %p [[0], [1, 2]] output_shape [8, 2, 3] : tensor<8x6xf32> into tensor<8x2x3xf32>
  return %r : tensor<8x2x3xf32>
}

// -----

// The op in between has another reader, which wants the flat result.
// CHECK-LABEL: func.func @two_readers
// CHECK: tensor.collapse_shape
// CHECK: tensor.expand_shape
func.func @two_readers(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<6xf32>) {
  %e = tensor.empty() : tensor<2x3xf32>
  %a = linalg.exp ins(%x : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = tensor.collapse_shape %a [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  %e1 = tensor.empty() : tensor<6xf32>
  %y = linalg.exp ins(%c : tensor<6xf32>) outs(%e1 : tensor<6xf32>) -> tensor<6xf32>
  %r = tensor.expand_shape %y [[0, 1]] output_shape [2, 3] : tensor<6xf32> into tensor<2x3xf32>
  return %r, %y : tensor<2x3xf32>, tensor<6xf32>
}

// -----

// The summed loop of a reduction is no loop of the result, a window is walked with an offset: both stop it.
// CHECK-LABEL: func.func @window
// CHECK: tensor.collapse_shape
// CHECK: tensor.expand_shape
func.func @window(%x: tensor<2x4xf32>) -> tensor<2x3xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<2x4xf32>
  %a = linalg.exp ins(%x : tensor<2x4xf32>) outs(%e0 : tensor<2x4xf32>) -> tensor<2x4xf32>
  %c = tensor.collapse_shape %a [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  %window = tensor.empty() : tensor<3xf32>
  %e = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, p) -> (b + p)>, affine_map<(b, p) -> (p)>, affine_map<(b, p) -> (b)>], iterator_types = ["parallel", "reduction"]} ins(%c, %window : tensor<8xf32>, tensor<3xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%in: f32, %w: f32, %acc: f32):
    %m = arith.maximumf %acc, %in : f32
    linalg.yield %m : f32
  } -> tensor<6xf32>
  %r = tensor.expand_shape %y [[0, 1]] output_shape [2, 3] : tensor<6xf32> into tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// A pad of other dimensions: it stands beside its reader then.
// CHECK-LABEL: func.func @above_a_pad
// CHECK: [[E:%.*]] = tensor.expand_shape {{.*}} output_shape [4, 5, 2, 3]
// CHECK: tensor.pad [[E]] low[1, 0, 0, 0] high[0, 2, 0, 0]
// CHECK-NOT: tensor.expand_shape
// CHECK: return
func.func @above_a_pad(%x: tensor<4x5x6xf32>) -> tensor<5x7x2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x5x6xf32>
  %a = linalg.exp ins(%x : tensor<4x5x6xf32>) outs(%e : tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  %p = tensor.pad %a low[1, 0, 0] high[0, 2, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<4x5x6xf32> to tensor<5x7x6xf32>
  %r = tensor.expand_shape %p [[0], [1], [2, 3]] output_shape [5, 7, 2, 3] : tensor<5x7x6xf32> into tensor<5x7x2x3xf32>
  %e1 = tensor.empty() : tensor<5x7x2x3xf32>
  %y = linalg.exp ins(%r : tensor<5x7x2x3xf32>) outs(%e1 : tensor<5x7x2x3xf32>) -> tensor<5x7x2x3xf32>
  return %y : tensor<5x7x2x3xf32>
}

// -----

// The dimension that is split is padded: the expand stays.
// CHECK-LABEL: func.func @padded_dimension
// CHECK: tensor.pad
// CHECK: tensor.expand_shape
func.func @padded_dimension(%x: tensor<4x5xf32>) -> tensor<4x2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x5xf32> to tensor<4x6xf32>
  %r = tensor.expand_shape %p [[0], [1, 2]] output_shape [4, 2, 3] : tensor<4x6xf32> into tensor<4x2x3xf32>
  return %r : tensor<4x2x3xf32>
}

// -----

// The pad value depends on the position: the expand stays.
// CHECK-LABEL: func.func @pad_value_of_the_position
// CHECK: tensor.pad
// CHECK: tensor.expand_shape
func.func @pad_value_of_the_position(%x: tensor<4x6xindex>) -> tensor<5x2x3xindex> {
  %p = tensor.pad %x low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %j : index
  } : tensor<4x6xindex> to tensor<5x6xindex>
  %r = tensor.expand_shape %p [[0], [1, 2]] output_shape [5, 2, 3] : tensor<5x6xindex> into tensor<5x2x3xindex>
  return %r : tensor<5x2x3xindex>
}
