// RUN: fuseline opt %s -p canonicalize --split-input-file --verify-each | filecheck %s

// An identity copy goes, and the size of its result is the size of its source.
// CHECK-LABEL: func.func @copy
// CHECK-NEXT: func.return %x
func.func @copy(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (b, a)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// A transpose stays.
// CHECK-LABEL: func.func @transpose
// CHECK: linalg.generic
func.func @transpose(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// -----

// A copy that broadcasts a row stays.
// CHECK-LABEL: func.func @broadcast
// CHECK: linalg.generic
func.func @broadcast(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// A splat constant and a fill of one become scalars; inputs read twice are read once; the unused one goes, and the dead op with it.
// CHECK-LABEL: func.func @operands
// CHECK: %[[S3:.*]] = arith.constant 3.000000e+00 : f32
// CHECK: %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[A]], %[[A]]
// CHECK-NEXT: %[[T:.*]] = arith.mulf %[[S]], %[[HALF]]
// CHECK-NEXT: %[[U:.*]] = arith.addf %[[T]], %[[S3]]
// CHECK-NEXT: linalg.yield %[[U]]
func.func @operands(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %s = arith.constant 3.0 : f32
  %half = arith.constant dense<0.5> : tensor<8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%s : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>, affine_map<(a) -> (a)>, affine_map<(a) -> (a)>, affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]} ins(%x, %half, %x, %y, %f : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %h: f32, %b: f32, %c: f32, %g: f32, %out: f32):
    %sum = arith.addf %a, %b : f32
    %scaled = arith.mulf %sum, %h : f32
    %shifted = arith.addf %scaled, %g : f32
    %dead = math.exp %c : f32
    linalg.yield %shifted : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// The window of a pooling says how long its loops are: it stays.
// CHECK-LABEL: func.func @pooling
// CHECK: linalg.generic {{.*}} ins(%x, %w : tensor<8xf32>, tensor<3xf32>)
func.func @pooling(%x: tensor<8xf32>, %init: tensor<6xf32>) -> tensor<6xf32> {
  %w = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a + b)>, affine_map<(a, b) -> (b)>, affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%init : tensor<6xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %m = arith.maximumf %a, %out : f32
    linalg.yield %m : f32
  } -> tensor<6xf32>
  return %r : tensor<6xf32>
}

// -----

// Of two results the used one stays, with what it needs.
// CHECK-LABEL: func.func @results
// CHECK: linalg.generic {{.*}} ins(%x : tensor<4x8xf32>) outs(%i : tensor<4xf32>)
// CHECK-NOT: math.exp
// CHECK: func.return
func.func @results(%x: tensor<4x8xf32>, %i: tensor<4xf32>, %j: tensor<4xf32>) -> tensor<4xf32> {
  %r:2 = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%i, %j : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %p: f32, %q: f32):
    %s = arith.addf %a, %p : f32
    %e = math.exp %a : f32
    %t = arith.addf %e, %q : f32
    linalg.yield %s, %t : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0 : tensor<4xf32>
}

// -----

// A result whose accumulator another one reads stays.
// CHECK-LABEL: func.func @coupled
// CHECK: %{{.*}}, %{{.*}} = linalg.generic
func.func @coupled(%x: tensor<4x8xf32>, %i: tensor<4xf32>, %j: tensor<4xf32>) -> tensor<4xf32> {
  %r:2 = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%i, %j : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %p: f32, %q: f32):
    %s = arith.addf %q, %p : f32
    %t = arith.addf %a, %q : f32
    linalg.yield %s, %t : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0 : tensor<4xf32>
}

// -----

// An init that is not read is an empty tensor; one that is read stays.
// CHECK-LABEL: func.func @init
// CHECK: %[[E:.*]] = tensor.empty()
// CHECK: linalg.generic {{.*}} outs(%[[E]] : tensor<8xf32>)
// CHECK: linalg.generic {{.*}} outs(%y : tensor<8xf32>)
func.func @init(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %out : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %r, %s : tensor<8xf32>, tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @constant_body
// CHECK: linalg.fill
// CHECK-NOT: linalg.generic
func.func @constant_body(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %two = arith.constant 2.0 : f32
    %three = arith.constant 3.0 : f32
    %six = arith.mulf %two, %three : f32
    linalg.yield %six : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// An insert into a fill is a pad.
// CHECK-LABEL: func.func @insert_into_fill
// CHECK-NOT: linalg.fill
// CHECK: tensor.pad %x low[0, 1, 2] high[0, 1, 0] {
// CHECK: } : tensor<2x4x3xf32> to tensor<2x6x5xf32>
func.func @insert_into_fill(%x: tensor<2x4x3xf32>) -> tensor<2x6x5xf32> {
  %v = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<2x6x5xf32>
  %f = linalg.fill ins(%v : f32) outs(%e : tensor<2x6x5xf32>) -> tensor<2x6x5xf32>
  %p = tensor.insert_slice %x into %f[0, 1, 2] [2, 4, 3] [1, 1, 1] : tensor<2x4x3xf32> into tensor<2x6x5xf32>
  return %p : tensor<2x6x5xf32>
}

// -----

// Inserts that write everything between them are a concat.
// CHECK-LABEL: func.func @inserts_that_cover
// CHECK: [[Y:%.*]] = tensor.concat dim(1) %a, %b : (tensor<3x2xf32>, tensor<3x4xf32>) -> tensor<3x6xf32>
// CHECK-NEXT: return [[Y]]
func.func @inserts_that_cover(%a: tensor<3x2xf32>, %b: tensor<3x4xf32>) -> tensor<3x6xf32> {
  %e = tensor.empty() : tensor<3x6xf32>
  %p = tensor.insert_slice %b into %e[0, 2] [3, 4] [1, 1] : tensor<3x4xf32> into tensor<3x6xf32>
  %q = tensor.insert_slice %a into %p[0, 0] [3, 2] [1, 1] : tensor<3x2xf32> into tensor<3x6xf32>
  return %q : tensor<3x6xf32>
}

// -----

// Nothing was written: a slice of it, reshaped and turned, is as good as a new tensor.
// CHECK-LABEL: func.func @undefined
// CHECK: %[[E:.*]] = tensor.empty(%{{.*}}) : tensor<4x?xf32>
// CHECK-NOT: tensor.extract_slice
// CHECK-NOT: linalg.transpose
// CHECK: func.return %[[E]]
func.func @undefined(%n: index) -> tensor<4x?xf32> {
  %e = tensor.empty(%n) : tensor<?x6x4xf32>
  %o = tensor.empty(%n) : tensor<4x?xf32>
  %s = tensor.extract_slice %e[0, 2, 0] [%n, 1, 4] [1, 1, 1] : tensor<?x6x4xf32> to tensor<?x4xf32>
  %t = linalg.transpose ins(%s : tensor<?x4xf32>) outs(%o : tensor<4x?xf32>) permutation = [1, 0]
  return %t : tensor<4x?xf32>
}
