// RUN: fuseline opt %s -p "generalize-named-ops,form-dispatch-regions{fusion=none},elide-concats" --split-input-file --verify-each | filecheck %s

// Parts one behind the other, each made by a dispatch of its own: the concat is their memory.
// CHECK-LABEL: func.func @stacked
// CHECK: %[[A:.*]] = flow.dispatch.region
// CHECK: %[[B:.*]] = flow.dispatch.region
// CHECK: %[[C:.*]] = tensor.concat dim(0) %[[A]], %[[B]] :
// CHECK: flow.dispatch.region
// CHECK: linalg.generic {{.*}} ins(%[[C]]
func.func @stacked(%x: tensor<2x5xf32>, %y: tensor<3x5xf32>) -> tensor<5x5xf32> {
  %e2 = tensor.empty() : tensor<2x5xf32>
  %e3 = tensor.empty() : tensor<3x5xf32>
  %e5 = tensor.empty() : tensor<5x5xf32>
  %a = linalg.elementwise <exp> ins(%x : tensor<2x5xf32>) outs(%e2 : tensor<2x5xf32>) -> tensor<2x5xf32>
  %b = linalg.elementwise <exp> ins(%y : tensor<3x5xf32>) outs(%e3 : tensor<3x5xf32>) -> tensor<3x5xf32>
  %c = tensor.concat dim(0) %a, %b : (tensor<2x5xf32>, tensor<3x5xf32>) -> tensor<5x5xf32>
  %r = linalg.elementwise <exp> ins(%c : tensor<5x5xf32>) outs(%e5 : tensor<5x5xf32>) -> tensor<5x5xf32>
  return %r : tensor<5x5xf32>
}

// -----

// Along an inner dimension the parts take turns in memory; behind dimensions of size 1 they do not. Reshapes change nothing.
// CHECK-LABEL: func.func @dimensions
// CHECK: %[[A:.*]] = flow.dispatch.region
// CHECK: flow.dispatch.region
// CHECK-NEXT: tensor.concat dim(1)
// CHECK: %[[R:.*]] = tensor.expand_shape %[[A]]
// CHECK: %[[C:.*]] = tensor.concat dim(1) %[[R]], %[[R]] :
// CHECK: func.return %{{.*}}, %[[C]] :
func.func @dimensions(%x: tensor<2x5xf32>) -> (tensor<2x10xf32>, tensor<1x4x5xf32>) {
  %e2 = tensor.empty() : tensor<2x5xf32>
  %a = linalg.elementwise <exp> ins(%x : tensor<2x5xf32>) outs(%e2 : tensor<2x5xf32>) -> tensor<2x5xf32>
  %c = tensor.concat dim(1) %a, %a : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x10xf32>
  %b = tensor.expand_shape %a [[0, 1], [2]] output_shape [1, 2, 5] : tensor<2x5xf32> into tensor<1x2x5xf32>
  %d = tensor.concat dim(1) %b, %b : (tensor<1x2x5xf32>, tensor<1x2x5xf32>) -> tensor<1x4x5xf32>
  return %c, %d : tensor<2x10xf32>, tensor<1x4x5xf32>
}

// -----

// One part may be copied to its place: an argument, a value that is returned, or one that has a place already. Two would be more than one dispatch, unless
// all are arguments: then nothing is computed.
// CHECK-LABEL: func.func @copies
// CHECK: %[[A:.*]] = flow.dispatch.region
// CHECK: tensor.concat dim(0) %x, %[[A]] :
// CHECK: flow.dispatch.region
// CHECK-NEXT: tensor.concat dim(0) %x, %[[A]] {
// CHECK-NOT: flow.dispatch.region
// CHECK: tensor.concat dim(0) %x, %x :
func.func @copies(%x: tensor<2x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>) {
  %e2 = tensor.empty() : tensor<2x5xf32>
  %a = linalg.elementwise <exp> ins(%x : tensor<2x5xf32>) outs(%e2 : tensor<2x5xf32>) -> tensor<2x5xf32>
  %c = tensor.concat dim(0) %x, %a : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<4x5xf32>
  %d = tensor.concat dim(0) %x, %a : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<4x5xf32>
  %f = tensor.concat dim(0) %x, %x : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<4x5xf32>
  return %c, %d, %f : tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>
}

// -----

// A returned part has its own memory.
// CHECK-LABEL: func.func @returned
// CHECK: %[[A:.*]] = flow.dispatch.region
// CHECK: flow.dispatch.region
// CHECK-NEXT: tensor.concat dim(0) %[[A]], %[[A]] {
func.func @returned(%x: tensor<2x5xf32>) -> (tensor<2x5xf32>, tensor<4x5xf32>) {
  %e2 = tensor.empty() : tensor<2x5xf32>
  %a = linalg.elementwise <exp> ins(%x : tensor<2x5xf32>) outs(%e2 : tensor<2x5xf32>) -> tensor<2x5xf32>
  %c = tensor.concat dim(0) %a, %a : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<4x5xf32>
  return %a, %c : tensor<2x5xf32>, tensor<4x5xf32>
}

// -----

// A concat that is a part itself lies in the outer one. A fill is made where it belongs, of known size or not; two of them beside what is computed would be more
// than one dispatch, but beside arguments they take no code.
// CHECK-LABEL: func.func @nested
// CHECK: %[[C:.*]] = tensor.concat dim(0) %{{.*}}, %x :
// CHECK: %[[D:.*]] = tensor.concat dim(0) %{{.*}}, %[[C]], %{{.*}} :
// CHECK: flow.dispatch.region
// CHECK: %[[F:.*]] = linalg.fill
// CHECK: %[[H:.*]] = tensor.concat dim(0) %{{.*}}, %[[F]] :
// CHECK: flow.dispatch.region
// CHECK-NEXT: tensor.concat dim(0)
// CHECK: %[[J:.*]] = tensor.concat dim(0) %[[F]], %z, %[[F]] :
// CHECK: func.return %[[D]], %[[H]], %{{.*}}, %[[J]]
func.func @nested(%x: tensor<2x5xf32>, %z: tensor<?x5xf32>)
    -> (tensor<7x5xf32>, tensor<?x5xf32>, tensor<?x5xf32>, tensor<?x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %z, %c0 : tensor<?x5xf32>
  %e1 = tensor.empty() : tensor<1x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x5xf32>) -> tensor<1x5xf32>
  %e2 = tensor.empty() : tensor<2x5xf32>
  %a = linalg.elementwise <exp> ins(%x : tensor<2x5xf32>) outs(%e2 : tensor<2x5xf32>) -> tensor<2x5xf32>
  %b = linalg.elementwise <exp> ins(%a : tensor<2x5xf32>) outs(%e2 : tensor<2x5xf32>) -> tensor<2x5xf32>
  %c = tensor.concat dim(0) %a, %x : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<4x5xf32>
  %d = tensor.concat dim(0) %b, %c, %f : (tensor<2x5xf32>, tensor<4x5xf32>, tensor<1x5xf32>) -> tensor<7x5xf32>
  %en = tensor.empty(%n) : tensor<?x5xf32>
  %g = linalg.elementwise <exp> ins(%z : tensor<?x5xf32>) outs(%en : tensor<?x5xf32>) -> tensor<?x5xf32>
  %fn = linalg.fill ins(%zero : f32) outs(%en : tensor<?x5xf32>) -> tensor<?x5xf32>
  %h = tensor.concat dim(0) %g, %fn : (tensor<?x5xf32>, tensor<?x5xf32>) -> tensor<?x5xf32>
  %i = tensor.concat dim(0) %fn, %g, %fn : (tensor<?x5xf32>, tensor<?x5xf32>, tensor<?x5xf32>) -> tensor<?x5xf32>
  %j = tensor.concat dim(0) %fn, %z, %fn : (tensor<?x5xf32>, tensor<?x5xf32>, tensor<?x5xf32>) -> tensor<?x5xf32>
  return %d, %h, %i, %j : tensor<7x5xf32>, tensor<?x5xf32>, tensor<?x5xf32>, tensor<?x5xf32>
}
