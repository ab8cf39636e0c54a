// RUN: fuseline opt %s -p widen-below-reshapes --split-input-file --verify-each | filecheck %s

// A chain of reshapes moves above the widening as one; the other reader widens the argument as it is.
// CHECK-LABEL: func.func @chain
// CHECK: [[FLAT:%.*]] = tensor.collapse_shape %x {{.*}} into tensor<12x5xf16>
// CHECK: [[SEEN:%.*]] = tensor.expand_shape [[FLAT]] {{.*}} into tensor<2x6x5xf16>
// CHECK: [[WIDE:%.*]] = linalg.generic {{.*}} ins([[SEEN]] : tensor<2x6x5xf16>) outs(%{{.*}} : tensor<2x6x5xf32>)
// CHECK: arith.extf
// CHECK: return [[WIDE]], %{{.*}} : tensor<2x6x5xf32>, tensor<3x4x5xf32>
func.func @chain(%x: tensor<3x4x5xf16>) -> (tensor<2x6x5xf32>, tensor<3x4x5xf32>) {
  %e = tensor.empty() : tensor<3x4x5xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<3x4x5xf16>) outs(%e : tensor<3x4x5xf32>) {
  ^bb0(%in: f16, %out: f32):
    %v = arith.extf %in : f16 to f32
    linalg.yield %v : f32
  } -> tensor<3x4x5xf32>
  %flat = tensor.collapse_shape %w [[0, 1], [2]] : tensor<3x4x5xf32> into tensor<12x5xf32>
  %seen = tensor.expand_shape %flat [[0, 1], [2]] output_shape [2, 6, 5] : tensor<12x5xf32> into tensor<2x6x5xf32>
  return %seen, %w : tensor<2x6x5xf32>, tensor<3x4x5xf32>
}

// -----

// Of sizes that only the run knows as well.
// CHECK-LABEL: func.func @symbolic
// CHECK: [[FLAT:%.*]] = tensor.collapse_shape %x {{.*}} into tensor<?xbf16>
// CHECK: linalg.generic {{.*}} ins([[FLAT]] : tensor<?xbf16>) outs(%{{.*}} : tensor<?xf32>)
// CHECK-NOT: tensor.collapse_shape
// CHECK: return
func.func @symbolic(%x: tensor<?x4xbf16>) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x4xbf16>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x4xbf16>) outs(%e : tensor<?x4xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %v = arith.extf %in : bf16 to f32
    linalg.yield %v : f32
  } -> tensor<?x4xf32>
  %flat = tensor.collapse_shape %w [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  return %flat : tensor<?xf32>
}

// -----

// What computes more than a wider type stays where it is, and so does what turns its argument, and what is no argument.
// CHECK-LABEL: func.func @stays
// CHECK-COUNT-3: tensor.collapse_shape %{{.*}} : tensor<4x3xf32> into tensor<12xf32>
// CHECK: return
func.func @stays(%x: tensor<4x3xf16>, %y: tensor<3x4xf16>) -> (tensor<12xf32>, tensor<12xf32>, tensor<12xf32>) {
  %e = tensor.empty() : tensor<4x3xf32>
  %h = tensor.empty() : tensor<4x3xf16>
  %more = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xf16>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%in: f16, %out: f32):
    %v = arith.extf %in : f16 to f32
    %w = arith.addf %v, %v : f32
    linalg.yield %w : f32
  } -> tensor<4x3xf32>
  %turned = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<3x4xf16>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%in: f16, %out: f32):
    %v = arith.extf %in : f16 to f32
    linalg.yield %v : f32
  } -> tensor<4x3xf32>
  %made = linalg.elementwise <abs> ins(%x : tensor<4x3xf16>) outs(%h : tensor<4x3xf16>) -> tensor<4x3xf16>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%made : tensor<4x3xf16>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%in: f16, %out: f32):
    %v = arith.extf %in : f16 to f32
    linalg.yield %v : f32
  } -> tensor<4x3xf32>
  %a = tensor.collapse_shape %more [[0, 1]] : tensor<4x3xf32> into tensor<12xf32>
  %b = tensor.collapse_shape %turned [[0, 1]] : tensor<4x3xf32> into tensor<12xf32>
  %c = tensor.collapse_shape %wide [[0, 1]] : tensor<4x3xf32> into tensor<12xf32>
  return %a, %b, %c : tensor<12xf32>, tensor<12xf32>, tensor<12xf32>
}
