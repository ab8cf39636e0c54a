// RUN: fuseline opt %s -p generalize-named-ops,sink-collapse-shapes --split-input-file --verify-each | filecheck %s

// Below elementwise ops, with a constant that is expanded and positions that are recomputed, to the return.
// CHECK-LABEL: func.func @elementwise
// CHECK: linalg.generic
// CHECK-NOT: tensor.collapse_shape
// CHECK: linalg.index 0
// CHECK: arith.muli
// CHECK: [[Y:%.*]] = tensor.collapse_shape {{.*}} : tensor<2x3x4xf32> into tensor<6x4xf32>
// CHECK-NEXT: return [[Y]]
func.func @elementwise(%x: tensor<2x3x4xf32>) -> tensor<6x4xf32> {
  %e = tensor.empty() : tensor<2x3x4xf32>
  %a = linalg.add ins(%x, %x : tensor<2x3x4xf32>, tensor<2x3x4xf32>) outs(%e : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %c = tensor.collapse_shape %a [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
  %w = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>
  %e1 = tensor.empty() : tensor<6x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%c, %w : tensor<6x4xf32>, tensor<6xf32>) outs(%e1 : tensor<6x4xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i64
    %k = arith.sitofp %j : i64 to f32
    %m = arith.mulf %in, %s : f32
    %t = arith.addf %m, %k : f32
    linalg.yield %t : f32
  } -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}

// -----

// The rows of a contraction are several loops.
// CHECK-LABEL: func.func @rows
// CHECK: affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK: tensor.collapse_shape {{.*}} : tensor<2x3x5xf32> into tensor<6x5xf32>
func.func @rows(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>) -> tensor<6x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x4xf32>
  %a = linalg.add ins(%x, %x : tensor<2x3x4xf32>, tensor<2x3x4xf32>) outs(%e : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %c = tensor.collapse_shape %a [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
  %e1 = tensor.empty() : tensor<6x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x5xf32>) -> tensor<6x5xf32>
  %m = linalg.matmul ins(%c, %w : tensor<6x4xf32>, tensor<4x5xf32>) outs(%f : tensor<6x5xf32>) -> tensor<6x5xf32>
  return %m : tensor<6x5xf32>
}

// -----

// What a contraction sums over stays one loop: the reshape is the alias of a contiguous buffer.
// CHECK-LABEL: func.func @summed
// CHECK: [[C:%.*]] = tensor.collapse_shape {{.*}} : tensor<2x3x4xf32> into tensor<2x12xf32>
// CHECK: ins([[C]], %w
func.func @summed(%x: tensor<2x3x4xf32>, %w: tensor<12x5xf32>) -> tensor<2x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x4xf32>
  %a = linalg.add ins(%x, %x : tensor<2x3x4xf32>, tensor<2x3x4xf32>) outs(%e : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %c = tensor.collapse_shape %a [[0], [1, 2]] : tensor<2x3x4xf32> into tensor<2x12xf32>
  %e1 = tensor.empty() : tensor<2x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x5xf32>) -> tensor<2x5xf32>
  %m = linalg.matmul ins(%c, %w : tensor<2x12xf32>, tensor<12x5xf32>) outs(%f : tensor<2x5xf32>) -> tensor<2x5xf32>
  return %m : tensor<2x5xf32>
}

// -----

// Another operand would need a reshape in turn: nothing is gained.
// CHECK-LABEL: func.func @moves_only
// CHECK: tensor.collapse_shape
// CHECK-NOT: tensor.expand_shape
// CHECK: return
func.func @moves_only(%x: tensor<2x3xf32>, %z: tensor<8xf32>) -> tensor<6xf32> {
  %e = tensor.empty() : tensor<2x3xf32>
  %a = linalg.add ins(%x, %x : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = tensor.collapse_shape %a [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  %s = tensor.extract_slice %z[1] [6] [1] : tensor<8xf32> to tensor<6xf32>
  %e1 = tensor.empty() : tensor<6xf32>
  %y = linalg.add ins(%c, %s : tensor<6xf32>, tensor<6xf32>) outs(%e1 : tensor<6xf32>) -> tensor<6xf32>
  return %y : tensor<6xf32>
}

// -----

// Symbolic sizes: batch and sequence come apart again.
// CHECK-LABEL: func.func @dynamic
// CHECK: affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK: tensor.collapse_shape {{.*}} : tensor<?x?x4xf32> into tensor<?x4xf32>
// CHECK-NEXT: return
func.func @dynamic(%x: tensor<?x?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?x4xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?x4xf32>
  %nm = arith.muli %n, %m : index
  %e = tensor.empty(%n, %m) : tensor<?x?x4xf32>
  %a = linalg.exp ins(%x : tensor<?x?x4xf32>) outs(%e : tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %c = tensor.collapse_shape %a [[0, 1], [2]] : tensor<?x?x4xf32> into tensor<?x4xf32>
  %e1 = tensor.empty(%nm) : tensor<?x4xf32>
  %y = linalg.exp ins(%c : tensor<?x4xf32>) outs(%e1 : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
