// RUN: fuseline opt %s -p "form-dispatch-regions,elide-bitcasts,dead-code" --split-input-file --verify-each | filecheck %s

// The bits of an argument under another type, and back.
// CHECK-LABEL: func.func @borders
// CHECK-NOT: flow.dispatch.region
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%x : tensor<?x4xf32>)
// CHECK: arith.bitcast {{.*}} : f32 to i32
// CHECK: func.return %[[A]]
func.func @borders(%x: tensor<?x4xf32>) -> tensor<?x4xi32> {
  %c = arith.constant 0 : index
  %n = tensor.dim %x, %c : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xi32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xi32>) {
  ^bb0(%v: f32, %o: i32):
    %w = arith.bitcast %v : f32 to i32
    linalg.yield %w : i32
  } -> tensor<?x4xi32>
  return %a : tensor<?x4xi32>
}

// -----

// What computes with the bits, or puts them elsewhere, is a dispatch.
// CHECK-LABEL: func.func @computed
// CHECK: flow.dispatch.region
// CHECK: arith.addi
// CHECK: func.return
func.func @computed(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> (tensor<3x4xi32>, tensor<4x3xi32>) {
  %e = tensor.empty() : tensor<3x4xi32>
  %d = tensor.empty() : tensor<4x3xi32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x4xf32>) outs(%e : tensor<3x4xi32>) {
  ^bb0(%v: f32, %o: i32):
    %w = arith.bitcast %v : f32 to i32
    %u = arith.addi %w, %w : i32
    linalg.yield %u : i32
  } -> tensor<3x4xi32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<3x4xf32>) outs(%d : tensor<4x3xi32>) {
  ^bb0(%v: f32, %o: i32):
    %w = arith.bitcast %v : f32 to i32
    linalg.yield %w : i32
  } -> tensor<4x3xi32>
  return %a, %b : tensor<3x4xi32>, tensor<4x3xi32>
}

// -----

// Halves that were widened on the way from one type to the other.
// CHECK-LABEL: func.func @halves
// CHECK-NOT: flow.dispatch.region
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%x : tensor<8xi16>)
// CHECK: arith.bitcast {{.*}} : i16 to bf16
// CHECK-NOT: linalg.generic
// CHECK: func.return %[[A]]
func.func @halves(%x: tensor<8xi16>) -> tensor<8xbf16> {
  %e = tensor.empty() : tensor<8xf32>
  %d = tensor.empty() : tensor<8xbf16>
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xi16>) outs(%e : tensor<8xf32>) {
  ^bb0(%v: i16, %o: f32):
    %w = arith.bitcast %v : i16 to bf16
    %u = arith.extf %w : bf16 to f32
    linalg.yield %u : f32
  } -> tensor<8xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : tensor<8xf32>) outs(%d : tensor<8xbf16>) {
  ^bb0(%v: f32, %o: bf16):
    %w = arith.truncf %v : f32 to bf16
    linalg.yield %w : bf16
  } -> tensor<8xbf16>
  return %b : tensor<8xbf16>
}

// -----

// A float that is widened and comes out narrower is other bits.
// CHECK-LABEL: func.func @converted
// CHECK: flow.dispatch.region
// CHECK: func.return
func.func @converted(%x: tensor<8xf16>) -> tensor<8xbf16> {
  %d = tensor.empty() : tensor<8xbf16>
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf16>) outs(%d : tensor<8xbf16>) {
  ^bb0(%v: f16, %o: bf16):
    %w = arith.extf %v : f16 to f32
    %u = arith.truncf %w : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<8xbf16>
  return %a : tensor<8xbf16>
}
