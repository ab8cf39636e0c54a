// RUN: fuseline opt %s -p cleanup,layout,padding,fusion,dispatch | filecheck %s

// CHECK-COUNT-2: flow.dispatch @
// CHECK-NOT: flow.dispatch @

// A 1x1 convolution as a matmul, then a padded 3x3 convolution (ResNet-50's shape; iree#11049).
// Want: 2 dispatches, 0 fills, 0 copies: the pad is read inside the convolution's dispatch.
// IREE 3.13 at O3: 3 dispatches, 1 fill.
func.func @pad_conv(%x: tensor<3136x256xf32>, %w1: tensor<256x64xf32>, %b1: tensor<64xf32>,
                    %w2: tensor<3x3x64x64xf32>, %b2: tensor<64xf32>) -> tensor<1x56x56x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<3136x64xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<3136x64xf32>) -> tensor<3136x64xf32>
  %m = linalg.matmul ins(%x, %w1 : tensor<3136x256xf32>, tensor<256x64xf32>) outs(%f0 : tensor<3136x64xf32>) -> tensor<3136x64xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%m, %b1 : tensor<3136x64xf32>, tensor<64xf32>) outs(%e0 : tensor<3136x64xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.addf %in, %bias : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  } -> tensor<3136x64xf32>
  %img = tensor.expand_shape %a [[0, 1, 2], [3]] output_shape [1, 56, 56, 64] : tensor<3136x64xf32> into tensor<1x56x56x64xf32>
  %pad = tensor.pad %img low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zero : f32
  } : tensor<1x56x56x64xf32> to tensor<1x58x58x64xf32>
  %e1 = tensor.empty() : tensor<1x56x56x64xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%pad, %w2 : tensor<1x58x58x64xf32>, tensor<3x3x64x64xf32>) outs(%f1 : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c, %b2 : tensor<1x56x56x64xf32>, tensor<64xf32>) outs(%e1 : tensor<1x56x56x64xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.addf %in, %bias : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  } -> tensor<1x56x56x64xf32>
  return %y : tensor<1x56x56x64xf32>
}
