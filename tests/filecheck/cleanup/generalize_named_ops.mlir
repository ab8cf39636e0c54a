// RUN: fuseline opt %s -p generalize-named-ops --split-input-file --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p generalize-named-ops,generalize-named-ops --split-input-file --verify-each --print-locations | filecheck %s

// A contraction: maps, loops, body and provenance; the fill that it starts from stays.
// CHECK-LABEL: func.func @contraction
// CHECK: linalg.fill
// CHECK-NOT: linalg.matmul
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b :
// CHECK: arith.mulf {{.*}} loc("product")
// CHECK: arith.addf {{.*}} loc("product")
// CHECK: } -> tensor<2x4xf32> loc("product")
func.func @contraction(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  %r = linalg.matmul ins(%a, %b : tensor<2x3xf32>, tensor<3x4xf32>) outs(%f : tensor<2x4xf32>) -> tensor<2x4xf32> loc("product")
  return %r : tensor<2x4xf32>
}

// -----

// A transpose reads through the inverse permutation.
// CHECK-LABEL: func.func @transposed
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x
func.func @transposed(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %e = tensor.empty() : tensor<4x2x3xf32>
  %r = linalg.transpose ins(%x : tensor<2x3x4xf32>) outs(%e : tensor<4x2x3xf32>) permutation = [2, 0, 1]
  return %r : tensor<4x2x3xf32>
}

// -----

// A broadcast reads along the dimensions that are not added.
// CHECK-LABEL: func.func @broadcast
// CHECK-NOT: linalg.broadcast
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x
func.func @broadcast(%x: tensor<2x4xf32>) -> tensor<2x3x4xf32> {
  %e = tensor.empty() : tensor<2x3x4xf32>
  %r = linalg.broadcast ins(%x : tensor<2x4xf32>) outs(%e : tensor<2x3x4xf32>) dimensions = [1]
  return %r : tensor<2x3x4xf32>
}

// -----

// Ops with a body of their own keep it, with the locations that it has.
// CHECK-LABEL: func.func @bodies
// CHECK-NOT: linalg.map
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} ins(%x, %y
// CHECK: arith.subf {{.*}} loc("inner")
// CHECK: } -> tensor<2x3xf32> loc("outer")
// CHECK-NOT: linalg.reduce
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
// CHECK: arith.maximumf
func.func @bodies(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %s: tensor<2xf32>) -> tensor<2xf32> {
  %e = tensor.empty() : tensor<2x3xf32>
  %m = linalg.map ins(%x, %y : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) (%a: f32, %b: f32, %o: f32) {
    %d = arith.subf %a, %b : f32 loc("inner")
    linalg.yield %d : f32
  } loc("outer")
  %r = linalg.reduce ins(%m : tensor<2x3xf32>) outs(%s : tensor<2xf32>) dimensions = [1] (%in: f32, %acc: f32) {
    %d = arith.maximumf %in, %acc : f32
    linalg.yield %d : f32
  }
  return %r : tensor<2xf32>
}

// -----

// A pooling keeps its window operand.
// CHECK-LABEL: func.func @pooling
// CHECK-NOT: linalg.pooling
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w
// CHECK: arith.maximumf
func.func @pooling(%x: tensor<1x4x4x2xf32>, %s: tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32> {
  %w = tensor.empty() : tensor<2x2xf32>
  %r = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<1x4x4x2xf32>, tensor<2x2xf32>) outs(%s : tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  return %r : tensor<1x2x2x2xf32>
}

// -----

// Softmax along the first dimension: maximum, exponential of the difference, sum, quotient, all with its provenance.
// CHECK-LABEL: func.func @softmax
// CHECK-NOT: linalg.softmax
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]}
// CHECK: arith.maximumf
// CHECK: loc("soft")
// CHECK: math.exp
// CHECK: } -> {{.*}} loc("soft")
// CHECK: iterator_types = ["reduction", "parallel"]
// CHECK: arith.addf
// CHECK: } -> {{.*}} loc("soft")
// CHECK: arith.divf
// CHECK: } -> {{.*}} loc("soft")
func.func @softmax(%x: tensor<5x3xf32>) -> tensor<5x3xf32> {
  %e = tensor.empty() : tensor<5x3xf32>
  %r = linalg.softmax dimension(0) ins(%x : tensor<5x3xf32>) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32> loc("soft")
  return %r : tensor<5x3xf32>
}

// -----

// Pack and unpack: pad where the tiles ask for it, split, transpose; transpose, merge, and cut the pad off.
// CHECK-LABEL: func.func @packed
// CHECK-NOT: linalg.pack
// CHECK: tensor.pad %x low[0, 0] high[1, 0]
// CHECK: tensor.expand_shape {{.*}} into tensor<2x2x4xf32>
// CHECK: linalg.generic
// CHECK-NOT: linalg.unpack
// CHECK: linalg.generic
// CHECK: tensor.collapse_shape {{.*}} into tensor<4x4xf32>
// CHECK: tensor.extract_slice {{.*}} to tensor<3x4xf32>
func.func @packed(%x: tensor<3x4xf32>) -> (tensor<2x4x2xf32>, tensor<3x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x2xf32>
  %p = linalg.pack %x padding_value(%zero : f32) inner_dims_pos = [0] inner_tiles = [2] into %e : tensor<3x4xf32> -> tensor<2x4x2xf32>
  %o = tensor.empty() : tensor<3x4xf32>
  %u = linalg.unpack %p inner_dims_pos = [0] inner_tiles = [2] into %o : tensor<2x4x2xf32> -> tensor<3x4xf32>
  return %p, %u : tensor<2x4x2xf32>, tensor<3x4xf32>
}

// -----

// Tiles that divide the size need no pad and no slice. Named ops in a dispatch region are found, too; generics stay as they are.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: tensor.pad
// CHECK: tensor.expand_shape
// CHECK-NOT: tensor.extract_slice
// CHECK: flow.dispatch.region
// CHECK-NOT: linalg.elementwise
// CHECK: math.exp
// CHECK: note = "kept"
func.func @whole(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %e = tensor.empty() : tensor<2x4x2xf32>
  %p = linalg.pack %x inner_dims_pos = [0] inner_tiles = [2] into %e : tensor<4x4xf32> -> tensor<2x4x2xf32>
  %o = tensor.empty() : tensor<4x4xf32>
  %u = linalg.unpack %p inner_dims_pos = [0] inner_tiles = [2] into %o : tensor<2x4x2xf32> -> tensor<4x4xf32>
  %r = flow.dispatch.region -> (tensor<4x4xf32>) {
    %v = linalg.elementwise <exp> ins(%x : tensor<4x4xf32>) outs(%o : tensor<4x4xf32>) -> tensor<4x4xf32>
    flow.return %v : tensor<4x4xf32>
  }
  %g = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x4xf32>) outs(%o : tensor<4x4xf32>) attrs = {note = "kept"} {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x4xf32>
  return %u, %r, %g : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A transposed product reads its operand in the other order.
// CHECK-LABEL: func.func @transposed_product
// CHECK-NOT: linalg.matmul
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>]
func.func @transposed_product(%a: tensor<3x2xf32>, %b: tensor<3x4xf32>, %o: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %r = linalg.matmul_transpose_a ins(%a, %b : tensor<3x2xf32>, tensor<3x4xf32>) outs(%o : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// The number of a fill has the type of the elements: converted signed.
// CHECK-LABEL: func.func @fill_of_another_type
// CHECK: [[N:%.*]] = arith.sitofp %n : i8 to f32 loc("start")
// CHECK: linalg.fill ins([[N]] : f32) outs({{.*}}) -> tensor<4xf32> loc("start")
func.func @fill_of_another_type(%n: i8, %o: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.fill ins(%n : i8) outs(%o : tensor<4xf32>) -> tensor<4xf32> loc("start")
  return %r : tensor<4xf32>
}
