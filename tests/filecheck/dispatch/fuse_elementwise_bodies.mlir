// RUN: fuseline opt %s -p form-dispatch-regions,clone-cheap-producers,outline-executables,fuse-elementwise-bodies --split-input-file --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p form-dispatch-regions,clone-cheap-producers,outline-executables,fuse-elementwise-bodies,fuse-elementwise-bodies --split-input-file --verify-each --print-locations | filecheck %s

// Bias and relu behind a product are one op, with the source nodes of both; the product is the root it was. What the dispatch says
// of its members follows: their loops, and their names at the call. The empty tensor between them is gone.
// CHECK-LABEL: func.func @epilogue
// CHECK: flow.dispatch @epilogue_dispatch_0_contraction{{.*}}fuseline.members = ["{{[^"]*}}", ["{{[^"]*}}", "{{[^"]*}}"]]
// CHECK: func.func @epilogue_dispatch_0_contraction({{.*}}members = [array<i64: 0, 1, -1>, array<i64: 0, 1>], classes = [array<i64: 0, 1, 2>, array<i64: 0, 1>]
// CHECK: linalg.generic
// CHECK: fuseline.root
// CHECK: arith.mulf
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<?x8xf32>, tensor<8xf32>)
// CHECK: arith.addf
// CHECK-NEXT: arith.maximumf
// CHECK-NEXT: linalg.yield
// CHECK-NEXT: } -> tensor<?x8xf32> loc(fused["bias", "relu"])
// CHECK-NEXT: func.return
func.func @epilogue(%x: tensor<?x4xf32> {fuseline.dims = ["n", "4"]}, %w: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x4xf32>, tensor<4x8xf32>) outs(%f : tensor<?x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<?x8xf32> loc("product")
  %e1 = tensor.empty(%n) : tensor<?x8xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%m, %b : tensor<?x8xf32>, tensor<8xf32>) outs(%e1 : tensor<?x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32> loc("bias")
  %e2 = tensor.empty(%n) : tensor<?x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<?x8xf32>) outs(%e2 : tensor<?x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.maximumf %p, %zero : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32> loc("relu")
  func.return %r : tensor<?x8xf32>
}

// -----

// Read transposed: maps are composed, and what the body knows of its point is that of the reader's loops. What both read in the
// same way is read once.
// CHECK-LABEL: func.func @turned
// CHECK: func.func @turned_dispatch_0_elementwise
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK-SAME: ins(%x : tensor<3x5xf32>)
// CHECK: linalg.index 1
// CHECK: linalg.index 0
// CHECK-NOT: linalg.generic
// CHECK: func.return
func.func @turned(%x: tensor<3x5xf32>) -> tensor<5x3xf32> {
  %e = tensor.empty() : tensor<3x5xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%p: f32, %o: f32):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i32
    %l = arith.sitofp %k : i32 to f32
    %s = arith.addf %p, %l : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  %e1 = tensor.empty() : tensor<5x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a, %x : tensor<3x5xf32>, tensor<3x5xf32>) outs(%e1 : tensor<5x3xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i32
    %l = arith.sitofp %k : i32 to f32
    %s = arith.mulf %p, %l : f32
    %t = arith.subf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<5x3xf32>
  func.return %r : tensor<5x3xf32>
}

// -----

// What is returned, too, stays an op of its own; so does what a smaller op makes for a larger one, and what has two readers.
// CHECK-LABEL: func.func @apart
// CHECK: func.func @apart_dispatch_0_elementwise
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK: math.tanh
// CHECK: func.return
func.func @apart(%x: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>) {
  %e = tensor.empty() : tensor<3x5xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.tanh %p : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  func.return %a, %r : tensor<3x5xf32>, tensor<3x5xf32>
}
