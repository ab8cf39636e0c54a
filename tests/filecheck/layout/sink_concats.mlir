// RUN: fuseline opt %s -p sink-concats,dead-code --split-input-file --verify-each | filecheck %s

// What is computed behind the concat follows each part; one that is repeated is computed before it is.
// CHECK-LABEL: func.func @parts
// CHECK: math.exp
// CHECK: [[A:%.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<5x6xf32>)
// CHECK: math.tanh
// CHECK: [[C:%.*]] = linalg.generic {{.*}} ins(%y : tensor<4xf32>) outs({{.*}} : tensor<4xf32>)
// CHECK: math.sqrt
// CHECK: [[T:%.*]] = linalg.generic {{.*}} ins([[C]] : tensor<4xf32>) outs({{.*}} : tensor<4xf32>)
// CHECK: math.tanh
// CHECK: [[B:%.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>]{{.*}} ins([[T]] : tensor<4xf32>)
// CHECK: [[J:%.*]] = tensor.concat dim(1) [[A]], [[B]] : (tensor<5x6xf32>, tensor<5x4xf32>) -> tensor<5x10xf32>
// CHECK: linalg.generic {{.*}} ins([[J]], %w
// CHECK: return
func.func @parts(%x: tensor<5x6xf32>, %y: tensor<4xf32>, %w: tensor<10x3xf32>) -> tensor<5x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<5x6xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<5x6xf32>) outs(%e0 : tensor<5x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<5x6xf32>
  %e1 = tensor.empty() : tensor<5x4xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4xf32>) outs(%e1 : tensor<5x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.sqrt %in : f32
    linalg.yield %v : f32
  } -> tensor<5x4xf32>
  %c = tensor.concat dim(1) %a, %b : (tensor<5x6xf32>, tensor<5x4xf32>) -> tensor<5x10xf32>
  %e2 = tensor.empty() : tensor<5x10xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<5x10xf32>) outs(%e2 : tensor<5x10xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.tanh %in : f32
    linalg.yield %v : f32
  } -> tensor<5x10xf32>
  %e = tensor.empty() : tensor<5x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%t, %w : tensor<5x10xf32>, tensor<10x3xf32>) outs(%f : tensor<5x3xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x3xf32>
  return %r : tensor<5x3xf32>
}

// -----

// A window with the parts as channels reads the concat, which its parts are written into.
// CHECK-LABEL: func.func @window
// CHECK: [[A:%[0-9a-z]+]] = linalg.generic {{.*}} outs({{.*}} : tensor<9x4xi8>)
// CHECK: [[B:%[0-9a-z]+]] = linalg.generic {{.*}} outs({{.*}} : tensor<9x6xi8>)
// CHECK: [[J:%[0-9a-z]+]] = tensor.concat dim(1) [[A]], [[B]] : (tensor<9x4xi8>, tensor<9x6xi8>) -> tensor<9x10xi8>
// CHECK: linalg.generic {{.*}} ins([[J]], %k
func.func @window(%x: tensor<9x4xf32>, %y: tensor<9x6xf32>, %k: tensor<3xi8>) -> tensor<7x10xi8> {
  %e0 = tensor.empty() : tensor<9x4xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<9x4xf32>) outs(%e0 : tensor<9x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<9x4xf32>
  %e1 = tensor.empty() : tensor<9x6xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<9x6xf32>) outs(%e1 : tensor<9x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.sqrt %in : f32
    linalg.yield %v : f32
  } -> tensor<9x6xf32>
  %c = tensor.concat dim(1) %a, %b : (tensor<9x4xf32>, tensor<9x6xf32>) -> tensor<9x10xf32>
  %e2 = tensor.empty() : tensor<9x10xi8>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<9x10xf32>) outs(%e2 : tensor<9x10xi8>) {
  ^bb0(%in: f32, %out: i8):
    %v = arith.fptosi %in : f32 to i8
    linalg.yield %v : i8
  } -> tensor<9x10xi8>
  %least = arith.constant -128 : i8
  %e = tensor.empty() : tensor<7x10xi8>
  %f = linalg.fill ins(%least : i8) outs(%e : tensor<7x10xi8>) -> tensor<7x10xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i + k, j)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%t, %k : tensor<9x10xi8>, tensor<3xi8>) outs(%f : tensor<7x10xi8>) {
  ^bb0(%p: i8, %q: i8, %acc: i8):
    %m = arith.maxsi %acc, %p : i8
    linalg.yield %m : i8
  } -> tensor<7x10xi8>
  return %r : tensor<7x10xi8>
}

// -----

// A window that slides along the parts would meet both of them: the concat stays where it is.
// CHECK-LABEL: func.func @along
// CHECK: tensor.concat dim(0) {{.*}} -> tensor<9x5xf32>
// CHECK: arith.fptosi
// CHECK: return
func.func @along(%x: tensor<4x5xf32>, %y: tensor<5x5xf32>, %k: tensor<3xi8>) -> tensor<7x5xi8> {
  %e0 = tensor.empty() : tensor<4x5xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x5xf32>) outs(%e0 : tensor<4x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<4x5xf32>
  %e1 = tensor.empty() : tensor<5x5xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<5x5xf32>) outs(%e1 : tensor<5x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.sqrt %in : f32
    linalg.yield %v : f32
  } -> tensor<5x5xf32>
  %c = tensor.concat dim(0) %a, %b : (tensor<4x5xf32>, tensor<5x5xf32>) -> tensor<9x5xf32>
  %e2 = tensor.empty() : tensor<9x5xi8>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<9x5xf32>) outs(%e2 : tensor<9x5xi8>) {
  ^bb0(%in: f32, %out: i8):
    %v = arith.fptosi %in : f32 to i8
    linalg.yield %v : i8
  } -> tensor<9x5xi8>
  %least = arith.constant -128 : i8
  %e = tensor.empty() : tensor<7x5xi8>
  %f = linalg.fill ins(%least : i8) outs(%e : tensor<7x5xi8>) -> tensor<7x5xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i + k, j)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%t, %k : tensor<9x5xi8>, tensor<3xi8>) outs(%f : tensor<7x5xi8>) {
  ^bb0(%p: i8, %q: i8, %acc: i8):
    %m = arith.maxsi %acc, %p : i8
    linalg.yield %m : i8
  } -> tensor<7x5xi8>
  return %r : tensor<7x5xi8>
}
