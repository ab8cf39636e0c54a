// RUN: fuseline opt %s -p generalize-named-ops,refine-dims --split-input-file --verify-each | filecheck %s

// Operands tell the dimensions of both sides apart: both are walked in the sizes that fit both.
// CHECK-LABEL: func.func @both_sides
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4x3x2xf32>, tensor<3x2xf32>)
// CHECK-NOT: tensor.collapse_shape {{.*}} into tensor<24xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %c : tensor<4x3x2xf32>, tensor<2xf32>)
// CHECK: [[Y:%.*]] = tensor.collapse_shape {{.*}} : tensor<4x3x2xf32> into tensor<12x2xf32>
// CHECK-NEXT: return [[Y]]
func.func @both_sides(%x: tensor<4x6xf32>, %b: tensor<6xf32>, %c: tensor<2xf32>) -> tensor<12x2xf32> {
  %e0 = tensor.empty() : tensor<4x6xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %b : tensor<4x6xf32>, tensor<6xf32>) outs(%e0 : tensor<4x6xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %v = arith.addf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<4x6xf32>
  %flat = tensor.collapse_shape %a [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %seen = tensor.expand_shape %flat [[0, 1]] output_shape [12, 2] : tensor<24xf32> into tensor<12x2xf32>
  %e1 = tensor.empty() : tensor<12x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%seen, %c : tensor<12x2xf32>, tensor<2xf32>) outs(%e1 : tensor<12x2xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %v = arith.mulf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<12x2xf32>
  return %y : tensor<12x2xf32>
}

// -----

// Rows of 600 would be walked in rows of 2: 240,000 elements one by one cost more than the launch that is saved.
// CHECK-LABEL: func.func @short_rows
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<400x600xf32>)
func.func @short_rows(%x: tensor<400x600xf32>, %b: tensor<600xf32>, %c: tensor<2xf32>) -> tensor<120000x2xf32> {
  %e0 = tensor.empty() : tensor<400x600xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %b : tensor<400x600xf32>, tensor<600xf32>) outs(%e0 : tensor<400x600xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %v = arith.addf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<400x600xf32>
  %flat = tensor.collapse_shape %a [[0, 1]] : tensor<400x600xf32> into tensor<240000xf32>
  %seen = tensor.expand_shape %flat [[0, 1]] output_shape [120000, 2] : tensor<240000xf32> into tensor<120000x2xf32>
  %e1 = tensor.empty() : tensor<120000x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%seen, %c : tensor<120000x2xf32>, tensor<2xf32>) outs(%e1 : tensor<120000x2xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %v = arith.mulf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<120000x2xf32>
  return %y : tensor<120000x2xf32>
}
