// RUN: fuseline opt %s -p generalize-named-ops,convert-convolutions-to-channels-last --split-input-file --verify-each | filecheck %s

// CHECK-LABEL: func.func @conv
// CHECK: [[X:%.*]] = linalg.transpose ins(%x:tensor<2x3x9x8xf32>) outs({{.*}}:tensor<2x9x8x3xf32>) permutation = [0, 2, 3, 1]
// CHECK: [[W:%.*]] = linalg.transpose ins(%w:tensor<4x3x3x2xf32>) outs({{.*}}:tensor<3x2x3x4xf32>) permutation = [2, 3, 1, 0]
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, ((d1 * 2) + d4), (d2 + (d5 * 3)), d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins([[X]], [[W]]
// CHECK: linalg.transpose {{.*}} outs({{.*}}:tensor<2x4x4x5xf32>) permutation = [0, 3, 1, 2]
func.func @conv(%x: tensor<2x3x9x8xf32>, %w: tensor<4x3x3x2xf32>) -> tensor<2x4x4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x4x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x4x5xf32>) -> tensor<2x4x4x5xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(n, o, h, w, i, p, q) -> (n, i, h * 2 + p, w + q * 3)>, affine_map<(n, o, h, w, i, p, q) -> (o, i, p, q)>, affine_map<(n, o, h, w, i, p, q) -> (n, o, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x3x9x8xf32>, tensor<4x3x3x2xf32>) outs(%f : tensor<2x4x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<2x4x4x5xf32>
  return %c : tensor<2x4x4x5xf32>
}

// -----

// A depthwise convolution: filter (kh, kw, c).
// CHECK-LABEL: func.func @depthwise
// CHECK: linalg.transpose ins(%w:tensor<4x3x3xf32>) outs({{.*}}) permutation = [1, 2, 0]
// CHECK: affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, (d1 + d4), (d2 + d5), d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
func.func @depthwise(%x: tensor<1x4x7x7xf32>, %w: tensor<4x3x3xf32>) -> tensor<1x4x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x5x5xf32>) -> tensor<1x4x5x5xf32>
  %c = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%x, %w : tensor<1x4x7x7xf32>, tensor<4x3x3xf32>) outs(%f : tensor<1x4x5x5xf32>) -> tensor<1x4x5x5xf32>
  return %c : tensor<1x4x5x5xf32>
}

// -----

// Groups come before the channels of a group, in one dimension as in two.
// CHECK-LABEL: func.func @grouped_1d
// CHECK: linalg.transpose ins(%x:tensor<1x2x3x9xf32>) outs({{.*}}:tensor<1x9x2x3xf32>) permutation = [0, 3, 1, 2]
// CHECK: linalg.transpose ins(%w:tensor<2x5x3x3xf32>) outs({{.*}}:tensor<3x2x3x5xf32>) permutation = [3, 0, 2, 1]
// CHECK: affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, (d1 + d4), d2, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d2, d5, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
func.func @grouped_1d(%x: tensor<1x2x3x9xf32>, %w: tensor<2x5x3x3xf32>) -> tensor<1x2x5x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x5x7xf32>) -> tensor<1x2x5x7xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(n, g, o, h, i, p) -> (n, g, i, h + p)>, affine_map<(n, g, o, h, i, p) -> (g, o, i, p)>, affine_map<(n, g, o, h, i, p) -> (n, g, o, h)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : tensor<1x2x3x9xf32>, tensor<2x5x3x3xf32>) outs(%f : tensor<1x2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<1x2x5x7xf32>
  return %c : tensor<1x2x5x7xf32>
}

// -----

// A pooling in three dimensions; its window operand has only a shape.
// CHECK-LABEL: func.func @pool_3d
// CHECK: linalg.transpose ins(%x:tensor<1x2x4x5x6xf32>) outs({{.*}}) permutation = [0, 2, 3, 4, 1]
// CHECK: affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, (d1 + d5), (d2 + d6), (d3 + d7), d4)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d5, d6, d7)>
func.func @pool_3d(%x: tensor<1x2x4x5x6xf32>) -> tensor<1x2x3x4x5xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x2x3x4x5xf32>
  %window = tensor.empty() : tensor<2x2x2xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<1x2x3x4x5xf32>) -> tensor<1x2x3x4x5xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(n, c, d, h, w, p, q, r) -> (n, c, d + p, h + q, w + r)>, affine_map<(n, c, d, h, w, p, q, r) -> (p, q, r)>, affine_map<(n, c, d, h, w, p, q, r) -> (n, c, d, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %window : tensor<1x2x4x5x6xf32>, tensor<2x2x2xf32>) outs(%f : tensor<1x2x3x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %t = arith.maximumf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<1x2x3x4x5xf32>
  return %c : tensor<1x2x3x4x5xf32>
}

// -----

// Channels last already: nothing moves.
// CHECK-LABEL: func.func @channels_last
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @channels_last(%x: tensor<1x7x7x4xf32>, %w: tensor<3x3x4x8xf32>) -> tensor<1x5x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x5x5x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x5x5x8xf32>) -> tensor<1x5x5x8xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%x, %w : tensor<1x7x7x4xf32>, tensor<3x3x4x8xf32>) outs(%f : tensor<1x5x5x8xf32>) -> tensor<1x5x5x8xf32>
  return %c : tensor<1x5x5x8xf32>
}

// -----

// No window, no convolution: a matmul keeps its layout.
// CHECK-LABEL: func.func @matmul
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @matmul(%x: tensor<4x5xf32>, %w: tensor<5x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %c = linalg.matmul ins(%x, %w : tensor<4x5xf32>, tensor<5x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %c : tensor<4x6xf32>
}
