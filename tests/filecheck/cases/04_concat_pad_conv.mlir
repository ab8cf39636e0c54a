// RUN: fuseline opt %s -p cleanup,layout,padding,fusion,dispatch | filecheck %s

// CHECK-COUNT-2: flow.dispatch @

// ESRGAN's dense block, shortened: leaky-relu results are concatenated, padded and convolved (iree#11049).
// Want: 3 dispatches (two convolutions with their epilogues, and the one that reads the padded concat), 0 fills, at most 1 copy (of %x, an
// argument; 0 if the convolution reads the pieces where they lie): each result is written straight into its slice, the padding is read inside
// the consumer. IREE 3.13 at O3: 4 dispatches, 1 fill, 1 copy.
func.func @dense_block(%x: tensor<1x64x90x62xf32>, %w0: tensor<32x64x1x1xf32>, %w1: tensor<32x64x1x1xf32>,
                       %w2: tensor<32x128x3x3xf32>) -> tensor<1x32x90x62xf32> {
  %zero = arith.constant 0.0 : f32
  %slope = arith.constant 0.2 : f32
  %e = tensor.empty() : tensor<1x32x90x62xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x90x62xf32>) -> tensor<1x32x90x62xf32>
  %c0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%x, %w0 : tensor<1x64x90x62xf32>, tensor<32x64x1x1xf32>) outs(%f : tensor<1x32x90x62xf32>) -> tensor<1x32x90x62xf32>
  %a0 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c0 : tensor<1x32x90x62xf32>) outs(%e : tensor<1x32x90x62xf32>) {
  ^bb0(%in: f32, %out: f32):
    %p = arith.cmpf ugt, %in, %zero : f32
    %m = arith.mulf %in, %slope : f32
    %s = arith.select %p, %in, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x32x90x62xf32>
  %c1 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%x, %w1 : tensor<1x64x90x62xf32>, tensor<32x64x1x1xf32>) outs(%f : tensor<1x32x90x62xf32>) -> tensor<1x32x90x62xf32>
  %a1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c1 : tensor<1x32x90x62xf32>) outs(%e : tensor<1x32x90x62xf32>) {
  ^bb0(%in: f32, %out: f32):
    %p = arith.cmpf ugt, %in, %zero : f32
    %m = arith.mulf %in, %slope : f32
    %s = arith.select %p, %in, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x32x90x62xf32>
  %cat = tensor.concat dim(1) %x, %a0, %a1 : (tensor<1x64x90x62xf32>, tensor<1x32x90x62xf32>, tensor<1x32x90x62xf32>) -> tensor<1x128x90x62xf32>
  %pad = tensor.pad %cat low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zero : f32
  } : tensor<1x128x90x62xf32> to tensor<1x128x92x64xf32>
  %c2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%pad, %w2 : tensor<1x128x92x64xf32>, tensor<32x128x3x3xf32>) outs(%f : tensor<1x32x90x62xf32>) -> tensor<1x32x90x62xf32>
  return %c2 : tensor<1x32x90x62xf32>
}
