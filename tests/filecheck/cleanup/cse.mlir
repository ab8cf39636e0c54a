// RUN: fuseline opt %s -p cse --split-input-file --print-locations | filecheck %s

// Equal ops merge, chains too; the one that stays carries the provenance of both.
// CHECK-LABEL: func.func @chains
// CHECK: tensor.empty
// CHECK-NEXT: linalg.generic
// CHECK: } -> tensor<8xf32> loc(fused["a", "b"])
// CHECK-NEXT: %[[R:.*]] = linalg.generic
// CHECK: } -> tensor<8xf32> loc(fused["c", "d"])
// CHECK-NEXT: func.return %[[R]], %[[R]]
func.func @chains(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32> loc("a")
  %b = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%p: f32, %q: f32):
    %w = math.exp %p : f32
    linalg.yield %w : f32
  } -> tensor<8xf32> loc("b")
  %c = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.sqrt %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32> loc("c")
  %d = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%b : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.sqrt %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32> loc("d")
  return %c, %d : tensor<8xf32>, tensor<8xf32>
}

// -----

// Other maps, bodies, captured values or results: nothing merges.
// CHECK-LABEL: func.func @unequal
// CHECK-COUNT-4: linalg.generic
func.func @unequal(%x: tensor<4x4xf32>, %s: f32, %t: f32) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %e = tensor.empty() : tensor<4x4xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %t : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.subf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  return %a, %b, %c, %d : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Index arithmetic merges in either order; what lies in a dispatch region stays there.
// CHECK-LABEL: func.func @scopes
// CHECK: %[[M:.*]] = arith.muli %n, %m : index
// CHECK-NOT: arith.muli
// CHECK: tensor.empty
// CHECK: flow.dispatch.region
// CHECK: tensor.empty
func.func @scopes(%n: index, %m: index, %x: tensor<8xf32>) -> (index, index, tensor<8xf32>) {
  %a = arith.muli %n, %m : index
  %b = arith.muli %m, %n : index
  %e = tensor.empty() : tensor<8xf32>
  %r = flow.dispatch.region -> (tensor<8xf32>) {
    %f = tensor.empty() : tensor<8xf32>
    %v = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%f : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %w = math.exp %in : f32
      linalg.yield %w : f32
    } -> tensor<8xf32>
    flow.return %v : tensor<8xf32>
  }
  return %a, %b, %r : index, index, tensor<8xf32>
}

// -----

// Of three that differ in their bodies only, the later two merge.
// CHECK-LABEL: func.func @bodies
// CHECK: math.exp
// CHECK: %[[R:.*]] = linalg.generic
// CHECK: math.sqrt
// CHECK-NOT: math.sqrt
// CHECK: func.return %{{.*}}, %[[R]], %[[R]]
func.func @bodies(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.sqrt %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.sqrt %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %a, %b, %c : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// One value however it is written: operands of what commutes in another order, loops in another. What is subtracted has an order.
// CHECK-LABEL: func.func @rewritten
// CHECK: %[[SUM:.*]] = linalg.generic
// CHECK: arith.addf
// CHECK: } -> tensor<4x6xf32> loc(fused["a", "b"])
// CHECK-NEXT: %[[DIFFERENCE:.*]] = linalg.generic
// CHECK: arith.subf
// CHECK: } -> tensor<4x6xf32> loc("c")
// CHECK-NEXT: %[[OTHER:.*]] = linalg.generic
// CHECK: } -> tensor<4x6xf32> loc("d")
// CHECK-NEXT: func.return %[[SUM]], %[[SUM]], %[[DIFFERENCE]], %[[OTHER]]
#rows = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j, i)>
func.func @rewritten(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  %e = tensor.empty() : tensor<4x6xf32>
  %a = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %v = arith.addf %p, %q : f32
    linalg.yield %v : f32
  } -> tensor<4x6xf32> loc("a")
  %b = linalg.generic {indexing_maps = [#columns, #columns, #columns], iterator_types = ["parallel", "parallel"]} ins(%y, %x : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %v = arith.addf %p, %q : f32
    linalg.yield %v : f32
  } -> tensor<4x6xf32> loc("b")
  %c = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %v = arith.subf %p, %q : f32
    linalg.yield %v : f32
  } -> tensor<4x6xf32> loc("c")
  %d = linalg.generic {indexing_maps = [#columns, #columns, #columns], iterator_types = ["parallel", "parallel"]} ins(%y, %x : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %v = arith.subf %p, %q : f32
    linalg.yield %v : f32
  } -> tensor<4x6xf32> loc("d")
  return %a, %b, %c, %d : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}
