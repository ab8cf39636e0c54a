// RUN: fuseline opt %s -p generalize-named-ops,form-dispatch-regions --split-input-file --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p generalize-named-ops,form-dispatch-regions,form-dispatch-regions --split-input-file --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p "generalize-named-ops,form-dispatch-regions{fusion=none}" --split-input-file --verify-each | filecheck %s --check-prefix NONE
// RUN: not fuseline opt %s -p "form-dispatch-regions{fusion=some}" --split-input-file | filecheck %s --check-prefix LEVEL

// LEVEL: E0304
// LEVEL: fusion is 'some'

// A chain is one region: its members are named, its root is marked, it says which loops they share, it carries the provenance of all, and only what
// others read leaves it. Its unknown size is read off the argument. Without fusion each op has its own region.
// CHECK-LABEL: func.func @chain
// CHECK: %[[N:.*]] = tensor.dim %x
// CHECK: %b = flow.dispatch.region -> (tensor<?x4xf32>{%[[N]]}) attributes {fuseline.members = ["elementwise.{{.*}}", "elementwise.{{.*}}"], fuseline.loops = {grids = {{\[\[}}"{{.*}}", "4"]], members = [array<i64: 0, 1>, array<i64: 0, 1>], classes = [array<i64: 0, 1>, array<i64: 0, 1>]}}
// CHECK: %a = linalg.generic
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%a {{.*}} {fuseline.root}
// CHECK: flow.return %[[B]] : tensor<?x4xf32> loc(fused["a", "b"])
// CHECK-NEXT: } loc(fused["a", "b"])
// CHECK-NEXT: func.return %b
// NONE-LABEL: func.func @chain
// NONE: %a = flow.dispatch.region
// NONE: math.exp
// NONE: %b = flow.dispatch.region
// NONE: math.absf
// NONE: func.return %b
func.func @chain(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %a = linalg.elementwise <exp> ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32> loc("a")
  %b = linalg.elementwise <abs> ins(%a : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32> loc("b")
  return %b : tensor<?x4xf32>
}

// -----

// What the caller reads too leaves the region. Views between dispatches stay outside, and before their readers; a slice is an op of its own.
// CHECK-LABEL: func.func @views
// CHECK: %c = flow.dispatch.region
// CHECK: %flat = tensor.collapse_shape %c
// CHECK-NEXT: %wide = tensor.expand_shape %flat
// CHECK: flow.dispatch.region {{.*}} fuseline.loops = {grids = {{\[\[}}"4", "2"]], members = ["inlined", array<i64: 0, 1>], classes = [array<i64: 0, 1>, array<i64: 2, 1>]}
// CHECK: linalg.generic {{.*}} ins(%wide
// CHECK: tensor.extract_slice
// CHECK: func.return %c, %{{.*}} :
// NONE-LABEL: func.func @views
// NONE-COUNT-3: flow.dispatch.region
func.func @views(%y: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x2xf32>) {
  %o = tensor.empty() : tensor<4x4xf32>
  %c = linalg.elementwise <exp> ins(%y : tensor<4x4xf32>) outs(%o : tensor<4x4xf32>) -> tensor<4x4xf32>
  %flat = tensor.collapse_shape %c [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
  %wide = tensor.expand_shape %flat [[0, 1]] output_shape [8, 2] : tensor<16xf32> into tensor<8x2xf32>
  %p = tensor.empty() : tensor<8x2xf32>
  %d = linalg.elementwise <abs> ins(%wide : tensor<8x2xf32>) outs(%p : tensor<8x2xf32>) -> tensor<8x2xf32>
  %s = tensor.extract_slice %d[0, 0] [4, 2] [1, 1] : tensor<8x2xf32> to tensor<4x2xf32>
  return %c, %s : tensor<4x4xf32>, tensor<4x2xf32>
}
