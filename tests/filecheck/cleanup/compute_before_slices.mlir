// RUN: fuseline opt %s -p compute-before-slices --split-input-file --verify-each | filecheck %s

// However it is written: x - 3 and x + -3 are one form.
// CHECK-LABEL: func.func @halves
// CHECK-NOT: tensor.extract_slice
// CHECK: linalg.generic {{.*}} tensor<8x6xi16>
// CHECK: tensor.extract_slice {{.*}} : tensor<8x6xi16> to tensor<4x6xi16>
// CHECK: tensor.extract_slice {{.*}} : tensor<8x6xi16> to tensor<4x6xi16>
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @halves(%x: tensor<8x6xf32>) -> (tensor<4x6xi16>, tensor<4x6xi16>) {
  %e = tensor.empty() : tensor<8x6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x6xf32>) outs(%e : tensor<8x6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %a = math.roundeven %in : f32
    %v = arith.fptosi %a : f32 to i8
    linalg.yield %v : i8
  } -> tensor<8x6xi8>
  %s = tensor.extract_slice %q[0, 0] [4, 6] [1, 1] : tensor<8x6xi8> to tensor<4x6xi8>
  %t = tensor.extract_slice %q[4, 0] [4, 6] [1, 1] : tensor<8x6xi8> to tensor<4x6xi8>
  %e1 = tensor.empty() : tensor<4x6xi16>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x6xi8>) outs(%e1 : tensor<4x6xi16>) {
  ^bb0(%in: i8, %out: i16):
    %z = arith.constant 3 : i16
    %a = arith.extsi %in : i8 to i16
    %v = arith.subi %a, %z : i16
    linalg.yield %v : i16
  } -> tensor<4x6xi16>
  %e2 = tensor.empty() : tensor<4x6xi16>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<4x6xi8>) outs(%e2 : tensor<4x6xi16>) {
  ^bb0(%in: i8, %out: i16):
    %z = arith.constant -3 : i16
    %a = arith.extsi %in : i8 to i16
    %v = arith.addi %a, %z : i16
    linalg.yield %v : i16
  } -> tensor<4x6xi16>
  return %c, %d : tensor<4x6xi16>, tensor<4x6xi16>
}

// -----

// Two forms of all of it would be more than is read.
// CHECK-LABEL: func.func @other_forms
// CHECK-NOT: linalg.generic {{.*}} tensor<8x6xi16>
// CHECK: return
func.func @other_forms(%x: tensor<8x6xf32>) -> (tensor<4x6xi16>, tensor<4x6xi16>) {
  %e = tensor.empty() : tensor<8x6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x6xf32>) outs(%e : tensor<8x6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %a = math.roundeven %in : f32
    %v = arith.fptosi %a : f32 to i8
    linalg.yield %v : i8
  } -> tensor<8x6xi8>
  %s = tensor.extract_slice %q[0, 0] [4, 6] [1, 1] : tensor<8x6xi8> to tensor<4x6xi8>
  %t = tensor.extract_slice %q[4, 0] [4, 6] [1, 1] : tensor<8x6xi8> to tensor<4x6xi8>
  %e1 = tensor.empty() : tensor<4x6xi16>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x6xi8>) outs(%e1 : tensor<4x6xi16>) {
  ^bb0(%in: i8, %out: i16):
    %z = arith.constant 3 : i16
    %a = arith.extsi %in : i8 to i16
    %v = arith.subi %a, %z : i16
    linalg.yield %v : i16
  } -> tensor<4x6xi16>
  %e2 = tensor.empty() : tensor<4x6xi16>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<4x6xi8>) outs(%e2 : tensor<4x6xi16>) {
  ^bb0(%in: i8, %out: i16):
    %z = arith.constant 4 : i16
    %a = arith.extsi %in : i8 to i16
    %v = arith.subi %a, %z : i16
    linalg.yield %v : i16
  } -> tensor<4x6xi16>
  return %c, %d : tensor<4x6xi16>, tensor<4x6xi16>
}

// -----

// Half of it is read.
// CHECK-LABEL: func.func @a_part
// CHECK-NOT: linalg.generic {{.*}} tensor<8x6xi16>
// CHECK: return
func.func @a_part(%x: tensor<8x6xf32>) -> (tensor<2x6xi16>, tensor<2x6xi16>) {
  %e = tensor.empty() : tensor<8x6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x6xf32>) outs(%e : tensor<8x6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %a = math.roundeven %in : f32
    %v = arith.fptosi %a : f32 to i8
    linalg.yield %v : i8
  } -> tensor<8x6xi8>
  %s = tensor.extract_slice %q[0, 0] [2, 6] [1, 1] : tensor<8x6xi8> to tensor<2x6xi8>
  %t = tensor.extract_slice %q[2, 0] [2, 6] [1, 1] : tensor<8x6xi8> to tensor<2x6xi8>
  %e1 = tensor.empty() : tensor<2x6xi16>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<2x6xi8>) outs(%e1 : tensor<2x6xi16>) {
  ^bb0(%in: i8, %out: i16):
    %z = arith.constant 3 : i16
    %a = arith.extsi %in : i8 to i16
    %v = arith.subi %a, %z : i16
    linalg.yield %v : i16
  } -> tensor<2x6xi16>
  %e2 = tensor.empty() : tensor<2x6xi16>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<2x6xi8>) outs(%e2 : tensor<2x6xi16>) {
  ^bb0(%in: i8, %out: i16):
    %z = arith.constant 3 : i16
    %a = arith.extsi %in : i8 to i16
    %v = arith.subi %a, %z : i16
    linalg.yield %v : i16
  } -> tensor<2x6xi16>
  return %c, %d : tensor<2x6xi16>, tensor<2x6xi16>
}

// -----

// Wider than centred integers are stored.
// CHECK-LABEL: func.func @floats
// CHECK-NOT: linalg.generic {{.*}} tensor<8x6xf32>) outs({{.*}}xf32>
// CHECK: tensor.extract_slice {{.*}}xi8>
// CHECK: tensor.extract_slice {{.*}}xi8>
// CHECK: return
func.func @floats(%x: tensor<8x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %e = tensor.empty() : tensor<8x6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x6xf32>) outs(%e : tensor<8x6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %a = math.roundeven %in : f32
    %v = arith.fptosi %a : f32 to i8
    linalg.yield %v : i8
  } -> tensor<8x6xi8>
  %s = tensor.extract_slice %q[0, 0] [4, 6] [1, 1] : tensor<8x6xi8> to tensor<4x6xi8>
  %t = tensor.extract_slice %q[4, 0] [4, 6] [1, 1] : tensor<8x6xi8> to tensor<4x6xi8>
  %e1 = tensor.empty() : tensor<4x6xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x6xi8>) outs(%e1 : tensor<4x6xf32>) {
  ^bb0(%in: i8, %out: f32):
    %v = arith.sitofp %in : i8 to f32
    linalg.yield %v : f32
  } -> tensor<4x6xf32>
  %e2 = tensor.empty() : tensor<4x6xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<4x6xi8>) outs(%e2 : tensor<4x6xf32>) {
  ^bb0(%in: i8, %out: f32):
    %v = arith.sitofp %in : i8 to f32
    linalg.yield %v : f32
  } -> tensor<4x6xf32>
  return %c, %d : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// The same of integers.
// CHECK-LABEL: func.func @wide
// CHECK: tensor.extract_slice {{.*}}xi8>
// CHECK: tensor.extract_slice {{.*}}xi8>
// CHECK: return
func.func @wide(%x: tensor<8x6xf32>) -> (tensor<4x6xi32>, tensor<4x6xi32>) {
  %e = tensor.empty() : tensor<8x6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x6xf32>) outs(%e : tensor<8x6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %a = math.roundeven %in : f32
    %v = arith.fptosi %a : f32 to i8
    linalg.yield %v : i8
  } -> tensor<8x6xi8>
  %s = tensor.extract_slice %q[0, 0] [4, 6] [1, 1] : tensor<8x6xi8> to tensor<4x6xi8>
  %t = tensor.extract_slice %q[4, 0] [4, 6] [1, 1] : tensor<8x6xi8> to tensor<4x6xi8>
  %e1 = tensor.empty() : tensor<4x6xi32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x6xi8>) outs(%e1 : tensor<4x6xi32>) {
  ^bb0(%in: i8, %out: i32):
    %z = arith.constant 3 : i32
    %a = arith.extsi %in : i8 to i32
    %v = arith.subi %a, %z : i32
    linalg.yield %v : i32
  } -> tensor<4x6xi32>
  %e2 = tensor.empty() : tensor<4x6xi32>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<4x6xi8>) outs(%e2 : tensor<4x6xi32>) {
  ^bb0(%in: i8, %out: i32):
    %z = arith.constant 3 : i32
    %a = arith.extsi %in : i8 to i32
    %v = arith.subi %a, %z : i32
    linalg.yield %v : i32
  } -> tensor<4x6xi32>
  return %c, %d : tensor<4x6xi32>, tensor<4x6xi32>
}

// -----

// It is stored for another reader in any case.
// CHECK-LABEL: func.func @read_as_well
// CHECK-NOT: linalg.generic {{.*}} tensor<8x6xi16>
// CHECK: return
func.func @read_as_well(%x: tensor<8x6xf32>) -> (tensor<4x6xi16>, tensor<4x6xi16>, tensor<8x6xi8>) {
  %e = tensor.empty() : tensor<8x6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x6xf32>) outs(%e : tensor<8x6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %a = math.roundeven %in : f32
    %v = arith.fptosi %a : f32 to i8
    linalg.yield %v : i8
  } -> tensor<8x6xi8>
  %s = tensor.extract_slice %q[0, 0] [4, 6] [1, 1] : tensor<8x6xi8> to tensor<4x6xi8>
  %t = tensor.extract_slice %q[4, 0] [4, 6] [1, 1] : tensor<8x6xi8> to tensor<4x6xi8>
  %e1 = tensor.empty() : tensor<4x6xi16>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x6xi8>) outs(%e1 : tensor<4x6xi16>) {
  ^bb0(%in: i8, %out: i16):
    %z = arith.constant 3 : i16
    %a = arith.extsi %in : i8 to i16
    %v = arith.subi %a, %z : i16
    linalg.yield %v : i16
  } -> tensor<4x6xi16>
  %e2 = tensor.empty() : tensor<4x6xi16>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<4x6xi8>) outs(%e2 : tensor<4x6xi16>) {
  ^bb0(%in: i8, %out: i16):
    %z = arith.constant 3 : i16
    %a = arith.extsi %in : i8 to i16
    %v = arith.subi %a, %z : i16
    linalg.yield %v : i16
  } -> tensor<4x6xi16>
  return %c, %d, %q : tensor<4x6xi16>, tensor<4x6xi16>, tensor<8x6xi8>
}

// -----

// So is a slice of it.
// CHECK-LABEL: func.func @slice_read_as_well
// CHECK-NOT: linalg.generic {{.*}} tensor<8x6xi16>
// CHECK: return
func.func @slice_read_as_well(%x: tensor<8x6xf32>) -> (tensor<4x6xi16>, tensor<4x6xi16>, tensor<4x6xi8>) {
  %e = tensor.empty() : tensor<8x6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x6xf32>) outs(%e : tensor<8x6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %a = math.roundeven %in : f32
    %v = arith.fptosi %a : f32 to i8
    linalg.yield %v : i8
  } -> tensor<8x6xi8>
  %s = tensor.extract_slice %q[0, 0] [4, 6] [1, 1] : tensor<8x6xi8> to tensor<4x6xi8>
  %t = tensor.extract_slice %q[4, 0] [4, 6] [1, 1] : tensor<8x6xi8> to tensor<4x6xi8>
  %e1 = tensor.empty() : tensor<4x6xi16>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x6xi8>) outs(%e1 : tensor<4x6xi16>) {
  ^bb0(%in: i8, %out: i16):
    %z = arith.constant 3 : i16
    %a = arith.extsi %in : i8 to i16
    %v = arith.subi %a, %z : i16
    linalg.yield %v : i16
  } -> tensor<4x6xi16>
  %e2 = tensor.empty() : tensor<4x6xi16>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<4x6xi8>) outs(%e2 : tensor<4x6xi16>) {
  ^bb0(%in: i8, %out: i16):
    %z = arith.constant 3 : i16
    %a = arith.extsi %in : i8 to i16
    %v = arith.subi %a, %z : i16
    linalg.yield %v : i16
  } -> tensor<4x6xi16>
  return %c, %d, %s : tensor<4x6xi16>, tensor<4x6xi16>, tensor<4x6xi8>
}

// -----

// An argument is stored as it is.
// CHECK-LABEL: func.func @argument
// CHECK-NOT: linalg.generic {{.*}} tensor<8x6xi16>
// CHECK: return
func.func @argument(%q: tensor<8x6xi8>) -> (tensor<4x6xi16>, tensor<4x6xi16>) {
  %s = tensor.extract_slice %q[0, 0] [4, 6] [1, 1] : tensor<8x6xi8> to tensor<4x6xi8>
  %t = tensor.extract_slice %q[4, 0] [4, 6] [1, 1] : tensor<8x6xi8> to tensor<4x6xi8>
  %e1 = tensor.empty() : tensor<4x6xi16>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x6xi8>) outs(%e1 : tensor<4x6xi16>) {
  ^bb0(%in: i8, %out: i16):
    %z = arith.constant 3 : i16
    %a = arith.extsi %in : i8 to i16
    %v = arith.subi %a, %z : i16
    linalg.yield %v : i16
  } -> tensor<4x6xi16>
  %e2 = tensor.empty() : tensor<4x6xi16>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<4x6xi8>) outs(%e2 : tensor<4x6xi16>) {
  ^bb0(%in: i8, %out: i16):
    %z = arith.constant 3 : i16
    %a = arith.extsi %in : i8 to i16
    %v = arith.subi %a, %z : i16
    linalg.yield %v : i16
  } -> tensor<4x6xi16>
  return %c, %d : tensor<4x6xi16>, tensor<4x6xi16>
}
