// RUN: fuseline opt %s -p generalize-named-ops,sink-expand-shapes --split-input-file --verify-each | filecheck %s

// The scale of the queries joins the matmul's epilogue; the heads come apart behind it.
// CHECK-LABEL: func.func @scale
// CHECK: linalg.generic
// CHECK-NOT: tensor.expand_shape
// CHECK: arith.mulf %{{.*}}, %half
// CHECK: [[R:%.*]] = tensor.expand_shape {{.*}} output_shape [8, 2, 3]
// CHECK-NEXT: return [[R]]
func.func @scale(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>) -> tensor<8x2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<8x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x6xf32>) -> tensor<8x6xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%f : tensor<8x6xf32>) -> tensor<8x6xf32>
  %r = tensor.expand_shape %p [[0], [1, 2]] output_shape [8, 2, 3] : tensor<8x6xf32> into tensor<8x2x3xf32>
  %e1 = tensor.empty() : tensor<8x2x3xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%r : tensor<8x2x3xf32>) outs(%e1 : tensor<8x2x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.mulf %in, %half : f32
    linalg.yield %v : f32
  } -> tensor<8x2x3xf32>
  return %s : tensor<8x2x3xf32>
}

// -----

// A factor per head names one of the two dimensions: they cannot merge.
// CHECK-LABEL: func.func @per_head
// CHECK: [[R:%.*]] = tensor.expand_shape
// CHECK: linalg.generic {{.*}} ins([[R]], %h
func.func @per_head(%x: tensor<8x6xf32>, %h: tensor<2xf32>) -> tensor<8x2x3xf32> {
  %e = tensor.empty() : tensor<8x6xf32>
  %p = linalg.exp ins(%x : tensor<8x6xf32>) outs(%e : tensor<8x6xf32>) -> tensor<8x6xf32>
  %r = tensor.expand_shape %p [[0], [1, 2]] output_shape [8, 2, 3] : tensor<8x6xf32> into tensor<8x2x3xf32>
  %e1 = tensor.empty() : tensor<8x2x3xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (b)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%r, %h : tensor<8x2x3xf32>, tensor<2xf32>) outs(%e1 : tensor<8x2x3xf32>) {
  ^bb0(%in: f32, %f: f32, %out: f32):
    %v = arith.mulf %in, %f : f32
    linalg.yield %v : f32
  } -> tensor<8x2x3xf32>
  return %s : tensor<8x2x3xf32>
}

// -----

// Rows that are summed merge as well; loops of two kinds, and one that the body asks for, do not.
// CHECK-LABEL: func.func @rows
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: tensor.expand_shape {{.*}} output_shape [2, 3]
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: linalg.index 1
func.func @rows(%x: tensor<6x4xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2x3x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x4xf32>
  %p = linalg.exp ins(%x : tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
  %r = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
  %e1 = tensor.empty() : tensor<2x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x3xf32>) -> tensor<2x3xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%r : tensor<2x3x4xf32>) outs(%f : tensor<2x3xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %v = arith.addf %acc, %in : f32
    linalg.yield %v : f32
  } -> tensor<2x3xf32>
  %e2 = tensor.empty() : tensor<2xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2xf32>) -> tensor<2xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]} ins(%s : tensor<2x3xf32>) outs(%f2 : tensor<2xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %v = arith.addf %acc, %in : f32
    linalg.yield %v : f32
  } -> tensor<2xf32>
  %e3 = tensor.empty() : tensor<2x3x4xf32>
  %u = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%r : tensor<2x3x4xf32>) outs(%e3 : tensor<2x3x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i64
    %k = arith.sitofp %j : i64 to f32
    %v = arith.mulf %in, %k : f32
    linalg.yield %v : f32
  } -> tensor<2x3x4xf32>
  return %s, %t, %u : tensor<2x3xf32>, tensor<2xf32>, tensor<2x3x4xf32>
}

// -----

// Two operands, one of which has its shape by itself: the reshape would only move.
// CHECK-LABEL: func.func @moves_only
// CHECK: tensor.expand_shape
// CHECK-NOT: tensor.collapse_shape
// CHECK: return
func.func @moves_only(%x: tensor<6xf32>, %z: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %e0 = tensor.empty() : tensor<6xf32>
  %e = tensor.empty() : tensor<2x3xf32>
  %p = linalg.exp ins(%x : tensor<6xf32>) outs(%e0 : tensor<6xf32>) -> tensor<6xf32>
  %q = linalg.exp ins(%z : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = tensor.expand_shape %p [[0, 1]] output_shape [2, 3] : tensor<6xf32> into tensor<2x3xf32>
  %y = linalg.add ins(%r, %q : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

// A slice of whole rows behind an expand is a slice before it; an expand that collapses again is no reshape at all.
// CHECK-LABEL: func.func @slice_and_chain
// CHECK: tensor.extract_slice {{.*}}[2, 0] [4, 5] [1, 1] : tensor<6x5xf32> to tensor<4x5xf32>
// CHECK-NEXT: tensor.expand_shape {{.*}} output_shape [2, 2, 5]
// CHECK-NOT: tensor.collapse_shape
// CHECK: return
func.func @slice_and_chain(%x: tensor<6x5xf32>) -> (tensor<2x2x5xf32>, tensor<6x5xf32>) {
  %e = tensor.empty() : tensor<6x5xf32>
  %p = linalg.exp ins(%x : tensor<6x5xf32>) outs(%e : tensor<6x5xf32>) -> tensor<6x5xf32>
  %r = tensor.expand_shape %p [[0, 1], [2]] output_shape [3, 2, 5] : tensor<6x5xf32> into tensor<3x2x5xf32>
  %s = tensor.extract_slice %r[1, 0, 0] [2, 2, 5] [1, 1, 1] : tensor<3x2x5xf32> to tensor<2x2x5xf32>
  %c = tensor.collapse_shape %r [[0, 1], [2]] : tensor<3x2x5xf32> into tensor<6x5xf32>
  return %s, %c : tensor<2x2x5xf32>, tensor<6x5xf32>
}

// -----

// All rows of some columns are a slice before it too; nothing of the rows has no reshape.
// CHECK-LABEL: func.func @none_and_all
// CHECK: tensor.extract_slice {{.*}}[1, 0, 0] [0, 2, 5] [1, 1, 1] : tensor<3x2x5xf32> to tensor<0x2x5xf32>
// CHECK: tensor.extract_slice {{.*}}[0, 1] [6, 3] [1, 1] : tensor<6x5xf32> to tensor<6x3xf32>
// CHECK: return
func.func @none_and_all(%x: tensor<6x5xf32>) -> (tensor<0x2x5xf32>, tensor<3x2x3xf32>) {
  %e = tensor.empty() : tensor<6x5xf32>
  %p = linalg.exp ins(%x : tensor<6x5xf32>) outs(%e : tensor<6x5xf32>) -> tensor<6x5xf32>
  %r = tensor.expand_shape %p [[0, 1], [2]] output_shape [3, 2, 5] : tensor<6x5xf32> into tensor<3x2x5xf32>
  %s = tensor.extract_slice %r[1, 0, 0] [0, 2, 5] [1, 1, 1] : tensor<3x2x5xf32> to tensor<0x2x5xf32>
  %t = tensor.extract_slice %r[0, 0, 1] [3, 2, 3] [1, 1, 1] : tensor<3x2x5xf32> to tensor<3x2x3xf32>
  return %s, %t : tensor<0x2x5xf32>, tensor<3x2x3xf32>
}

// -----

// Every second row, a row known when it runs, a dimension less, half of each pair: each stays where it is.
// CHECK-LABEL: func.func @slices_that_stay
// CHECK: [[R:%[a-z0-9_]+]] = tensor.expand_shape {{.*}} output_shape [3, 2, 5]
// CHECK-DAG: tensor.extract_slice [[R]][0, 0, 0] [2, 2, 5] [2, 1, 1]
// CHECK-DAG: tensor.extract_slice [[R]]{{\[%[a-z0-9_]+}}, 0, 0] [1, 2, 5] [1, 1, 1]
// CHECK-DAG: tensor.extract_slice [[R]][1, 0, 0] [1, 2, 5] [1, 1, 1] : tensor<3x2x5xf32> to tensor<2x5xf32>
// CHECK-DAG: tensor.extract_slice [[R]][0, 1, 0] [3, 1, 5] [1, 1, 1]
// CHECK: return
func.func @slices_that_stay(%x: tensor<6x5xf32>, %i: index {fuseline.name = "i"}) -> (tensor<2x2x5xf32>, tensor<1x2x5xf32>, tensor<2x5xf32>, tensor<3x1x5xf32>) {
  %e = tensor.empty() : tensor<6x5xf32>
  %p = linalg.exp ins(%x : tensor<6x5xf32>) outs(%e : tensor<6x5xf32>) -> tensor<6x5xf32>
  %r = tensor.expand_shape %p [[0, 1], [2]] output_shape [3, 2, 5] : tensor<6x5xf32> into tensor<3x2x5xf32>
  %s = tensor.extract_slice %r[0, 0, 0] [2, 2, 5] [2, 1, 1] : tensor<3x2x5xf32> to tensor<2x2x5xf32>
  %t = tensor.extract_slice %r[%i, 0, 0] [1, 2, 5] [1, 1, 1] : tensor<3x2x5xf32> to tensor<1x2x5xf32>
  %u = tensor.extract_slice %r[1, 0, 0] [1, 2, 5] [1, 1, 1] : tensor<3x2x5xf32> to tensor<2x5xf32>
  %v = tensor.extract_slice %r[0, 1, 0] [3, 1, 5] [1, 1, 1] : tensor<3x2x5xf32> to tensor<3x1x5xf32>
  return %s, %t, %u, %v : tensor<2x2x5xf32>, tensor<1x2x5xf32>, tensor<2x5xf32>, tensor<3x1x5xf32>
}

// -----

// An expand of an argument is free as it is.
// CHECK-LABEL: func.func @slice_of_an_argument
// CHECK: tensor.expand_shape
// CHECK-NEXT: tensor.extract_slice {{.*}}[1, 0, 0] [2, 2, 5] [1, 1, 1] : tensor<3x2x5xf32>
// CHECK: return
func.func @slice_of_an_argument(%x: tensor<6x5xf32>) -> tensor<2x2x5xf32> {
  %r = tensor.expand_shape %x [[0, 1], [2]] output_shape [3, 2, 5] : tensor<6x5xf32> into tensor<3x2x5xf32>
  %s = tensor.extract_slice %r[1, 0, 0] [2, 2, 5] [1, 1, 1] : tensor<3x2x5xf32> to tensor<2x2x5xf32>
  return %s : tensor<2x2x5xf32>
}
