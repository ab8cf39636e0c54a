// RUN: fuseline opt %s -p fold-requantization --split-input-file --verify-each | filecheck %s

// 255 steps of .1 around zero, there and back.
// CHECK-LABEL: func.func @same
// CHECK-NOT: arith.divf
// CHECK: return %x : tensor<6xi8>
func.func @same(%x: tensor<6xi8>) -> tensor<6xi8> {
  %e = tensor.empty() : tensor<6xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<6xi8>) outs(%e : tensor<6xf32>) {
  ^bb0(%in: i8, %out: f32):
    %scale = arith.constant 0.1 : f32
    %f = arith.sitofp %in : i8 to f32
    %v = arith.mulf %f, %scale : f32
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %e1 = tensor.empty() : tensor<6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%d : tensor<6xf32>) outs(%e1 : tensor<6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %scale = arith.constant 0.1 : f32
    %f = arith.divf %in, %scale : f32
    %r = math.roundeven %f : f32
    %v = arith.fptosi %r : f32 to i8
    linalg.yield %v : i8
  } -> tensor<6xi8>
  return %q : tensor<6xi8>
}

// -----

// Another scale, and an upper end of 126: one number of 256 does not come back.
// CHECK-LABEL: func.func @other_scale
// CHECK: arith.divf
// CHECK: return %{{[0-9q]+}} : tensor<6xi8>
func.func @other_scale(%x: tensor<6xi8>) -> tensor<6xi8> {
  %e = tensor.empty() : tensor<6xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<6xi8>) outs(%e : tensor<6xf32>) {
  ^bb0(%in: i8, %out: f32):
    %scale = arith.constant 0.1 : f32
    %f = arith.sitofp %in : i8 to f32
    %v = arith.mulf %f, %scale : f32
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %e1 = tensor.empty() : tensor<6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%d : tensor<6xf32>) outs(%e1 : tensor<6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %scale = arith.constant 0.11 : f32
    %f = arith.divf %in, %scale : f32
    %r = math.roundeven %f : f32
    %v = arith.fptosi %r : f32 to i8
    linalg.yield %v : i8
  } -> tensor<6xi8>
  return %q : tensor<6xi8>
}

// CHECK-LABEL: func.func @clamped
// CHECK: arith.minimumf
// CHECK: return %{{[0-9q]+}} : tensor<6xi8>
func.func @clamped(%x: tensor<6xi8>) -> tensor<6xi8> {
  %e = tensor.empty() : tensor<6xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<6xi8>) outs(%e : tensor<6xf32>) {
  ^bb0(%in: i8, %out: f32):
    %v = arith.sitofp %in : i8 to f32
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %e1 = tensor.empty() : tensor<6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%d : tensor<6xf32>) outs(%e1 : tensor<6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %most = arith.constant 126.0 : f32
    %f = arith.minimumf %in, %most : f32
    %v = arith.fptosi %f : f32 to i8
    linalg.yield %v : i8
  } -> tensor<6xi8>
  return %q : tensor<6xi8>
}

// -----

// The scale is an argument: nothing is known of it.
// CHECK-LABEL: func.func @unknown
// CHECK: arith.divf
// CHECK: return %{{[0-9q]+}} : tensor<6xi8>
func.func @unknown(%x: tensor<6xi8>, %scale: f32) -> tensor<6xi8> {
  %e = tensor.empty() : tensor<6xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<6xi8>) outs(%e : tensor<6xf32>) {
  ^bb0(%in: i8, %out: f32):
    %f = arith.sitofp %in : i8 to f32
    %v = arith.mulf %f, %scale : f32
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %e1 = tensor.empty() : tensor<6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%d : tensor<6xf32>) outs(%e1 : tensor<6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %f = arith.divf %in, %scale : f32
    %r = math.roundeven %f : f32
    %v = arith.fptosi %r : f32 to i8
    linalg.yield %v : i8
  } -> tensor<6xi8>
  return %q : tensor<6xi8>
}

// -----

// Elements may be moved in between: what moves them moves integers.
// CHECK-LABEL: func.func @moved
// CHECK: [[E:%[0-9a-z]+]] = tensor.expand_shape %x {{.*}} : tensor<6x4xi8> into tensor<2x3x4xi8>
// CHECK: [[T:%[0-9a-z]+]] = linalg.generic {{.*}} ins([[E]] : tensor<2x3x4xi8>) outs({{.*}} : tensor<3x2x4xi8>)
// CHECK: [[S:%[0-9a-z]+]] = tensor.extract_slice [[T]]{{.*}} : tensor<3x2x4xi8> to tensor<1x2x4xi8>
// CHECK: [[C:%[0-9a-z]+]] = tensor.collapse_shape [[S]] {{.*}} : tensor<1x2x4xi8> into tensor<2x4xi8>
// CHECK-NOT: arith.divf
// CHECK: return [[C]] : tensor<2x4xi8>
func.func @moved(%x: tensor<6x4xi8>) -> tensor<2x4xi8> {
  %e = tensor.empty() : tensor<6x4xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<6x4xi8>) outs(%e : tensor<6x4xf32>) {
  ^bb0(%in: i8, %out: f32):
    %scale = arith.constant 0.1 : f32
    %f = arith.sitofp %in : i8 to f32
    %v = arith.mulf %f, %scale : f32
    linalg.yield %v : f32
  } -> tensor<6x4xf32>
  %r = tensor.expand_shape %d [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
  %e1 = tensor.empty() : tensor<3x2x4xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (j, i, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%r : tensor<2x3x4xf32>) outs(%e1 : tensor<3x2x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x2x4xf32>
  %s = tensor.extract_slice %t[1, 0, 0] [1, 2, 4] [1, 1, 1] : tensor<3x2x4xf32> to tensor<1x2x4xf32>
  %e2 = tensor.empty() : tensor<2x4xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (0, i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<1x2x4xf32>) outs(%e2 : tensor<2x4xi8>) {
  ^bb0(%in: f32, %out: i8):
    %scale = arith.constant 0.1 : f32
    %f = arith.divf %in, %scale : f32
    %r1 = math.roundeven %f : f32
    %v = arith.fptosi %r1 : f32 to i8
    linalg.yield %v : i8
  } -> tensor<2x4xi8>
  return %q : tensor<2x4xi8>
}

// -----

// A border of numbers that are no integers of this scale is not moved.
// CHECK-LABEL: func.func @bordered
// CHECK: arith.divf
// CHECK: return
func.func @bordered(%x: tensor<6xi8>) -> tensor<8xi8> {
  %e = tensor.empty() : tensor<6xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<6xi8>) outs(%e : tensor<6xf32>) {
  ^bb0(%in: i8, %out: f32):
    %scale = arith.constant 0.1 : f32
    %f = arith.sitofp %in : i8 to f32
    %v = arith.mulf %f, %scale : f32
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %p = tensor.pad %d low[1] high[1] {
  ^bb0(%i: index):
    %zero = arith.constant 0.25 : f32
    tensor.yield %zero : f32
  } : tensor<6xf32> to tensor<8xf32>
  %e1 = tensor.empty() : tensor<8xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%p : tensor<8xf32>) outs(%e1 : tensor<8xi8>) {
  ^bb0(%in: f32, %out: i8):
    %scale = arith.constant 0.1 : f32
    %f = arith.divf %in, %scale : f32
    %r = math.roundeven %f : f32
    %v = arith.fptosi %r : f32 to i8
    linalg.yield %v : i8
  } -> tensor<8xi8>
  return %q : tensor<8xi8>
}

// -----

// An index makes what becomes of a number depend on where it stands.
// CHECK-LABEL: func.func @indexed
// CHECK: linalg.index
// CHECK: return
func.func @indexed(%x: tensor<6xi8>) -> tensor<6xi8> {
  %e = tensor.empty() : tensor<6xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<6xi8>) outs(%e : tensor<6xf32>) {
  ^bb0(%in: i8, %out: f32):
    %v = arith.sitofp %in : i8 to f32
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %e1 = tensor.empty() : tensor<6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%d : tensor<6xf32>) outs(%e1 : tensor<6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %i = linalg.index 0 : index
    %i32 = arith.index_cast %i : index to i32
    %g = arith.sitofp %i32 : i32 to f32
    %f = arith.addf %in, %g : f32
    %v = arith.fptosi %f : f32 to i8
    linalg.yield %v : i8
  } -> tensor<6xi8>
  return %q : tensor<6xi8>
}

// -----

// A size that is known to one side only moves nothing.
// CHECK-LABEL: func.func @cast
// CHECK-NOT: arith.divf
// CHECK: [[C:%.*]] = tensor.cast %x : tensor<6xi8> to tensor<?xi8>
// CHECK: return [[C]]
func.func @cast(%x: tensor<6xi8>, %e1: tensor<?xi8>) -> tensor<?xi8> {
  %e = tensor.empty() : tensor<6xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<6xi8>) outs(%e : tensor<6xf32>) {
  ^bb0(%in: i8, %out: f32):
    %scale = arith.constant 0.1 : f32
    %f = arith.sitofp %in : i8 to f32
    %v = arith.mulf %f, %scale : f32
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %c = tensor.cast %d : tensor<6xf32> to tensor<?xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%c : tensor<?xf32>) outs(%e1 : tensor<?xi8>) {
  ^bb0(%in: f32, %out: i8):
    %scale = arith.constant 0.1 : f32
    %f = arith.divf %in, %scale : f32
    %r = math.roundeven %f : f32
    %v = arith.fptosi %r : f32 to i8
    linalg.yield %v : i8
  } -> tensor<?xi8>
  return %q : tensor<?xi8>
}

// -----

// Centred in an op of its own, which others read.
// CHECK-LABEL: func.func @centred
// CHECK: %[[CUT:.*]] = tensor.extract_slice %x
// CHECK-NOT: arith.divf
// CHECK: return %{{.*}}, %[[CUT]] : tensor<6xi16>, tensor<3xi8>
func.func @centred(%x: tensor<6xi8>) -> (tensor<6xi16>, tensor<3xi8>) {
  %e = tensor.empty() : tensor<6xi16>
  %c = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<6xi8>) outs(%e : tensor<6xi16>) {
  ^bb0(%in: i8, %out: i16):
    %z = arith.constant 7 : i16
    %a = arith.extsi %in : i8 to i16
    %v = arith.subi %a, %z : i16
    linalg.yield %v : i16
  } -> tensor<6xi16>
  %e1 = tensor.empty() : tensor<6xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%c : tensor<6xi16>) outs(%e1 : tensor<6xf32>) {
  ^bb0(%in: i16, %out: f32):
    %s = arith.constant 0.1 : f32
    %a = arith.sitofp %in : i16 to f32
    %v = arith.mulf %a, %s : f32
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %t = tensor.extract_slice %d[2] [3] [1] : tensor<6xf32> to tensor<3xf32>
  %e2 = tensor.empty() : tensor<3xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%t : tensor<3xf32>) outs(%e2 : tensor<3xi8>) {
  ^bb0(%in: f32, %out: i8):
    %s = arith.constant 0.1 : f32
    %z = arith.constant 7.0 : f32
    %a = arith.divf %in, %s : f32
    %r = math.roundeven %a : f32
    %b = arith.addf %r, %z : f32
    %v = arith.fptosi %b : f32 to i8
    linalg.yield %v : i8
  } -> tensor<3xi8>
  return %c, %q : tensor<6xi16>, tensor<3xi8>
}

// -----

// Read with a dimension of size 1 put in: a reshape, and what follows it still follows the same op.
// CHECK-LABEL: func.func @units
// CHECK: %[[R:.*]] = tensor.expand_shape %x
// CHECK-NOT: linalg.generic
// CHECK: return %[[R]] : tensor<1x1x6xi8>
func.func @units(%x: tensor<1x6xi8>) -> tensor<1x1x6xi8> {
  %e = tensor.empty() : tensor<1x6xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1x6xi8>) outs(%e : tensor<1x6xf32>) {
  ^bb0(%in: i8, %out: f32):
    %scale = arith.constant 0.1 : f32
    %f = arith.sitofp %in : i8 to f32
    %v = arith.mulf %f, %scale : f32
    linalg.yield %v : f32
  } -> tensor<1x6xf32>
  %e1 = tensor.empty() : tensor<1x1x6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (0, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%d : tensor<1x6xf32>) outs(%e1 : tensor<1x1x6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %scale = arith.constant 0.1 : f32
    %f = arith.divf %in, %scale : f32
    %r = math.roundeven %f : f32
    %v = arith.fptosi %r : f32 to i8
    linalg.yield %v : i8
  } -> tensor<1x1x6xi8>
  return %q : tensor<1x1x6xi8>
}

// -----

// Repeated on the way: what is read stays an op of its own, on integers.
// CHECK-LABEL: func.func @repeated
// CHECK: linalg.generic
// CHECK-NOT: arith.divf
// CHECK: return
func.func @repeated(%x: tensor<1x6xi8>) -> tensor<3x6xi8> {
  %e = tensor.empty() : tensor<1x6xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1x6xi8>) outs(%e : tensor<1x6xf32>) {
  ^bb0(%in: i8, %out: f32):
    %scale = arith.constant 0.1 : f32
    %f = arith.sitofp %in : i8 to f32
    %v = arith.mulf %f, %scale : f32
    linalg.yield %v : f32
  } -> tensor<1x6xf32>
  %e1 = tensor.empty() : tensor<3x6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%d : tensor<1x6xf32>) outs(%e1 : tensor<3x6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %scale = arith.constant 0.1 : f32
    %f = arith.divf %in, %scale : f32
    %r = math.roundeven %f : f32
    %v = arith.fptosi %r : f32 to i8
    linalg.yield %v : i8
  } -> tensor<3x6xi8>
  return %q : tensor<3x6xi8>
}
