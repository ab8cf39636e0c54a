// RUN: fuseline opt %s -p fold-constants,dead-code --split-input-file --print-locations | filecheck %s

// A transposed weight becomes a constant that carries both source nodes; chains fold in one pass.
// CHECK-LABEL: func.func @weights
// CHECK-NEXT: %[[W:.*]] = arith.constant dense_resource<constant_folded_1> : tensor<4xf32> loc(fused["transpose", "w"])
// CHECK-NEXT: func.return %[[W]]
// CHECK: constant_folded_1: "0x040000000000803f000040400000004000008040"
func.func @weights() -> tensor<4xf32> {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32> loc("w")
  %e = tensor.empty() : tensor<2x2xf32> loc("transpose")
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x2xf32> loc("transpose")
  %c = tensor.collapse_shape %t [[0, 1]] : tensor<2x2xf32> into tensor<4xf32> loc("transpose")
  return %c : tensor<4xf32>
}

// -----

// One value everywhere: a splat. Zeros of both signs are not one value.
// CHECK-LABEL: func.func @splats
// CHECK: arith.constant dense<2.500000e+00> : tensor<3xf32>
// CHECK: arith.constant dense_resource
func.func @splats() -> (tensor<3xf32>, tensor<2xf32>) {
  %a = arith.constant dense<[1.0, 2.0, 0.5]> : tensor<3xf32>
  %b = arith.constant dense<[1.5, 0.5, 2.0]> : tensor<3xf32>
  %e = tensor.empty() : tensor<3xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a, %b : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %v = arith.addf %x, %y : f32
    linalg.yield %v : f32
  } -> tensor<3xf32>
  %z = arith.constant dense<[0.0, -0.0]> : tensor<2xf32>
  %f = tensor.empty() : tensor<2xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%z : tensor<2xf32>) outs(%f : tensor<2xf32>) {
  ^bb0(%x: f32, %out: f32):
    %v = arith.negf %x : f32
    linalg.yield %v : f32
  } -> tensor<2xf32>
  return %s, %t : tensor<3xf32>, tensor<2xf32>
}

// -----

// A small tensor broadcast over a large one would blow up: it stays. So do fills, and what depends on an argument.
// CHECK-LABEL: func.func @budget
// CHECK: linalg.fill
// CHECK: linalg.generic
// CHECK: linalg.generic
func.func @budget(%x: tensor<2xf32>) -> (tensor<65536x2xf32>, tensor<4xf32>, tensor<2xf32>) {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %zero = arith.constant 0.0 : f32
  %g = tensor.empty() : tensor<4xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<4xf32>) -> tensor<4xf32>
  %e = tensor.empty() : tensor<65536x2xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<2xf32>) outs(%e : tensor<65536x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<65536x2xf32>
  %f = tensor.empty() : tensor<2xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a, %x : tensor<2xf32>, tensor<2xf32>) outs(%f : tensor<2xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %v = arith.addf %p, %q : f32
    linalg.yield %v : f32
  } -> tensor<2xf32>
  return %s, %h, %t : tensor<65536x2xf32>, tensor<4xf32>, tensor<2xf32>
}

// -----

// A reduction that starts from a fill, and a gather from a captured table; an index out of bounds is left for the run.
// CHECK-LABEL: func.func @computed
// CHECK: arith.constant dense_resource<constant_folded> : tensor<2xf32>
// CHECK: arith.constant dense_resource<constant_folded_1> : tensor<3xf32>
// CHECK: linalg.generic
func.func @computed() -> (tensor<2xf32>, tensor<3xf32>, tensor<3xf32>) {
  %a = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<2x2xf32>) outs(%f : tensor<2xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %v = arith.addf %in, %acc : f32
    linalg.yield %v : f32
  } -> tensor<2xf32>
  %table = arith.constant dense<[10.0, 20.0, 30.0, 40.0]> : tensor<4xf32>
  %ids = arith.constant dense<[3, 0, 1]> : tensor<3xi64>
  %bad = arith.constant dense<[3, 9, 1]> : tensor<3xi64>
  %g = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%ids : tensor<3xi64>) outs(%g : tensor<3xf32>) {
  ^bb0(%id: i64, %out: f32):
    %k = arith.index_cast %id : i64 to index
    %v = tensor.extract %table[%k] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%bad : tensor<3xi64>) outs(%g : tensor<3xf32>) {
  ^bb0(%id: i64, %out: f32):
    %k = arith.index_cast %id : i64 to index
    %v = tensor.extract %table[%k] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %s, %r, %t : tensor<2xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// A number from outside of the body is known as well; it takes no memory of its own.
// CHECK-LABEL: func.func @captured_number
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @captured_number() -> tensor<2xf32> {
  %two = arith.constant 2.0 : f32
  %a = arith.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%p: f32, %out: f32):
    %s = arith.mulf %p, %two : f32
    linalg.yield %s : f32
  } -> tensor<2xf32>
  return %r : tensor<2xf32>
}
