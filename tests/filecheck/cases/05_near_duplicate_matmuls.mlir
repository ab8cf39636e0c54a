// RUN: fuseline opt %s -p cleanup,layout,padding,fusion,dispatch | filecheck %s

// CHECK-COUNT-1: flow.dispatch @
// CHECK-NOT: flow.dispatch @

// Three matmuls: two of one shape, one with more rows (iree#1144, #9895, #12230).
// Want: 3 executables at dedup level none, 2 at exact, 1 at shapes (the row count only changes the workgroup count).
func.func @matmuls(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %c: tensor<128x64xf32>, %w: tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<128x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64x64xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %e1 = tensor.empty() : tensor<128x64xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<128x64xf32>) -> tensor<128x64xf32>
  %x = linalg.matmul ins(%a, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = linalg.matmul ins(%b, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = linalg.matmul ins(%c, %w : tensor<128x64xf32>, tensor<64x64xf32>) outs(%f1 : tensor<128x64xf32>) -> tensor<128x64xf32>
  return %x, %y, %z : tensor<64x64xf32>, tensor<64x64xf32>, tensor<128x64xf32>
}
