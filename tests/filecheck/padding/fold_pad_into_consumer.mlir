// RUN: fuseline opt %s -p generalize-named-ops,fold-pad-into-consumer --split-input-file --verify-each | filecheck %s

// Two pads are one; behind an elementwise op the padding is what the op makes of it, and the pad stands right before its window.
// CHECK-LABEL: func.func @through_elementwise
// CHECK: linalg.generic {{.*}} ins(%x : tensor<6x2xf32>)
// CHECK: [[ONE:%.*]] = arith.constant 1.000000e+00 : f32
// CHECK: tensor.pad %{{.*}} low[3, 0] high[1, 0]
// CHECK: tensor.yield [[ONE]]
// CHECK-NOT: tensor.pad
// CHECK: return
func.func @through_elementwise(%x: tensor<6x2xf32>) -> tensor<9x2xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<6x2xf32> to tensor<7x2xf32>
  %q = tensor.pad %p low[2, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<7x2xf32> to tensor<10x2xf32>
  %e = tensor.empty() : tensor<10x2xf32>
  %y = linalg.exp ins(%q : tensor<10x2xf32>) outs(%e : tensor<10x2xf32>) -> tensor<10x2xf32>
  %low = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<2xf32>
  %e1 = tensor.empty() : tensor<9x2xf32>
  %f = linalg.fill ins(%low : f32) outs(%e1 : tensor<9x2xf32>) -> tensor<9x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(h, c, p) -> (h + p, c)>, affine_map<(h, c, p) -> (p)>, affine_map<(h, c, p) -> (h, c)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%y, %window : tensor<10x2xf32>, tensor<2xf32>) outs(%f : tensor<9x2xf32>) {
  ^bb0(%in: f32, %w: f32, %acc: f32):
    %m = arith.maximumf %acc, %in : f32
    linalg.yield %m : f32
  } -> tensor<9x2xf32>
  return %r : tensor<9x2xf32>
}

// -----

// Pieces that are padded alike are joined first.
// CHECK-LABEL: func.func @concat
// CHECK: tensor.concat dim(1) %x, %y : (tensor<6x2xf32>, tensor<6x3xf32>) -> tensor<6x5xf32>
// CHECK: tensor.pad {{.*}} low[1, 0] high[1, 0]
// CHECK-NOT: tensor.pad
// CHECK: return
func.func @concat(%x: tensor<6x2xf32>, %y: tensor<6x3xf32>) -> tensor<8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<6x2xf32> to tensor<8x2xf32>
  %q = tensor.pad %y low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<6x3xf32> to tensor<8x3xf32>
  %c = tensor.concat dim(1) %p, %q : (tensor<8x2xf32>, tensor<8x3xf32>) -> tensor<8x5xf32>
  return %c : tensor<8x5xf32>
}

// -----

// Two windows read one pad: each gets its own, right before it.
// CHECK-LABEL: func.func @two_windows
// CHECK: tensor.pad %x
// CHECK: linalg.generic
// CHECK: tensor.pad %x
// CHECK: linalg.generic
// CHECK: return
func.func @two_windows(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1] high[0] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<6xf32> to tensor<7xf32>
  %window = tensor.empty() : tensor<2xf32>
  %e = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(h, p) -> (h + p)>, affine_map<(h, p) -> (p)>, affine_map<(h, p) -> (h)>], iterator_types = ["parallel", "reduction"]} ins(%p, %window : tensor<7xf32>, tensor<2xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%in: f32, %w: f32, %acc: f32):
    %m = arith.maximumf %acc, %in : f32
    linalg.yield %m : f32
  } -> tensor<6xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(h, p) -> (h + p)>, affine_map<(h, p) -> (p)>, affine_map<(h, p) -> (h)>], iterator_types = ["parallel", "reduction"]} ins(%p, %window : tensor<7xf32>, tensor<2xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%in: f32, %w: f32, %acc: f32):
    %m = arith.addf %acc, %in : f32
    linalg.yield %m : f32
  } -> tensor<6xf32>
  return %r, %s : tensor<6xf32>, tensor<6xf32>
}

// -----

// An operand that is not padded, another value of padding, a second reader: each keeps the pad where it is.
// CHECK-LABEL: func.func @refused
// CHECK: tensor.pad %x
// CHECK: tensor.pad %y
// CHECK: linalg.generic
// CHECK: tensor.pad
// CHECK: return
func.func @refused(%x: tensor<6xf32>, %y: tensor<6xf32>, %z: tensor<8xf32>) -> (tensor<8xf32>, tensor<9xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<6xf32> to tensor<8xf32>
  %q = tensor.pad %y low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<6xf32> to tensor<8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.add ins(%p, %z : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %b = tensor.pad %q low[1] high[0] {
  ^bb0(%i: index):
    tensor.yield %one : f32
  } : tensor<8xf32> to tensor<9xf32>
  %c = linalg.exp ins(%q : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %a, %b, %c : tensor<8xf32>, tensor<9xf32>, tensor<8xf32>
}

// -----

// A pad that adds nothing is gone; one that moves what it pads stays.
// CHECK-LABEL: func.func @nothing
// CHECK: [[P:%.*]] = tensor.pad %y low[1] high[-1]
// CHECK-NOT: tensor.pad
// CHECK: return %x, [[P]]
func.func @nothing(%x: tensor<6xf32>, %y: tensor<5xf32>) -> (tensor<6xf32>, tensor<5xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0] high[0] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<6xf32> to tensor<6xf32>
  %q = tensor.pad %y low[1] high[-1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<5xf32> to tensor<5xf32>
  return %p, %q : tensor<6xf32>, tensor<5xf32>
}

// -----

// Two pads stay two where one of them takes something away, or adds what is known at run time only, or its value is no constant.
// CHECK-LABEL: func.func @two_stay
// CHECK: [[A:%.*]] = tensor.pad %x low[1] high[-2]
// CHECK: tensor.pad [[A]] low[0] high[2]
// CHECK: [[B:%.*]] = tensor.pad %x low[1] high[2]
// CHECK: tensor.pad [[B]] low[-1] high[0]
// CHECK: [[C:%.*]] = tensor.pad %x low[%n] high[0]
// CHECK: tensor.pad [[C]] low[1] high[0]
// CHECK: [[D:%.*]] = tensor.pad %x low[1] high[0]
// CHECK: tensor.pad [[D]] low[0] high[1]
// CHECK: return
func.func @two_stay(%x: tensor<6xf32>, %n: index, %v: f32) -> (tensor<7xf32>, tensor<8xf32>, tensor<?xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = tensor.pad %x low[1] high[-2] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<6xf32> to tensor<5xf32>
  %a1 = tensor.pad %a low[0] high[2] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<5xf32> to tensor<7xf32>
  %b = tensor.pad %x low[1] high[2] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<6xf32> to tensor<9xf32>
  %b1 = tensor.pad %b low[-1] high[0] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<9xf32> to tensor<8xf32>
  %c = tensor.pad %x low[%n] high[0] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<6xf32> to tensor<?xf32>
  %c1 = tensor.pad %c low[1] high[0] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<?xf32>
  %d = tensor.pad %x low[1] high[0] {
  ^bb0(%i: index):
    tensor.yield %v : f32
  } : tensor<6xf32> to tensor<7xf32>
  %d1 = tensor.pad %d low[0] high[1] {
  ^bb0(%i: index):
    tensor.yield %v : f32
  } : tensor<7xf32> to tensor<8xf32>
  return %a1, %b1, %c1, %d1 : tensor<7xf32>, tensor<8xf32>, tensor<?xf32>, tensor<8xf32>
}

// -----

// Pieces of a concat stay padded: the first is not padded; one piece twice; padded along the joined dimension; by other amounts before, after,
// with another value; read by something else too.
// CHECK-LABEL: func.func @pieces
// CHECK: tensor.concat dim(1) %z, %p
// CHECK: tensor.concat dim(1) %q, %q
// CHECK: tensor.concat dim(1) %r, %s
// CHECK: tensor.concat dim(1) %r1, %s1
// CHECK: tensor.concat dim(1) %t, %u
// CHECK: tensor.concat dim(1) %v, %w
// CHECK: tensor.concat dim(1) %a, %b
// CHECK-NOT: tensor.pad
func.func @pieces(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>, %z: tensor<5x3xf32>) -> (tensor<5x6xf32>, tensor<5x6xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %p = tensor.pad %x low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<5x3xf32>
  %first = tensor.concat dim(1) %z, %p : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  %q = tensor.pad %x low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<5x3xf32>
  %twice = tensor.concat dim(1) %q, %q : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  %r = tensor.pad %x low[0, 1] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<4x4xf32>
  %s = tensor.pad %y low[0, 1] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<4x4xf32>
  %before = tensor.concat dim(1) %r, %s : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  %r1 = tensor.pad %x low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<4x4xf32>
  %s1 = tensor.pad %y low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<4x4xf32>
  %behind = tensor.concat dim(1) %r1, %s1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  %t = tensor.pad %x low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<5x3xf32>
  %u = tensor.pad %y low[0, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<5x3xf32>
  %amounts = tensor.concat dim(1) %t, %u : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  %v = tensor.pad %x low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<5x3xf32>
  %w = tensor.pad %y low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %one : f32
  } : tensor<4x3xf32> to tensor<5x3xf32>
  %value = tensor.concat dim(1) %v, %w : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  %a = tensor.pad %x low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<5x3xf32>
  %b = tensor.pad %y low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<5x3xf32>
  %read = tensor.concat dim(1) %a, %b : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %first, %twice, %before, %behind, %amounts, %value, %read, %b : tensor<5x6xf32>, tensor<5x6xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x3xf32>
}

// -----

// Elementwise ops that stay behind their pad: read turned; with a second result; where the pad cuts; where the position counts.
// CHECK-LABEL: func.func @elementwise_stays
// CHECK: [[P:%.*]] = tensor.pad %x
// CHECK: linalg.generic {{.*}} ins([[P]]
// CHECK: [[Q:%.*]] = tensor.pad %x
// CHECK: linalg.generic {{.*}} ins([[Q]]
// CHECK: [[R:%.*]] = tensor.pad %x low[2, 0] high[-1, 0]
// CHECK: linalg.generic {{.*}} ins([[R]]
// CHECK: [[S:%.*]] = tensor.pad %x low[-1, 0] high[2, 0]
// CHECK: linalg.generic {{.*}} ins([[S]]
// CHECK: [[T:%.*]] = tensor.pad %x
// CHECK: linalg.generic {{.*}} ins([[T]]
// CHECK: return
func.func @elementwise_stays(%x: tensor<4x3xf32>) -> (tensor<3x5xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x3xf32>
  %et = tensor.empty() : tensor<3x5xf32>
  %p = tensor.pad %x low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<5x3xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<5x3xf32>) outs(%et : tensor<3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.negf %in : f32
    linalg.yield %m : f32
  } -> tensor<3x5xf32>
  %q = tensor.pad %x low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<5x3xf32>
  %b:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<5x3xf32>) outs(%e, %e : tensor<5x3xf32>, tensor<5x3xf32>) {
  ^bb0(%in: f32, %o1: f32, %o2: f32):
    %m = arith.negf %in : f32
    %n = math.exp %in : f32
    linalg.yield %m, %n : f32, f32
  } -> (tensor<5x3xf32>, tensor<5x3xf32>)
  %r = tensor.pad %x low[2, 0] high[-1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<5x3xf32>
  %c = linalg.exp ins(%r : tensor<5x3xf32>) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  %s = tensor.pad %x low[-1, 0] high[2, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<5x3xf32>
  %d = linalg.exp ins(%s : tensor<5x3xf32>) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  %t = tensor.pad %x low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<5x3xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<5x3xf32>) outs(%e : tensor<5x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %k = linalg.index 0 : index
    %k1 = arith.index_cast %k : index to i64
    %k2 = arith.sitofp %k1 : i64 to f32
    %m = arith.addf %in, %k2 : f32
    linalg.yield %m : f32
  } -> tensor<5x3xf32>
  return %a, %b#0, %b#1, %c, %d, %f : tensor<3x5xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>
}

// -----

// A window and something else read the pad: the window reads a pad of its own.
// CHECK-LABEL: func.func @also_returned
// CHECK: [[P:%.*]] = tensor.pad %x
// CHECK: math.exp
// CHECK: [[Q:%.*]] = tensor.pad %x
// CHECK: linalg.generic {{.*}} ins([[Q]], %w
// CHECK: return {{.*}}, [[P]]
func.func @also_returned(%x: tensor<6xf32>, %w: tensor<2xf32>) -> (tensor<6xf32>, tensor<2xf32>, tensor<7xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1] high[0] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<6xf32> to tensor<7xf32>
  %e = tensor.empty() : tensor<6xf32>
  %e2 = tensor.empty() : tensor<2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %y = linalg.exp ins(%w : tensor<2xf32>) outs(%e2 : tensor<2xf32>) -> tensor<2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(h, p) -> (h + p)>, affine_map<(h, p) -> (p)>, affine_map<(h, p) -> (h)>], iterator_types = ["parallel", "reduction"]} ins(%p, %w : tensor<7xf32>, tensor<2xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%in: f32, %v: f32, %acc: f32):
    %m = arith.addf %acc, %in : f32
    linalg.yield %m : f32
  } -> tensor<6xf32>
  return %r, %y, %p : tensor<6xf32>, tensor<2xf32>, tensor<7xf32>
}
