// RUN: fuseline opt %s -p compute-what-is-cut --split-input-file --verify-each | filecheck %s

// Rows of the left operand, columns of the right one, both of what is added.
// CHECK-LABEL: func.func @product
// CHECK-DAG: tensor.extract_slice %x[1, 0] [5, 4] [1, 1]
// CHECK-DAG: tensor.extract_slice %w[0, 2] [4, 6] [1, 1]
// CHECK: linalg.generic {{.*}}"reduction"{{.*}}outs({{.*}} : tensor<5x6xf32>)
// CHECK: tensor.extract_slice %b[2] [6] [1]
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}outs({{.*}} : tensor<5x6xf32>)
// CHECK-NOT: tensor.extract_slice
// CHECK: return %[[SUM]]
func.func @product(%x: tensor<8x4xf32>, %w: tensor<4x9xf32>, %b: tensor<9xf32>) -> tensor<5x6xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x9xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x9xf32>) -> tensor<8x9xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<8x4xf32>, tensor<4x9xf32>) outs(%f : tensor<8x9xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %m = arith.mulf %a, %c : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x9xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p, %b : tensor<8x9xf32>, tensor<9xf32>) outs(%e : tensor<8x9xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<8x9xf32>
  %r = tensor.extract_slice %q[1, 2] [5, 6] [1, 1] : tensor<8x9xf32> to tensor<5x6xf32>
  return %r : tensor<5x6xf32>
}

// -----

// A pad gives way first; what it leaves is cut from the image, in steps of the stride.
// CHECK-LABEL: func.func @window
// CHECK: %[[IMAGE:.*]] = tensor.extract_slice %x[2, 0] [7, 9] [1, 1]
// CHECK: tensor.pad %[[IMAGE]] low[0, 0] high[1, 1]
// CHECK: linalg.generic {{.*}}outs({{.*}} : tensor<3x4xf32>)
// CHECK-NOT: tensor.extract_slice
// CHECK: return
func.func @window(%x: tensor<9x9xf32>, %w: tensor<3x3xf32>) -> tensor<3x4xf32> {
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %x low[2, 2] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<9x9xf32> to tensor<12x12xf32>
  %e = tensor.empty() : tensor<5x5xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<5x5xf32>) -> tensor<5x5xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j, k, l) -> (i * 2 + k, j * 2 + l)>, affine_map<(i, j, k, l) -> (k, l)>, affine_map<(i, j, k, l) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%p, %w : tensor<12x12xf32>, tensor<3x3xf32>) outs(%f : tensor<5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x5xf32>
  %r = tensor.extract_slice %c[2, 1] [3, 4] [1, 1] : tensor<5x5xf32> to tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// Others read the rest.
// CHECK-LABEL: func.func @read_whole
// CHECK: linalg.generic {{.*}}outs({{.*}} : tensor<8x9xf32>)
// CHECK: tensor.extract_slice {{.*}} : tensor<8x9xf32> to tensor<5x9xf32>
func.func @read_whole(%x: tensor<8x4xf32>, %w: tensor<4x9xf32>) -> (tensor<5x9xf32>, tensor<8x9xf32>) {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x9xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x9xf32>) -> tensor<8x9xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<8x4xf32>, tensor<4x9xf32>) outs(%f : tensor<8x9xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %m = arith.mulf %a, %c : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x9xf32>
  %r = tensor.extract_slice %p[1, 0] [5, 9] [1, 1] : tensor<8x9xf32> to tensor<5x9xf32>
  return %r, %p : tensor<5x9xf32>, tensor<8x9xf32>
}

// -----

// Every other row is no range of rows.
// CHECK-LABEL: func.func @steps
// CHECK: linalg.generic {{.*}}outs({{.*}} : tensor<8x9xf32>)
// CHECK: tensor.extract_slice {{.*}} : tensor<8x9xf32> to tensor<4x9xf32>
func.func @steps(%x: tensor<8x4xf32>, %w: tensor<4x9xf32>) -> tensor<4x9xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x9xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x9xf32>) -> tensor<8x9xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<8x4xf32>, tensor<4x9xf32>) outs(%f : tensor<8x9xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %m = arith.mulf %a, %c : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x9xf32>
  %r = tensor.extract_slice %p[0, 0] [4, 9] [2, 1] : tensor<8x9xf32> to tensor<4x9xf32>
  return %r : tensor<4x9xf32>
}

// -----

// A weight that is read whole as well would be there twice.
// CHECK-LABEL: func.func @shared_weight
// CHECK: linalg.generic {{.*}}outs({{.*}} : tensor<2x3xf32>)
// CHECK: tensor.extract_slice {{.*}} : tensor<2x3xf32> to tensor<2x2xf32>
func.func @shared_weight(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x3xf32>) {
  %z = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %e = tensor.empty() : tensor<2x3xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x2xf32>, tensor<2x3xf32>) outs(%f : tensor<2x3xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %m = arith.mulf %a, %c : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x3xf32>
  %r = tensor.extract_slice %p[0, 0] [2, 2] [1, 1] : tensor<2x3xf32> to tensor<2x2xf32>
  return %r, %w : tensor<2x2xf32>, tensor<2x3xf32>
}

// -----

// No root: an elementwise op is computed where its slice is read, anyway.
// CHECK-LABEL: func.func @no_root
// CHECK: linalg.generic {{.*}}outs({{.*}} : tensor<8xf32>)
// CHECK: tensor.extract_slice
func.func @no_root(%x: tensor<8xf32>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %r = tensor.extract_slice %p[1] [5] [1] : tensor<8xf32> to tensor<5xf32>
  return %r : tensor<5xf32>
}
