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
