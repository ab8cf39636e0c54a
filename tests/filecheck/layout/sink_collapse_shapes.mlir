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

// -----

// The other end of a residual connection is in memory when the sum is made: a view of it is free.
// CHECK-LABEL: func.func @residual
// CHECK: [[R:%.*]] = linalg.generic {{.*}} ins(%x, %x : tensor<6x8xf32>, tensor<6x8xf32>)
// CHECK: [[G:%.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<6x2x4xf32>)
// CHECK: [[E:%.*]] = tensor.expand_shape [[R]] {{.*}} : tensor<6x8xf32> into tensor<6x2x4xf32>
// CHECK: linalg.generic {{.*}} ins([[G]], [[E]] : tensor<6x2x4xf32>, tensor<6x2x4xf32>)
// CHECK: tensor.collapse_shape {{.*}} : tensor<6x2x4xf32> into tensor<6x8xf32>
// CHECK-NEXT: return
func.func @residual(%x: tensor<6x8xf32>, %w: tensor<2x4x4xf32>) -> tensor<6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %r = linalg.add ins(%x, %x : tensor<6x8xf32>, tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %rg = tensor.expand_shape %r [[0], [1, 2]] output_shape [6, 2, 4] : tensor<6x8xf32> into tensor<6x2x4xf32>
  %e1 = tensor.empty() : tensor<6x2x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x2x4xf32>) -> tensor<6x2x4xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(n, g, o, i) -> (n, g, i)>, affine_map<(n, g, o, i) -> (g, o, i)>, affine_map<(n, g, o, i) -> (n, g, o)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%rg, %w : tensor<6x2x4xf32>, tensor<2x4x4xf32>) outs(%f : tensor<6x2x4xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<6x2x4xf32>
  %c = tensor.collapse_shape %g [[0], [1, 2]] : tensor<6x2x4xf32> into tensor<6x8xf32>
  %y = linalg.add ins(%c, %r : tensor<6x8xf32>, tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// Refused: the reshape would only move to the other operand, which no root lies behind, so that it may run where it is made.
// CHECK-LABEL: func.func @two_branches
// CHECK: [[C:%.*]] = tensor.collapse_shape
// CHECK: linalg.generic {{.*}} ins([[C]], %{{.*}} : tensor<6x8xf32>, tensor<6x8xf32>)
// CHECK-NEXT: ^
func.func @two_branches(%x: tensor<6x8xf32>, %z: tensor<6x2x4xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %e = tensor.empty() : tensor<6x8xf32>
  %r = linalg.exp ins(%x : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %e1 = tensor.empty() : tensor<6x2x4xf32>
  %g = linalg.exp ins(%z : tensor<6x2x4xf32>) outs(%e1 : tensor<6x2x4xf32>) -> tensor<6x2x4xf32>
  %c = tensor.collapse_shape %g [[0], [1, 2]] : tensor<6x2x4xf32> into tensor<6x8xf32>
  %y = linalg.add ins(%c, %r : tensor<6x8xf32>, tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y, %r : tensor<6x8xf32>, tensor<6x8xf32>
}

// -----

// 4 x 6 as 8 x 3: a transpose runs over 4 x 2 x 3, of which both are made.
// CHECK-LABEL: func.func @regrouped_and_turned
// CHECK-NOT: tensor.collapse_shape
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0 : i64], [1 : i64, 2 : i64], [3 : i64]] output_shape [4, 2, 3, 5]
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>]
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0 : i64, 1 : i64], [2 : i64], [3 : i64]]
func.func @regrouped_and_turned(%x: tensor<4x6x5xf32>) -> tensor<8x5x3xf32> {
  %e = tensor.empty() : tensor<4x6x5xf32>
  %a = linalg.exp ins(%x : tensor<4x6x5xf32>) outs(%e : tensor<4x6x5xf32>) -> tensor<4x6x5xf32>
  %c = tensor.collapse_shape %a [[0, 1], [2]] : tensor<4x6x5xf32> into tensor<24x5xf32>
  %r = tensor.expand_shape %c [[0, 1], [2]] output_shape [8, 3, 5] : tensor<24x5xf32> into tensor<8x3x5xf32>
  %et = tensor.empty() : tensor<8x5x3xf32>
  %t = linalg.transpose ins(%r : tensor<8x3x5xf32>) outs(%et : tensor<8x5x3xf32>) permutation = [0, 2, 1]
  return %t : tensor<8x5x3xf32>
}
