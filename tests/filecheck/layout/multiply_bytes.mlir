// RUN: fuseline opt %s -p multiply-bytes --target cpu:avx512vnni --split-input-file --verify-each | filecheck %s

// What is stored with a sign is stored without one; a zero point of -128 adds nothing to the sums.
// CHECK-LABEL: func.func @from_zero
// CHECK: arith.trunci %{{.*}} : i32 to i8
// CHECK: arith.constant -128 : i8
// CHECK: arith.xori %{{.*}} : i8
// CHECK-NOT: tensor<4x2xi16>
// CHECK: ^bb0(%{{.*}}: i8, %{{.*}}: i8, %{{.*}}: i32):
// CHECK: arith.extui %{{.*}} : i8 to i32
// CHECK: arith.extsi %{{.*}} : i8 to i32
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @from_zero(%x: tensor<4x2xf32>) -> tensor<4x3xi32> {
  %w = arith.constant dense<[[1, -2, 127], [-128, 5, 0]]> : tensor<2x3xi8>
  %qe = tensor.empty() : tensor<4x2xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x2xf32>) outs(%qe : tensor<4x2xi8>) {
  ^bb0(%in: f32, %out: i8):
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %over = arith.maxnumf %in, %low : f32
    %under = arith.minnumf %over, %high : f32
    %i = arith.fptosi %under : f32 to i32
    %t = arith.trunci %i : i32 to i8
    linalg.yield %t : i8
  } -> tensor<4x2xi8>
  %we = tensor.empty() : tensor<4x2xi16>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<4x2xi8>) outs(%we : tensor<4x2xi16>) {
  ^bb0(%in: i8, %out: i16):
    %e = arith.extsi %in : i8 to i32
    %z = arith.constant -128 : i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<4x2xi16>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<4x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<4x3xi32>) -> tensor<4x3xi32>
  %product = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%wide, %w : tensor<4x2xi16>, tensor<2x3xi8>) outs(%start : tensor<4x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xw = arith.extsi %a : i16 to i32
    %yw = arith.extsi %b : i8 to i32
    %m = arith.muli %xw, %yw : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<4x3xi32>
  return %product : tensor<4x3xi32>
}

// -----

// Another zero point adds that many times the sums of the weights of each column: (-127, 3, 127) times -131.
// CHECK-LABEL: func.func @zero_point
// CHECK: arith.xori
// CHECK: arith.extui
// CHECK: arith.constant dense_resource<column_sums> : tensor<3xi32>
// CHECK: arith.addi
// CHECK: return
// CHECK: column_sums: "0x04000000fd40000077feffff03bfffff"
func.func @zero_point(%x: tensor<4x2xf32>) -> tensor<4x3xi32> {
  %w = arith.constant dense<[[1, -2, 127], [-128, 5, 0]]> : tensor<2x3xi8>
  %qe = tensor.empty() : tensor<4x2xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x2xf32>) outs(%qe : tensor<4x2xi8>) {
  ^bb0(%in: f32, %out: i8):
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %over = arith.maxnumf %in, %low : f32
    %under = arith.minnumf %over, %high : f32
    %i = arith.fptosi %under : f32 to i32
    %t = arith.trunci %i : i32 to i8
    linalg.yield %t : i8
  } -> tensor<4x2xi8>
  %we = tensor.empty() : tensor<4x2xi16>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<4x2xi8>) outs(%we : tensor<4x2xi16>) {
  ^bb0(%in: i8, %out: i16):
    %e = arith.extsi %in : i8 to i32
    %z = arith.constant 3 : i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<4x2xi16>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<4x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<4x3xi32>) -> tensor<4x3xi32>
  %product = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%wide, %w : tensor<4x2xi16>, tensor<2x3xi8>) outs(%start : tensor<4x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xw = arith.extsi %a : i16 to i32
    %yw = arith.extsi %b : i8 to i32
    %m = arith.muli %xw, %yw : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<4x3xi32>
  return %product : tensor<4x3xi32>
}

// -----

// Bytes without a sign are read as they are.
// CHECK-LABEL: func.func @without_sign
// CHECK-NOT: xori
// CHECK: ins(%x, %{{.*}} : tensor<4x2xi8>, tensor<2x3xi8>)
// CHECK: arith.extui
// CHECK: return
func.func @without_sign(%x: tensor<4x2xi8>) -> tensor<4x3xi32> {
  %w = arith.constant dense<[[1, -2, 127], [-128, 5, 0]]> : tensor<2x3xi8>
  %we = tensor.empty() : tensor<4x2xi16>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x2xi8>) outs(%we : tensor<4x2xi16>) {
  ^bb0(%in: i8, %out: i16):
    %e = arith.extui %in : i8 to i32
    %z = arith.constant 0 : i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<4x2xi16>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<4x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<4x3xi32>) -> tensor<4x3xi32>
  %product = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%wide, %w : tensor<4x2xi16>, tensor<2x3xi8>) outs(%start : tensor<4x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xw = arith.extsi %a : i16 to i32
    %yw = arith.extsi %b : i8 to i32
    %m = arith.muli %xw, %yw : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<4x3xi32>
  return %product : tensor<4x3xi32>
}

// -----

// Those with a sign that the caller has, or that an op reads which does not go element by element, are turned anew.
// CHECK-LABEL: func.func @given
// CHECK: arith.xori
// CHECK: arith.extui
// CHECK: return %{{.*}}, %x
func.func @given(%x: tensor<4x2xi8>) -> (tensor<4x3xi32>, tensor<4x2xi8>) {
  %w = arith.constant dense<[[1, -2, 127], [-128, 5, 0]]> : tensor<2x3xi8>
  %we = tensor.empty() : tensor<4x2xi16>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x2xi8>) outs(%we : tensor<4x2xi16>) {
  ^bb0(%in: i8, %out: i16):
    %e = arith.extsi %in : i8 to i32
    %z = arith.constant -128 : i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<4x2xi16>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<4x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<4x3xi32>) -> tensor<4x3xi32>
  %product = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%wide, %w : tensor<4x2xi16>, tensor<2x3xi8>) outs(%start : tensor<4x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xw = arith.extsi %a : i16 to i32
    %yw = arith.extsi %b : i8 to i32
    %m = arith.muli %xw, %yw : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<4x3xi32>
  return %product, %x : tensor<4x3xi32>, tensor<4x2xi8>
}

// -----

// What else reads the bytes, or what is centred, computes it from what is stored.
// CHECK-LABEL: func.func @read_by_others
// CHECK: arith.xori
// CHECK-NOT: tensor<4x2xi16>
// CHECK: arith.xori
// CHECK: arith.sitofp
// CHECK-NOT: tensor<4x2xi16>
// CHECK: arith.extui %{{.*}} : i8 to i16
// CHECK: arith.sitofp
// CHECK: return
func.func @read_by_others(%x: tensor<4x2xf32>) -> (tensor<4x3xi32>, tensor<4x2xf32>, tensor<4x2xf32>) {
  %w = arith.constant dense<[[1, -2, 127], [-128, 5, 0]]> : tensor<2x3xi8>
  %qe = tensor.empty() : tensor<4x2xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x2xf32>) outs(%qe : tensor<4x2xi8>) {
  ^bb0(%in: f32, %out: i8):
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %over = arith.maxnumf %in, %low : f32
    %under = arith.minnumf %over, %high : f32
    %i = arith.fptosi %under : f32 to i32
    %t = arith.trunci %i : i32 to i8
    linalg.yield %t : i8
  } -> tensor<4x2xi8>
  %we = tensor.empty() : tensor<4x2xi16>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<4x2xi8>) outs(%we : tensor<4x2xi16>) {
  ^bb0(%in: i8, %out: i16):
    %e = arith.extsi %in : i8 to i32
    %z = arith.constant -128 : i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<4x2xi16>
  %fe = tensor.empty() : tensor<4x2xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<4x2xi8>) outs(%fe : tensor<4x2xf32>) {
  ^bb0(%in: i8, %out: f32):
    %v = arith.sitofp %in : i8 to f32
    linalg.yield %v : f32
  } -> tensor<4x2xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%wide : tensor<4x2xi16>) outs(%fe : tensor<4x2xf32>) {
  ^bb0(%in: i16, %out: f32):
    %v = arith.sitofp %in : i16 to f32
    linalg.yield %v : f32
  } -> tensor<4x2xf32>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<4x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<4x3xi32>) -> tensor<4x3xi32>
  %product = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%wide, %w : tensor<4x2xi16>, tensor<2x3xi8>) outs(%start : tensor<4x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xw = arith.extsi %a : i16 to i32
    %yw = arith.extsi %b : i8 to i32
    %m = arith.muli %xw, %yw : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<4x3xi32>
  return %product, %f, %g : tensor<4x3xi32>, tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

// Zeros around an image are the zero point in its bytes: 200 is stored as -56.
// CHECK-LABEL: func.func @padded
// CHECK: arith.constant -56 : i8
// CHECK: tensor.pad
// CHECK: tensor<7x7x2xi8>
// CHECK: arith.extui
// CHECK: arith.addi
// CHECK: return
func.func @padded(%x: tensor<5x5x2xi8>) -> tensor<5x5x3xi32> {
  %w = arith.constant dense<3> : tensor<3x3x2x3xi8>
  %we = tensor.empty() : tensor<5x5x2xi16>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j, c) -> (i, j, c)>, affine_map<(i, j, c) -> (i, j, c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<5x5x2xi8>) outs(%we : tensor<5x5x2xi16>) {
  ^bb0(%in: i8, %out: i16):
    %e = arith.extui %in : i8 to i32
    %z = arith.constant 200 : i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<5x5x2xi16>
  %nothing = arith.constant 0 : i16
  %padded = tensor.pad %wide low[1, 1, 0] high[1, 1, 0] {
  ^bb0(%p: index, %r: index, %s: index):
    tensor.yield %nothing : i16
  } : tensor<5x5x2xi16> to tensor<7x7x2xi16>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<5x5x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<5x5x3xi32>) -> tensor<5x5x3xi32>
  %conv = linalg.generic {indexing_maps = [affine_map<(r, q, f, u, v, c) -> (r + u, q + v, c)>, affine_map<(r, q, f, u, v, c) -> (u, v, c, f)>, affine_map<(r, q, f, u, v, c) -> (r, q, f)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %w : tensor<7x7x2xi16>, tensor<3x3x2x3xi8>) outs(%start : tensor<5x5x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xa = arith.extsi %a : i16 to i32
    %ya = arith.extsi %b : i8 to i32
    %m = arith.muli %xa, %ya : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<5x5x3xi32>
  return %conv : tensor<5x5x3xi32>
}

// -----

// No byte is 7 less than nothing: padded, such an image stays as it is.
// CHECK-LABEL: func.func @no_byte_is_the_zero
// CHECK: arith.subi
// CHECK-NOT: arith.extui %{{.*}} : i8 to i32
// CHECK: tensor<7x7x2xi16>
// CHECK: return
func.func @no_byte_is_the_zero(%x: tensor<5x5x2xi8>) -> tensor<5x5x3xi32> {
  %w = arith.constant dense<3> : tensor<3x3x2x3xi8>
  %we = tensor.empty() : tensor<5x5x2xi16>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j, c) -> (i, j, c)>, affine_map<(i, j, c) -> (i, j, c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<5x5x2xi8>) outs(%we : tensor<5x5x2xi16>) {
  ^bb0(%in: i8, %out: i16):
    %e = arith.extui %in : i8 to i32
    %z = arith.constant -7 : i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<5x5x2xi16>
  %nothing = arith.constant 0 : i16
  %padded = tensor.pad %wide low[1, 1, 0] high[1, 1, 0] {
  ^bb0(%p: index, %r: index, %s: index):
    tensor.yield %nothing : i16
  } : tensor<5x5x2xi16> to tensor<7x7x2xi16>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<5x5x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<5x5x3xi32>) -> tensor<5x5x3xi32>
  %conv = linalg.generic {indexing_maps = [affine_map<(r, q, f, u, v, c) -> (r + u, q + v, c)>, affine_map<(r, q, f, u, v, c) -> (u, v, c, f)>, affine_map<(r, q, f, u, v, c) -> (r, q, f)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %w : tensor<7x7x2xi16>, tensor<3x3x2x3xi8>) outs(%start : tensor<5x5x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xa = arith.extsi %a : i16 to i32
    %ya = arith.extsi %b : i8 to i32
    %m = arith.muli %xa, %ya : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<5x5x3xi32>
  return %conv : tensor<5x5x3xi32>
}

// -----

// What is centred and moved at once is moved in 8 bits.
// CHECK-LABEL: func.func @moved
// CHECK-NOT: tensor<4x2xi16>
// CHECK: arith.xori
// CHECK: -> tensor<4x2xi8>
// CHECK: arith.extui
// CHECK: return
func.func @moved(%x: tensor<2x4xi8>) -> tensor<4x3xi32> {
  %w = arith.constant dense<[[1, -2, 127], [-128, 5, 0]]> : tensor<2x3xi8>
  %ye = tensor.empty() : tensor<2x4xi8>
  %turned = tensor.empty() : tensor<4x2xi16>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<2x4xi8>) outs(%turned : tensor<4x2xi16>) {
  ^bb0(%in: i8, %out: i16):
    %e = arith.extsi %in : i8 to i32
    %z = arith.constant -128 : i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<4x2xi16>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<4x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<4x3xi32>) -> tensor<4x3xi32>
  %product = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%wide, %w : tensor<4x2xi16>, tensor<2x3xi8>) outs(%start : tensor<4x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xw = arith.extsi %a : i16 to i32
    %yw = arith.extsi %b : i8 to i32
    %m = arith.muli %xw, %yw : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<4x3xi32>
  return %product : tensor<4x3xi32>
}

// -----

// Bytes that are joined are joined in 8 bits, where all have one zero point.
// CHECK-LABEL: func.func @joined
// CHECK: tensor.concat dim(1) %x, %y : (tensor<4x2xi8>, tensor<4x2xi8>) -> tensor<4x4xi8>
// CHECK: arith.extui
// CHECK: return
func.func @joined(%x: tensor<4x2xi8>, %y: tensor<4x2xi8>) -> tensor<4x3xi32> {
  %w = arith.constant dense<3> : tensor<4x3xi8>
  %we = tensor.empty() : tensor<4x2xi16>
  %first = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x2xi8>) outs(%we : tensor<4x2xi16>) {
  ^bb0(%in: i8, %out: i16):
    %e = arith.extui %in : i8 to i32
    %z = arith.constant 7 : i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<4x2xi16>
  %we2 = tensor.empty() : tensor<4x2xi16>
  %second = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x2xi8>) outs(%we2 : tensor<4x2xi16>) {
  ^bb0(%in: i8, %out: i16):
    %e = arith.extui %in : i8 to i32
    %z = arith.constant 7 : i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<4x2xi16>
  %both = tensor.concat dim(1) %first, %second : (tensor<4x2xi16>, tensor<4x2xi16>) -> tensor<4x4xi16>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<4x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<4x3xi32>) -> tensor<4x3xi32>
  %product = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%both, %w : tensor<4x4xi16>, tensor<4x3xi8>) outs(%start : tensor<4x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xw = arith.extsi %a : i16 to i32
    %yw = arith.extsi %b : i8 to i32
    %m = arith.muli %xw, %yw : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<4x3xi32>
  return %product : tensor<4x3xi32>
}

// -----

// With two zero points they are not.
// CHECK-LABEL: func.func @joined_of_two
// CHECK: tensor.concat {{.*}} -> tensor<4x4xi16>
// CHECK-NOT: extui
// CHECK: return
func.func @joined_of_two(%x: tensor<4x2xi8>, %y: tensor<4x2xi8>) -> tensor<4x3xi32> {
  %w = arith.constant dense<3> : tensor<4x3xi8>
  %we = tensor.empty() : tensor<4x2xi16>
  %first = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x2xi8>) outs(%we : tensor<4x2xi16>) {
  ^bb0(%in: i8, %out: i16):
    %e = arith.extui %in : i8 to i32
    %z = arith.constant 7 : i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<4x2xi16>
  %we2 = tensor.empty() : tensor<4x2xi16>
  %second = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x2xi8>) outs(%we2 : tensor<4x2xi16>) {
  ^bb0(%in: i8, %out: i16):
    %e = arith.extui %in : i8 to i32
    %z = arith.constant 8 : i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<4x2xi16>
  %both = tensor.concat dim(1) %first, %second : (tensor<4x2xi16>, tensor<4x2xi16>) -> tensor<4x4xi16>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<4x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<4x3xi32>) -> tensor<4x3xi32>
  %product = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%both, %w : tensor<4x4xi16>, tensor<4x3xi8>) outs(%start : tensor<4x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xw = arith.extsi %a : i16 to i32
    %yw = arith.extsi %b : i8 to i32
    %m = arith.muli %xw, %yw : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<4x3xi32>
  return %product : tensor<4x3xi32>
}

// -----

// A zero point that only the run knows is multiplied by the sums of the weights.
// CHECK-LABEL: func.func @zero_point_of_the_run
// CHECK: ins(%x, %{{.*}} : tensor<4x2xi8>, tensor<2x3xi8>)
// CHECK: ins(%{{.*}}, %{{.*}}, %zp : tensor<4x3xi32>, tensor<3xi32>, tensor<i8>)
// CHECK: arith.extui
// CHECK: arith.constant 0 : i32
// CHECK: arith.subi
// CHECK: arith.muli
// CHECK: arith.addi
// CHECK: return
func.func @zero_point_of_the_run(%x: tensor<4x2xi8>, %zp: tensor<i8>) -> tensor<4x3xi32> {
  %w = arith.constant dense<[[1, -2, 127], [-128, 5, 0]]> : tensor<2x3xi8>
  %we = tensor.empty() : tensor<4x2xi16>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %zp : tensor<4x2xi8>, tensor<i8>) outs(%we : tensor<4x2xi16>) {
  ^bb0(%in: i8, %zero_point: i8, %out: i16):
    %e = arith.extui %in : i8 to i32
    %z = arith.extui %zero_point : i8 to i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<4x2xi16>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<4x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<4x3xi32>) -> tensor<4x3xi32>
  %product = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%wide, %w : tensor<4x2xi16>, tensor<2x3xi8>) outs(%start : tensor<4x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xw = arith.extsi %a : i16 to i32
    %yw = arith.extsi %b : i8 to i32
    %m = arith.muli %xw, %yw : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<4x3xi32>
  return %product : tensor<4x3xi32>
}

// -----

// With a sign: bytes are 128 more than they are stored as.
// CHECK-LABEL: func.func @with_a_sign
// CHECK: arith.xori
// CHECK: ins(%{{.*}}, %{{.*}}, %zp : tensor<4x3xi32>, tensor<3xi32>, tensor<i8>)
// CHECK: arith.extsi
// CHECK: arith.constant -128 : i32
// CHECK: arith.subi
// CHECK: return
func.func @with_a_sign(%x: tensor<4x2xi8>, %zp: tensor<i8>) -> tensor<4x3xi32> {
  %w = arith.constant dense<[[1, -2, 127], [-128, 5, 0]]> : tensor<2x3xi8>
  %we = tensor.empty() : tensor<4x2xi16>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %zp : tensor<4x2xi8>, tensor<i8>) outs(%we : tensor<4x2xi16>) {
  ^bb0(%in: i8, %zero_point: i8, %out: i16):
    %e = arith.extsi %in : i8 to i32
    %z = arith.extsi %zero_point : i8 to i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<4x2xi16>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<4x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<4x3xi32>) -> tensor<4x3xi32>
  %product = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%wide, %w : tensor<4x2xi16>, tensor<2x3xi8>) outs(%start : tensor<4x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xw = arith.extsi %a : i16 to i32
    %yw = arith.extsi %b : i8 to i32
    %m = arith.muli %xw, %yw : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<4x3xi32>
  return %product : tensor<4x3xi32>
}

// -----

// Which byte is the zero of a padded image is not known here.
// CHECK-LABEL: func.func @padded_at_run_time
// CHECK-NOT: tensor<7x7x2xi8>
// CHECK: return
func.func @padded_at_run_time(%x: tensor<5x5x2xi8>, %zp: tensor<i8>) -> tensor<5x5x3xi32> {
  %w = arith.constant dense<3> : tensor<3x3x2x3xi8>
  %we = tensor.empty() : tensor<5x5x2xi16>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j, c) -> (i, j, c)>, affine_map<(i, j, c) -> ()>, affine_map<(i, j, c) -> (i, j, c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %zp : tensor<5x5x2xi8>, tensor<i8>) outs(%we : tensor<5x5x2xi16>) {
  ^bb0(%in: i8, %zero_point: i8, %out: i16):
    %e = arith.extui %in : i8 to i32
    %z = arith.extui %zero_point : i8 to i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<5x5x2xi16>
  %nothing = arith.constant 0 : i16
  %padded = tensor.pad %wide low[1, 1, 0] high[1, 1, 0] {
  ^bb0(%p: index, %r: index, %s: index):
    tensor.yield %nothing : i16
  } : tensor<5x5x2xi16> to tensor<7x7x2xi16>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<5x5x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<5x5x3xi32>) -> tensor<5x5x3xi32>
  %conv = linalg.generic {indexing_maps = [affine_map<(r, q, f, u, v, c) -> (r + u, q + v, c)>, affine_map<(r, q, f, u, v, c) -> (u, v, c, f)>, affine_map<(r, q, f, u, v, c) -> (r, q, f)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %w : tensor<7x7x2xi16>, tensor<3x3x2x3xi8>) outs(%start : tensor<5x5x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xa = arith.extsi %a : i16 to i32
    %ya = arith.extsi %b : i8 to i32
    %m = arith.muli %xa, %ya : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<5x5x3xi32>
  return %conv : tensor<5x5x3xi32>
}

// -----

// Weights that are fed, and rows that are not made of bytes, are multiplied as they are.
// CHECK-LABEL: func.func @fed_weights
// CHECK: ins(%{{.*}}, %w : tensor<4x2xi16>, tensor<2x3xi8>)
// CHECK: return
func.func @fed_weights(%x: tensor<4x2xi8>, %w: tensor<2x3xi8>) -> tensor<4x3xi32> {
  %we = tensor.empty() : tensor<4x2xi16>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x2xi8>) outs(%we : tensor<4x2xi16>) {
  ^bb0(%in: i8, %out: i16):
    %e = arith.extui %in : i8 to i32
    %z = arith.constant 0 : i32
    %d = arith.subi %e, %z : i32
    %t = arith.trunci %d : i32 to i16
    linalg.yield %t : i16
  } -> tensor<4x2xi16>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<4x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<4x3xi32>) -> tensor<4x3xi32>
  %product = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%wide, %w : tensor<4x2xi16>, tensor<2x3xi8>) outs(%start : tensor<4x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xw = arith.extsi %a : i16 to i32
    %yw = arith.extsi %b : i8 to i32
    %m = arith.muli %xw, %yw : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<4x3xi32>
  return %product : tensor<4x3xi32>
}

// -----

// CHECK-LABEL: func.func @rows_of_16_bits
// CHECK: ins(%x, %{{.*}} : tensor<4x2xi16>, tensor<2x3xi8>)
// CHECK: return
func.func @rows_of_16_bits(%x: tensor<4x2xi16>) -> tensor<4x3xi32> {
  %w = arith.constant dense<[[1, -2, 127], [-128, 5, 0]]> : tensor<2x3xi8>
  %zero = arith.constant 0 : i32
  %te = tensor.empty() : tensor<4x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%te : tensor<4x3xi32>) -> tensor<4x3xi32>
  %product = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4x2xi16>, tensor<2x3xi8>) outs(%start : tensor<4x3xi32>) {
  ^bb0(%a: i16, %b: i8, %c: i32):
    %xw = arith.extsi %a : i16 to i32
    %yw = arith.extsi %b : i8 to i32
    %m = arith.muli %xw, %yw : i32
    %s = arith.addi %c, %m : i32
    linalg.yield %s : i32
  } -> tensor<4x3xi32>
  return %product : tensor<4x3xi32>
}
