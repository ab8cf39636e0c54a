// RUN: fuseline opt %s -p "materialize-fills,form-dispatch-regions,elide-fills,dead-code" --split-input-file --verify-each | filecheck %s

// A fill of a size that is fed, which nothing else is done with.
// CHECK-LABEL: func.func @fed_sizes
// CHECK-NOT: flow.dispatch.region
// CHECK: %[[C:.*]] = arith.constant -0.000000e+00 : f32
// CHECK: %[[F:.*]] = linalg.fill ins(%[[C]] : f32)
// CHECK: func.return %[[F]]
func.func @fed_sizes(%n: index) -> tensor<?x3xf32> {
  %c = arith.constant -0.0 : f32
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  return %f : tensor<?x3xf32>
}

// -----

// The only element of an argument, under two ranks, seen through a reshape.
// CHECK-LABEL: func.func @elements
// CHECK-NOT: flow.dispatch.region
// CHECK: %[[A:.*]] = tensor.extract %x[] : tensor<i64>
// CHECK: %[[F:.*]] = linalg.fill ins(%[[A]] : i64)
// CHECK: %[[B:.*]] = tensor.extract %y[%{{.*}}, %{{.*}}] : tensor<1x1xi64>
// CHECK: %[[H:.*]] = linalg.fill ins(%[[B]] : i64)
// CHECK: %[[G:.*]] = tensor.collapse_shape %[[F]]
// CHECK: func.return %[[G]], %[[H]]
func.func @elements(%x: tensor<i64>, %y: tensor<1x1xi64>) -> (tensor<6xi64>, tensor<5xi64>) {
  %e = tensor.empty() : tensor<2x3xi64>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<i64>) outs(%e : tensor<2x3xi64>) {
  ^bb0(%v: i64, %o: i64):
    linalg.yield %v : i64
  } -> tensor<2x3xi64>
  %g = tensor.collapse_shape %a [[0, 1]] : tensor<2x3xi64> into tensor<6xi64>
  %d = tensor.empty() : tensor<5xi64>
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (0, 0)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%y : tensor<1x1xi64>) outs(%d : tensor<5xi64>) {
  ^bb0(%v: i64, %o: i64):
    linalg.yield %v : i64
  } -> tensor<5xi64>
  return %g, %b : tensor<6xi64>, tensor<5xi64>
}

// -----

// What computes with the element, or spreads several, is a dispatch.
// CHECK-LABEL: func.func @computed
// CHECK: flow.dispatch.region
// CHECK: linalg.generic {{.*}} ins(%x : tensor<f32>)
// CHECK: arith.negf
// CHECK: ins(%y : tensor<4xf32>)
// CHECK-NOT: flow.dispatch.region
// CHECK-NOT: tensor.extract
// CHECK: func.return
func.func @computed(%x: tensor<f32>, %y: tensor<4xf32>) -> (tensor<6xf32>, tensor<9x4xf32>) {
  %e = tensor.empty() : tensor<6xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<f32>) outs(%e : tensor<6xf32>) {
  ^bb0(%v: f32, %o: f32):
    %w = arith.negf %v : f32
    linalg.yield %w : f32
  } -> tensor<6xf32>
  %d = tensor.empty() : tensor<9x4xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<4xf32>) outs(%d : tensor<9x4xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<9x4xf32>
  return %a, %b : tensor<6xf32>, tensor<9x4xf32>
}

// -----

// What adds to a spread element has it inside; a fill that is only returned is none of its business.
// CHECK-LABEL: func.func @readers
// CHECK: %[[F:.*]] = linalg.fill
// CHECK: %[[R:.*]] = flow.dispatch.region
// CHECK: arith.addf
// CHECK-NOT: flow.dispatch.region
// CHECK: func.return %[[R]], %{{.*}}
func.func @readers(%x: tensor<f32>, %y: tensor<?xf32>, %n: index) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = arith.constant 0 : index
  %m = tensor.dim %y, %z : tensor<?xf32>
  %c = arith.constant 2.5 : f32
  %k = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%c : f32) outs(%k : tensor<?xf32>) -> tensor<?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<f32>) outs(%e : tensor<?xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<?xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %s = arith.addf %v, %w : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %b, %f : tensor<?xf32>, tensor<?xf32>
}

// -----

// What is put into a fill at fed positions needs no dispatch, whoever else has the fill. What fusion took in stays inside.
// CHECK-LABEL: func.func @inserts
// CHECK: %[[F:.*]] = linalg.fill
// CHECK: %[[G:.*]] = linalg.fill
// CHECK: %[[R:.*]] = tensor.insert_slice %x into %[[F]][%i, 2]
// CHECK: %[[S:.*]] = flow.dispatch.region
// CHECK: linalg.generic
// CHECK: tensor.insert_slice
// CHECK: flow.return
// CHECK-NOT: flow.dispatch.region
// CHECK: func.return %[[R]], %[[G]], %[[S]]
func.func @inserts(%x: tensor<?x4xf32>, %i: index, %n: index) -> (tensor<?x9xf32>, tensor<?x9xf32>, tensor<?x9xf32>) {
  %z = arith.constant 0 : index
  %m = tensor.dim %x, %z : tensor<?x4xf32>
  %c = arith.constant 2.5 : f32
  %e = tensor.empty(%n) : tensor<?x9xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<?x9xf32>) -> tensor<?x9xf32>
  %r = tensor.insert_slice %x into %f[%i, 2] [%m, 4] [1, 1] : tensor<?x4xf32> into tensor<?x9xf32>
  %o = tensor.empty() : tensor<f32>
  %p = linalg.fill ins(%c : f32) outs(%o : tensor<f32>) -> tensor<f32>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<?x4xf32>) outs(%p : tensor<f32>) {
  ^bb0(%v: f32, %w: f32):
    %t = arith.addf %v, %w : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<f32>) outs(%e : tensor<?x9xf32>) {
  ^bb0(%v: f32, %w: f32):
    linalg.yield %v : f32
  } -> tensor<?x9xf32>
  %s = tensor.insert_slice %x into %b[%i, %i] [%m, 4] [1, 1] : tensor<?x4xf32> into tensor<?x9xf32>
  return %r, %f, %s : tensor<?x9xf32>, tensor<?x9xf32>, tensor<?x9xf32>
}

// -----

// A dispatch: with gaps; at a position that is data; into what is no fill; of rows in four loops.
// CHECK-LABEL: func.func @gaps
// CHECK: flow.dispatch.region
// CHECK: tensor.insert_slice
// CHECK: flow.return
func.func @gaps(%x: tensor<4xf32>, %n: index) -> tensor<?xf32> {
  %c = arith.constant 2.5 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = tensor.insert_slice %x into %f[1] [4] [2] : tensor<4xf32> into tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// CHECK-LABEL: func.func @data
// CHECK: flow.dispatch.region
// CHECK: tensor.insert_slice
// CHECK: flow.return
func.func @data(%x: tensor<4xf32>, %i: tensor<i64>, %n: index) -> tensor<?xf32> {
  %c = arith.constant 2.5 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %k = tensor.extract %i[] : tensor<i64>
  %j = arith.index_cast %k : i64 to index
  %r = tensor.insert_slice %x into %f[%j] [4] [1] : tensor<4xf32> into tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// CHECK-LABEL: func.func @no_fill
// CHECK: flow.dispatch.region
// CHECK: tensor.insert_slice
// CHECK: flow.return
func.func @no_fill(%x: tensor<4xf32>, %y: tensor<?xf32>, %i: index) -> tensor<?xf32> {
  %r = tensor.insert_slice %x into %y[%i] [4] [1] : tensor<4xf32> into tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// CHECK-LABEL: func.func @many_loops
// CHECK: flow.dispatch.region
// CHECK: tensor.insert_slice
// CHECK: flow.return
func.func @many_loops(%x: tensor<2x2x2x2x2xf32>, %n: index) -> tensor<?x?x?x?x?xf32> {
  %c = arith.constant 2.5 : f32
  %e = tensor.empty(%n, %n, %n, %n, %n) : tensor<?x?x?x?x?xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<?x?x?x?x?xf32>) -> tensor<?x?x?x?x?xf32>
  %r = tensor.insert_slice %x into %f[0, 0, 0, 0, 0] [2, 2, 2, 2, 2] [1, 1, 1, 1, 1] : tensor<2x2x2x2x2xf32> into tensor<?x?x?x?x?xf32>
  return %r : tensor<?x?x?x?x?xf32>
}

// -----

// Rows of a large tensor that take most of it would be written twice; few rows, or those of a small one, are copied. Where they begin is fed: known inserts are pads.
// CHECK-LABEL: func.func @most_of_it
// CHECK: flow.dispatch.region
// CHECK: tensor.insert_slice %x
// CHECK-NOT: flow.dispatch.region
// CHECK: tensor.insert_slice %y
// CHECK: tensor.insert_slice %z
// CHECK: func.return
func.func @most_of_it(%x: tensor<1000x950xf32>, %y: tensor<1000x300xf32>, %z: tensor<10x9xf32>, %n: index {fuseline.name = "n", fuseline.upper_bound = 1 : i64})
    -> (tensor<1001x1000xf32>, tensor<1001x1000xf32>, tensor<11x10xf32>) {
  %c = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<1001x1000xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<1001x1000xf32>) -> tensor<1001x1000xf32>
  %a = tensor.insert_slice %x into %f[%n, 7] [1000, 950] [1, 1] : tensor<1000x950xf32> into tensor<1001x1000xf32>
  %b = tensor.insert_slice %y into %f[%n, 7] [1000, 300] [1, 1] : tensor<1000x300xf32> into tensor<1001x1000xf32>
  %d = tensor.empty() : tensor<11x10xf32>
  %g = linalg.fill ins(%c : f32) outs(%d : tensor<11x10xf32>) -> tensor<11x10xf32>
  %h = tensor.insert_slice %z into %g[%n, 1] [10, 9] [1, 1] : tensor<10x9xf32> into tensor<11x10xf32>
  return %a, %b, %h : tensor<1001x1000xf32>, tensor<1001x1000xf32>, tensor<11x10xf32>
}
