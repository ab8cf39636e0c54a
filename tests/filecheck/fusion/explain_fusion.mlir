// RUN: fuseline opt %s -p cleanup,explain-fusion | filecheck %s

// Remarks come first, as comments, so that what is printed stays MLIR; the program is not changed.
// CHECK: // remark: [elementwise-epilogue] fused
// CHECK-NEXT: // remark: [root-chain] unprofitable: {{.*}} for each block of the grid: {{.*}} us more for {{.*}} us saved
// CHECK-NEXT: // remark: [elementwise-epilogue] fused
// CHECK: func.func @two_consumers
// CHECK-NOT: flow.dispatch.region

// A matmul and bias whose result is read by a transpose and by a row reduction, in rows of 16 KB: each block of 262 would
// read the right operand again.
func.func @two_consumers(%a: tensor<1024x1024xf32>, %w: tensor<1024x4000xf32>, %b: tensor<4000xf32>) -> (tensor<4000x1024xf32>, tensor<1024xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024x4000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1024x4000xf32>) -> tensor<1024x4000xf32>
  %m = linalg.matmul ins(%a, %w : tensor<1024x1024xf32>, tensor<1024x4000xf32>) outs(%f : tensor<1024x4000xf32>) -> tensor<1024x4000xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%m, %b : tensor<1024x4000xf32>, tensor<4000xf32>) outs(%e : tensor<1024x4000xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %v = arith.addf %in, %bias : f32
    linalg.yield %v : f32
  } -> tensor<1024x4000xf32>
  %et = tensor.empty() : tensor<4000x1024xf32>
  %t = linalg.transpose ins(%s : tensor<1024x4000xf32>) outs(%et : tensor<4000x1024xf32>) permutation = [1, 0]
  %er = tensor.empty() : tensor<1024xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<1024xf32>) -> tensor<1024xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%s : tensor<1024x4000xf32>) outs(%fr : tensor<1024xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %v = arith.addf %in, %acc : f32
    linalg.yield %v : f32
  } -> tensor<1024xf32>
  return %t, %r : tensor<4000x1024xf32>, tensor<1024xf32>
}
