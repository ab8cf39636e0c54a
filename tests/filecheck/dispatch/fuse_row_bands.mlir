// RUN: fuseline opt %s -p generalize-named-ops,form-dispatch-regions,fuse-row-bands --split-input-file --verify-each | filecheck %s
// RUN: fuseline opt %s -p generalize-named-ops,form-dispatch-regions,fuse-row-bands,fuse-row-bands --split-input-file --verify-each | filecheck %s
// RUN: fuseline opt %s -p "generalize-named-ops,form-dispatch-regions,fuse-row-bands{enabled=false}" --split-input-file --verify-each | filecheck %s --check-prefix OFF

// OFF-NOT: bands

// 1200 rows in bands: the image of a band has a row above and below it, of which those outside are the pad's number.
// CHECK: made in [[COUNT:[0-9]+]] bands of [[ROWS:[0-9]+]] rows by what reads it
// CHECK-LABEL: func.func @banded
// CHECK: flow.dispatch.region -> (tensor<1200x64x2xf32>)
// CHECK-SAME: fuseline.members = ["pad.{{[0-9a-f]*}}", "pad.{{[0-9a-f]*}}-bands", "convolution.{{[0-9a-f]*}}", "convolution.{{[0-9a-f]*}}-edge", "pad.{{[0-9a-f]*}}", "convolution.{{[0-9a-f]*}}"]
// CHECK-SAME: members = ["inlined", "inlined", array<i64: 0, -1, -1, -1, -1, -1, -1>, array<i64: 0, -1, -1, -1>, "inlined", array<i64: 0, -1, -1, -1, -1, -1, -1>]
// CHECK: tensor.pad %x low[2, 1, 0] high[2, 1, 0]
// CHECK: arith.cmpi sge
// CHECK: arith.cmpi slt
// CHECK: tensor.pad %{{.*}} low[0, 0, 1, 0] high[0, 0, 1, 0]
// CHECK: tensor.collapse_shape
// CHECK-NOT: flow.dispatch.region
// CHECK: return
#image = affine_map<(y, x, c, ky, kx, k) -> (y + ky, x + kx, k)>
#filter = affine_map<(y, x, c, ky, kx, k) -> (ky, kx, k, c)>
#result = affine_map<(y, x, c, ky, kx, k) -> (y, x, c)>
func.func @banded(%x: tensor<1200x64x3xf32>, %f: tensor<3x3x3x32xf32>, %g: tensor<3x3x32x2xf32>) -> tensor<1200x64x2xf32> {
  %c0 = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1, 1, 0] high[1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %c0 : f32
  } : tensor<1200x64x3xf32> to tensor<1202x66x3xf32>
  %e = tensor.empty() : tensor<1200x64x32xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<1200x64x32xf32>) -> tensor<1200x64x32xf32>
  %a = linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%p, %f : tensor<1202x66x3xf32>, tensor<3x3x3x32xf32>) outs(%z : tensor<1200x64x32xf32>) {
  ^bb0(%l: f32, %r: f32, %acc: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %acc, %m : f32
    linalg.yield %t : f32
  } -> tensor<1200x64x32xf32>
  %q = tensor.pad %a low[1, 1, 0] high[1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %c0 : f32
  } : tensor<1200x64x32xf32> to tensor<1202x66x32xf32>
  %e2 = tensor.empty() : tensor<1200x64x2xf32>
  %z2 = linalg.fill ins(%c0 : f32) outs(%e2 : tensor<1200x64x2xf32>) -> tensor<1200x64x2xf32>
  %b = linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%q, %g : tensor<1202x66x32xf32>, tensor<3x3x32x2xf32>) outs(%z2 : tensor<1200x64x2xf32>) {
  ^bb0(%l: f32, %r: f32, %acc: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %acc, %m : f32
    linalg.yield %t : f32
  } -> tensor<1200x64x2xf32>
  return %b : tensor<1200x64x2xf32>
}

// -----

// An image that is returned as well is stored.
// CHECK-LABEL: func.func @returned
// CHECK: flow.dispatch.region -> (tensor<900x64x32xf32>)
// CHECK: flow.dispatch.region -> (tensor<898x62x2xf32>)
#image = affine_map<(y, x, c, ky, kx, k) -> (y + ky, x + kx, k)>
#filter = affine_map<(y, x, c, ky, kx, k) -> (ky, kx, k, c)>
#result = affine_map<(y, x, c, ky, kx, k) -> (y, x, c)>
func.func @returned(%x: tensor<902x66x3xf32>, %f: tensor<3x3x3x32xf32>, %g: tensor<3x3x32x2xf32>) -> (tensor<900x64x32xf32>, tensor<898x62x2xf32>) {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<900x64x32xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<900x64x32xf32>) -> tensor<900x64x32xf32>
  %a = linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %f : tensor<902x66x3xf32>, tensor<3x3x3x32xf32>) outs(%z : tensor<900x64x32xf32>) {
  ^bb0(%l: f32, %r: f32, %acc: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %acc, %m : f32
    linalg.yield %t : f32
  } -> tensor<900x64x32xf32>
  %e2 = tensor.empty() : tensor<898x62x2xf32>
  %z2 = linalg.fill ins(%c0 : f32) outs(%e2 : tensor<898x62x2xf32>) -> tensor<898x62x2xf32>
  %b = linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%a, %g : tensor<900x64x32xf32>, tensor<3x3x32x2xf32>) outs(%z2 : tensor<898x62x2xf32>) {
  ^bb0(%l: f32, %r: f32, %acc: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %acc, %m : f32
    linalg.yield %t : f32
  } -> tensor<898x62x2xf32>
  return %a, %b : tensor<900x64x32xf32>, tensor<898x62x2xf32>
}
