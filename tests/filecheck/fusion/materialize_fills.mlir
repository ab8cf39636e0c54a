// RUN: fuseline opt %s -p materialize-fills --split-input-file --verify-each | filecheck %s

// What is returned, under its own shape and another, is computed; what an op starts from stays a fill.
// CHECK-LABEL: func.func @returned
// CHECK: [[FILL:%.*]] = linalg.fill
// CHECK: [[MADE:%.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x3xf32>)
// CHECK: linalg.yield %c : f32
// CHECK: tensor.collapse_shape [[MADE]]
// CHECK: linalg.generic {{.*}} outs([[FILL]] : tensor<?x3xf32>)
// CHECK: func.return [[MADE]],
func.func @returned(%x: tensor<?x3xf32>, %n: index) -> (tensor<?x3xf32>, tensor<?xf32>, tensor<?x3xf32>) {
  %c = arith.constant 2.5 : f32
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  %flat = tensor.collapse_shape %f [[0, 1]] : tensor<?x3xf32> into tensor<?xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x3xf32>) outs(%f : tensor<?x3xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %t = arith.addf %acc, %in : f32
    linalg.yield %t : f32
  } -> tensor<?x3xf32>
  func.return %f, %flat, %s : tensor<?x3xf32>, tensor<?xf32>, tensor<?x3xf32>
}

// -----

// A fill of known size becomes a constant later.
// CHECK-LABEL: func.func @known
// CHECK-NOT: linalg.generic
func.func @known() -> tensor<4xf32> {
  %c = arith.constant 2.5 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  func.return %f : tensor<4xf32>
}
