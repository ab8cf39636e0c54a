// RUN: fuseline opt %s -p generalize-named-ops,fold-pad-into-producer --split-input-file --verify-each | filecheck %s

// The border stands beside what the root makes, dimension by dimension; the same value all around.
// CHECK-LABEL: func.func @behind_a_root
// CHECK: [[R:%.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]}
// CHECK: [[ONE:%.*]] = arith.constant 1.000000e+00 : f32
// CHECK: [[LOW:%.*]] = linalg.fill ins([[ONE]] : f32) outs(%{{.*}} : tensor<6x1xf32>)
// CHECK: [[HIGH:%.*]] = linalg.fill ins([[ONE]] : f32) outs(%{{.*}} : tensor<6x2xf32>)
// CHECK: [[ROWS:%.*]] = tensor.concat dim(1) [[LOW]], [[R]], [[HIGH]]
// CHECK: [[END:%.*]] = linalg.fill ins([[ONE]] : f32) outs(%{{.*}} : tensor<3x11xf32>)
// CHECK: tensor.concat dim(0) [[ROWS]], [[END]] : (tensor<6x11xf32>, tensor<3x11xf32>) -> tensor<9x11xf32>
// CHECK-NOT: tensor.pad
func.func @behind_a_root(%x: tensor<6x10xf32>, %w: tensor<10x8xf32>) -> tensor<9x11xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %c = linalg.matmul ins(%x, %w : tensor<6x10xf32>, tensor<10x8xf32>) outs(%f : tensor<6x8xf32>) -> tensor<6x8xf32>
  %r = linalg.exp ins(%c : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %p = tensor.pad %r low[0, 1] high[3, 2] {
  ^bb0(%i: index, %j: index):
    %v = arith.constant 1.0 : f32
    tensor.yield %v : f32
  } : tensor<6x8xf32> to tensor<9x11xf32>
  return %p : tensor<9x11xf32>
}

// -----

// A reshape before the return makes no difference; another reader reads the whole.
// CHECK-LABEL: func.func @behind_a_reshape
// CHECK: [[P:%.*]] = tensor.concat dim(0)
// CHECK: tensor.collapse_shape [[P]]
// CHECK: linalg.generic {{.*}} ins([[P]] : tensor<8x8xf32>)
func.func @behind_a_reshape(%x: tensor<6x10xf32>, %w: tensor<10x8xf32>) -> (tensor<64xf32>, tensor<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %c = linalg.matmul ins(%x, %w : tensor<6x10xf32>, tensor<10x8xf32>) outs(%f : tensor<6x8xf32>) -> tensor<6x8xf32>
  %p = tensor.pad %c low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<6x8xf32> to tensor<8x8xf32>
  %flat = tensor.collapse_shape %p [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %e1 = tensor.empty() : tensor<8x8xf32>
  %r = linalg.exp ins(%p : tensor<8x8xf32>) outs(%e1 : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %flat, %r : tensor<64xf32>, tensor<8x8xf32>
}

// -----

// Refused: no root makes it; the padded tensor is one walk.
// CHECK-LABEL: func.func @elementwise
// CHECK: tensor.pad
// CHECK-NOT: tensor.concat
func.func @elementwise(%x: tensor<6x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %r = linalg.exp ins(%x : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %p = tensor.pad %r low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<6x8xf32> to tensor<8x8xf32>
  return %p : tensor<8x8xf32>
}

// -----

// Refused: every reader reads the pad in place.
// CHECK-LABEL: func.func @read_in_place
// CHECK: tensor.pad
// CHECK-NOT: tensor.concat
func.func @read_in_place(%x: tensor<6x10xf32>, %w: tensor<10x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %c = linalg.matmul ins(%x, %w : tensor<6x10xf32>, tensor<10x8xf32>) outs(%f : tensor<6x8xf32>) -> tensor<6x8xf32>
  %p = tensor.pad %c low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<6x8xf32> to tensor<8x8xf32>
  %e1 = tensor.empty() : tensor<8x8xf32>
  %r = linalg.exp ins(%p : tensor<8x8xf32>) outs(%e1 : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}

// -----

// What is padded is returned too, and read by an elementwise op: the dispatch that makes it has several results.
// CHECK-LABEL: func.func @other_results
// CHECK: [[C:%.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK: [[P:%.*]] = tensor.concat dim(0) %{{.*}}, [[C]], %{{.*}}
// CHECK: [[R:%.*]] = linalg.generic {{.*}} ins([[C]] : tensor<6x8xf32>)
// CHECK: return [[C]], [[P]], [[R]]
func.func @other_results(%x: tensor<6x10xf32>, %w: tensor<10x8xf32>) -> (tensor<6x8xf32>, tensor<8x8xf32>, tensor<6x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %c = linalg.matmul ins(%x, %w : tensor<6x10xf32>, tensor<10x8xf32>) outs(%f : tensor<6x8xf32>) -> tensor<6x8xf32>
  %p = tensor.pad %c low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<6x8xf32> to tensor<8x8xf32>
  %r = linalg.exp ins(%c : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %c, %p, %r : tensor<6x8xf32>, tensor<8x8xf32>, tensor<6x8xf32>
}

// -----

// Refused: a reduction reads what is padded; and what the padding takes away, or computes from its place, is no border.
// CHECK-LABEL: func.func @refused
// CHECK: tensor.pad
// CHECK: tensor.pad
// CHECK: tensor.pad
// CHECK-NOT: tensor.concat
func.func @refused(%x: tensor<6x10xf32>, %w: tensor<10x8xf32>, %v: tensor<10x8xf32>, %u: tensor<10x8xf32>) -> (tensor<6xf32>, tensor<8x8xf32>, tensor<6x8xf32>, tensor<6x9xindex>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %c = linalg.matmul ins(%x, %w : tensor<6x10xf32>, tensor<10x8xf32>) outs(%f : tensor<6x8xf32>) -> tensor<6x8xf32>
  %p = tensor.pad %c low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<6x8xf32> to tensor<8x8xf32>
  %d = linalg.matmul ins(%x, %v : tensor<6x10xf32>, tensor<10x8xf32>) outs(%f : tensor<6x8xf32>) -> tensor<6x8xf32>
  %q = tensor.pad %d low[1, 0] high[-1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<6x8xf32> to tensor<6x8xf32>
  %b = linalg.matmul ins(%x, %u : tensor<6x10xf32>, tensor<10x8xf32>) outs(%f : tensor<6x8xf32>) -> tensor<6x8xf32>
  %n = tensor.empty() : tensor<6x8xindex>
  %k = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<6x8xf32>) outs(%n : tensor<6x8xindex>) {
  ^bb0(%in: f32, %out: index):
    %w0 = arith.fptosi %in : f32 to i64
    %w1 = arith.index_cast %w0 : i64 to index
    linalg.yield %w1 : index
  } -> tensor<6x8xindex>
  %o = tensor.pad %k low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %i : index
  } : tensor<6x8xindex> to tensor<6x9xindex>
  %e1 = tensor.empty() : tensor<6xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6xf32>) -> tensor<6xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%c : tensor<6x8xf32>) outs(%f1 : tensor<6xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %t = arith.addf %acc, %in : f32
    linalg.yield %t : f32
  } -> tensor<6xf32>
  return %s, %p, %q, %o : tensor<6xf32>, tensor<8x8xf32>, tensor<6x8xf32>, tensor<6x9xindex>
}

// -----

// Rows that only the run counts, and rows of padding that the caller counts: borders like any other.
// CHECK-LABEL: func.func @rows_of_run_time
// CHECK: [[C:%.*]] = linalg.generic
// CHECK-NOT: tensor.pad
// CHECK: [[SIDES:%.*]] = tensor.concat dim(1) %{{.*}}, [[C]], %{{.*}} : (tensor<?x1xf32>, tensor<?x8xf32>, tensor<?x2xf32>) -> tensor<?x11xf32>
// CHECK: tensor.concat dim(0) [[SIDES]], %{{.*}} : (tensor<?x11xf32>, tensor<?x11xf32>) -> tensor<?x11xf32>
func.func @rows_of_run_time(%x: tensor<?x10xf32>, %w: tensor<10x8xf32>, %f: tensor<?x8xf32>, %n: index) -> tensor<?x11xf32> {
  %v = arith.constant 2.0 : f32
  %c = linalg.matmul ins(%x, %w : tensor<?x10xf32>, tensor<10x8xf32>) outs(%f : tensor<?x8xf32>) -> tensor<?x8xf32>
  %p = tensor.pad %c low[0, 1] high[%n, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %v : f32
  } : tensor<?x8xf32> to tensor<?x11xf32>
  return %p : tensor<?x11xf32>
}

// -----

// Refused: padding that may take rows away.
// CHECK-LABEL: func.func @less_or_more
// CHECK: tensor.pad
// CHECK-NOT: tensor.concat
// CHECK: return
func.func @less_or_more(%x: tensor<4x10xf32>, %w: tensor<10x8xf32>, %f: tensor<4x8xf32>, %n: index) -> tensor<?x8xf32> {
  %v = arith.constant 2.0 : f32
  %three = arith.constant 3 : index
  %less = arith.subi %n, %three : index
  %c = linalg.matmul ins(%x, %w : tensor<4x10xf32>, tensor<10x8xf32>) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
  %p = tensor.pad %c low[0, 0] high[%less, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %v : f32
  } : tensor<4x8xf32> to tensor<?x8xf32>
  return %p : tensor<?x8xf32>
}
