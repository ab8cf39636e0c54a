// RUN: fuseline opt %s -p cleanup,layout,padding,fusion,dispatch | filecheck %s

// CHECK-COUNT-1: flow.dispatch @
// CHECK-NOT: flow.dispatch @

// A matmul and bias whose result is read by a transpose and by a row reduction.
// Want: 1 or 2 dispatches with a record for each edge; IREE 3.13 forms 2 and says nothing.
func.func @two_consumers(%a: tensor<128x256xf32>, %w: tensor<256x128xf32>, %b: tensor<128xf32>) -> (tensor<128x128xf32>, tensor<128xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  %m = linalg.matmul ins(%a, %w : tensor<128x256xf32>, tensor<256x128xf32>) outs(%f : tensor<128x128xf32>) -> tensor<128x128xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%m, %b : tensor<128x128xf32>, tensor<128xf32>) outs(%e : tensor<128x128xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %v = arith.addf %in, %bias : f32
    linalg.yield %v : f32
  } -> tensor<128x128xf32>
  %t = linalg.transpose ins(%s : tensor<128x128xf32>) outs(%e : tensor<128x128xf32>) permutation = [1, 0]
  %er = tensor.empty() : tensor<128xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<128xf32>) -> tensor<128xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%s : tensor<128x128xf32>) outs(%fr : tensor<128xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %v = arith.addf %in, %acc : f32
    linalg.yield %v : f32
  } -> tensor<128xf32>
  return %t, %r : tensor<128x128xf32>, tensor<128xf32>
}
