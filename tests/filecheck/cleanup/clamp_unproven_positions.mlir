// RUN: fuseline opt %s -p clamp-unproven-positions --verify-each --print-locations --split-input-file | filecheck %s
// RUN: fuseline opt %s -p clamp-unproven-positions,clamp-unproven-positions --verify-each --print-locations --split-input-file | filecheck %s

// Data may name any place: it is brought inside at both ends, once.
// CHECK-LABEL: func.func @data
// CHECK: %[[LAST:.*]] = arith.constant 5 : index
// CHECK-NEXT: %[[LOW:.*]] = arith.minsi %p, %[[LAST]] : index
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[AT:.*]] = arith.maxsi %[[LOW]], %[[ZERO]] : index
// CHECK-NEXT: tensor.extract %x[%[[AT]]] : tensor<6xf32>
// CHECK-NOT: arith.maxsi
// CHECK: loc("read")
func.func @data(%x: tensor<6xf32>, %i: tensor<4xi64>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%fed: i64, %out: f32):
    %p = arith.index_cast %fed : i64 to index
    %s = tensor.extract %x[%p] : tensor<6xf32>
    linalg.yield %s : f32
  } -> tensor<4xf32> loc("read")
  return %r : tensor<4xf32>
}

// -----

// A byte names one of 256 places: inside of a table of as many, and of a smaller one never below it.
// CHECK-LABEL: func.func @bytes
// CHECK: tensor.extract %t[%p] : tensor<256xf32>
// CHECK: %[[AT:.*]] = arith.minsi %p
// CHECK-NEXT: tensor.extract %x[%[[AT]]] : tensor<6xf32>
func.func @bytes(%t: tensor<256xf32>, %x: tensor<6xf32>, %i: tensor<4xi8>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : tensor<4xi8>) outs(%e : tensor<4xf32>) {
  ^bb0(%fed: i8, %out: f32):
    %p = arith.index_castui %fed : i8 to index
    %s = tensor.extract %t[%p] : tensor<256xf32>
    %u = tensor.extract %x[%p] : tensor<6xf32>
    %v = arith.addf %s, %u : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// What a lowering has clamped, and what loops alone say, stays.
// CHECK-LABEL: func.func @inside
// CHECK: tensor.extract %x[%at, %back] : tensor<6x4xf32>
func.func @inside(%x: tensor<6x4xf32>, %i: tensor<4xi64>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%fed: i64, %out: f32):
    %zero = arith.constant 0 : i64
    %five = arith.constant 5 : i64
    %three = arith.constant 3 : index
    %low = arith.maxsi %fed, %zero : i64
    %high = arith.minsi %low, %five : i64
    %at = arith.index_cast %high : i64 to index
    %here = linalg.index 0 : index
    %back = arith.subi %three, %here : index
    %s = tensor.extract %x[%at, %back] : tensor<6x4xf32>
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
