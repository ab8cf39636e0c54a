// RUN: fuseline opt %s -p 'generalize-named-ops,collapse-dims{everywhere=true}' --split-input-file --verify-each | filecheck %s

// The rows of both ops are one loop; reshapes are left at the argument and the result.
// CHECK-LABEL: func.func @rows
// CHECK: [[X:%.*]] = tensor.collapse_shape %x {{.*}} : tensor<4x6x8xf32> into tensor<24x8xf32>
// CHECK: [[E:%.*]] = linalg.generic {{.*}} ins([[X]] : tensor<24x8xf32>) outs(%{{.*}} : tensor<24x8xf32>)
// CHECK: [[S:%.*]] = linalg.generic {{.*}} ins([[E]] : tensor<24x8xf32>) outs(%{{.*}} : tensor<24xf32>)
// CHECK: tensor.expand_shape [[S]] {{.*}} : tensor<24xf32> into tensor<4x6xf32>
// CHECK-NEXT: return
func.func @rows(%x: tensor<4x6x8xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6x8xf32>
  %a = linalg.exp ins(%x : tensor<4x6x8xf32>) outs(%e : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %e1 = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a : tensor<4x6x8xf32>) outs(%f : tensor<4x6xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %t = arith.addf %acc, %in : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  return %s : tensor<4x6xf32>
}

// -----

// An expand between the two cancels; all three loops are one where nothing tells them apart.
// CHECK-LABEL: func.func @across_a_reshape
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<192xf32>)
// CHECK-NOT: tensor.expand_shape {{.*}} into tensor<4x6x8xf32>
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<192xf32>)
// CHECK: return
func.func @across_a_reshape(%x: tensor<24x8xf32>) -> tensor<4x6x8xf32> {
  %e = tensor.empty() : tensor<24x8xf32>
  %a = linalg.exp ins(%x : tensor<24x8xf32>) outs(%e : tensor<24x8xf32>) -> tensor<24x8xf32>
  %b = tensor.expand_shape %a [[0, 1], [2]] output_shape [4, 6, 8] : tensor<24x8xf32> into tensor<4x6x8xf32>
  %e1 = tensor.empty() : tensor<4x6x8xf32>
  %c = linalg.elementwise <tanh> ins(%b : tensor<4x6x8xf32>) outs(%e1 : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %c : tensor<4x6x8xf32>
}

// -----

// Two loops of a contraction's rows; the summed loop and the columns stay apart.
// CHECK-LABEL: func.func @contraction
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %w : tensor<24x8xf32>, tensor<8x5xf32>) outs(%{{.*}} : tensor<24x5xf32>)
func.func @contraction(%x: tensor<4x6x8xf32>, %w: tensor<8x5xf32>) -> tensor<4x6x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6x5xf32>) -> tensor<4x6x5xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j, n, k) -> (i, j, k)>, affine_map<(i, j, n, k) -> (k, n)>, affine_map<(i, j, n, k) -> (i, j, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4x6x8xf32>, tensor<8x5xf32>) outs(%f : tensor<4x6x5xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x6x5xf32>
  return %c : tensor<4x6x5xf32>
}

// -----

// Refused: one reader tells the rows apart (a scale for each j), so that every op that the tensor reaches keeps its loops.
// CHECK-LABEL: func.func @one_reader_differs
// CHECK-NOT: tensor.collapse_shape
// CHECK: linalg.generic {{.*}} ins(%x : tensor<4x6x8xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %v : tensor<4x6x8xf32>, tensor<6x1xf32>)
func.func @one_reader_differs(%x: tensor<4x6x8xf32>, %v: tensor<6x1xf32>) -> tensor<4x6x8xf32> {
  %e = tensor.empty() : tensor<4x6x8xf32>
  %a = linalg.exp ins(%x : tensor<4x6x8xf32>) outs(%e : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (j, 0)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a, %v : tensor<4x6x8xf32>, tensor<6x1xf32>) outs(%e : tensor<4x6x8xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %m = arith.mulf %in, %s : f32
    linalg.yield %m : f32
  } -> tensor<4x6x8xf32>
  return %r : tensor<4x6x8xf32>
}

// -----

// Refused: a pad reads rows and columns apart, a position is computed from a loop, an order is another one.
// CHECK-LABEL: func.func @refused
// CHECK-NOT: tensor.collapse_shape
// CHECK: return
func.func @refused(%x: tensor<4x6xf32>, %y: tensor<4x6xi64>, %z: tensor<6x4xf32>) -> (tensor<6x6xf32>, tensor<4x6xi64>, tensor<4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %a = linalg.exp ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %p = tensor.pad %a low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x6xf32> to tensor<6x6xf32>
  %ei = tensor.empty() : tensor<4x6xi64>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x6xi64>) outs(%ei : tensor<4x6xi64>) {
  ^bb0(%in: i64, %out: i64):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i64
    %m = arith.addi %in, %k : i64
    linalg.yield %m : i64
  } -> tensor<4x6xi64>
  %t = linalg.transpose ins(%z : tensor<6x4xf32>) outs(%e : tensor<4x6xf32>) permutation = [1, 0]
  return %p, %b, %t : tensor<6x6xf32>, tensor<4x6xi64>, tensor<4x6xf32>
}
