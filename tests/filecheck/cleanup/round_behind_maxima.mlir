// RUN: fuseline opt %s -p round-behind-maxima --split-input-file --verify-each | filecheck %s

// The argument is padded and its largest elements are rounded.
// CHECK-LABEL: func.func @rounded
// CHECK-NOT: arith.divf
// CHECK: tensor.pad %x
// CHECK: arith.maxnumf
// CHECK: arith.divf
// CHECK: arith.mulf
// CHECK: return
func.func @rounded(%x: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %eq = tensor.empty() : tensor<2x9x8xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x9x8xf32>) outs(%eq : tensor<2x9x8xi8>) {
  ^bb0(%in: f32, %out: i8):
    %s = arith.constant 0.1 : f32
    %z = arith.constant 120.0 : f32
    %l = arith.constant 0.0 : f32
    %h = arith.constant 255.0 : f32
    %a = arith.divf %in, %s : f32
    %b = math.roundeven %a : f32
    %c = arith.addf %b, %z : f32
    %d = arith.maxnumf %c, %l : f32
    %e = arith.minnumf %d, %h : f32
    %f = arith.fptosi %e : f32 to i32
    %g = arith.trunci %f : i32 to i8
    linalg.yield %g : i8
  } -> tensor<2x9x8xi8>
  %ed = tensor.empty() : tensor<2x9x8xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q : tensor<2x9x8xi8>) outs(%ed : tensor<2x9x8xf32>) {
  ^bb0(%in: i8, %out: f32):
    %s = arith.constant 0.1 : f32
    %z = arith.constant 120 : i32
    %a = arith.extui %in : i8 to i32
    %b = arith.subi %a, %z : i32
    %c = arith.sitofp %b : i32 to f32
    %e = arith.mulf %c, %s : f32
    linalg.yield %e : f32
  } -> tensor<2x9x8xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %least = arith.constant 0xff800000 : f32
  %p = tensor.pad %d low[0, 1, 1] high[0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %least : f32
  } : tensor<2x9x8xf32> to tensor<2x11x10xf32>
  %none = arith.constant 0xff800000 : f32
  %em = tensor.empty() : tensor<2x9x8xf32>
  %init = linalg.fill ins(%none : f32) outs(%em : tensor<2x9x8xf32>) -> tensor<2x9x8xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, y, x, i, j) -> (c, y + i, x + j)>, affine_map<(c, y, x, i, j) -> (i, j)>, affine_map<(c, y, x, i, j) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%p, %w : tensor<2x11x10xf32>, tensor<3x3xf32>) outs(%init : tensor<2x9x8xf32>) {
  ^bb0(%in: f32, %k: f32, %out: f32):
    %a = arith.maximumf %out, %in : f32
    linalg.yield %a : f32
  } -> tensor<2x9x8xf32>
  return %m : tensor<2x9x8xf32>
}

// -----

// A scale below 0: what is rounded falls.
// CHECK-LABEL: func.func @falling
// CHECK: linalg.generic
// CHECK: arith.divf
// CHECK: tensor.pad
// CHECK: iterator_types = ["parallel", "parallel", "parallel", "reduction"
// CHECK-NOT: arith.divf
// CHECK: return
func.func @falling(%x: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %eq = tensor.empty() : tensor<2x9x8xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x9x8xf32>) outs(%eq : tensor<2x9x8xi8>) {
  ^bb0(%in: f32, %out: i8):
    %s = arith.constant -0.1 : f32
    %z = arith.constant 120.0 : f32
    %l = arith.constant 0.0 : f32
    %h = arith.constant 255.0 : f32
    %a = arith.divf %in, %s : f32
    %b = math.roundeven %a : f32
    %c = arith.addf %b, %z : f32
    %d = arith.maxnumf %c, %l : f32
    %e = arith.minnumf %d, %h : f32
    %f = arith.fptosi %e : f32 to i32
    %g = arith.trunci %f : i32 to i8
    linalg.yield %g : i8
  } -> tensor<2x9x8xi8>
  %ed = tensor.empty() : tensor<2x9x8xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q : tensor<2x9x8xi8>) outs(%ed : tensor<2x9x8xf32>) {
  ^bb0(%in: i8, %out: f32):
    %s = arith.constant 0.1 : f32
    %z = arith.constant 120 : i32
    %a = arith.extui %in : i8 to i32
    %b = arith.subi %a, %z : i32
    %c = arith.sitofp %b : i32 to f32
    %e = arith.mulf %c, %s : f32
    linalg.yield %e : f32
  } -> tensor<2x9x8xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %least = arith.constant 0xff800000 : f32
  %p = tensor.pad %d low[0, 1, 1] high[0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %least : f32
  } : tensor<2x9x8xf32> to tensor<2x11x10xf32>
  %none = arith.constant 0xff800000 : f32
  %em = tensor.empty() : tensor<2x9x8xf32>
  %init = linalg.fill ins(%none : f32) outs(%em : tensor<2x9x8xf32>) -> tensor<2x9x8xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, y, x, i, j) -> (c, y + i, x + j)>, affine_map<(c, y, x, i, j) -> (i, j)>, affine_map<(c, y, x, i, j) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%p, %w : tensor<2x11x10xf32>, tensor<3x3xf32>) outs(%init : tensor<2x9x8xf32>) {
  ^bb0(%in: f32, %k: f32, %out: f32):
    %a = arith.maximumf %out, %in : f32
    linalg.yield %a : f32
  } -> tensor<2x9x8xf32>
  return %m : tensor<2x9x8xf32>
}

// -----

// NaN would be the largest number, and the smallest behind the maximum.
// CHECK-LABEL: func.func @nan_is_most
// CHECK: linalg.generic
// CHECK: arith.divf
// CHECK: tensor.pad
// CHECK: iterator_types = ["parallel", "parallel", "parallel", "reduction"
// CHECK-NOT: arith.divf
// CHECK: return
func.func @nan_is_most(%x: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %eq = tensor.empty() : tensor<2x9x8xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x9x8xf32>) outs(%eq : tensor<2x9x8xi8>) {
  ^bb0(%in: f32, %out: i8):
    %s = arith.constant 0.1 : f32
    %z = arith.constant 120.0 : f32
    %l = arith.constant 0.0 : f32
    %h = arith.constant 255.0 : f32
    %a = arith.divf %in, %s : f32
    %b = math.roundeven %a : f32
    %c = arith.addf %b, %z : f32
    %d = arith.minnumf %c, %h : f32
    %e = arith.maxnumf %d, %l : f32
    %f = arith.fptosi %e : f32 to i32
    %g = arith.trunci %f : i32 to i8
    linalg.yield %g : i8
  } -> tensor<2x9x8xi8>
  %ed = tensor.empty() : tensor<2x9x8xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q : tensor<2x9x8xi8>) outs(%ed : tensor<2x9x8xf32>) {
  ^bb0(%in: i8, %out: f32):
    %s = arith.constant 0.1 : f32
    %z = arith.constant 120 : i32
    %a = arith.extui %in : i8 to i32
    %b = arith.subi %a, %z : i32
    %c = arith.sitofp %b : i32 to f32
    %e = arith.mulf %c, %s : f32
    linalg.yield %e : f32
  } -> tensor<2x9x8xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %least = arith.constant 0xff800000 : f32
  %p = tensor.pad %d low[0, 1, 1] high[0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %least : f32
  } : tensor<2x9x8xf32> to tensor<2x11x10xf32>
  %none = arith.constant 0xff800000 : f32
  %em = tensor.empty() : tensor<2x9x8xf32>
  %init = linalg.fill ins(%none : f32) outs(%em : tensor<2x9x8xf32>) -> tensor<2x9x8xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, y, x, i, j) -> (c, y + i, x + j)>, affine_map<(c, y, x, i, j) -> (i, j)>, affine_map<(c, y, x, i, j) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%p, %w : tensor<2x11x10xf32>, tensor<3x3xf32>) outs(%init : tensor<2x9x8xf32>) {
  ^bb0(%in: f32, %k: f32, %out: f32):
    %a = arith.maximumf %out, %in : f32
    linalg.yield %a : f32
  } -> tensor<2x9x8xf32>
  return %m : tensor<2x9x8xf32>
}

// -----

// A border of 0 is an element like others.
// CHECK-LABEL: func.func @border_counts
// CHECK: linalg.generic
// CHECK: arith.divf
// CHECK: tensor.pad
// CHECK: iterator_types = ["parallel", "parallel", "parallel", "reduction"
// CHECK-NOT: arith.divf
// CHECK: return
func.func @border_counts(%x: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %eq = tensor.empty() : tensor<2x9x8xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x9x8xf32>) outs(%eq : tensor<2x9x8xi8>) {
  ^bb0(%in: f32, %out: i8):
    %s = arith.constant 0.1 : f32
    %z = arith.constant 120.0 : f32
    %l = arith.constant 0.0 : f32
    %h = arith.constant 255.0 : f32
    %a = arith.divf %in, %s : f32
    %b = math.roundeven %a : f32
    %c = arith.addf %b, %z : f32
    %d = arith.maxnumf %c, %l : f32
    %e = arith.minnumf %d, %h : f32
    %f = arith.fptosi %e : f32 to i32
    %g = arith.trunci %f : i32 to i8
    linalg.yield %g : i8
  } -> tensor<2x9x8xi8>
  %ed = tensor.empty() : tensor<2x9x8xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q : tensor<2x9x8xi8>) outs(%ed : tensor<2x9x8xf32>) {
  ^bb0(%in: i8, %out: f32):
    %s = arith.constant 0.1 : f32
    %z = arith.constant 120 : i32
    %a = arith.extui %in : i8 to i32
    %b = arith.subi %a, %z : i32
    %c = arith.sitofp %b : i32 to f32
    %e = arith.mulf %c, %s : f32
    linalg.yield %e : f32
  } -> tensor<2x9x8xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %least = arith.constant 0.0 : f32
  %p = tensor.pad %d low[0, 1, 1] high[0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %least : f32
  } : tensor<2x9x8xf32> to tensor<2x11x10xf32>
  %none = arith.constant 0xff800000 : f32
  %em = tensor.empty() : tensor<2x9x8xf32>
  %init = linalg.fill ins(%none : f32) outs(%em : tensor<2x9x8xf32>) -> tensor<2x9x8xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, y, x, i, j) -> (c, y + i, x + j)>, affine_map<(c, y, x, i, j) -> (i, j)>, affine_map<(c, y, x, i, j) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%p, %w : tensor<2x11x10xf32>, tensor<3x3xf32>) outs(%init : tensor<2x9x8xf32>) {
  ^bb0(%in: f32, %k: f32, %out: f32):
    %a = arith.maximumf %out, %in : f32
    linalg.yield %a : f32
  } -> tensor<2x9x8xf32>
  return %m : tensor<2x9x8xf32>
}

// -----

// Windows that meet the border alone have a maximum of no number.
// CHECK-LABEL: func.func @windows_in_the_border
// CHECK: linalg.generic
// CHECK: arith.divf
// CHECK: tensor.pad
// CHECK: iterator_types = ["parallel", "parallel", "parallel", "reduction"
// CHECK-NOT: arith.divf
// CHECK: return
func.func @windows_in_the_border(%x: tensor<2x9x8xf32>) -> tensor<2x13x12xf32> {
  %eq = tensor.empty() : tensor<2x9x8xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x9x8xf32>) outs(%eq : tensor<2x9x8xi8>) {
  ^bb0(%in: f32, %out: i8):
    %s = arith.constant 0.1 : f32
    %z = arith.constant 120.0 : f32
    %l = arith.constant 0.0 : f32
    %h = arith.constant 255.0 : f32
    %a = arith.divf %in, %s : f32
    %b = math.roundeven %a : f32
    %c = arith.addf %b, %z : f32
    %d = arith.maxnumf %c, %l : f32
    %e = arith.minnumf %d, %h : f32
    %f = arith.fptosi %e : f32 to i32
    %g = arith.trunci %f : i32 to i8
    linalg.yield %g : i8
  } -> tensor<2x9x8xi8>
  %ed = tensor.empty() : tensor<2x9x8xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q : tensor<2x9x8xi8>) outs(%ed : tensor<2x9x8xf32>) {
  ^bb0(%in: i8, %out: f32):
    %s = arith.constant 0.1 : f32
    %z = arith.constant 120 : i32
    %a = arith.extui %in : i8 to i32
    %b = arith.subi %a, %z : i32
    %c = arith.sitofp %b : i32 to f32
    %e = arith.mulf %c, %s : f32
    linalg.yield %e : f32
  } -> tensor<2x9x8xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %least = arith.constant 0xff800000 : f32
  %p = tensor.pad %d low[0, 3, 3] high[0, 3, 3] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %least : f32
  } : tensor<2x9x8xf32> to tensor<2x15x14xf32>
  %none = arith.constant 0xff800000 : f32
  %em = tensor.empty() : tensor<2x13x12xf32>
  %init = linalg.fill ins(%none : f32) outs(%em : tensor<2x13x12xf32>) -> tensor<2x13x12xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, y, x, i, j) -> (c, y + i, x + j)>, affine_map<(c, y, x, i, j) -> (i, j)>, affine_map<(c, y, x, i, j) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%p, %w : tensor<2x15x14xf32>, tensor<3x3xf32>) outs(%init : tensor<2x13x12xf32>) {
  ^bb0(%in: f32, %k: f32, %out: f32):
    %a = arith.maximumf %out, %in : f32
    linalg.yield %a : f32
  } -> tensor<2x13x12xf32>
  return %m : tensor<2x13x12xf32>
}

// -----

// What a sum is rounded to is no sum of what is rounded.
// CHECK-LABEL: func.func @sums
// CHECK: linalg.generic
// CHECK: arith.divf
// CHECK: tensor.pad
// CHECK: iterator_types = ["parallel", "parallel", "parallel", "reduction"
// CHECK-NOT: arith.divf
// CHECK: return
func.func @sums(%x: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %eq = tensor.empty() : tensor<2x9x8xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x9x8xf32>) outs(%eq : tensor<2x9x8xi8>) {
  ^bb0(%in: f32, %out: i8):
    %s = arith.constant 0.1 : f32
    %z = arith.constant 120.0 : f32
    %l = arith.constant 0.0 : f32
    %h = arith.constant 255.0 : f32
    %a = arith.divf %in, %s : f32
    %b = math.roundeven %a : f32
    %c = arith.addf %b, %z : f32
    %d = arith.maxnumf %c, %l : f32
    %e = arith.minnumf %d, %h : f32
    %f = arith.fptosi %e : f32 to i32
    %g = arith.trunci %f : i32 to i8
    linalg.yield %g : i8
  } -> tensor<2x9x8xi8>
  %ed = tensor.empty() : tensor<2x9x8xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q : tensor<2x9x8xi8>) outs(%ed : tensor<2x9x8xf32>) {
  ^bb0(%in: i8, %out: f32):
    %s = arith.constant 0.1 : f32
    %z = arith.constant 120 : i32
    %a = arith.extui %in : i8 to i32
    %b = arith.subi %a, %z : i32
    %c = arith.sitofp %b : i32 to f32
    %e = arith.mulf %c, %s : f32
    linalg.yield %e : f32
  } -> tensor<2x9x8xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %least = arith.constant 0xff800000 : f32
  %p = tensor.pad %d low[0, 1, 1] high[0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %least : f32
  } : tensor<2x9x8xf32> to tensor<2x11x10xf32>
  %none = arith.constant 0xff800000 : f32
  %em = tensor.empty() : tensor<2x9x8xf32>
  %init = linalg.fill ins(%none : f32) outs(%em : tensor<2x9x8xf32>) -> tensor<2x9x8xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, y, x, i, j) -> (c, y + i, x + j)>, affine_map<(c, y, x, i, j) -> (i, j)>, affine_map<(c, y, x, i, j) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%p, %w : tensor<2x11x10xf32>, tensor<3x3xf32>) outs(%init : tensor<2x9x8xf32>) {
  ^bb0(%in: f32, %k: f32, %out: f32):
    %a = arith.addf %out, %in : f32
    linalg.yield %a : f32
  } -> tensor<2x9x8xf32>
  return %m : tensor<2x9x8xf32>
}

// -----

// What is no argument is stored in 8 bits.
// CHECK-LABEL: func.func @computed
// CHECK: arith.subf
// CHECK: arith.divf
// CHECK: tensor.pad
// CHECK-NOT: arith.divf
// CHECK: return
func.func @computed(%x: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %en = tensor.empty() : tensor<2x9x8xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%en : tensor<2x9x8xf32>) {
  ^bb0(%in: f32, %other: f32, %out: f32):
    %a = arith.subf %in, %other : f32
    linalg.yield %a : f32
  } -> tensor<2x9x8xf32>
  %eq = tensor.empty() : tensor<2x9x8xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%n : tensor<2x9x8xf32>) outs(%eq : tensor<2x9x8xi8>) {
  ^bb0(%in: f32, %out: i8):
    %s = arith.constant 0.1 : f32
    %z = arith.constant 120.0 : f32
    %l = arith.constant 0.0 : f32
    %h = arith.constant 255.0 : f32
    %a = arith.divf %in, %s : f32
    %b = math.roundeven %a : f32
    %c = arith.addf %b, %z : f32
    %d = arith.maxnumf %c, %l : f32
    %e = arith.minnumf %d, %h : f32
    %f = arith.fptosi %e : f32 to i32
    %g = arith.trunci %f : i32 to i8
    linalg.yield %g : i8
  } -> tensor<2x9x8xi8>
  %ed = tensor.empty() : tensor<2x9x8xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q : tensor<2x9x8xi8>) outs(%ed : tensor<2x9x8xf32>) {
  ^bb0(%in: i8, %out: f32):
    %s = arith.constant 0.1 : f32
    %z = arith.constant 120 : i32
    %a = arith.extui %in : i8 to i32
    %b = arith.subi %a, %z : i32
    %c = arith.sitofp %b : i32 to f32
    %e = arith.mulf %c, %s : f32
    linalg.yield %e : f32
  } -> tensor<2x9x8xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %least = arith.constant 0xff800000 : f32
  %p = tensor.pad %d low[0, 1, 1] high[0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %least : f32
  } : tensor<2x9x8xf32> to tensor<2x11x10xf32>
  %none = arith.constant 0xff800000 : f32
  %em = tensor.empty() : tensor<2x9x8xf32>
  %init = linalg.fill ins(%none : f32) outs(%em : tensor<2x9x8xf32>) -> tensor<2x9x8xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, y, x, i, j) -> (c, y + i, x + j)>, affine_map<(c, y, x, i, j) -> (i, j)>, affine_map<(c, y, x, i, j) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%p, %w : tensor<2x11x10xf32>, tensor<3x3xf32>) outs(%init : tensor<2x9x8xf32>) {
  ^bb0(%in: f32, %k: f32, %out: f32):
    %a = arith.maximumf %out, %in : f32
    linalg.yield %a : f32
  } -> tensor<2x9x8xf32>
  return %m : tensor<2x9x8xf32>
}
