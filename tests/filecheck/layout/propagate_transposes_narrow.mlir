// RUN: fuseline opt %s -p propagate-transposes --split-input-file | filecheck %s

// Narrow integers are multiplied in pairs of neighbouring channels: what makes them writes them so, and the convolution reads no other order.
// CHECK-LABEL: func.func @narrow
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<4x6x5xi8>) outs(%{{.*}} : tensor<6x5x4xi16>)
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<6x5x4xi16>, tensor<3x3x4x8xi8>)
func.func @narrow(%x: tensor<4x6x5xi8>, %w: tensor<3x3x4x8xi8>) -> tensor<4x3x8xi32> {
  %e = tensor.empty() : tensor<4x6x5xi16>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<4x6x5xi8>) outs(%e : tensor<4x6x5xi16>) {
  ^bb0(%a: i8, %o: i16):
    %v = arith.extsi %a : i8 to i16
    linalg.yield %v : i16
  } -> tensor<4x6x5xi16>
  %te = tensor.empty() : tensor<6x5x4xi16>
  %t = linalg.transpose ins(%c : tensor<4x6x5xi16>) outs(%te : tensor<6x5x4xi16>) permutation = [1, 2, 0]
  %z = arith.constant 0 : i32
  %re = tensor.empty() : tensor<4x3x8xi32>
  %init = linalg.fill ins(%z : i32) outs(%re : tensor<4x3x8xi32>) -> tensor<4x3x8xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(y, x, f, i, j, c) -> (y + i, x + j, c)>, affine_map<(y, x, f, i, j, c) -> (i, j, c, f)>, affine_map<(y, x, f, i, j, c) -> (y, x, f)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%t, %w : tensor<6x5x4xi16>, tensor<3x3x4x8xi8>) outs(%init : tensor<4x3x8xi32>) {
  ^bb0(%a: i16, %b: i8, %s: i32):
    %l = arith.extsi %a : i16 to i32
    %m = arith.extsi %b : i8 to i32
    %p = arith.muli %l, %m : i32
    %q = arith.addi %s, %p : i32
    linalg.yield %q : i32
  } -> tensor<4x3x8xi32>
  return %r : tensor<4x3x8xi32>
}
