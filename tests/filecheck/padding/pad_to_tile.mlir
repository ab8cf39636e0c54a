// RUN: fuseline opt %s -p generalize-named-ops,pad-to-tile{oh=4\ ow=4\ oc=8\ ic=8\ m=4\ n=8\ k=16},canonicalize,dead-code --split-input-file --verify-each | filecheck %s

// Operands grow to the tiles, the elementwise ops grow along, with what they read besides, and one slice at the end cuts the result.
// CHECK-LABEL: func.func @contraction
// CHECK-DAG: tensor.pad %a {{.*}} high[3, 6]
// CHECK-DAG: tensor.pad %b {{.*}} high[6, 5]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x16xf32>, tensor<16x8xf32>) outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: tensor.pad %bias {{.*}} high[5]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x8xf32>, tensor<8xf32>) outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: math.exp
// CHECK: tensor.extract_slice %{{.*}}[0, 0] [5, 3] [1, 1] : tensor<8x8xf32> to tensor<5x3xf32>
// CHECK-NEXT: return
func.func @contraction(%a: tensor<5x10xf32>, %b: tensor<10x3xf32>, %bias: tensor<3xf32>) -> tensor<5x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<5x10xf32>, tensor<10x3xf32>) outs(%f : tensor<5x3xf32>) -> tensor<5x3xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c, %bias : tensor<5x3xf32>, tensor<3xf32>) outs(%e : tensor<5x3xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<5x3xf32>
  %r = linalg.exp ins(%d : tensor<5x3xf32>) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  return %r : tensor<5x3xf32>
}

// -----

// The image grows by what the windows of the grown result reach: 2 * (4 - 1) + 3 = 9 rows and columns.
// CHECK-LABEL: func.func @convolution
// CHECK: tensor.pad %x {{.*}} high[0, 2, 2, 5]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<1x9x9x8xf32>, tensor<3x3x8x8xf32>) outs(%{{.*}} : tensor<1x4x4x8xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<1x4x4x8xf32>)
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 0, 0] [1, 3, 3, 5] [1, 1, 1, 1]
// CHECK-NEXT: return
func.func @convolution(%x: tensor<1x7x7x3xf32>, %w: tensor<3x3x3x5xf32>) -> tensor<1x3x3x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x3x3x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3x3x5xf32>) -> tensor<1x3x3x5xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<1x7x7x3xf32>, tensor<3x3x3x5xf32>) outs(%f : tensor<1x3x3x5xf32>) -> tensor<1x3x3x5xf32>
  %r = linalg.exp ins(%c : tensor<1x3x3x5xf32>) outs(%e : tensor<1x3x3x5xf32>) -> tensor<1x3x3x5xf32>
  return %r : tensor<1x3x3x5xf32>
}

// -----

// The next contraction sums over what the first one grew: it reads the slice, filled up with zeros. Along its rows it reads what is there.
// CHECK-LABEL: func.func @chain
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: [[CUT:%.*]] = tensor.extract_slice %{{.*}}[0, 0] [5, 3] [1, 1]
// CHECK: tensor.pad [[CUT]] {{.*}} high[3, 13]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x16xf32>, tensor<16x8xf32>)
// CHECK: return
func.func @chain(%a: tensor<5x16xf32>, %b: tensor<16x3xf32>, %d: tensor<3x8xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<5x16xf32>, tensor<16x3xf32>) outs(%f : tensor<5x3xf32>) -> tensor<5x3xf32>
  %e1 = tensor.empty() : tensor<5x8xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<5x8xf32>) -> tensor<5x8xf32>
  %r = linalg.matmul ins(%c, %d : tensor<5x3xf32>, tensor<3x8xf32>) outs(%f1 : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

// -----

// Only the rows have grown, and the next contraction sums over none of them: it reads what is there.
// CHECK-LABEL: func.func @grown_rows
// CHECK: [[C:%.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<8x16xf32>)
// CHECK-NOT: tensor.extract_slice
// CHECK: linalg.generic {{.*}} ins([[C]], %{{.*}} : tensor<8x16xf32>, tensor<16x8xf32>)
// CHECK: tensor.extract_slice %{{.*}}[0, 0] [5, 8] [1, 1]
// CHECK-NEXT: return
func.func @grown_rows(%a: tensor<5x16xf32>, %b: tensor<16x16xf32>, %d: tensor<16x8xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x16xf32>) -> tensor<5x16xf32>
  %c = linalg.matmul ins(%a, %b : tensor<5x16xf32>, tensor<16x16xf32>) outs(%f : tensor<5x16xf32>) -> tensor<5x16xf32>
  %e1 = tensor.empty() : tensor<5x8xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<5x8xf32>) -> tensor<5x8xf32>
  %r = linalg.matmul ins(%c, %d : tensor<5x16xf32>, tensor<16x8xf32>) outs(%f1 : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

// -----

// Two grown results meet: both are read as they are.
// CHECK-LABEL: func.func @residual
// CHECK: [[C:%.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x16xf32>, tensor<16x8xf32>)
// CHECK: [[D:%.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x16xf32>, tensor<16x8xf32>)
// CHECK: linalg.generic {{.*}} ins([[C]], [[D]] : tensor<8x8xf32>, tensor<8x8xf32>)
// CHECK: tensor.extract_slice
// CHECK-NEXT: return
func.func @residual(%a: tensor<5x16xf32>, %a1: tensor<5x16xf32>, %b: tensor<16x8xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x8xf32>) -> tensor<5x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<5x16xf32>, tensor<16x8xf32>) outs(%f : tensor<5x8xf32>) -> tensor<5x8xf32>
  %d = linalg.matmul ins(%a1, %b : tensor<5x16xf32>, tensor<16x8xf32>) outs(%f : tensor<5x8xf32>) -> tensor<5x8xf32>
  %r = linalg.add ins(%c, %d : tensor<5x8xf32>, tensor<5x8xf32>) outs(%e : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

// -----

// A weight is filled up at compile time.
// CHECK-LABEL: func.func @constant
// CHECK: dense_resource<padded> : tensor<16x8xf32>
// CHECK-NOT: tensor.pad
// CHECK: linalg.generic
func.func @constant(%a: tensor<4x16xf32>) -> tensor<4x2xf32> {
  %b = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 9.0]]> : tensor<16x2xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x16xf32>, tensor<16x2xf32>) outs(%f : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %c : tensor<4x2xf32>
}

// -----

// Whole tiles stay as they are.
// CHECK-LABEL: func.func @whole_tiles
// CHECK-NOT: tensor.pad
// CHECK-NOT: tensor.extract_slice
// CHECK: return
func.func @whole_tiles(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x16xf32>, tensor<16x8xf32>) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}

// -----

// Refused: a reduction reads the slice, for what lies behind would be summed.
// CHECK-LABEL: func.func @reduction
// CHECK: [[CUT:%.*]] = tensor.extract_slice %{{.*}}[0, 0] [5, 8] [1, 1]
// CHECK: linalg.generic {{.*}} ins([[CUT]] : tensor<5x8xf32>)
func.func @reduction(%a: tensor<5x16xf32>, %b: tensor<16x8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x8xf32>) -> tensor<5x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<5x16xf32>, tensor<16x8xf32>) outs(%f : tensor<5x8xf32>) -> tensor<5x8xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]} ins(%c : tensor<5x8xf32>) outs(%f1 : tensor<8xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %s = arith.addf %acc, %x : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// Refused: the elements behind may be zero, by which no integer is divided.
// CHECK-LABEL: func.func @division
// CHECK: [[CUT:%.*]] = tensor.extract_slice %{{.*}}[0, 0] [5, 8] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%y, [[CUT]] : tensor<5x8xi32>, tensor<5x8xi32>)
// CHECK: arith.divui
func.func @division(%a: tensor<5x16xi32>, %b: tensor<16x8xi32>, %y: tensor<5x8xi32>) -> tensor<5x8xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<5x8xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<5x8xi32>) -> tensor<5x8xi32>
  %c = linalg.matmul ins(%a, %b : tensor<5x16xi32>, tensor<16x8xi32>) outs(%f : tensor<5x8xi32>) -> tensor<5x8xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y, %c : tensor<5x8xi32>, tensor<5x8xi32>) outs(%e : tensor<5x8xi32>) {
  ^bb0(%p: i32, %q: i32, %out: i32):
    %one = arith.constant 1 : i32
    %odd = arith.ori %q, %one : i32
    %s = arith.divui %p, %odd : i32
    linalg.yield %s : i32
  } -> tensor<5x8xi32>
  return %r : tensor<5x8xi32>
}

// -----

// Refused: rows grow to 12, columns to 16, and one loop cannot have both lengths. The sum with the transpose reads the slice.
// CHECK-LABEL: func.func @two_lengths
// CHECK: [[CUT:%.*]] = tensor.extract_slice %{{.*}}[0, 0] [9, 9] [1, 1] : tensor<12x16xf32> to tensor<9x9xf32>
// CHECK: linalg.generic {{.*}} ins([[CUT]], [[CUT]] : tensor<9x9xf32>, tensor<9x9xf32>)
func.func @two_lengths(%a: tensor<9x16xf32>, %b: tensor<16x9xf32>) -> tensor<9x9xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<9x9xf32>) -> tensor<9x9xf32>
  %c = linalg.matmul ins(%a, %b : tensor<9x16xf32>, tensor<16x9xf32>) outs(%f : tensor<9x9xf32>) -> tensor<9x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c, %c : tensor<9x9xf32>, tensor<9x9xf32>) outs(%e : tensor<9x9xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<9x9xf32>
  return %r : tensor<9x9xf32>
}

// -----

// Refused: a reader of one row only, for which no loop can grow.
// CHECK-LABEL: func.func @one_row
// CHECK: [[CUT:%.*]] = tensor.extract_slice %{{.*}}[0, 0] [5, 8] [1, 1]
// CHECK: linalg.generic {{.*}} ins([[CUT]] : tensor<5x8xf32>)
func.func @one_row(%a: tensor<5x16xf32>, %b: tensor<16x8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x8xf32>) -> tensor<5x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<5x16xf32>, tensor<16x8xf32>) outs(%f : tensor<5x8xf32>) -> tensor<5x8xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(j) -> (0, j)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]} ins(%c : tensor<5x8xf32>) outs(%e1 : tensor<8xf32>) {
  ^bb0(%p: f32, %out: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// Refused: twice as many rows of another operand would be read than there are.
// CHECK-LABEL: func.func @every_other_row
// CHECK: [[CUT:%.*]] = tensor.extract_slice %{{.*}}[0, 0] [5, 8] [1, 1]
// CHECK: linalg.generic {{.*}} ins([[CUT]], %y : tensor<5x8xf32>, tensor<9x8xf32>)
func.func @every_other_row(%a: tensor<5x16xf32>, %b: tensor<16x8xf32>, %y: tensor<9x8xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x8xf32>) -> tensor<5x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<5x16xf32>, tensor<16x8xf32>) outs(%f : tensor<5x8xf32>) -> tensor<5x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i * 2, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c, %y : tensor<5x8xf32>, tensor<9x8xf32>) outs(%e : tensor<5x8xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

// -----

// Rows that only the run counts stay as they are, in a target's tiles or not; the summed loop and the columns grow, and so does what follows.
// CHECK-LABEL: func.func @unknown_rows
// CHECK-DAG: tensor.pad %a {{.*}} high[0, 6]
// CHECK-DAG: tensor.pad %b {{.*}} high[6, 3]
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<?x8xf32>)
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<?x8xf32>)
// CHECK: tensor.extract_slice %{{.*}}[0, 0] [%{{.*}}, 5] [1, 1] : tensor<?x8xf32> to tensor<?x5xf32>
// CHECK-NEXT: return
func.func @unknown_rows(%a: tensor<?x10xf32>, %b: tensor<10x5xf32>) -> tensor<?x5xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c0 : tensor<?x10xf32>
  %e = tensor.empty(%n) : tensor<?x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  %c = linalg.matmul ins(%a, %b : tensor<?x10xf32>, tensor<10x5xf32>) outs(%f : tensor<?x5xf32>) -> tensor<?x5xf32>
  %r = linalg.exp ins(%c : tensor<?x5xf32>) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  return %r : tensor<?x5xf32>
}

// -----

// %r is computed from the slice of %c and grows with nothing: what adds the two stays with it.
// CHECK-LABEL: func.func @computed_from_the_slice
// CHECK: [[CUT:%.*]] = tensor.extract_slice %{{.*}}[0, 0] [5, 3] [1, 1] : tensor<8x8xf32> to tensor<5x3xf32>
// CHECK: linalg.generic {{.*}} ins([[CUT]]
// CHECK: linalg.generic {{.*}} ins([[CUT]], %{{.*}} : tensor<5x3xf32>, tensor<5xf32>) outs(%{{.*}} : tensor<5x3xf32>)
// CHECK: return
func.func @computed_from_the_slice(%a: tensor<5x16xf32>, %b: tensor<16x3xf32>) -> tensor<5x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<5x16xf32>, tensor<16x3xf32>) outs(%f : tensor<5x3xf32>) -> tensor<5x3xf32>
  %e1 = tensor.empty() : tensor<5xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<5xf32>) -> tensor<5xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%c : tensor<5x3xf32>) outs(%f1 : tensor<5xf32>) {
  ^bb0(%x: f32, %t: f32):
    %s = arith.maximumf %x, %t : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c, %m : tensor<5x3xf32>, tensor<5xf32>) outs(%e : tensor<5x3xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %s = arith.subf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<5x3xf32>
  return %r : tensor<5x3xf32>
}
