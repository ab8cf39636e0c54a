// RUN: fuseline opt %s -p "clone-reads" --split-input-file --verify-each | filecheck %s
// RUN: fuseline opt %s -p "clone-reads,clone-reads" --split-input-file --verify-each | filecheck %s

// Columns that two ops and the caller read: the caller's is one, each op has its own.
// CHECK-LABEL: func.func @columns
// CHECK-COUNT-3: tensor.extract_slice
// CHECK-NOT: tensor.extract_slice
// CHECK: return
func.func @columns(%x: tensor<6x8xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>) {
  %e = tensor.empty() : tensor<6x4xf32>
  %s = tensor.extract_slice %x[0, 2] [6, 4] [1, 1] : tensor<6x8xf32> to tensor<6x4xf32>
  %a = linalg.elementwise <exp> ins(%s : tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
  %b = linalg.elementwise <mul> ins(%s, %s : tensor<6x4xf32>, tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
  return %a, %s, %b : tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>
}

// -----

// Rows are a part of the buffer itself; one reader needs no copy.
// CHECK-LABEL: func.func @rows
// CHECK-COUNT-2: tensor.extract_slice
// CHECK-NOT: tensor.extract_slice
// CHECK: return
func.func @rows(%x: tensor<6x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<6x4xf32>) {
  %e = tensor.empty() : tensor<2x8xf32>
  %f = tensor.empty() : tensor<6x4xf32>
  %s = tensor.extract_slice %x[2, 0] [2, 8] [1, 1] : tensor<6x8xf32> to tensor<2x8xf32>
  %a = linalg.elementwise <exp> ins(%s : tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) -> tensor<2x8xf32>
  %b = linalg.elementwise <abs> ins(%s : tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) -> tensor<2x8xf32>
  %t = tensor.extract_slice %x[0, 2] [6, 4] [1, 1] : tensor<6x8xf32> to tensor<6x4xf32>
  %c = linalg.elementwise <mul> ins(%t, %t : tensor<6x4xf32>, tensor<6x4xf32>) outs(%f : tensor<6x4xf32>) -> tensor<6x4xf32>
  return %a, %b, %c : tensor<2x8xf32>, tensor<2x8xf32>, tensor<6x4xf32>
}

// -----

// A pad of columns that two ops read: a pad each, and a slice for each pad.
// CHECK-LABEL: func.func @padded_columns
// CHECK-COUNT-2: tensor.extract_slice
// CHECK-NOT: tensor.extract_slice
// CHECK-COUNT-2: tensor.pad
// CHECK-NOT: tensor.pad
// CHECK: return
func.func @padded_columns(%x: tensor<6x8xf32>) -> (tensor<6x5xf32>, tensor<6x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x5xf32>
  %s = tensor.extract_slice %x[0, 2] [6, 4] [1, 1] : tensor<6x8xf32> to tensor<6x4xf32>
  %p = tensor.pad %s low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<6x4xf32> to tensor<6x5xf32>
  %a = linalg.elementwise <exp> ins(%p : tensor<6x5xf32>) outs(%e : tensor<6x5xf32>) -> tensor<6x5xf32>
  %b = linalg.elementwise <abs> ins(%p : tensor<6x5xf32>) outs(%e : tensor<6x5xf32>) -> tensor<6x5xf32>
  return %a, %b : tensor<6x5xf32>, tensor<6x5xf32>
}

// -----

// A turned argument that two concats read: each has it in its addresses.
// CHECK-LABEL: func.func @turned
// CHECK-COUNT-2: linalg.transpose
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @turned(%x: tensor<5x3xf32>, %y: tensor<3x5xf32>) -> (tensor<6x5xf32>, tensor<3x10xf32>) {
  %e = tensor.empty() : tensor<3x5xf32>
  %t = linalg.transpose ins(%x : tensor<5x3xf32>) outs(%e : tensor<3x5xf32>) permutation = [1, 0]
  %a = tensor.concat dim(0) %t, %y : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<6x5xf32>
  %b = tensor.concat dim(1) %t, %y : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x10xf32>
  return %a, %b : tensor<6x5xf32>, tensor<3x10xf32>
}

// -----

// Elementwise readers share it; what is computed is written turned once.
// CHECK-LABEL: func.func @shared
// CHECK-COUNT-2: linalg.transpose
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @shared(%x: tensor<5x3xf32>, %y: tensor<3x5xf32>) -> (tensor<6x5xf32>, tensor<3x5xf32>, tensor<6x5xf32>, tensor<3x10xf32>) {
  %e = tensor.empty() : tensor<3x5xf32>
  %f = tensor.empty() : tensor<5x3xf32>
  %t = linalg.transpose ins(%x : tensor<5x3xf32>) outs(%e : tensor<3x5xf32>) permutation = [1, 0]
  %a = tensor.concat dim(0) %t, %y : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<6x5xf32>
  %b = linalg.elementwise <exp> ins(%t : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %m = linalg.elementwise <abs> ins(%x : tensor<5x3xf32>) outs(%f : tensor<5x3xf32>) -> tensor<5x3xf32>
  %u = linalg.transpose ins(%m : tensor<5x3xf32>) outs(%e : tensor<3x5xf32>) permutation = [1, 0]
  %c = tensor.concat dim(0) %u, %y : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<6x5xf32>
  %d = tensor.concat dim(1) %u, %y : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x10xf32>
  return %a, %b, %c, %d : tensor<6x5xf32>, tensor<3x5xf32>, tensor<6x5xf32>, tensor<3x10xf32>
}

// -----

// An argument of halves is widened by each op that reads it.
// CHECK-LABEL: func.func @halves
// CHECK-COUNT-4: arith.extf
// CHECK-NOT: arith.extf
// CHECK: return
func.func @halves(%x: tensor<6x8xf16>, %f: tensor<8x4xf32>, %g: tensor<8x5xf32>)
    -> (tensor<6x4xf32>, tensor<6x5xf32>, tensor<6x8xf32>, tensor<6x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %p = tensor.empty() : tensor<6x4xf32>
  %q = tensor.empty() : tensor<6x5xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<6x8xf16>) outs(%e : tensor<6x8xf32>) {
  ^bb0(%in: f16, %out: f32):
    %v = arith.extf %in : f16 to f32
    linalg.yield %v : f32
  } -> tensor<6x8xf32>
  %pz = linalg.fill ins(%zero : f32) outs(%p : tensor<6x4xf32>) -> tensor<6x4xf32>
  %qz = linalg.fill ins(%zero : f32) outs(%q : tensor<6x5xf32>) -> tensor<6x5xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
      affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %f : tensor<6x8xf32>, tensor<8x4xf32>) outs(%pz : tensor<6x4xf32>) {
  ^bb0(%l: f32, %m: f32, %out: f32):
    %t = arith.mulf %l, %m : f32
    %s = arith.addf %out, %t : f32
    linalg.yield %s : f32
  } -> tensor<6x4xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
      affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %g : tensor<6x8xf32>, tensor<8x5xf32>) outs(%qz : tensor<6x5xf32>) {
  ^bb0(%l: f32, %m: f32, %out: f32):
    %t = arith.mulf %l, %m : f32
    %s = arith.addf %out, %t : f32
    linalg.yield %s : f32
  } -> tensor<6x5xf32>
  %c = linalg.elementwise <exp> ins(%w : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %d = linalg.elementwise <abs> ins(%w : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %a, %b, %c, %d : tensor<6x4xf32>, tensor<6x5xf32>, tensor<6x8xf32>, tensor<6x8xf32>
}

// -----

// One that a window reads as well is widened once: whether a window reads it narrow is a matter of price.
// CHECK-LABEL: func.func @beside_a_window
// CHECK-COUNT-1: arith.extf
// CHECK-NOT: arith.extf
// CHECK: return
func.func @beside_a_window(%x: tensor<6x8xf16>, %f: tensor<8x4xf32>, %g: tensor<8x5xf32>)
    -> (tensor<6x4xf32>, tensor<6x5xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %p = tensor.empty() : tensor<6x4xf32>
  %q = tensor.empty() : tensor<6x5xf32>
  %r = tensor.empty() : tensor<4x8xf32>
  %k = tensor.empty() : tensor<3xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<6x8xf16>) outs(%e : tensor<6x8xf32>) {
  ^bb0(%in: f16, %out: f32):
    %v = arith.extf %in : f16 to f32
    linalg.yield %v : f32
  } -> tensor<6x8xf32>
  %pz = linalg.fill ins(%zero : f32) outs(%p : tensor<6x4xf32>) -> tensor<6x4xf32>
  %qz = linalg.fill ins(%zero : f32) outs(%q : tensor<6x5xf32>) -> tensor<6x5xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%r : tensor<4x8xf32>) -> tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
      affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %f : tensor<6x8xf32>, tensor<8x4xf32>) outs(%pz : tensor<6x4xf32>) {
  ^bb0(%l: f32, %m: f32, %out: f32):
    %t = arith.mulf %l, %m : f32
    %s = arith.addf %out, %t : f32
    linalg.yield %s : f32
  } -> tensor<6x4xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
      affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %g : tensor<6x8xf32>, tensor<8x5xf32>) outs(%qz : tensor<6x5xf32>) {
  ^bb0(%l: f32, %m: f32, %out: f32):
    %t = arith.mulf %l, %m : f32
    %s = arith.addf %out, %t : f32
    linalg.yield %s : f32
  } -> tensor<6x5xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j, n) -> (i + n, j)>, affine_map<(i, j, n) -> (n)>,
      affine_map<(i, j, n) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %k : tensor<6x8xf32>, tensor<3xf32>) outs(%rz : tensor<4x8xf32>) {
  ^bb0(%in: f32, %none: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %a, %b, %c : tensor<6x4xf32>, tensor<6x5xf32>, tensor<4x8xf32>
}
