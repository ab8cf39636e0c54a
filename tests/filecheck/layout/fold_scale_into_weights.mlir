// RUN: fuseline opt %s -p generalize-named-ops,fold-scale-into-weights --split-input-file --verify-each | filecheck %s

// Bias, then scale and shift: the weight takes the scale, one addition is left.
// CHECK-LABEL: func.func @bias_scale_shift
// CHECK: arith.constant dense_resource<scaled> : tensor<2x2xf32>
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK-NOT: arith.mulf
// CHECK: arith.constant dense_resource<shift> : tensor<2xf32>
// CHECK: arith.addf
// CHECK-NOT: arith.addf
// CHECK: return
func.func @bias_scale_shift(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = arith.constant dense<[0.5, -0.5]> : tensor<2xf32>
  %s = arith.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %c = arith.constant dense<[1.0, -1.0]> : tensor<2xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
  %m = linalg.matmul ins(%x, %w : tensor<3x2xf32>, tensor<2x2xf32>) outs(%f : tensor<3x2xf32>) -> tensor<3x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m, %b : tensor<3x2xf32>, tensor<2xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %v = arith.addf %in, %bias : f32
    linalg.yield %v : f32
  } -> tensor<3x2xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y, %s, %c : tensor<3x2xf32>, tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%in: f32, %scale: f32, %shift: f32, %out: f32):
    %v = arith.mulf %in, %scale : f32
    %u = arith.addf %v, %shift : f32
    linalg.yield %u : f32
  } -> tensor<3x2xf32>
  return %z : tensor<3x2xf32>
}

// -----

// Shifts behind the scale are one addition.
// CHECK-LABEL: func.func @scale_shift_shift
// CHECK: arith.constant dense_resource<scaled> : tensor<2x2xf32>
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK-NOT: arith.mulf
// CHECK: arith.addf
// CHECK-NOT: arith.addf
// CHECK: return
func.func @scale_shift_shift(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = arith.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %b = arith.constant dense<[0.5, -0.5]> : tensor<2xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
  %m = linalg.matmul ins(%x, %w : tensor<3x2xf32>, tensor<2x2xf32>) outs(%f : tensor<3x2xf32>) -> tensor<3x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m, %s : tensor<3x2xf32>, tensor<2xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%in: f32, %scale: f32, %out: f32):
    %v = arith.mulf %in, %scale : f32
    linalg.yield %v : f32
  } -> tensor<3x2xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y, %b : tensor<3x2xf32>, tensor<2xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%in: f32, %shift: f32, %out: f32):
    %v = arith.addf %in, %shift : f32
    linalg.yield %v : f32
  } -> tensor<3x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%z, %s : tensor<3x2xf32>, tensor<2xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%in: f32, %shift: f32, %out: f32):
    %v = arith.addf %in, %shift : f32
    linalg.yield %v : f32
  } -> tensor<3x2xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%r, %b : tensor<3x2xf32>, tensor<2xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%in: f32, %shift: f32, %out: f32):
    %v = arith.addf %in, %shift : f32
    linalg.yield %v : f32
  } -> tensor<3x2xf32>
  return %q : tensor<3x2xf32>
}

// -----

// A depthwise convolution and one factor for all channels; nothing is left behind it.
// CHECK-LABEL: func.func @depthwise
// CHECK: arith.constant dense_resource<scaled> : tensor<2x1x1xf32>
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @depthwise(%x: tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32> {
  %w = arith.constant dense<[[[1.5]], [[2.5]]]> : tensor<2x1x1xf32>
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<1x2x3x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %c = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%x, %w : tensor<1x2x3x3xf32>, tensor<2x1x1xf32>) outs(%f : tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c : tensor<1x2x3x3xf32>) outs(%e : tensor<1x2x3x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.divf %in, %two : f32
    linalg.yield %v : f32
  } -> tensor<1x2x3x3xf32>
  return %y : tensor<1x2x3x3xf32>
}

// -----

// A bias alone is no scale.
// CHECK-LABEL: func.func @bias
// CHECK-NOT: scaled
// CHECK: return
func.func @bias(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
  %m = linalg.matmul ins(%x, %w : tensor<3x2xf32>, tensor<2x2xf32>) outs(%f : tensor<3x2xf32>) -> tensor<3x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<3x2xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %one : f32
    linalg.yield %v : f32
  } -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// A factor per row is none per channel of the weight.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: scaled
// CHECK: return
func.func @rows(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
  %m = linalg.matmul ins(%x, %w : tensor<3x2xf32>, tensor<2x2xf32>) outs(%f : tensor<3x2xf32>) -> tensor<3x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m, %s : tensor<3x2xf32>, tensor<3xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%in: f32, %scale: f32, %out: f32):
    %v = arith.mulf %in, %scale : f32
    linalg.yield %v : f32
  } -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// Two readers: the unscaled product is needed as well.
// CHECK-LABEL: func.func @two_readers
// CHECK-NOT: scaled
// CHECK: return
func.func @two_readers(%x: tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %two = arith.constant 2.0 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
  %m = linalg.matmul ins(%x, %w : tensor<3x2xf32>, tensor<2x2xf32>) outs(%f : tensor<3x2xf32>) -> tensor<3x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<3x2xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.mulf %in, %two : f32
    linalg.yield %v : f32
  } -> tensor<3x2xf32>
  return %y, %m : tensor<3x2xf32>, tensor<3x2xf32>
}

// -----

// A product of the value with itself is no scale, a weight that is an argument takes none.
// CHECK-LABEL: func.func @square
// CHECK-NOT: scaled
// CHECK: return
func.func @square(%x: tensor<3x2xf32>, %w: tensor<2x2xf32>) -> tensor<3x2xf32> {
  %v = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %two = arith.constant 2.0 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
  %m = linalg.matmul ins(%x, %v : tensor<3x2xf32>, tensor<2x2xf32>) outs(%f : tensor<3x2xf32>) -> tensor<3x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<3x2xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %p = arith.mulf %in, %in : f32
    linalg.yield %p : f32
  } -> tensor<3x2xf32>
  %n = linalg.matmul ins(%y, %w : tensor<3x2xf32>, tensor<2x2xf32>) outs(%f : tensor<3x2xf32>) -> tensor<3x2xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%n : tensor<3x2xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %q = arith.mulf %in, %two : f32
    linalg.yield %q : f32
  } -> tensor<3x2xf32>
  return %z : tensor<3x2xf32>
}

// -----

// A shift per row behind a scale per channel: nothing behind the weight could hold it as one addition per channel.
// CHECK-LABEL: func.func @shift_per_row
// CHECK-NOT: scaled
// CHECK: return
func.func @shift_per_row(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = arith.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %c = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
  %m = linalg.matmul ins(%x, %w : tensor<3x2xf32>, tensor<2x2xf32>) outs(%f : tensor<3x2xf32>) -> tensor<3x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m, %s, %c : tensor<3x2xf32>, tensor<2xf32>, tensor<3xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%in: f32, %scale: f32, %shift: f32, %out: f32):
    %v = arith.mulf %in, %scale : f32
    %u = arith.addf %v, %shift : f32
    linalg.yield %u : f32
  } -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// A factor per column and batch, stored the other way round.
// CHECK-LABEL: func.func @transposed_factor
// CHECK: arith.constant dense_resource<scaled> : tensor<2x2x3xf32>
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @transposed_factor(%x: tensor<2x4x2xf32>) -> tensor<2x4x3xf32> {
  %w = arith.constant dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[7.0, 8.0, 9.0], [1.5, 2.5, 3.5]]]> : tensor<2x2x3xf32>
  %s = arith.constant dense<[[2.0, 3.0], [5.0, 7.0], [11.0, 13.0]]> : tensor<3x2xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(b, i, j, k) -> (b, i, k)>, affine_map<(b, i, j, k) -> (b, k, j)>, affine_map<(b, i, j, k) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x4x2xf32>, tensor<2x2x3xf32>) outs(%f : tensor<2x4x3xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %t = arith.mulf %p, %q : f32
    %u = arith.addf %acc, %t : f32
    linalg.yield %u : f32
  } -> tensor<2x4x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (j, b)>, affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%m, %s : tensor<2x4x3xf32>, tensor<3x2xf32>) outs(%e : tensor<2x4x3xf32>) {
  ^bb0(%in: f32, %scale: f32, %out: f32):
    %v = arith.mulf %in, %scale : f32
    linalg.yield %v : f32
  } -> tensor<2x4x3xf32>
  return %y : tensor<2x4x3xf32>
}
