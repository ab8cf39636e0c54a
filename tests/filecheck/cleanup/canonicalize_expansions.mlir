// RUN: fuseline opt %s -p canonicalize --split-input-file | filecheck %s

// Ops that xDSL and targets do not know are said with others; util.func reads as func.func.
// CHECK-LABEL: func.func @classes
// CHECK-NOT: math.is
// CHECK: arith.cmpf uno, %{{.*}}, %{{.*}}
// CHECK: arith.cmpf oeq
// CHECK: arith.cmpf olt
// CHECK-NOT: math.is
util.func @classes(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xi1>, tensor<8xi1>, tensor<8xi1>) {
  %e = tensor.empty() : tensor<8xi1>
  %r:3 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%e, %e, %e : tensor<8xi1>, tensor<8xi1>, tensor<8xi1>) {
  ^bb0(%a: f32, %b: f32, %o: i1, %p: i1, %q: i1):
    %zero = arith.constant 0.0 : f32
    %less = arith.cmpf olt, %b, %zero : f32
    %s = arith.select %less, %zero, %b : f32
    %d = arith.divf %a, %s : f32
    %nan = math.isnan %d : f32
    %inf = math.isinf %d : f32
    %fin = math.isfinite %d : f32
    linalg.yield %nan, %inf, %fin : i1, i1, i1
  } -> (tensor<8xi1>, tensor<8xi1>, tensor<8xi1>)
  util.return %r#0, %r#1, %r#2 : tensor<8xi1>, tensor<8xi1>, tensor<8xi1>
}

// -----

// CHECK-LABEL: func.func @clamp
// CHECK-NEXT: %[[A:.*]] = arith.maximumf %x, %low
// CHECK-NEXT: %[[B:.*]] = arith.minimumf %[[A]], %high
// CHECK-NEXT: func.return %[[B]]
func.func @clamp(%x: f32, %low: f32, %high: f32) -> f32 {
  %r = math.clampf %x to [%low, %high] : f32
  return %r : f32
}

// -----

// CHECK-LABEL: func.func @casts
// CHECK-NEXT: %[[W:.*]] = arith.extui %x : i8 to i64
// CHECK-NEXT: arith.index_cast %[[W]] : i64 to index
// CHECK-NEXT: arith.index_cast %i : index to i32
// CHECK-NEXT: arith.remf %f, %f
func.func @casts(%x: i8, %i: index, %f: f32) -> (index, i32, f32) {
  %a = arith.index_castui %x : i8 to index
  %b = arith.index_castui %i : index to i32
  %c = arith.remf %f, %f : f32
  return %a, %b, %c : index, i32, f32
}
