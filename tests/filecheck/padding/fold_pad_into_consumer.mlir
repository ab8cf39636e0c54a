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
