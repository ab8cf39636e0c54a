// RUN: fuseline opt %s -p generalize-named-ops,propagate-transposes --split-input-file --verify-each | filecheck %s

// Down through an elementwise op with a broadcast operand, a pad and a slice, until the inverse transpose cancels it.
// CHECK-LABEL: func.func @cancels
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>]
// CHECK-SAME: ins(%x, %b
// CHECK: tensor.pad %{{.*}} low[0, 1, 1, 0] high[0, 2, 0, 0]
// CHECK: tensor.extract_slice %{{.*}}[0, 1, 0, 0] [1, 5, 6, 3] [1, 1, 1, 1] : tensor<1x8x6x3xf32> to tensor<1x5x6x3xf32>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @cancels(%x: tensor<1x5x5x3xf32>, %b: tensor<3xf32>) -> tensor<1x5x6x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<1x3x5x5xf32>
  %t = linalg.transpose ins(%x : tensor<1x5x5x3xf32>) outs(%e0 : tensor<1x3x5x5xf32>) permutation = [0, 3, 1, 2]
  %y = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (b)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%t, %b : tensor<1x3x5x5xf32>, tensor<3xf32>) outs(%e0 : tensor<1x3x5x5xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.addf %in, %bias : f32
    linalg.yield %s : f32
  } -> tensor<1x3x5x5xf32>
  %p = tensor.pad %y low[0, 0, 1, 1] high[0, 0, 2, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x3x5x5xf32> to tensor<1x3x8x6xf32>
  %s = tensor.extract_slice %p[0, 0, 1, 0] [1, 3, 5, 6] [1, 1, 1, 1] : tensor<1x3x8x6xf32> to tensor<1x3x5x6xf32>
  %e1 = tensor.empty() : tensor<1x5x6x3xf32>
  %r = linalg.transpose ins(%s : tensor<1x3x5x6xf32>) outs(%e1 : tensor<1x5x6x3xf32>) permutation = [0, 2, 3, 1]
  return %r : tensor<1x5x6x3xf32>
}

// -----

// A contraction reads and writes in any order: nothing stands alone around attention.
// CHECK-LABEL: func.func @attention
// CHECK-NOT: linalg.transpose
// CHECK: affine_map<(d0, d1, d2, d3) -> (d1, d0, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d0, d3)>, affine_map<(d0, d1, d2, d3) -> (d1, d0, d2)>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @attention(%q: tensor<8x2x4xf32>, %k: tensor<8x2x4xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<2x8x4xf32>
  %qt = linalg.transpose ins(%q : tensor<8x2x4xf32>) outs(%e0 : tensor<2x8x4xf32>) permutation = [1, 0, 2]
  %e1 = tensor.empty() : tensor<2x4x8xf32>
  %kt = linalg.transpose ins(%k : tensor<8x2x4xf32>) outs(%e1 : tensor<2x4x8xf32>) permutation = [1, 2, 0]
  %e2 = tensor.empty() : tensor<2x8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %s = linalg.batch_matmul ins(%qt, %kt : tensor<2x8x4xf32>, tensor<2x4x8xf32>) outs(%f : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %e3 = tensor.empty() : tensor<8x2x8xf32>
  %st = linalg.transpose ins(%s : tensor<2x8x8xf32>) outs(%e3 : tensor<8x2x8xf32>) permutation = [1, 0, 2]
  %r = tensor.collapse_shape %st [[0], [1, 2]] : tensor<8x2x8xf32> into tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}

// -----

// The order of a flattened tensor is taken over by the weight.
// CHECK-LABEL: func.func @flatten
// CHECK: [[W:%.*]] = tensor.expand_shape {{.*}} output_shape [3, 2, 2, 5]
// CHECK: linalg.transpose ins([[W]]:tensor<3x2x2x5xf32>) outs({{.*}}) permutation = [1, 2, 0, 3]
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @flatten(%x: tensor<4x2x2x3xf32>) -> tensor<4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x3x2x2xf32>
  %t = linalg.transpose ins(%x : tensor<4x2x2x3xf32>) outs(%e0 : tensor<4x3x2x2xf32>) permutation = [0, 3, 1, 2]
  %c = tensor.collapse_shape %t [[0], [1, 2, 3]] : tensor<4x3x2x2xf32> into tensor<4x12xf32>
  %w = arith.constant dense<"0x000000000000803F0000004000004040000080400000A0400000C0400000E0400000004100001041000020410000304100004041000050410000604100007041000080410000884100009041000098410000A0410000A8410000B0410000B8410000C0410000C8410000D0410000D8410000E0410000E8410000F0410000F84100000042000004420000084200000C4200001042000014420000184200001C4200002042000024420000284200002C4200003042000034420000384200003C4200004042000044420000484200004C4200005042000054420000584200005C4200006042000064420000684200006C42"> : tensor<12x5xf32>
  %e1 = tensor.empty() : tensor<4x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x5xf32>) -> tensor<4x5xf32>
  %r = linalg.matmul ins(%c, %w : tensor<4x12xf32>, tensor<12x5xf32>) outs(%f : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// -----

// A channel shuffle between channels-last ops: only the shuffle stays, written by the producer; image and window keep their order.
// CHECK-LABEL: func.func @channel_shuffle
// CHECK-NOT: linalg.transpose
// CHECK: affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
// CHECK-NOT: linalg.transpose
// CHECK: tensor.collapse_shape {{.*}} tensor<9x7x5x4xf32> into tensor<9x7x20xf32>
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {{.*}} ins({{.*}}tensor<9x7x20xf32>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @channel_shuffle(%x: tensor<9x7x4x5xf32>) -> tensor<9x7x20xf32> {
  %e0 = tensor.empty() : tensor<9x7x4x5xf32>
  %a = linalg.exp ins(%x : tensor<9x7x4x5xf32>) outs(%e0 : tensor<9x7x4x5xf32>) -> tensor<9x7x4x5xf32>
  %e1 = tensor.empty() : tensor<5x4x9x7xf32>
  %t = linalg.transpose ins(%a : tensor<9x7x4x5xf32>) outs(%e1 : tensor<5x4x9x7xf32>) permutation = [3, 2, 0, 1]
  %c = tensor.collapse_shape %t [[0, 1], [2], [3]] : tensor<5x4x9x7xf32> into tensor<20x9x7xf32>
  %e2 = tensor.empty() : tensor<9x7x20xf32>
  %r = linalg.transpose ins(%c : tensor<20x9x7xf32>) outs(%e2 : tensor<9x7x20xf32>) permutation = [1, 2, 0]
  %y = linalg.exp ins(%r : tensor<9x7x20xf32>) outs(%e2 : tensor<9x7x20xf32>) -> tensor<9x7x20xf32>
  return %y : tensor<9x7x20xf32>
}

// -----

// Keys of earlier steps and the new ones, kept for the next step: only the new ones are transposed, for the caller gets all of them as they came.
// CHECK-LABEL: func.func @kept
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<4x?x8xf32>)
// CHECK-NOT: linalg.transpose
// CHECK: %[[C:.*]] = tensor.concat dim(1) %past, %{{.*}} -> tensor<4x?x8xf32>
// CHECK: func.return %[[C]] :
func.func @kept(%past: tensor<4x?x8xf32>, %x: tensor<?x4x8xf32>) -> tensor<4x?x8xf32> {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x4x8xf32>
  %e = tensor.empty(%n) : tensor<?x4x8xf32>
  %new = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<?x4x8xf32>) outs(%e : tensor<?x4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<?x4x8xf32>
  %f = tensor.empty(%n) : tensor<4x?x8xf32>
  %t = linalg.transpose ins(%new : tensor<?x4x8xf32>) outs(%f : tensor<4x?x8xf32>) permutation = [1, 0, 2]
  %c = tensor.concat dim(1) %past, %t : (tensor<4x?x8xf32>, tensor<4x?x8xf32>) -> tensor<4x?x8xf32>
  return %c : tensor<4x?x8xf32>
}

// -----

// A concat takes the layout of most of its bytes; the argument that has the other one is transposed as it is written.
// CHECK-LABEL: func.func @concat
// CHECK: tensor.concat dim(2)
// CHECK: tensor.collapse_shape
func.func @concat(%x: tensor<6x5x3xf32>, %y: tensor<2x6x5xf32>) -> tensor<6x5x5xf32> {
  %e0 = tensor.empty() : tensor<3x6x5xf32>
  %e1 = tensor.empty() : tensor<6x5x3xf32>
  %a = linalg.exp ins(%x : tensor<6x5x3xf32>) outs(%e1 : tensor<6x5x3xf32>) -> tensor<6x5x3xf32>
  %t = linalg.transpose ins(%a : tensor<6x5x3xf32>) outs(%e0 : tensor<3x6x5xf32>) permutation = [2, 0, 1]
  %c = tensor.concat dim(0) %t, %y : (tensor<3x6x5xf32>, tensor<2x6x5xf32>) -> tensor<5x6x5xf32>
  %e2 = tensor.empty() : tensor<6x5x5xf32>
  %r = linalg.transpose ins(%c : tensor<5x6x5xf32>) outs(%e2 : tensor<6x5x5xf32>) permutation = [1, 2, 0]
  %f = tensor.collapse_shape %r [[0, 1, 2]] : tensor<6x5x5xf32> into tensor<150xf32>
  %g = tensor.expand_shape %f [[0, 1, 2]] output_shape [6, 5, 5] : tensor<150xf32> into tensor<6x5x5xf32>
  return %g : tensor<6x5x5xf32>
}

// -----

// A reduction, and a reshape that keeps the moved dimensions whole.
// CHECK-LABEL: func.func @reduction_and_reshape
// CHECK-NOT: linalg.transpose
// CHECK: tensor.expand_shape %{{.*}} {{\[\[.*}} output_shape [5, 2, 3]
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @reduction_and_reshape(%x: tensor<5x6x4xf32>) -> tensor<5x2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x6x5xf32>
  %t = linalg.transpose ins(%x : tensor<5x6x4xf32>) outs(%e0 : tensor<4x6x5xf32>) permutation = [2, 1, 0]
  %e1 = tensor.empty() : tensor<6x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x5xf32>) -> tensor<6x5xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (b, c)>], iterator_types = ["reduction", "parallel", "parallel"]} ins(%t : tensor<4x6x5xf32>) outs(%f : tensor<6x5xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %v = arith.addf %acc, %in : f32
    linalg.yield %v : f32
  } -> tensor<6x5xf32>
  %r = tensor.expand_shape %s [[0, 1], [2]] output_shape [2, 3, 5] : tensor<6x5xf32> into tensor<2x3x5xf32>
  %e2 = tensor.empty() : tensor<5x2x3xf32>
  %u = linalg.transpose ins(%r : tensor<2x3x5xf32>) outs(%e2 : tensor<5x2x3xf32>) permutation = [2, 0, 1]
  return %u : tensor<5x2x3xf32>
}

// -----

// A gather reads the transposed tensor where it lies.
// CHECK-LABEL: func.func @gather
// CHECK-NOT: linalg.transpose
// CHECK: tensor.extract %x[%{{.*}}, %{{.*}}] : tensor<4x6xf32>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @gather(%x: tensor<4x6xf32>, %n: tensor<3xi64>) -> tensor<3x4xf32> {
  %e0 = tensor.empty() : tensor<6x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x6xf32>) outs(%e0 : tensor<6x4xf32>) permutation = [1, 0]
  %e1 = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} outs(%e1 : tensor<3x4xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%i, %j] : tensor<6x4xf32>
    linalg.yield %v : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// A program that is a transpose keeps it; one that returns an argument transposed as well.
// CHECK-LABEL: func.func @border
// CHECK: linalg.transpose ins(%x
// CHECK: return
func.func @border(%x: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %e0 = tensor.empty() : tensor<6x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x6xf32>) outs(%e0 : tensor<6x4xf32>) permutation = [1, 0]
  return %t : tensor<6x4xf32>
}

// -----

// Symbolic sizes move with their dimensions.
// CHECK-LABEL: func.func @dynamic
// CHECK-NOT: linalg.transpose
// CHECK: tensor.empty(%{{.*}}, %{{.*}}) : tensor<?x?x4xf32>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @dynamic(%x: tensor<?x?x4xf32>) -> tensor<?x?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?x4xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?x4xf32>
  %e0 = tensor.empty(%n, %m) : tensor<4x?x?xf32>
  %t = linalg.transpose ins(%x : tensor<?x?x4xf32>) outs(%e0 : tensor<4x?x?xf32>) permutation = [2, 0, 1]
  %y = linalg.exp ins(%t : tensor<4x?x?xf32>) outs(%e0 : tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %e1 = tensor.empty(%n, %m) : tensor<?x?x4xf32>
  %r = linalg.transpose ins(%y : tensor<4x?x?xf32>) outs(%e1 : tensor<?x?x4xf32>) permutation = [1, 2, 0]
  return %r : tensor<?x?x4xf32>
}

// -----

// A concat of what a host op found, of a size that only the concat tells: its transpose is made over what stays.
// CHECK-LABEL: func.func @found
// CHECK-NOT: linalg.transpose
// CHECK: tensor.concat dim(1) {{.*}} -> tensor<2x?xf32>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func private @host.find(%x: tensor<4xf32>) -> tensor<?x2xf32>
func.func @found(%x: tensor<4xf32>) -> tensor<2x?xf32> {
  %c0 = arith.constant 0 : index
  %a = func.call @host.find(%x) : (tensor<4xf32>) -> tensor<?x2xf32>
  %n = tensor.dim %a, %c0 : tensor<?x2xf32>
  %e0 = tensor.empty(%n) : tensor<?x2xf32>
  %p = linalg.exp ins(%a : tensor<?x2xf32>) outs(%e0 : tensor<?x2xf32>) -> tensor<?x2xf32>
  %q = linalg.sqrt ins(%a : tensor<?x2xf32>) outs(%e0 : tensor<?x2xf32>) -> tensor<?x2xf32>
  %c = tensor.concat dim(0) %p, %q : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %m = tensor.dim %c, %c0 : tensor<?x2xf32>
  %e1 = tensor.empty(%m) : tensor<2x?xf32>
  %t = linalg.transpose ins(%c : tensor<?x2xf32>) outs(%e1 : tensor<2x?xf32>) permutation = [1, 0]
  return %t : tensor<2x?xf32>
}

// -----

// Up through a pad that is not the same on both sides, to the inverse transpose.
// CHECK-LABEL: func.func @up_through_a_pad
// CHECK-NOT: linalg.transpose
// CHECK: tensor.pad %x low[0, 1, 3] high[2, 4, 0]
func.func @up_through_a_pad(%x: tensor<2x3x5xf32>) -> tensor<4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x2x3xf32>
  %t = linalg.transpose ins(%x : tensor<2x3x5xf32>) outs(%e : tensor<5x2x3xf32>) permutation = [2, 0, 1]
  %p = tensor.pad %t low[3, 0, 1] high[0, 2, 4] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<5x2x3xf32> to tensor<8x4x8xf32>
  %f = tensor.empty() : tensor<4x8x8xf32>
  %r = linalg.transpose ins(%p : tensor<8x4x8xf32>) outs(%f : tensor<4x8x8xf32>) permutation = [1, 2, 0]
  return %r : tensor<4x8x8xf32>
}

// -----

// Through a collapse, whose groups change places with what is in them, to the inverse transpose.
// CHECK-LABEL: func.func @through_a_collapse
// CHECK-NOT: linalg.transpose
// CHECK: tensor.collapse_shape %x {{.*}} : tensor<2x3x5xf32> into tensor<6x5xf32>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @through_a_collapse(%x: tensor<2x3x5xf32>) -> tensor<6x5xf32> {
  %e = tensor.empty() : tensor<5x2x3xf32>
  %t = linalg.transpose ins(%x : tensor<2x3x5xf32>) outs(%e : tensor<5x2x3xf32>) permutation = [2, 0, 1]
  %c = tensor.collapse_shape %t [[0], [1, 2]] : tensor<5x2x3xf32> into tensor<5x6xf32>
  %f = tensor.empty() : tensor<6x5xf32>
  %r = linalg.transpose ins(%c : tensor<5x6xf32>) outs(%f : tensor<6x5xf32>) permutation = [1, 0]
  return %r : tensor<6x5xf32>
}

// -----

// What is given weighs a quarter of what is computed: the argument is transposed, not the computed part and the result.
// CHECK-LABEL: func.func @an_argument_weighs_little
// CHECK: tensor.concat dim(1) %{{.*}}, %{{.*}} : (tensor<8x12xf32>, tensor<8x4xf32>) -> tensor<8x16xf32>
// CHECK-LABEL: func.func @what_is_computed_weighs_more
// CHECK: tensor.concat dim(0) %{{.*}}, %{{.*}} : (tensor<12x8xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
func.func @an_argument_weighs_little(%x: tensor<12x8xf32>, %y: tensor<8x4xf32>) -> tensor<8x16xf32> {
  %e = tensor.empty() : tensor<8x12xf32>
  %t = linalg.transpose ins(%x : tensor<12x8xf32>) outs(%e : tensor<8x12xf32>) permutation = [1, 0]
  %e1 = tensor.empty() : tensor<8x4xf32>
  %z = linalg.exp ins(%y : tensor<8x4xf32>) outs(%e1 : tensor<8x4xf32>) -> tensor<8x4xf32>
  %c = tensor.concat dim(1) %t, %z : (tensor<8x12xf32>, tensor<8x4xf32>) -> tensor<8x16xf32>
  %e2 = tensor.empty() : tensor<8x16xf32>
  %r = linalg.exp ins(%c : tensor<8x16xf32>) outs(%e2 : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
func.func @what_is_computed_weighs_more(%x: tensor<12x8xf32>, %y: tensor<8x4xf32>) -> tensor<8x16xf32> {
  %e0 = tensor.empty() : tensor<12x8xf32>
  %w = linalg.exp ins(%x : tensor<12x8xf32>) outs(%e0 : tensor<12x8xf32>) -> tensor<12x8xf32>
  %e = tensor.empty() : tensor<8x12xf32>
  %t = linalg.transpose ins(%w : tensor<12x8xf32>) outs(%e : tensor<8x12xf32>) permutation = [1, 0]
  %e1 = tensor.empty() : tensor<8x4xf32>
  %z = linalg.exp ins(%y : tensor<8x4xf32>) outs(%e1 : tensor<8x4xf32>) -> tensor<8x4xf32>
  %c = tensor.concat dim(1) %t, %z : (tensor<8x12xf32>, tensor<8x4xf32>) -> tensor<8x16xf32>
  %e2 = tensor.empty() : tensor<8x16xf32>
  %r = linalg.exp ins(%c : tensor<8x16xf32>) outs(%e2 : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}

// -----

// A pad by what it computes from the place keeps the order of its places; a constant part weighs nothing.
// CHECK-LABEL: func.func @pad_by_place
// CHECK: [[T:%.*]] = linalg.transpose
// CHECK: tensor.pad [[T]]
// CHECK-LABEL: func.func @a_constant_weighs_nothing
// CHECK: tensor.concat dim(0) %{{.*}}, %{{.*}} : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<20x8xf32>
func.func @pad_by_place(%x: tensor<4x6xi64>) -> tensor<7x4xi64> {
  %e = tensor.empty() : tensor<6x4xi64>
  %t = linalg.transpose ins(%x : tensor<4x6xi64>) outs(%e : tensor<6x4xi64>) permutation = [1, 0]
  %p = tensor.pad %t low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    %v = arith.index_cast %j : index to i64
    tensor.yield %v : i64
  } : tensor<6x4xi64> to tensor<7x4xi64>
  return %p : tensor<7x4xi64>
}
func.func @a_constant_weighs_nothing(%x: tensor<4x8xf32>) -> tensor<8x20xf32> {
  %e0 = tensor.empty() : tensor<4x8xf32>
  %w = linalg.exp ins(%x : tensor<4x8xf32>) outs(%e0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %t = linalg.transpose ins(%w : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  %z = arith.constant dense<2.5> : tensor<8x16xf32>
  %c = tensor.concat dim(1) %t, %z : (tensor<8x4xf32>, tensor<8x16xf32>) -> tensor<8x20xf32>
  %e2 = tensor.empty() : tensor<8x20xf32>
  %r = linalg.exp ins(%c : tensor<8x20xf32>) outs(%e2 : tensor<8x20xf32>) -> tensor<8x20xf32>
  return %r : tensor<8x20xf32>
}

// -----

// A border of integers that a convolution reads in pairs: what it is made of lies in the same order, and its indices follow.
// CHECK-LABEL: func.func @border_of_pairs
// CHECK: [[X:%.*]] = linalg.generic {{.*}}affine_map<(d0, d1) -> (d1, d0)>{{.*}} outs({{.*}} : tensor<5x4xi16>)
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<7x4xi16>)
// CHECK: tensor.extract [[X]][%{{.*}}, %{{.*}}] : tensor<5x4xi16>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @border_of_pairs(%x: tensor<4x5xf32>, %f: tensor<3x4x2xi8>) -> tensor<5x2xi32> {
  %e = tensor.empty() : tensor<4x5xi16>
  %q = linalg.generic {indexing_maps = [affine_map<(c, i) -> (c, i)>, affine_map<(c, i) -> (c, i)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x5xf32>) outs(%e : tensor<4x5xi16>) {
  ^bb0(%in: f32, %out: i16):
    %v = arith.fptosi %in : f32 to i16
    linalg.yield %v : i16
  } -> tensor<4x5xi16>
  %e1 = tensor.empty() : tensor<4x7xi16>
  %g = linalg.generic {indexing_maps = [affine_map<(c, i) -> (c, i)>], iterator_types = ["parallel", "parallel"]} outs(%e1 : tensor<4x7xi16>) {
  ^bb0(%out: i16):
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    %c = linalg.index 0 : index
    %i = linalg.index 1 : index
    %at = arith.subi %i, %one : index
    %low = arith.maxsi %at, %zero : index
    %high = arith.minsi %low, %four : index
    %v = tensor.extract %q[%c, %high] : tensor<4x5xi16>
    linalg.yield %v : i16
  } -> tensor<4x7xi16>
  %e2 = tensor.empty() : tensor<7x4xi16>
  %t = linalg.transpose ins(%g : tensor<4x7xi16>) outs(%e2 : tensor<7x4xi16>) permutation = [1, 0]
  %zero32 = arith.constant 0 : i32
  %e3 = tensor.empty() : tensor<5x2xi32>
  %init = linalg.fill ins(%zero32 : i32) outs(%e3 : tensor<5x2xi32>) -> tensor<5x2xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, o, k, c) -> (i + k, c)>, affine_map<(i, o, k, c) -> (k, c, o)>, affine_map<(i, o, k, c) -> (i, o)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%t, %f : tensor<7x4xi16>, tensor<3x4x2xi8>) outs(%init : tensor<5x2xi32>) {
  ^bb0(%a: i16, %b: i8, %acc: i32):
    %wa = arith.extsi %a : i16 to i32
    %wb = arith.extsi %b : i8 to i32
    %m = arith.muli %wa, %wb : i32
    %s = arith.addi %acc, %m : i32
    linalg.yield %s : i32
  } -> tensor<5x2xi32>
  return %y : tensor<5x2xi32>
}

// -----

// A concat of parts in both orders that a convolution reads in pairs: all lie with the channels innermost.
// CHECK-LABEL: func.func @concat_of_pairs
// CHECK: tensor.concat dim(1) %{{.*}}, %{{.*}} : (tensor<7x4xi16>, tensor<7x2xi16>) -> tensor<7x6xi16>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @concat_of_pairs(%x: tensor<4x7xf32>, %z: tensor<7x2xf32>, %f: tensor<3x6x2xi8>) -> tensor<5x2xi32> {
  %e = tensor.empty() : tensor<4x7xi16>
  %q = linalg.generic {indexing_maps = [affine_map<(c, i) -> (c, i)>, affine_map<(c, i) -> (c, i)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x7xf32>) outs(%e : tensor<4x7xi16>) {
  ^bb0(%in: f32, %out: i16):
    %v = arith.fptosi %in : f32 to i16
    linalg.yield %v : i16
  } -> tensor<4x7xi16>
  %e1 = tensor.empty() : tensor<7x2xi16>
  %r = linalg.generic {indexing_maps = [affine_map<(i, c) -> (i, c)>, affine_map<(i, c) -> (i, c)>], iterator_types = ["parallel", "parallel"]} ins(%z : tensor<7x2xf32>) outs(%e1 : tensor<7x2xi16>) {
  ^bb0(%in: f32, %out: i16):
    %v = arith.fptosi %in : f32 to i16
    linalg.yield %v : i16
  } -> tensor<7x2xi16>
  %e4 = tensor.empty() : tensor<2x7xi16>
  %rt = linalg.transpose ins(%r : tensor<7x2xi16>) outs(%e4 : tensor<2x7xi16>) permutation = [1, 0]
  %j = tensor.concat dim(0) %q, %rt : (tensor<4x7xi16>, tensor<2x7xi16>) -> tensor<6x7xi16>
  %e2 = tensor.empty() : tensor<7x6xi16>
  %t = linalg.transpose ins(%j : tensor<6x7xi16>) outs(%e2 : tensor<7x6xi16>) permutation = [1, 0]
  %zero32 = arith.constant 0 : i32
  %e3 = tensor.empty() : tensor<5x2xi32>
  %init = linalg.fill ins(%zero32 : i32) outs(%e3 : tensor<5x2xi32>) -> tensor<5x2xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, o, k, c) -> (i + k, c)>, affine_map<(i, o, k, c) -> (k, c, o)>, affine_map<(i, o, k, c) -> (i, o)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%t, %f : tensor<7x6xi16>, tensor<3x6x2xi8>) outs(%init : tensor<5x2xi32>) {
  ^bb0(%a: i16, %b: i8, %acc: i32):
    %wa = arith.extsi %a : i16 to i32
    %wb = arith.extsi %b : i8 to i32
    %m = arith.muli %wa, %wb : i32
    %s = arith.addi %acc, %m : i32
    linalg.yield %s : i32
  } -> tensor<5x2xi32>
  return %y : tensor<5x2xi32>
}

// -----

// An upsampling takes the order of the image that it repeats, each copy beside its pixel, and hands the transpose on.
// CHECK-LABEL: func.func @upsampled
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>]
// CHECK-SAME: ins(%x : tensor<5x6x3xf32>) outs({{.*}} : tensor<5x2x6x2x3xf32>)
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @upsampled(%x: tensor<5x6x3xf32>, %y: tensor<10x12x3xf32>) -> tensor<10x12x3xf32> {
  %e0 = tensor.empty() : tensor<3x5x6xf32>
  %t = linalg.transpose ins(%x : tensor<5x6x3xf32>) outs(%e0 : tensor<3x5x6xf32>) permutation = [2, 0, 1]
  %e1 = tensor.empty() : tensor<3x5x2x6x2xf32>
  %u = linalg.generic {indexing_maps = [affine_map<(c, h, i, w, j) -> (c, h, w)>, affine_map<(c, h, i, w, j) -> (c, h, i, w, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%t : tensor<3x5x6xf32>) outs(%e1 : tensor<3x5x2x6x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x5x2x6x2xf32>
  %r = tensor.collapse_shape %u [[0], [1, 2], [3, 4]] : tensor<3x5x2x6x2xf32> into tensor<3x10x12xf32>
  %e2 = tensor.empty() : tensor<3x10x12xf32>
  %z = linalg.transpose ins(%y : tensor<10x12x3xf32>) outs(%e2 : tensor<3x10x12xf32>) permutation = [2, 0, 1]
  %s = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>, affine_map<(c, h, w) -> (c, h, w)>, affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%r, %z : tensor<3x10x12xf32>, tensor<3x10x12xf32>) outs(%e2 : tensor<3x10x12xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<3x10x12xf32>
  %e3 = tensor.empty() : tensor<10x12x3xf32>
  %o = linalg.transpose ins(%s : tensor<3x10x12xf32>) outs(%e3 : tensor<10x12x3xf32>) permutation = [1, 2, 0]
  return %o : tensor<10x12x3xf32>
}
