// RUN: fuseline opt %s -p generalize-named-ops,fold-unit-dims --split-input-file --verify-each | filecheck %s

// Reshapes that only move a unit dimension vanish between the two ops (iree-amd-aie#515).
// CHECK-LABEL: func.func @between
// CHECK: tensor.collapse_shape %x
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-NOT: shape
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK: tensor.expand_shape {{.*}} output_shape [1, 3, 4, 5]
// CHECK-NEXT: return
func.func @between(%x: tensor<3x4x1x5xf32>) -> tensor<1x3x4x5xf32> {
  %e = tensor.empty() : tensor<3x4x1x5xf32>
  %a = linalg.exp ins(%x : tensor<3x4x1x5xf32>) outs(%e : tensor<3x4x1x5xf32>) -> tensor<3x4x1x5xf32>
  %c = tensor.collapse_shape %a [[0], [1], [2, 3]] : tensor<3x4x1x5xf32> into tensor<3x4x5xf32>
  %s = tensor.expand_shape %c [[0, 1], [2], [3]] output_shape [1, 3, 4, 5] : tensor<3x4x5xf32> into tensor<1x3x4x5xf32>
  %e1 = tensor.empty() : tensor<1x3x4x5xf32>
  %r = linalg.exp ins(%s : tensor<1x3x4x5xf32>) outs(%e1 : tensor<1x3x4x5xf32>) -> tensor<1x3x4x5xf32>
  return %r : tensor<1x3x4x5xf32>
}

// -----

// A 1x1 convolution is a contraction; the batch of one goes too.
// CHECK-LABEL: func.func @pointwise
// CHECK: affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
func.func @pointwise(%x: tensor<1x7x6x4xf32>, %w: tensor<1x1x4x8xf32>) -> tensor<1x7x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x7x6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x7x6x8xf32>) -> tensor<1x7x6x8xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%x, %w : tensor<1x7x6x4xf32>, tensor<1x1x4x8xf32>) outs(%f : tensor<1x7x6x8xf32>) -> tensor<1x7x6x8xf32>
  return %c : tensor<1x7x6x8xf32>
}

// -----

// With a stride it stays a convolution: its window loops are kept.
// CHECK-LABEL: func.func @strided
// CHECK: affine_map<(d0, d1, d2, d3, d4, d5) -> (((d0 * 2) + d3), ((d1 * 2) + d4), d5)>
func.func @strided(%x: tensor<1x7x7x4xf32>, %w: tensor<1x1x4x8xf32>) -> tensor<1x4x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<1x7x7x4xf32>, tensor<1x1x4x8xf32>) outs(%f : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  return %c : tensor<1x4x4x8xf32>
}

// -----

// One output row of a window that does not cover the image: its loop is kept, as the window loop alone would walk the whole image.
// CHECK-LABEL: func.func @one_window
// CHECK: (d0, d1) -> (((d0 * 2) + d1))>
func.func @one_window(%x: tensor<3xf32>) -> tensor<1xf32> {
  %low = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<2xf32>
  %e = tensor.empty() : tensor<1xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(a, p) -> (a * 2 + p)>, affine_map<(a, p) -> (p)>, affine_map<(a, p) -> (a)>], iterator_types = ["parallel", "reduction"]} ins(%x, %window : tensor<3xf32>, tensor<2xf32>) outs(%f : tensor<1xf32>) {
  ^bb0(%in: f32, %w: f32, %acc: f32):
    %m = arith.maximumf %acc, %in : f32
    linalg.yield %m : f32
  } -> tensor<1xf32>
  return %c : tensor<1xf32>
}

// -----

// A broadcast operand, a position along a dropped loop, a transpose, a pad and a concat over one row.
// CHECK-LABEL: func.func @others
// CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32):
// CHECK-NEXT: arith.constant 0 : index
// CHECK-NOT: linalg.transpose
// CHECK: tensor.pad {{.*}} low[1] high[0]
// CHECK: tensor.concat dim(0) {{.*}} : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<2x6xf32>
func.func @others(%x: tensor<1x5xf32>, %b: tensor<1x1xf32>) -> tensor<2x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, 0)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%x, %b : tensor<1x5xf32>, tensor<1x1xf32>) outs(%e : tensor<1x5xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i64
    %k = arith.sitofp %j : i64 to f32
    %s = arith.addf %in, %bias : f32
    %t = arith.addf %s, %k : f32
    linalg.yield %t : f32
  } -> tensor<1x5xf32>
  %e1 = tensor.empty() : tensor<5x1xf32>
  %t = linalg.transpose ins(%y : tensor<1x5xf32>) outs(%e1 : tensor<5x1xf32>) permutation = [1, 0]
  %p = tensor.pad %t low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<5x1xf32> to tensor<6x1xf32>
  %c = tensor.collapse_shape %p [[0, 1]] : tensor<6x1xf32> into tensor<6xf32>
  %d = tensor.expand_shape %c [[0, 1]] output_shape [1, 6] : tensor<6xf32> into tensor<1x6xf32>
  %r = tensor.concat dim(0) %d, %d : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// A reduction over one element starts from its init inside the body; a value of one element keeps one dimension.
// CHECK-LABEL: func.func @one_element
// CHECK: iterator_types = ["parallel"]
// CHECK: arith.addf %zero, %{{.*}} : f32
// CHECK: return
func.func @one_element(%x: tensor<5x1xf32>) -> tensor<5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<5x1xf32>) outs(%f : tensor<5xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %v = arith.addf %acc, %in : f32
    linalg.yield %v : f32
  } -> tensor<5xf32>
  return %s : tensor<5xf32>
}

// -----

// An unknown size is no unit size.
// CHECK-LABEL: func.func @dynamic
// CHECK: tensor.collapse_shape %x {{.*}} : tensor<?x1x4xf32> into tensor<?x4xf32>
// CHECK: affine_map<(d0, d1) -> (d0, d1)>
// CHECK: tensor.expand_shape {{.*}} : tensor<?x4xf32> into tensor<?x1x4xf32>
func.func @dynamic(%x: tensor<?x1x4xf32>) -> tensor<?x1x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x1x4xf32>
  %e = tensor.empty(%n) : tensor<?x1x4xf32>
  %y = linalg.exp ins(%x : tensor<?x1x4xf32>) outs(%e : tensor<?x1x4xf32>) -> tensor<?x1x4xf32>
  return %y : tensor<?x1x4xf32>
}

// -----

// A slice is one of the tensor without its dimensions of one element.
// CHECK-LABEL: func.func @slices
// CHECK: tensor.extract_slice %{{.*}}[2, 1] [3, 4] [2, 1] : tensor<8x6xf32> to tensor<3x4xf32>
func.func @slices(%x: tensor<1x8x6xf32>) -> tensor<1x3x4xf32> {
  %e = tensor.empty() : tensor<1x8x6xf32>
  %a = linalg.exp ins(%x : tensor<1x8x6xf32>) outs(%e : tensor<1x8x6xf32>) -> tensor<1x8x6xf32>
  %s = tensor.extract_slice %a[0, 2, 1] [1, 3, 4] [1, 2, 1] : tensor<1x8x6xf32> to tensor<1x3x4xf32>
  %f = tensor.empty() : tensor<1x3x4xf32>
  %r = linalg.exp ins(%s : tensor<1x3x4xf32>) outs(%f : tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  return %r : tensor<1x3x4xf32>
}

// -----

// A table is read without its dimension of one row; the window of a pooling of one element goes.
// CHECK-LABEL: func.func @tables_and_windows
// CHECK: [[T:%.*]] = tensor.collapse_shape %t {{.*}} : tensor<1x8x1x3xf32> into tensor<8x3xf32>
// CHECK: tensor.extract [[T]][%{{.*}}, %{{.*}}] : tensor<8x3xf32>
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
// CHECK: arith.maximumf
// CHECK: return
func.func @tables_and_windows(%t: tensor<1x8x1x3xf32>, %i: tensor<5xi64>, %x: tensor<1x6x3xf32>) -> (tensor<5xf32>, tensor<1x6x3xf32>) {
  %e = tensor.empty() : tensor<5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]} ins(%i : tensor<5xi64>) outs(%e : tensor<5xf32>) {
  ^bb0(%p: i64, %o: f32):
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c7 = arith.constant 7 : i64
    %q = arith.andi %p, %c7 : i64
    %k = arith.index_cast %q : i64 to index
    %v = tensor.extract %t[%c0, %k, %c0, %c2] : tensor<1x8x1x3xf32>
    linalg.yield %v : f32
  } -> tensor<5xf32>
  %low = arith.constant 0xFF800000 : f32
  %w = tensor.empty() : tensor<1xf32>
  %e1 = tensor.empty() : tensor<1x6x3xf32>
  %f = linalg.fill ins(%low : f32) outs(%e1 : tensor<1x6x3xf32>) -> tensor<1x6x3xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(n, h, c, p) -> (n, h + p, c)>, affine_map<(n, h, c, p) -> (p)>, affine_map<(n, h, c, p) -> (n, h, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x6x3xf32>, tensor<1xf32>) outs(%f : tensor<1x6x3xf32>) {
  ^bb0(%in: f32, %u: f32, %acc: f32):
    %s = arith.maximumf %acc, %in : f32
    linalg.yield %s : f32
  } -> tensor<1x6x3xf32>
  return %r, %m : tensor<5xf32>, tensor<1x6x3xf32>
}

// -----

// Left alone: a pad by what it computes from the place; one that all its dimensions need; a slice of one row at a place of run time; a concat of
// parts with no other dimension of one; a transpose of nothing but ones.
// CHECK-LABEL: func.func @refused
// CHECK: tensor.pad %x
// CHECK: tensor.pad %x
// CHECK: tensor.extract_slice %x[%n, 1] [1, 2] [1, 1]
// CHECK: tensor.concat dim(0) %x, %x : (tensor<1x4xi64>, tensor<1x4xi64>) -> tensor<2x4xi64>
// CHECK: return
func.func @refused(%x: tensor<1x4xi64>, %n: index) -> (tensor<1x5xi64>, tensor<2x5xi64>, tensor<1x2xi64>, tensor<2x4xi64>) {
  %zero = arith.constant 0 : i64
  %p = tensor.pad %x low[0, 1] high[0, 0] {
  ^bb0(%i: index, %j: index):
    %v = arith.index_cast %j : index to i64
    tensor.yield %v : i64
  } : tensor<1x4xi64> to tensor<1x5xi64>
  %q = tensor.pad %x low[1, 1] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : i64
  } : tensor<1x4xi64> to tensor<2x5xi64>
  %s = tensor.extract_slice %x[%n, 1] [1, 2] [1, 1] : tensor<1x4xi64> to tensor<1x2xi64>
  %c = tensor.concat dim(0) %x, %x : (tensor<1x4xi64>, tensor<1x4xi64>) -> tensor<2x4xi64>
  return %p, %q, %s, %c : tensor<1x5xi64>, tensor<2x5xi64>, tensor<1x2xi64>, tensor<2x4xi64>
}
