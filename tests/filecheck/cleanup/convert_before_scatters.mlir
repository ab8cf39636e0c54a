// RUN: fuseline opt %s -p convert-before-scatters --split-input-file --verify-each | filecheck %s

// What is put, and what it is put into, are converted; the scatter has the type that is asked for.
// CHECK-LABEL: func.func @converted
// CHECK: [[PUT:%.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<4x3xf16>)
// CHECK: arith.extf
// CHECK: } -> tensor<4x3xf32>
// CHECK: [[INTO:%.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<9x3xf16>)
// CHECK: } -> tensor<9x3xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, [[PUT]] : tensor<4xi64>, tensor<4x3xf32>) outs([[INTO]] : tensor<9x3xf32>)
// CHECK: arith.select {{.*}} : f32
// CHECK-NOT: linalg.generic
// CHECK: func.return
func.func @converted(%x: tensor<9x3xf16>, %at: tensor<4xi64>, %u: tensor<4x3xf16>) -> tensor<9x3xf32> {
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%at, %u : tensor<4xi64>, tensor<4x3xf16>) outs(%x : tensor<9x3xf16>) {
  ^bb0(%p: i64, %v: f16, %o: f16):
    %i = linalg.index 0 : index
    %q = arith.index_cast %p : i64 to index
    %c = arith.cmpi eq, %i, %q : index
    %r = arith.select %c, %v, %o : f16
    linalg.yield %r : f16
  } -> tensor<9x3xf16>
  %e = tensor.empty() : tensor<9x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<9x3xf16>) outs(%e : tensor<9x3xf32>) {
  ^bb0(%v: f16, %o: f32):
    %w = arith.extf %v : f16 to f32
    linalg.yield %w : f32
  } -> tensor<9x3xf32>
  return %y : tensor<9x3xf32>
}

// -----

// Sums are converted when they are complete; what others read stays; and so does what keeps its type.
// CHECK-LABEL: func.func @stays
// CHECK: arith.addf {{.*}} : f16
// CHECK: arith.extf
// CHECK: arith.select {{.*}} : f16
// CHECK: arith.extf
// CHECK: arith.select {{.*}} : f32
// CHECK: math.exp
// CHECK: func.return
func.func @stays(%x: tensor<9xf16>, %w: tensor<9xf32>, %at: tensor<4xi64>, %u: tensor<4xf16>, %t: tensor<4xf32>) -> (tensor<9xf32>, tensor<9xf16>, tensor<9xf32>, tensor<9xf32>) {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<9xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%at, %u : tensor<4xi64>, tensor<4xf16>) outs(%x : tensor<9xf16>) {
  ^bb0(%p: i64, %v: f16, %o: f16):
    %i = linalg.index 0 : index
    %q = arith.index_cast %p : i64 to index
    %c = arith.cmpi eq, %i, %q : index
    %r = arith.select %c, %v, %zero : f16
    %s = arith.addf %o, %r : f16
    linalg.yield %s : f16
  } -> tensor<9xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<9xf16>) outs(%e : tensor<9xf32>) {
  ^bb0(%v: f16, %o: f32):
    %n = arith.extf %v : f16 to f32
    linalg.yield %n : f32
  } -> tensor<9xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%at, %u : tensor<4xi64>, tensor<4xf16>) outs(%x : tensor<9xf16>) {
  ^bb0(%p: i64, %v: f16, %o: f16):
    %i = linalg.index 0 : index
    %q = arith.index_cast %p : i64 to index
    %c = arith.cmpi eq, %i, %q : index
    %r = arith.select %c, %v, %o : f16
    linalg.yield %r : f16
  } -> tensor<9xf16>
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%b : tensor<9xf16>) outs(%e : tensor<9xf32>) {
  ^bb0(%v: f16, %o: f32):
    %n = arith.extf %v : f16 to f32
    linalg.yield %n : f32
  } -> tensor<9xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%at, %t : tensor<4xi64>, tensor<4xf32>) outs(%w : tensor<9xf32>) {
  ^bb0(%p: i64, %v: f32, %o: f32):
    %i = linalg.index 0 : index
    %q = arith.index_cast %p : i64 to index
    %c = arith.cmpi eq, %i, %q : index
    %r = arith.select %c, %v, %o : f32
    linalg.yield %r : f32
  } -> tensor<9xf32>
  %k = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%d : tensor<9xf32>) outs(%e : tensor<9xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = math.exp %v : f32
    linalg.yield %n : f32
  } -> tensor<9xf32>
  return %y, %b, %z, %k : tensor<9xf32>, tensor<9xf16>, tensor<9xf32>, tensor<9xf32>
}

// -----

// Truths are put as numbers of the type of what is chosen by them; they stay what they are where lines are columns of
// a large tensor.
// CHECK-LABEL: func.func @truths
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<9xf32>)
// CHECK: arith.cmpf une
// CHECK: arith.select {{.*}} : f32
// CHECK: func.return
func.func @truths(%m: tensor<9xi1>, %at: tensor<4xi64>, %u: tensor<4xi1>, %x: tensor<9xf32>) -> tensor<9xf32> {
  %s = linalg.generic {indexing_maps = [affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%at, %u : tensor<4xi64>, tensor<4xi1>) outs(%m : tensor<9xi1>) {
  ^bb0(%p: i64, %v: i1, %o: i1):
    %i = linalg.index 0 : index
    %q = arith.index_cast %p : i64 to index
    %c = arith.cmpi eq, %i, %q : index
    %r = arith.select %c, %v, %o : i1
    linalg.yield %r : i1
  } -> tensor<9xi1>
  %e = tensor.empty() : tensor<9xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%s, %x : tensor<9xi1>, tensor<9xf32>) outs(%e : tensor<9xf32>) {
  ^bb0(%v: i1, %w: f32, %o: f32):
    %n = arith.negf %w : f32
    %z = arith.select %v, %w, %n : f32
    linalg.yield %z : f32
  } -> tensor<9xf32>
  return %y : tensor<9xf32>
}

// CHECK-LABEL: func.func @columns
// CHECK: outs(%{{.*}} : tensor<900x90xi1>)
// CHECK-NOT: arith.cmpf
// CHECK: func.return
func.func @columns(%m: tensor<900x90xi1>, %at: tensor<4xi64>, %u: tensor<4x90xi1>, %x: tensor<900x90xf32>) -> tensor<900x90xf32> {
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%at, %u : tensor<4xi64>, tensor<4x90xi1>) outs(%m : tensor<900x90xi1>) {
  ^bb0(%p: i64, %v: i1, %o: i1):
    %i = linalg.index 0 : index
    %q = arith.index_cast %p : i64 to index
    %c = arith.cmpi eq, %i, %q : index
    %r = arith.select %c, %v, %o : i1
    linalg.yield %r : i1
  } -> tensor<900x90xi1>
  %e = tensor.empty() : tensor<900x90xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s, %x : tensor<900x90xi1>, tensor<900x90xf32>) outs(%e : tensor<900x90xf32>) {
  ^bb0(%v: i1, %w: f32, %o: f32):
    %n = arith.negf %w : f32
    %z = arith.select %v, %w, %n : f32
    linalg.yield %z : f32
  } -> tensor<900x90xf32>
  return %y : tensor<900x90xf32>
}
