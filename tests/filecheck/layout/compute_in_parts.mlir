// RUN: fuseline opt %s -p compute-in-parts --split-input-file --verify-each | filecheck %s

// What is added is cut as the parts are.
// CHECK-LABEL: func.func @columns
// CHECK-DAG: tensor.extract_slice %s[0] [3] [1]
// CHECK-DAG: tensor.extract_slice %s[3] [5] [1]
// CHECK-DAG: linalg.generic {{.*}}"parallel", "parallel"]{{.*}}outs({{.*}} : tensor<6x3xf32>)
// CHECK-DAG: linalg.generic {{.*}}"parallel", "parallel"]{{.*}}outs({{.*}} : tensor<6x5xf32>)
// CHECK: %[[ALL:.*]] = tensor.concat dim(1)
// CHECK-NEXT: return %[[ALL]]
func.func @columns(%x: tensor<6x4xf32>, %v: tensor<4x3xf32>, %w: tensor<4x5xf32>, %s: tensor<8xf32>) -> tensor<6x8xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x3xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<6x3xf32>) -> tensor<6x3xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %v : tensor<6x4xf32>, tensor<4x3xf32>) outs(%f : tensor<6x3xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %m = arith.mulf %a, %c : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<6x3xf32>
  %g = tensor.empty() : tensor<6x5xf32>
  %h = linalg.fill ins(%z : f32) outs(%g : tensor<6x5xf32>) -> tensor<6x5xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<6x4xf32>, tensor<4x5xf32>) outs(%h : tensor<6x5xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %m = arith.mulf %a, %c : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<6x5xf32>
  %b = tensor.concat dim(1) %p, %q : (tensor<6x3xf32>, tensor<6x5xf32>) -> tensor<6x8xf32>
  %i = tensor.empty() : tensor<6x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%b, %s : tensor<6x8xf32>, tensor<8xf32>) outs(%i : tensor<6x8xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}

// -----

// A part that no root makes is read where it lies.
// CHECK-LABEL: func.func @given
// CHECK: tensor.concat
// CHECK-NOT: tensor.extract_slice
// CHECK: linalg.generic {{.*}}outs({{.*}} : tensor<6x7xf32>)
func.func @given(%x: tensor<6x4xf32>, %y: tensor<6x3xf32>) -> tensor<6x7xf32> {
  %b = tensor.concat dim(1) %x, %y : (tensor<6x4xf32>, tensor<6x3xf32>) -> tensor<6x7xf32>
  %i = tensor.empty() : tensor<6x7xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<6x7xf32>) outs(%i : tensor<6x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<6x7xf32>
  return %r : tensor<6x7xf32>
}
