// RUN: fuseline opt %s -p "bubble-expand-shapes" --split-input-file --verify-each | filecheck %s

// A channel shuffle of two branches: each branch is every other channel.
// CHECK-LABEL: func.func @shuffle
// CHECK-NOT: linalg.transpose
// CHECK: %[[A:.*]] = tensor.expand_shape %x {{.*}} into tensor<?x6x1xf32>
// CHECK: %[[B:.*]] = tensor.expand_shape %b {{.*}} into tensor<?x6x1xf32>
// CHECK: tensor.concat dim(2) %[[A]], %[[B]] : (tensor<?x6x1xf32>, tensor<?x6x1xf32>) -> tensor<?x6x2xf32>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @shuffle(%x: tensor<?x6xf32>) -> tensor<?x12xf32> {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x6xf32>
  %o = tensor.empty(%n) : tensor<?x6xf32>
  %b = linalg.elementwise <exp> ins(%x : tensor<?x6xf32>) outs(%o : tensor<?x6xf32>) -> tensor<?x6xf32>
  %c = tensor.concat dim(1) %x, %b : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x12xf32>
  %e = tensor.expand_shape %c [[0], [1, 2]] output_shape [%n, 2, 6] : tensor<?x12xf32> into tensor<?x2x6xf32>
  %i = tensor.empty(%n) : tensor<?x6x2xf32>
  %t = linalg.transpose ins(%e : tensor<?x2x6xf32>) outs(%i : tensor<?x6x2xf32>) permutation = [0, 2, 1]
  %r = tensor.collapse_shape %t [[0], [1, 2]] : tensor<?x6x2xf32> into tensor<?x12xf32>
  return %r : tensor<?x12xf32>
}

// -----

// Three parts, of two dimensions each, the parts moved to the front and to the middle: two readers, two concats.
// CHECK-LABEL: func.func @two_orders
// CHECK-NOT: linalg.transpose
// CHECK-DAG: tensor.concat dim(0) {{.*}} -> tensor<3x5x2x4xf32>
// CHECK-DAG: tensor.concat dim(2) {{.*}} -> tensor<5x2x3x4xf32>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @two_orders(%x: tensor<5x8xf32>, %y: tensor<5x8xf32>, %z: tensor<5x8xf32>) -> (tensor<3x5x2x4xf32>, tensor<5x2x3x4xf32>) {
  %c = tensor.concat dim(1) %x, %y, %z : (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x24xf32>
  %e = tensor.expand_shape %c [[0], [1, 2, 3]] output_shape [5, 3, 2, 4] : tensor<5x24xf32> into tensor<5x3x2x4xf32>
  %i = tensor.empty() : tensor<3x5x2x4xf32>
  %t = linalg.transpose ins(%e : tensor<5x3x2x4xf32>) outs(%i : tensor<3x5x2x4xf32>) permutation = [1, 0, 2, 3]
  %j = tensor.empty() : tensor<5x2x3x4xf32>
  %u = linalg.transpose ins(%e : tensor<5x3x2x4xf32>) outs(%j : tensor<5x2x3x4xf32>) permutation = [0, 2, 1, 3]
  return %t, %u : tensor<3x5x2x4xf32>, tensor<5x2x3x4xf32>
}

// -----

// The transpose stays: it turns the parts themselves; the split cuts parts in two; the parts differ in size.
// CHECK-LABEL: func.func @stays
// CHECK-COUNT-3: linalg.transpose
// CHECK: return
func.func @stays(%x: tensor<5x6xf32>, %y: tensor<5x6xf32>, %z: tensor<5x2xf32>, %w: tensor<5x10xf32>) -> (tensor<6x5x2xf32>, tensor<5x3x4xf32>, tensor<5x6x2xf32>) {
  %c = tensor.concat dim(1) %x, %y : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x12xf32>
  %e = tensor.expand_shape %c [[0], [1, 2]] output_shape [5, 2, 6] : tensor<5x12xf32> into tensor<5x2x6xf32>
  %i = tensor.empty() : tensor<6x5x2xf32>
  %a = linalg.transpose ins(%e : tensor<5x2x6xf32>) outs(%i : tensor<6x5x2xf32>) permutation = [2, 0, 1]
  %f = tensor.expand_shape %c [[0], [1, 2]] output_shape [5, 4, 3] : tensor<5x12xf32> into tensor<5x4x3xf32>
  %j = tensor.empty() : tensor<5x3x4xf32>
  %b = linalg.transpose ins(%f : tensor<5x4x3xf32>) outs(%j : tensor<5x3x4xf32>) permutation = [0, 2, 1]
  %d = tensor.concat dim(1) %z, %w : (tensor<5x2xf32>, tensor<5x10xf32>) -> tensor<5x12xf32>
  %g = tensor.expand_shape %d [[0], [1, 2]] output_shape [5, 2, 6] : tensor<5x12xf32> into tensor<5x2x6xf32>
  %k = tensor.empty() : tensor<5x6x2xf32>
  %h = linalg.transpose ins(%g : tensor<5x2x6xf32>) outs(%k : tensor<5x6x2xf32>) permutation = [0, 2, 1]
  return %a, %b, %h : tensor<6x5x2xf32>, tensor<5x3x4xf32>, tensor<5x6x2xf32>
}

// -----

// What reads the shuffle multiplies it by constants, which can be put in its order: the transpose stays, to land there. Not so beside another reader.
// CHECK-LABEL: func.func @into_weights
// CHECK: linalg.transpose
// CHECK: return
// CHECK-LABEL: func.func @and_something_else
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @into_weights(%x: tensor<5x2xf32>, %y: tensor<5x2xf32>) -> tensor<5x3xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [1.0, 3.0, 5.0]]> : tensor<4x3xf32>
  %c = tensor.concat dim(1) %x, %y : (tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<5x4xf32>
  %e = tensor.expand_shape %c [[0], [1, 2]] output_shape [5, 2, 2] : tensor<5x4xf32> into tensor<5x2x2xf32>
  %i = tensor.empty() : tensor<5x2x2xf32>
  %t = linalg.transpose ins(%e : tensor<5x2x2xf32>) outs(%i : tensor<5x2x2xf32>) permutation = [0, 2, 1]
  %r = tensor.collapse_shape %t [[0], [1, 2]] : tensor<5x2x2xf32> into tensor<5x4xf32>
  %o = tensor.empty() : tensor<5x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<5x3xf32>) -> tensor<5x3xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%r, %w : tensor<5x4xf32>, tensor<4x3xf32>) outs(%f : tensor<5x3xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x3xf32>
  return %p : tensor<5x3xf32>
}
func.func @and_something_else(%x: tensor<5x2xf32>, %y: tensor<5x2xf32>) -> (tensor<5x3xf32>, tensor<5x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [1.0, 3.0, 5.0]]> : tensor<4x3xf32>
  %c = tensor.concat dim(1) %x, %y : (tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<5x4xf32>
  %e = tensor.expand_shape %c [[0], [1, 2]] output_shape [5, 2, 2] : tensor<5x4xf32> into tensor<5x2x2xf32>
  %i = tensor.empty() : tensor<5x2x2xf32>
  %t = linalg.transpose ins(%e : tensor<5x2x2xf32>) outs(%i : tensor<5x2x2xf32>) permutation = [0, 2, 1]
  %r = tensor.collapse_shape %t [[0], [1, 2]] : tensor<5x2x2xf32> into tensor<5x4xf32>
  %o = tensor.empty() : tensor<5x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<5x3xf32>) -> tensor<5x3xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%r, %w : tensor<5x4xf32>, tensor<4x3xf32>) outs(%f : tensor<5x3xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x3xf32>
  return %p, %r : tensor<5x3xf32>, tensor<5x4xf32>
}

// -----

// What is computed of the concat, point by point, is computed of each part.
// CHECK-LABEL: func.func @rounded_on_the_way
// CHECK-NOT: linalg.transpose
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%x : tensor<5x6xf32>) outs({{.*}} : tensor<5x6xi8>)
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%y : tensor<5x6xf32>) outs({{.*}} : tensor<5x6xi8>)
// CHECK: %[[C:.*]] = tensor.expand_shape %[[A]] {{.*}} into tensor<5x6x1xi8>
// CHECK: %[[D:.*]] = tensor.expand_shape %[[B]] {{.*}} into tensor<5x6x1xi8>
// CHECK: tensor.concat dim(2) %[[C]], %[[D]] : (tensor<5x6x1xi8>, tensor<5x6x1xi8>) -> tensor<5x6x2xi8>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @rounded_on_the_way(%x: tensor<5x6xf32>, %y: tensor<5x6xf32>) -> tensor<5x6x2xi8> {
  %c = tensor.concat dim(1) %x, %y : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x12xf32>
  %o = tensor.empty() : tensor<5x12xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<5x12xf32>) outs(%o : tensor<5x12xi8>) {
  ^bb0(%in: f32, %out: i8):
    %v = arith.fptosi %in : f32 to i8
    linalg.yield %v : i8
  } -> tensor<5x12xi8>
  %e = tensor.expand_shape %q [[0], [1, 2]] output_shape [5, 2, 6] : tensor<5x12xi8> into tensor<5x2x6xi8>
  %i = tensor.empty() : tensor<5x6x2xi8>
  %t = linalg.transpose ins(%e : tensor<5x2x6xi8>) outs(%i : tensor<5x6x2xi8>) permutation = [0, 2, 1]
  return %t : tensor<5x6x2xi8>
}

// -----

// Not where something else reads the concat as it is: it would be made twice.
// CHECK-LABEL: func.func @read_as_it_is
// CHECK: linalg.transpose
// CHECK: return
func.func @read_as_it_is(%x: tensor<5x6xf32>, %y: tensor<5x6xf32>) -> (tensor<5x6x2xf32>, tensor<5x12xf32>) {
  %c = tensor.concat dim(1) %x, %y : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x12xf32>
  %o = tensor.empty() : tensor<5x12xf32>
  %q = linalg.elementwise <exp> ins(%c : tensor<5x12xf32>) outs(%o : tensor<5x12xf32>) -> tensor<5x12xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<5x12xf32>) outs(%o : tensor<5x12xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.negf %in : f32
    linalg.yield %v : f32
  } -> tensor<5x12xf32>
  %e = tensor.expand_shape %g [[0], [1, 2]] output_shape [5, 2, 6] : tensor<5x12xf32> into tensor<5x2x6xf32>
  %i = tensor.empty() : tensor<5x6x2xf32>
  %t = linalg.transpose ins(%e : tensor<5x2x6xf32>) outs(%i : tensor<5x6x2xf32>) permutation = [0, 2, 1]
  return %t, %q : tensor<5x6x2xf32>, tensor<5x12xf32>
}
