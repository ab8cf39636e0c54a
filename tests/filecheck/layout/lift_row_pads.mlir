// RUN: fuseline opt %s -p generalize-named-ops,lift-row-pads --split-input-file --verify-each | filecheck %s

// Windows: the rows of an image are padded and cut where they are read; what is outside of the image is chosen last.
// CHECK-LABEL: func.func @windows
// CHECK: tensor.pad %x low[0, 1, 0] high[1, 0, 0]
// CHECK: affine_map<(d0, d1, d2, d3, d4) -> (((d0 * 3) + d2), ((d1 * 2) + d3), d4)>
// CHECK-NOT: tensor.pad
// CHECK: iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]
// CHECK: arith.divf
// CHECK: arith.cmpi ult
// CHECK: arith.select
// CHECK: arith.cmpi ult
// CHECK: arith.select
// CHECK: -> tensor<2x3x3x2x17xf32>
// CHECK: tensor.collapse_shape
func.func @windows(%x: tensor<5x5x17xf32>) -> tensor<6x6x17xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e1 = tensor.empty() : tensor<5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<5x5xf32>) -> tensor<5x5xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<5x5x17xf32>) outs(%f : tensor<5x5xf32>) {
  ^bb0(%i: f32, %o: f32):
    %a = arith.addf %o, %i : f32
    linalg.yield %a : f32
  } -> tensor<5x5xf32>
  %e = tensor.empty() : tensor<5x5x17xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %s : tensor<5x5x17xf32>, tensor<5x5xf32>) outs(%e : tensor<5x5x17xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %q = arith.divf %i, %j : f32
    linalg.yield %q : f32
  } -> tensor<5x5x17xf32>
  %p = tensor.pad %y low[0, 1, 0] high[1, 0, 0] {
  ^bb0(%a: index, %b: index, %c: index):
    tensor.yield %one : f32
  } : tensor<5x5x17xf32> to tensor<6x6x17xf32>
  %r = tensor.expand_shape %p [[0, 1], [2, 3], [4]] output_shape [2, 3, 3, 2, 17] : tensor<6x6x17xf32> into tensor<2x3x3x2x17xf32>
  %et = tensor.empty() : tensor<2x3x3x2x17xf32>
  %t = linalg.transpose ins(%r : tensor<2x3x3x2x17xf32>) outs(%et : tensor<2x3x3x2x17xf32>) permutation = [0, 2, 1, 3, 4]
  %c = tensor.collapse_shape %t [[0, 1], [2, 3], [4]] : tensor<2x3x3x2x17xf32> into tensor<6x6x17xf32>
  return %c : tensor<6x6x17xf32>
}

// -----

// Packed: the columns are padded and cut, too, but not those that are summed. The sizes are known at run time.
// CHECK-LABEL: func.func @packed
// CHECK: tensor.pad %x low[0, 0] high[%{{.*}}, 0]
// CHECK: affine_map<(d0, d1, d2) -> (((d0 * 8) + d1), d2)>
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: tensor.pad %y low[0, 0] high[%{{.*}}, %{{.*}}]
// CHECK: affine_map<(d0, d1, d2, d3) -> (((d0 * 8) + d2), ((d1 * 4) + d3))>
// CHECK: arith.addf
// CHECK: arith.select
// CHECK: arith.select
func.func @packed(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?x8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d0 = tensor.dim %y, %c0 : tensor<?x?xf32>
  %d1 = tensor.dim %y, %c1 : tensor<?x?xf32>
  %c8 = arith.constant 8 : index
  %c4 = arith.constant 4 : index
  %a0 = arith.ceildivsi %d0, %c8 : index
  %a1 = arith.ceildivsi %d1, %c4 : index
  %w0 = arith.muli %a0, %c8 : index
  %w1 = arith.muli %a1, %c4 : index
  %h0 = arith.subi %w0, %d0 : index
  %h1 = arith.subi %w1, %d1 : index
  %e1 = tensor.empty(%d0) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%i: f32, %o: f32):
    %a = arith.maximumf %o, %i : f32
    linalg.yield %a : f32
  } -> tensor<?xf32>
  %e = tensor.empty(%d0, %d1) : tensor<?x?xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>, affine_map<(i, k) -> (i, k)>], iterator_types = ["parallel", "parallel"]} ins(%y, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %q = arith.addf %i, %j : f32
    linalg.yield %q : f32
  } -> tensor<?x?xf32>
  %p = tensor.pad %z low[0, 0] high[%h0, %h1] {
  ^bb0(%a: index, %b: index):
    tensor.yield %zero : f32
  } : tensor<?x?xf32> to tensor<?x?xf32>
  %et = tensor.empty(%a0, %a1) : tensor<?x?x8x4xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a * 8 + c, b * 4 + d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p : tensor<?x?xf32>) outs(%et : tensor<?x?x8x4xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<?x?x8x4xf32>
  return %t : tensor<?x?x8x4xf32>
}
