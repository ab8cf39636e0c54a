// RUN: fuseline opt %s -p cleanup,layout,padding,fusion,dispatch | filecheck %s

// CHECK-COUNT-1: flow.dispatch @
// CHECK-NOT: flow.dispatch @

// DeepLabV3: a channels-first depthwise convolution between two transposes, then relu6 written transposed (iree-amd-aie#515).
// Want: 1 dispatch, 0 standalone transposes: the depthwise convolution becomes channels-last, the transposes cancel, relu6 is its epilogue.
// IREE 3.13 at O3 also forms 1 dispatch, but leaves the convolution channels-first inside it.
func.func @depthwise(%x: tensor<259x259x1x32xf32>, %w: tensor<32x3x3xf32>) -> tensor<257x257x1x32xf32> {
  %zero = arith.constant 0.0 : f32
  %six = arith.constant 6.0 : f32
  %e0 = tensor.empty() : tensor<1x32x259x259xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d2, d3, d0, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<259x259x1x32xf32>) outs(%e0 : tensor<1x32x259x259xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x32x259x259xf32>
  %e1 = tensor.empty() : tensor<1x32x257x257xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x32x257x257xf32>) -> tensor<1x32x257x257xf32>
  %c = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%t, %w : tensor<1x32x259x259xf32>, tensor<32x3x3xf32>) outs(%f1 : tensor<1x32x257x257xf32>) -> tensor<1x32x257x257xf32>
  %e2 = tensor.empty() : tensor<257x257x1x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3, d0, d1)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c : tensor<1x32x257x257xf32>) outs(%e2 : tensor<257x257x1x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %lo = arith.cmpf ult, %in, %zero : f32
    %a = arith.select %lo, %zero, %in : f32
    %hi = arith.cmpf ugt, %a, %six : f32
    %b = arith.select %hi, %six, %a : f32
    linalg.yield %b : f32
  } -> tensor<257x257x1x32xf32>
  return %y : tensor<257x257x1x32xf32>
}
