// RUN: fuseline opt %s -p compute-halves-in-f32,canonicalize --split-input-file --verify-each | filecheck %s
// NO-RUN: what no longer rounds gives other values; tests/unit/passes/cleanup compares them with exact ones.

// What is computed is f32; arguments and results stay what they are, a weight is stored as it was.
// CHECK-LABEL: func.func @arithmetic(%x: tensor<8xf16>) -> tensor<8xf16>
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.constant dense<{{.*}}> : tensor<8xf32>
// CHECK: arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK: arith.constant 2.500000e-01 : f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: func.return %{{.*}} : tensor<8xf16>
func.func @arithmetic(%x: tensor<8xf16>) -> tensor<8xf16> {
  %w = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf16>
  %e = tensor.empty() : tensor<8xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x, %w : tensor<8xf16>, tensor<8xf16>) outs(%e : tensor<8xf16>) {
  ^bb0(%a: f16, %b: f16, %out: f16):
    %p = arith.mulf %a, %b : f16
    %c = arith.constant 0.25 : f16
    %s = arith.addf %p, %c : f16
    linalg.yield %s : f16
  } -> tensor<8xf16>
  return %r : tensor<8xf16>
}

// -----

// A narrowing that is only storage goes, one that the program asks for rounds; so does an integer that becomes a half.
// CHECK-LABEL: func.func @conversions
// CHECK-NOT: fuseline.storage
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK-NEXT: arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.sitofp %{{.*}} : i32 to bf16
// CHECK-NEXT: arith.extf %{{.*}} : bf16 to f32
// CHECK-NOT: bf16
func.func @conversions(%x: tensor<8xf32>, %i: tensor<8xi32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xbf16>
  %stored = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xbf16>) {
  ^bb0(%a: f32, %out: bf16):
    %s = math.exp %a : f32
    %t = arith.truncf %s {fuseline.storage} : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<8xbf16>
  %f = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%stored, %x, %i : tensor<8xbf16>, tensor<8xf32>, tensor<8xi32>) outs(%f : tensor<8xf32>) {
  ^bb0(%a: bf16, %b: f32, %n: i32, %out: f32):
    %t = arith.truncf %b : f32 to bf16
    %c = arith.sitofp %n : i32 to bf16
    %s = arith.addf %a, %t : bf16
    %u = arith.addf %s, %c : bf16
    %v = arith.extf %u : bf16 to f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// Rows are gathered from the table as it is stored, and widened then. The bits of a half are those of a half.
// CHECK-LABEL: func.func @gather
// CHECK-NOT: tensor<16x4xf32>
// CHECK: tensor.extract %table
// CHECK-NEXT: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK-NEXT: arith.bitcast %{{.*}} : f16 to i16
func.func @gather(%table: tensor<16x4xf16>, %n: tensor<8xindex>) -> (tensor<8xf32>, tensor<8xi16>) {
  %e = tensor.empty() : tensor<8xf16>
  %c1 = arith.constant 1 : index
  %g = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%n : tensor<8xindex>) outs(%e : tensor<8xf16>) {
  ^bb0(%a: index, %out: f16):
    %v = tensor.extract %table[%a, %c1] : tensor<16x4xf16>
    %s = arith.addf %v, %v : f16
    linalg.yield %s : f16
  } -> tensor<8xf16>
  %f = tensor.empty() : tensor<8xf32>
  %b = tensor.empty() : tensor<8xi16>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%g : tensor<8xf16>) outs(%f, %b : tensor<8xf32>, tensor<8xi16>) {
  ^bb0(%a: f16, %out: f32, %bits: i16):
    %v = arith.extf %a : f16 to f32
    %w = arith.bitcast %a : f16 to i16
    linalg.yield %v, %w : f32, i16
  } -> (tensor<8xf32>, tensor<8xi16>)
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xi16>
}

// -----

// A narrowing for a result stays as it is, wherever it is asked for; nothing is widened that is only handed on.
// CHECK-LABEL: func.func @border
// CHECK-NOT: arith.extf
// CHECK: func.return %y, %{{.*}} : tensor<4xf16>, tensor<4xf16>
func.func @border(%x: tensor<4xf32>, %y: tensor<4xf16>) -> (tensor<4xf16>, tensor<4xf16>) {
  %e = tensor.empty() : tensor<4xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf16>) {
  ^bb0(%a: f32, %out: f16):
    %t = arith.truncf %a {fuseline.storage} : f32 to f16
    linalg.yield %t : f16
  } -> tensor<4xf16>
  return %y, %r : tensor<4xf16>, tensor<4xf16>
}

// -----

// One init of what narrows for a result and of what computes: each has one of its own type.
// CHECK-LABEL: func.func @shared_init
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK-NEXT: linalg.yield
// CHECK-NEXT: } -> tensor<4xf16>
// CHECK: arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: linalg.yield
// CHECK-NEXT: } -> tensor<4xf32>
func.func @shared_init(%x: tensor<4xf32>, %y: tensor<4xf16>) -> (tensor<4xf16>, tensor<4xf16>) {
  %e = tensor.empty() : tensor<4xf16>
  %n = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf16>) {
  ^bb0(%a: f32, %out: f16):
    %h = arith.truncf %a : f32 to f16
    linalg.yield %h : f16
  } -> tensor<4xf16>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%y : tensor<4xf16>) outs(%e : tensor<4xf16>) {
  ^bb0(%a: f16, %out: f16):
    %d = arith.addf %a, %a : f16
    linalg.yield %d : f16
  } -> tensor<4xf16>
  return %n, %s : tensor<4xf16>, tensor<4xf16>
}
