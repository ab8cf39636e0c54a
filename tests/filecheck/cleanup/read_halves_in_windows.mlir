// RUN: fuseline opt %s -p read-halves-in-windows --split-input-file | filecheck %s

// The border is of what is stored, and the body widens what it loads.

// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = tensor.pad %{{.*}} low[1, 0] high[1, 0]
// CHECK: tensor<8x16xf16> to tensor<10x16xf16>
// CHECK: ins(%[[P]], %{{.*}} : tensor<10x16xf16>, tensor<3x16xf32>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f16,
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[A]] : f16 to f32
// CHECK-NEXT: arith.mulf %[[W]]
func.func @main(%x: tensor<8x16xf16>, %f: tensor<3x16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x16xf16>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f16, %o: f32):
    %w = arith.extf %a : f16 to f32
    linalg.yield %w : f32
  } -> tensor<8x16xf32>
  %p = tensor.pad %wide low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<8x16xf32> to tensor<10x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, c, k) -> (i + k, c)>, affine_map<(i, c, k) -> (k, c)>,
      affine_map<(i, c, k) -> (i, c)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %f : tensor<10x16xf32>, tensor<3x16xf32>) outs(%init : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

// A border of a number that is no half, and an image that is computed, are read widened.

// CHECK-LABEL: func.func @main
// CHECK: : tensor<8x16xf32> to tensor<10x16xf32>
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<10x16xf32>, tensor<3x16xf32>)
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<8x16xf32>, tensor<1x16xf32>)
func.func @main(%x: tensor<8x16xf16>, %f: tensor<3x16xf32>, %g: tensor<1x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %third = arith.constant 0.333333343 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x16xf16>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f16, %o: f32):
    %w = arith.extf %a : f16 to f32
    linalg.yield %w : f32
  } -> tensor<8x16xf32>
  %p = tensor.pad %wide low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %third : f32
  } : tensor<8x16xf32> to tensor<10x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, c, k) -> (i + k, c)>, affine_map<(i, c, k) -> (k, c)>,
      affine_map<(i, c, k) -> (i, c)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %f : tensor<10x16xf32>, tensor<3x16xf32>) outs(%init : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x16xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x16xf16>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f16, %o: f32):
    %w = arith.extf %a : f16 to f32
    %n = arith.negf %w : f32
    linalg.yield %n : f32
  } -> tensor<8x16xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, c, k) -> (i + k, c)>, affine_map<(i, c, k) -> (k, c)>,
      affine_map<(i, c, k) -> (i, c)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%t, %g : tensor<8x16xf32>, tensor<1x16xf32>) outs(%init : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x16xf32>
  return %y, %z : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// So is a window whose body does more than to multiply and add.

// CHECK-LABEL: func.func @main
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<8x16xf32>, tensor<3x16xf32>)
func.func @main(%x: tensor<8x16xbf16>, %f: tensor<3x16xf32>) -> tensor<6x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %r = tensor.empty() : tensor<6x16xf32>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x16xbf16>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %w = arith.extf %a : bf16 to f32
    linalg.yield %w : f32
  } -> tensor<8x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<6x16xf32>) -> tensor<6x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, c, k) -> (i + k, c)>, affine_map<(i, c, k) -> (k, c)>,
      affine_map<(i, c, k) -> (i, c)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%wide, %f : tensor<8x16xf32>, tensor<3x16xf32>) outs(%init : tensor<6x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = math.tanh %a : f32
    %m = arith.mulf %n, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<6x16xf32>
  return %y : tensor<6x16xf32>
}

// -----

// A gather that widens what it picks of an argument (a border) picks it as it is stored; one that others read stays.

// CHECK-LABEL: func.func @main
// CHECK: %[[G:.*]] = linalg.generic
// CHECK: tensor.extract {{.*}} : tensor<8x16xf16>
// CHECK-NEXT: linalg.yield {{.*}} : f16
// CHECK-NEXT: -> tensor<10x16xf16>
// CHECK-NOT: tensor<10x16xf32>
// CHECK: ins(%[[G]], %{{.*}} : tensor<10x16xf16>, tensor<3x16xf32>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f16,
// CHECK-NEXT: arith.extf %[[A]] : f16 to f32
// CHECK-LABEL: func.func @shared
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<10x16xf32>, tensor<3x16xf32>)
func.func @main(%x: tensor<8x16xf16>, %f: tensor<3x16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<10x16xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%o : tensor<10x16xf32>) {
  ^bb0(%unused: f32):
    %last = arith.constant 7 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.minsi %i, %last : index
    %e = tensor.extract %x[%k, %j] : tensor<8x16xf16>
    %w = arith.extf %e : f16 to f32
    linalg.yield %w : f32
  } -> tensor<10x16xf32>
  %s = tensor.empty() : tensor<8x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%s : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, c, k) -> (i + k, c)>, affine_map<(i, c, k) -> (k, c)>,
      affine_map<(i, c, k) -> (i, c)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %f : tensor<10x16xf32>, tensor<3x16xf32>) outs(%init : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %q: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %q, %m : f32
    linalg.yield %r : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
func.func @shared(%x: tensor<8x16xf16>, %f: tensor<3x16xf32>) -> (tensor<8x16xf32>, tensor<10x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<10x16xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%o : tensor<10x16xf32>) {
  ^bb0(%unused: f32):
    %last = arith.constant 7 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.minsi %i, %last : index
    %e = tensor.extract %x[%k, %j] : tensor<8x16xf16>
    %w = arith.extf %e : f16 to f32
    linalg.yield %w : f32
  } -> tensor<10x16xf32>
  %s = tensor.empty() : tensor<8x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%s : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, c, k) -> (i + k, c)>, affine_map<(i, c, k) -> (k, c)>,
      affine_map<(i, c, k) -> (i, c)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %f : tensor<10x16xf32>, tensor<3x16xf32>) outs(%init : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %q: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %q, %m : f32
    linalg.yield %r : f32
  } -> tensor<8x16xf32>
  return %y, %p : tensor<8x16xf32>, tensor<10x16xf32>
}
