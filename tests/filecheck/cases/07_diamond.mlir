// RUN: fuseline opt %s -p cleanup,layout,padding,fusion,dispatch | filecheck %s

// CHECK-COUNT-1: flow.dispatch @
// CHECK-NOT: flow.dispatch @

// One parent, two elementwise branches of different depth that meet again (tvm#1548).
// Want: 1 dispatch, whatever the order in which the branches are written.
func.func @diamond(%x: tensor<128x384xf32>) -> tensor<128x384xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<128x384xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<128x384xf32>) outs(%e : tensor<128x384xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.tanh %in : f32
    linalg.yield %v : f32
  } -> tensor<128x384xf32>
  %l = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<128x384xf32>) outs(%e : tensor<128x384xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<128x384xf32>
  %r0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<128x384xf32>) outs(%e : tensor<128x384xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %one : f32
    linalg.yield %v : f32
  } -> tensor<128x384xf32>
  %r1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%r0 : tensor<128x384xf32>) outs(%e : tensor<128x384xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.sqrt %in : f32
    linalg.yield %v : f32
  } -> tensor<128x384xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%l, %r1 : tensor<128x384xf32>, tensor<128x384xf32>) outs(%e : tensor<128x384xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<128x384xf32>
  return %y : tensor<128x384xf32>
}
