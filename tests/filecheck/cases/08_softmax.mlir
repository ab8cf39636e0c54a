// RUN: fuseline opt %s -p cleanup,layout,padding,fusion,dispatch | filecheck %s

// CHECK-COUNT-1: flow.dispatch @
// CHECK-NOT: flow.dispatch @

// Softmax over rows, written out: max, subtract and exponentiate, sum, divide.
// Want: 1 dispatch; the row lives in scratch whose size (4 x 384 bytes at the least) is computed and checked before the dispatch is formed.
func.func @softmax(%x: tensor<1536x384xf32>) -> tensor<1536x384xf32> {
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<1536xf32>
  %e = tensor.empty() : tensor<1536x384xf32>
  %f0 = linalg.fill ins(%ninf : f32) outs(%er : tensor<1536xf32>) -> tensor<1536xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%er : tensor<1536xf32>) -> tensor<1536xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<1536x384xf32>) outs(%f0 : tensor<1536xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %v = arith.maximumf %in, %acc : f32
    linalg.yield %v : f32
  } -> tensor<1536xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<1536x384xf32>, tensor<1536xf32>) outs(%e : tensor<1536x384xf32>) {
  ^bb0(%in: f32, %max: f32, %out: f32):
    %d = arith.subf %in, %max : f32
    %v = math.exp %d : f32
    linalg.yield %v : f32
  } -> tensor<1536x384xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<1536x384xf32>) outs(%f1 : tensor<1536xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %v = arith.addf %in, %acc : f32
    linalg.yield %v : f32
  } -> tensor<1536xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%p, %s : tensor<1536x384xf32>, tensor<1536xf32>) outs(%e : tensor<1536x384xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %v = arith.divf %in, %sum : f32
    linalg.yield %v : f32
  } -> tensor<1536x384xf32>
  return %y : tensor<1536x384xf32>
}
