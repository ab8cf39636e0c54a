// RUN: fuseline opt %s -p compute-before-repeats --split-input-file --verify-each | filecheck %s

// Behind a broadcast and a reshape: the root of 4 numbers, not of 24.
// CHECK-LABEL: func.func @broadcast
// CHECK: math.exp
// CHECK: [[S:%.*]] = linalg.generic {{.*}} ins([[A:%.*]] : tensor<4xf32>) outs({{.*}} : tensor<4xi8>)
// CHECK: arith.fptosi
// CHECK: [[R:%.*]] = linalg.generic {{.*}} ins([[S]] : tensor<4xi8>) outs({{.*}} : tensor<2x3x4xi8>)
// CHECK: [[C:%.*]] = tensor.collapse_shape [[R]] {{.*}} : tensor<2x3x4xi8> into tensor<6x4xi8>
// CHECK-NEXT: return [[C]]
func.func @broadcast(%x: tensor<4xf32>) -> tensor<6x4xi8> {
  %e = tensor.empty() : tensor<4xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %e1 = tensor.empty() : tensor<2x3x4xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a : tensor<4xf32>) outs(%e1 : tensor<2x3x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x3x4xf32>
  %c = tensor.collapse_shape %b [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
  %e2 = tensor.empty() : tensor<6x4xi8>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<6x4xf32>) outs(%e2 : tensor<6x4xi8>) {
  ^bb0(%in: f32, %out: i8):
    %v = arith.fptosi %in : f32 to i8
    linalg.yield %v : i8
  } -> tensor<6x4xi8>
  return %y : tensor<6x4xi8>
}

// -----

// A gather with more places than there are elements; the index keeps its type.
// CHECK-LABEL: func.func @gather
// CHECK: [[N:%.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<5xf64>)
// CHECK: arith.extf
// CHECK: [[G:%.*]] = linalg.generic {{.*}} ins(%i : tensor<9xindex>) outs({{.*}} : tensor<9xf64>)
// CHECK: tensor.extract [[N]][{{.*}}] : tensor<5xf64>
// CHECK: return [[G]]
func.func @gather(%x: tensor<5xf32>, %i: tensor<9xindex>) -> tensor<9xf64> {
  %e = tensor.empty() : tensor<5xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<5xf32>) outs(%e : tensor<5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<5xf32>
  %e1 = tensor.empty() : tensor<9xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : tensor<9xindex>) outs(%e1 : tensor<9xf32>) {
  ^bb0(%at: index, %out: f32):
    %v = tensor.extract %a[%at] : tensor<5xf32>
    linalg.yield %v : f32
  } -> tensor<9xf32>
  %e2 = tensor.empty() : tensor<9xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%g : tensor<9xf32>) outs(%e2 : tensor<9xf64>) {
  ^bb0(%in: f32, %out: f64):
    %v = arith.extf %in : f32 to f64
    linalg.yield %v : f64
  } -> tensor<9xf64>
  return %y : tensor<9xf64>
}

// -----

// What stays: a gather with fewer places, one that something else reads, one of an argument, a transpose.
// CHECK-LABEL: func.func @kept
// CHECK: tensor.extract {{.*}} : tensor<5xf32>
// CHECK: ins({{.*}} : tensor<3xf32>) outs({{.*}} : tensor<3xf64>)
func.func @kept(%x: tensor<5xf32>, %i: tensor<3xindex>) -> tensor<3xf64> {
  %e = tensor.empty() : tensor<5xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<5xf32>) outs(%e : tensor<5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<5xf32>
  %e1 = tensor.empty() : tensor<3xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : tensor<3xindex>) outs(%e1 : tensor<3xf32>) {
  ^bb0(%at: index, %out: f32):
    %v = tensor.extract %a[%at] : tensor<5xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  %e2 = tensor.empty() : tensor<3xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%g : tensor<3xf32>) outs(%e2 : tensor<3xf64>) {
  ^bb0(%in: f32, %out: f64):
    %v = arith.extf %in : f32 to f64
    linalg.yield %v : f64
  } -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// CHECK-LABEL: func.func @read_again
// CHECK: math.exp
// CHECK: ins({{.*}} : tensor<2x4xf32>) outs({{.*}} : tensor<2x4xf64>)
// CHECK: return
func.func @read_again(%x: tensor<4xf32>) -> (tensor<2x4xf64>, tensor<2x4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %e1 = tensor.empty() : tensor<2x4xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4xf32>) outs(%e1 : tensor<2x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x4xf32>
  %e2 = tensor.empty() : tensor<2x4xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<2x4xf32>) outs(%e2 : tensor<2x4xf64>) {
  ^bb0(%in: f32, %out: f64):
    %v = arith.extf %in : f32 to f64
    linalg.yield %v : f64
  } -> tensor<2x4xf64>
  return %y, %b : tensor<2x4xf64>, tensor<2x4xf32>
}

// CHECK-LABEL: func.func @argument
// CHECK: ins({{.*}} : tensor<2x4xf32>) outs({{.*}} : tensor<2x4xf64>)
// CHECK: return
func.func @argument(%x: tensor<4xf32>) -> tensor<2x4xf64> {
  %e1 = tensor.empty() : tensor<2x4xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4xf32>) outs(%e1 : tensor<2x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x4xf32>
  %e2 = tensor.empty() : tensor<2x4xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<2x4xf32>) outs(%e2 : tensor<2x4xf64>) {
  ^bb0(%in: f32, %out: f64):
    %v = arith.extf %in : f32 to f64
    linalg.yield %v : f64
  } -> tensor<2x4xf64>
  return %y : tensor<2x4xf64>
}
